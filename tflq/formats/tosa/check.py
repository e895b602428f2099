"""Whether a module in the tosa form is valid TOSA on a target, and what it needs: the last step before a file is
written.

Element types are those that `rules/tosa.toml` has for profiles and extensions of the target; what TOSA demands beyond
types is in `tflq.formats.tosa.laws`. All violations are reported together, each with operator, location and reason.

What a module needs is the least that has all of its operators. An operator on its element types is in the tables of one
profile or extension, or in those of both profiles; then the profile counts that other operators need, or else the
integer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tflq.base.errors import InvalidModelError, Reason, UnsupportedError
from tflq.dialects.forms import ModuleForm
from tflq.dialects.tosa.movement import Rescale, Variable
from tflq.formats.tosa.laws import Context, nesting, violations
from tflq.formats.tosa.operands import signless
from tflq.formats.tosa.rules import Target, default_rules
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, Shape, TensorType
from tflq.transforms.pass_manager import Pass, PassResult

Signature = tuple[str, tuple[str, ...], tuple[str, ...]]
"""An operator and the element types of its operands and results."""

_WORDS: Final = {"pro_int": "integer", "pro_fp": "floating-point"}


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a module on a device: profiles, extensions, the level, the specification's version."""

    key: ClassVar[str] = "tosa"
    """The key in the report."""
    profiles: tuple[str, ...]
    extensions: tuple[str, ...]
    level: str
    specification: str

    def __str__(self) -> str:
        words = [_WORDS.get(name, name) for name in self.profiles]
        profiles = f"{' and '.join(words)} profile{'s' * (len(words) > 1)}"
        count = len(self.extensions)
        extensions = f", with extension{'s' * (count > 1)} {', '.join(self.extensions)}" if count else ""
        return f"TOSA {self.specification}, level {self.level}: valid for the {profiles}{extensions}"

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "specification": self.specification,
            "level": self.level,
            "profiles": list(self.profiles),
            "extensions": list(self.extensions),
        }


def demands(op: Op) -> list[Signature]:
    """The operator's signature, and that of each constant it takes."""
    operands = op.present_operands
    types = tuple([v.type.storage.name for v in operands])
    signature = op.name.removeprefix("tosa."), types, tuple([v.type.storage.name for v in op.results])
    constants = {v.type.storage.name for v in operands if v.producer is None and v.is_constant}
    return [signature, *[("const", (), (name,)) for name in sorted(constants)]] if constants else [signature]


def of_type(type: TensorType) -> Signature:
    """The signature that stands for an argument, a result or a variable: that of IDENTITY."""
    name = signless(type.storage).name
    return "identity", (name,), (name,)


def providers(signature: Signature, target: Target) -> frozenset[str]:
    """The profiles and extensions of the target that have a signature."""
    return frozenset(filter(target.has, target.rules.providers(*signature)))


def requirements(
    module: Module, target: Target, provided: Mapping[Signature, frozenset[str]] | None = None
) -> Requirements:
    """The requirements of a module, as far as the target meets them. `provided`: the `providers` of the signatures of
    its operators and of its functions' arguments and results, where they are known."""
    demanded = {s: providers(s, target) for s in set(_signatures(module))} if provided is None else dict(provided)
    needed: set[str] = set()
    for function in module.functions:
        for variable in function.ops_of(Variable):
            signature = of_type(variable.initial_value.type)
            demanded.setdefault(signature, providers(signature, target))
        if any(op.rounding_mode == "DOUBLE_ROUND" for op in function.ops_of(Rescale)):
            needed.add("doubleround")
    several = set()
    for choice in set(demanded.values()):
        needed.update(choice) if len(choice) == 1 else several.add(choice)
    needed |= {target.rules.extends[name] for name in needed if name in target.rules.extends}
    for choice in sorted(several, key=sorted):
        if choice and not choice & needed:
            needed.add("pro_int" if "pro_int" in choice else min(choice))
    if not any(name in target.rules.profiles for name in needed):
        needed.add("pro_int" if "pro_int" in target.profiles else min(target.profiles))
    return Requirements(
        tuple(name for name in target.rules.profiles if name in needed),
        tuple(name for name in target.rules.extensions if name in needed),
        target.level,
        target.specification,
    )


def _signatures(module: Module) -> Iterator[Signature]:
    for function in module.functions:
        for value in (*function.inputs, *function.outputs):
            yield of_type(value.type)
    for op in module.ops():
        yield from demands(op)


class CheckTosa(Pass):
    """Checks that the target takes the module, and notes what that needs (`Requirements`). UnsupportedError lists what
    it does not take; with `static` also dims that are not known."""

    name: ClassVar[str] = "check-tosa"
    title: ClassVar[str] = "check of the result"
    takes: ClassVar[ModuleForm] = "tosa"
    relies: ClassVar[bool] = True

    def __init__(self, target: Target | None = None, static: bool = False) -> None:
        self.target: Final[Target] = Target() if target is None else target
        self.static: Final = static

    def run(self, module: Module) -> PassResult:
        module.record.note(check(module, self.target, static=self.static))
        return PassResult(module, modified=False)


def check(module: Module, target: Target, *, static: bool = False) -> Requirements:
    """The profiles and extensions that a valid module in the TOSA form needs. UnsupportedError lists every violation;
    with `static`, dims that are not known are among them, since a flatbuffer cannot hold them."""
    checking = _Check(module, target, static)
    if reasons := list(dict.fromkeys(checking.run())):
        what = f"the result is not valid TOSA {target.specification} on this target:"
        remedy = "state a target that has these (--target FILE.toml), or smaller sizes"
        raise UnsupportedError(what, reasons, remedy=remedy)
    return requirements(module, target, checking.provided)


class CheckLaws(Pass):
    """Checks that TOSA allows each operator on some target, as a file may hold it. InvalidModelError names the first
    that it does not allow."""

    name: ClassVar[str] = "check-laws"
    title: ClassVar[str] = "check of the source"
    takes: ClassVar[ModuleForm] = "tosa"

    def run(self, module: Module) -> PassResult:
        context = Context(module, _variables(module), default_rules()[0].levels["none"])
        for op in module.ops():
            if all(value.type.shape is not None for value in op.tensors):
                for fault in violations(op, context):
                    raise InvalidModelError(op.location or op.name, fault)
        return PassResult(module, modified=False)


class _Check:
    """One module's check; answers on element types are remembered."""

    def __init__(self, module: Module, target: Target, static: bool) -> None:
        self.module = module
        self.target = target
        self.static = static
        self.context = Context(module, _variables(module), target.limits)
        self.provided: dict[Signature, frozenset[str]] = {}
        """By signature of what was checked, the profiles and extensions of the target that have it."""
        self._typed: dict[tuple[object, ...], list[str]] = {}
        """Faults in the element types of ops, by name, number of results, types of tensors and constants."""
        self._fitting: set[tuple[Shape, ScalarType]] = set()
        """Shapes and element types of tensors that the level has."""

    def run(self) -> Iterator[Reason]:
        open_inputs = list(self._open_inputs()) if self.static else []
        yield from open_inputs
        self.static = self.static and not open_inputs
        for index, function in enumerate(self.module.functions):
            yield from self._function(index, function)

    def _open_inputs(self) -> Iterator[Reason]:
        for function in self.module.functions:
            for value in function.inputs:
                if value.type.shape is None or None in value.type.shape:
                    what = f"input '{value.name}' ({value.type}) has open dims, and a TOSA flatbuffer has none"
                    remedy = "state a batch size (--batch N) or the whole shape (--shape); MLIR text keeps them open"
                    yield Reason(what, tensor=value.name, remedy=remedy)

    def _function(self, index: int, function: Function) -> Iterator[Reason]:
        where = f"function {index} ({function.name})" if function.name else f"function {index}"
        for value in (*function.inputs, *function.outputs):
            for fault in (self._type(of_type(value.type)), self._shape(value)):
                if fault is not None:
                    yield Reason(f"'{value.name}': {fault}", subgraph=index, tensor=value.name, place=where)
        if nesting(self.context, index) > self.target.limits.nesting:
            deepest = self.target.limits.nesting
            what = f"control flow nests deeper than the level's {deepest}, or without end"
            yield Reason(what, subgraph=index, place=where, value=deepest)
        declared: set[str] = set()
        for op in function.ops:
            if isinstance(op, Variable):
                if op.variable in declared:
                    yield Reason(f"two variables are called '{op.variable}'", subgraph=index, place=where)
                declared.add(op.variable)
            for fault in self._op(op):
                yield Reason.at(op.location, fault)

    def _op(self, op: Op) -> list[str]:
        """Faults of an op. Those of its tensors' shapes are the model's, so that they do not name TOSA's operator, and
        what follows from them is not said."""
        tensors, fitting = op.tensors, self._fitting
        messages = [*self._types(op, tensors)]
        if isinstance(op, Rescale) and op.rounding_mode == "DOUBLE_ROUND" and not self.target.has("doubleround"):
            messages.append("DOUBLE_ROUND needs the extension doubleround, which the target lacks")
        unfit = [v for v in tensors if (v.type.shape, v.type.storage) not in fitting]
        misshapen = [fault for v in unfit if (fault := self._shape(v)) is not None]
        if not misshapen:
            messages += violations(op, self.context)
        return [*misshapen, *(f"{op.name}: {message}" for message in messages)]

    def _types(self, op: Op, tensors: Sequence[Value]) -> Sequence[str]:
        """Faults in the element types of an op's tensors, cached for all ops with equal types."""
        elements = [v.type.storage for v in tensors]
        constants = [v.type.storage for v in tensors if v.buffer is not None and v.is_constant]
        key = op.name, len(op.results), *elements, None, *constants
        messages = self._typed.get(key)
        if messages is None:
            faults = map(self._type, demands(op))
            messages = self._typed[key] = [fault for fault in faults if fault is not None]
        return messages

    def _type(self, signature: Signature) -> str | None:
        """Why the target does not have a signature; None if it does."""
        provided = self.provided.get(signature)
        if provided is None:
            provided = self.provided[signature] = providers(signature, self.target)
        return None if provided else self._missing(signature)

    def _missing(self, signature: Signature) -> str:
        name, operands, results = signature
        types = f"({', '.join(operands)}) → {', '.join(results)}"
        what = {"const": f"a constant of {types[5:]}", "identity": f"a tensor of {', '.join(results)}"}.get(name, types)
        having = sorted(self.target.rules.providers(*signature))
        if not having and any(default_rules()[0].providers(*signature)):
            return f"the target lacks {what}"
        if not having:
            return f"TOSA {self.target.specification} lacks {what}"
        return f"{what} needs {' or '.join(having)}, which the target lacks"

    def _shape(self, value: Value) -> str | None:
        """Why no tensor of the level has a value's shape; None if one can."""
        fault = self._misshapen(value)
        if fault is None:
            self._fitting.add((value.type.shape, value.type.storage))
        return fault

    def _misshapen(self, value: Value) -> str | None:
        shape, limits = value.type.shape, self.context.limits
        if shape is None:
            return f"the rank of '{value.name}' is not known"
        if len(shape) > limits.rank:
            return f"'{value.name}' {value.type} has more than the level's {limits.rank} dims"
        if None in shape:
            return f"'{value.name}' {value.type} has a dim that is not known" if self.static else None
        count = max(1, value.type.storage.bits // 8)
        for d in shape:
            count *= d or 0
        if count == 0:
            return f"'{value.name}' {value.type} has no elements"
        if count >= 1 << limits.log2_size:
            return f"'{value.name}' {value.type} has more bytes than the level's 2^{limits.log2_size} - 1"
        return None


def _variables(module: Module) -> dict[str, TensorType]:
    """The type of each variable of a module."""
    return {op.variable: op.initial_value.type for function in module.functions for op in function.ops_of(Variable)}
