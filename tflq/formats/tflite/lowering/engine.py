"""Selection: a module in the integer form → the same module on TFLite builtins.

`tfl` ops (already kernels) pass through; every other op has one lowering. `quant.scast` at a function's edge is where
a tensor with quantization parameters meets plain integers. A kernel that ignores parameters reads an argument, or
writes a result, directly; for any other an identity kernel stands between, since with parameters on it would compute
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from tflq.base.errors import Reason, Refused, UnsupportedError, VerificationError, operators
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import entry_functions, is_hybrid
from tflq.dialects.forms import UNQUANTIZED, ModuleForm, is_recurrent, stays_quantized_reason
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import Calls, ComputesInFloat
from tflq.formats.options import Mac
from tflq.formats.tflite.lowering.lowering import Tflite, lowering
from tflq.formats.tflite.tensors import quantization_fields
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value
from tflq.ir.types import QUANTIZED_TYPES, f32
from tflq.targets.target import INTEGER, KernelRules, Target, load_rules
from tflq.transforms.pass_manager import Decisions, Pass, PassResult, Searches

if TYPE_CHECKING:
    from tflq.base.caches import ProofCache
    from tflq.transforms.pass_manager import Decision


class Select(Pass):
    """Every op becomes builtins.

    mac: the form of multiply-accumulate. cache: a folder of proofs. weights: the type in which weights are stored where
    all products are in float32: int8 where the target and their numbers allow it.
    """

    name: ClassVar[str] = "select"
    title: ClassVar[str] = "selection of kernels"
    takes: ClassVar[ModuleForm] = "integer"
    makes: ClassVar[ModuleForm] = "kernels"

    def __init__(
        self,
        mac: Literal["integer", "float32"] = "integer",
        cache: str = "",
        target: Target = INTEGER,
        weights: Literal["float32", "int8"] = "int8",
    ) -> None:
        self.mac: Final = mac
        self.cache: Final = cache
        self.target: Final = target
        self.weights: Final = weights

    def run(self, module: Module) -> PassResult:
        proofs = None
        if self.cache:
            from tflq.base.caches import ProofCache

            proofs = ProofCache(self.cache)
        target = self.target if self.weights == "int8" else self.target.replace(weights=self.weights)
        return PassResult(select(module, mac=self.mac, proofs=proofs, target=target), modified=True)


def select(
    module: Module, *, mac: Mac = "integer", proofs: ProofCache | None = None, target: Target = INTEGER
) -> Module:
    """The module on kernels; `mac` is the form of multiply-accumulate. Roundings are lowered and variables declared
    before (`lower-rounding`, `declare-variables`). UnsupportedError lists every op without a lowering."""
    missing: dict[Location | None, set[str]] = {}
    for op in module.ops():
        if not _known(op):
            missing.setdefault(op.location, set()).add(op.name)
    if missing:
        reasons = [Reason.at(place, f"no kernel for {', '.join(sorted(names))}") for place, names in missing.items()]
        what = f"no kernels on this target for {operators(len(missing))}:"
        raise UnsupportedError(what, reasons, remedy="convert only the part before it (--cut)")
    replacements: dict[Value, Value] = {}
    searches = Searches(module)
    for function in module.functions:
        before = list(function.outputs)
        _select_function(function, mac, proofs, target, searches)
        replacements |= zip(before, function.outputs, strict=True)
    if module.signatures is not None:
        module.signatures = [signature.with_outputs(replacements) for signature in module.signatures]
    return module


def _known(op: Op) -> bool:
    return op.name.startswith("tfl.") or lowering.get(type(op)) is not None


def _select_function(
    function: Function, mac: Mac, proofs: ProofCache | None, target: Target, searches: Searches
) -> None:
    restricted: Callable[[Op, Tflite], Value | list[Value] | None] | None = None
    if target.builtins is not None:
        from tflq.formats.tflite.lowering.portable import portable

        restricted, mac = portable, "float32"
    lists = None if target.builtins is None else partial(_lists, target)
    weights = target.weights if mac == "float32" else "float32"
    k = Tflite(function, mac, proofs, target.sums, searches, weights=weights, lists=lists)
    for op in function.ops:
        if op in k.fused:
            continue
        k.location = op.location
        k.begin()
        try:
            _select(op, k, restricted)
        except Refused as refusal:
            reason = refusal.at(op.location)
            raise UnsupportedError("1 operator(s) have no form on this target's kernels:", [reason]) from None
    function.ops = k.ops
    function.outputs = [k.value(v) for v in function.outputs]


def _select(op: Op, k: Tflite, restricted: Callable[[Op, Tflite], Value | list[Value] | None] | None) -> None:
    """Puts builtins in the place of an op. Refused if that takes too much."""
    results: Value | Sequence[Value] | None = restricted(op, k) if restricted is not None else None
    if results is None and op.name.startswith("tfl."):
        operands = [None if v is None else k.value(v) for v in op.operands]
        k.ops.append(op.copy_with(operands, info=dict(op.info)))
        return
    if results is None:
        function_of = lowering.get(type(op))
        assert function_of is not None
        results = function_of(op, k)
    k.end(op, [results] if isinstance(results, Value) else results)


# What a converted module may hold: the last check before it is written.
#
# Legal are the integer kernels that `rules/integer.json` lists, on tensors without quantization parameters; the kernels
# of operators that the report lists as kept or computed in float; float kernels for operators that compute in float
# themselves, and for multiply-accumulate if that was asked for. Parameters may be on the model's inputs and outputs, on
# constants that DEQUANTIZE reads, and on tensors of a kept operator: one that the target lists, or that is kept
# whatever the target (recurrent, custom and calling operators, hybrid ones).
#
# A target that restricts plain builtins binds all of these, too, and those that compute in float or had no quantized
# tensor, which may also be its `floats`. Operators that call functions copy tensors of any types: their names are
# enough. Custom ones are the user's.


class CheckLegality(Pass):
    """Checks that the target has each operator. UnsupportedError lists those that it lacks. `mac`: the form of
    multiply-accumulate."""

    name: ClassVar[str] = "check-legality"
    title: ClassVar[str] = "check of the result"
    takes: ClassVar[ModuleForm] = "kernels"

    def __init__(self, target: Target = INTEGER, mac: Literal["integer", "float32"] = "integer") -> None:
        self.target: Final = target
        self.mac: Final = mac

    def run(self, module: Module) -> PassResult:
        check(module, Decisions.of(module), self.mac, self.target)
        return PassResult(module, modified=False)


def check(module: Module, decisions: Iterable[Decision], mac: Mac = "integer", target: Target = INTEGER) -> None:
    """UnsupportedError for a module that the target does not take.

    The error lists every operator on kernels that must not be there, and why, or the entries that the target does not
    run.
    """
    if target.first_entry and (others := entry_functions(module)[1:]):
        keys = {s.function: f"signature '{s.key}'" for s in module.signatures or ()}
        listed = ", ".join(keys.get(index, f"subgraph {index}") for index in others)
        what = f"the target '{target.name}' runs the first subgraph and what it calls, not {listed}"
        raise UnsupportedError(Reason(what, module.source, remedy="convert a signature alone (--signature KEY)"))
    _check_interface(module)
    paths = _Paths(decisions)
    illegal = dict.fromkeys(
        reason for function in module.functions for reason in _illegal_in(function, paths, mac, target)
    )
    if illegal:
        remedy = "list these kernels in the target file, or convert for another target"
        raise UnsupportedError(
            f"the target does not take {operators(len(illegal))} of the result:", list(illegal), remedy=remedy
        )


def _check_interface(module: Module) -> None:
    """UnsupportedError for an input or output of a type that only the text form has."""
    for function in module.functions:
        for value in (*function.inputs, *function.outputs):
            try:
                quantization_fields(value)
            except VerificationError as error:
                raise UnsupportedError(Reason(str(error), module.source, tensor=value.name)) from None


class _Paths:
    """The path on which an op's source operator was converted: "integer", "float kernel" or "exempt". Copies at the
    edges belong to no operator, and those of int4 pass float32. A place that several operators of a text share is
    exempt if one of them is."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        decisions = list(decisions)
        # those that had no quantized tensor may be next to one now, whose parameters their kernels ignore
        self.copied = {d.op.location: d.op.name for d in decisions if d.path == "kept" and d.reason != UNQUANTIZED}
        paths = [(d.op.location, self._path(d)) for d in decisions]
        self._by_place = dict(sorted(paths, key=lambda item: item[1] == "exempt"))
        self._by_object: dict[int, str] = {}  # ops share their location objects, whose hashes are slow

    def _path(self, decision: Decision) -> str:
        if decision.path != "integer":
            return "exempt"
        return "float kernel" if trait_of(decision.op, ComputesInFloat) else "integer"

    def keeps(self, op: Op) -> bool:
        """Whether it is a source operator that was kept, and not because it had no quantized tensor."""
        return self.of(op) == "exempt" and self.copied.get(op.location) == op.name

    def exempt(self, ops: Iterable[Op]) -> list[Op]:
        """The ops on the path "exempt", in order."""
        return [op for op in ops if self.of(op) == "exempt"] if "exempt" in self._by_place.values() else []

    def of(self, op: Op) -> str:
        key = id(op.location)
        path = self._by_object.get(key)
        if path is None:
            path = self._by_object[key] = self._by_place.get(op.location, "integer") if op.location else "float kernel"
        return path


def _illegal_in(function: Function, paths: _Paths, mac: Mac, target: Target) -> Iterable[Reason]:
    exempt = paths.exempt(function.ops)
    edges: set[Value] = {*function.inputs, *function.outputs} if target.builtins is None else set()
    excused = {op for op in exempt if target.builtins is None or _has(op, target) or _on_kernel(op, paths)}
    edges.update(value for op in excused for value in op.tensors)
    yield from _unlisted(exempt, paths, target)
    illegal = dict(_illegal(function, paths, excused, edges, _sections(mac, target), target))
    if illegal:
        yield from (reason for op in function.ops for reason in illegal.get(op, ()))


def _unlisted(ops: Iterable[Op], paths: _Paths, target: Target) -> Iterable[Reason]:
    """Operators kept on quantized tensors, neither listed by the target nor kept whatever it is."""
    for op in ops:
        if not paths.keeps(op) or _anywhere(op, target):
            continue
        if not any(v.type.quantized for v in op.tensors):
            continue
        verdict = target.judge(op)
        if not verdict.runs:
            yield Reason.at(op.location, f"{op.name} is kept on quantized tensors: {verdict.reason}")


def _anywhere(op: Op, target: Target) -> bool:
    """Whether an operator is kept on quantized tensors whatever kernels the target lists."""
    if target.builtins is None:
        return stays_quantized_reason(op) is not None or is_hybrid(op) or _restores_weights(op)
    return _has(op, target) or (isinstance(op, Dequantize) and target.builtins.admit(op))


def _has(op: Op, target: Target) -> bool:
    """Whether a target that restricts plain builtins has an operator on whatever tensors."""
    from tflq.dialects.tfl.state import Custom

    if is_recurrent(op):
        return target.recurrent
    calls = trait_of(op, Calls) is not None and target.builtins is not None and op.short_name in target.builtins.names
    return calls or isinstance(op, Custom)


def _restores_weights(op: Op) -> bool:
    """Whether it dequantizes a constant: weights that are stored as integers."""
    return isinstance(op, Dequantize) and op.input.is_constant


def _illegal(
    function: Function,
    paths: _Paths,
    excused: Set[Op],
    edges: set[Value],
    sections: Mapping[str, Sequence[KernelRules]],
    target: Target,
) -> Iterator[tuple[Op, Sequence[Reason]]]:
    """Other operators than the target has, and parameters on tensors that are not at an edge, of the ops that are not
    excused: each with its reasons."""
    for signature, ops in function.by_signature().items():
        is_plain = not any(isinstance(element, QUANTIZED_TYPES) for element in signature)
        legal: set[str] = set()  # paths on which nothing more is asked
        for op in ops:
            if (path := paths.of(op)) in legal or op in excused:
                continue
            admitted = any(kernels.admit(op) for kernels in sections[path]) or (path == "exempt" and _runs(op, target))
            if not admitted:
                what = f"{op.name} on {_types(op)} is not an operator of the target"
                yield op, [Reason.at(op.location, what), *_parameters(op, edges, target)]
            elif not is_plain:
                yield op, list(_parameters(op, edges, target))
            elif any(kernels.admit_all(op) for kernels in sections[path]):
                legal.add(path)


def _parameters(op: Op, edges: set[Value], target: Target) -> Iterator[Reason]:
    """Parameters on tensors of an op that are not at an edge, nor stored weights."""
    if (target.builtins is not None and isinstance(op, (Quantize, Dequantize))) or _restores_weights(op):
        return
    for value in op.tensors:
        if value.type.quantized and value not in edges and not value.info.get("is_variable", False):
            yield Reason.at(op.location, f"tensor '{value.name}' of {op.name} has quantization parameters")


def _lists(target: Target, op: Op) -> bool:
    """Whether a target has a builtin as it is, or the operator in float32."""
    return (target.builtins is not None and target.builtins.admit(op)) or _runs(op, target)


def _runs(op: Op, target: Target) -> bool:
    """Whether a target has an operator that stays in float32."""
    floats = {v.type.storage for v in op.tensors if v.type.storage.is_float}
    return op.short_name in target.floats and floats == {f32}


def _on_kernel(op: Op, paths: _Paths) -> bool:
    """Whether an operator is kept on quantized tensors."""
    return paths.keeps(op) and any(v.type.quantized for v in op.tensors)


def _sections(mac: Mac, target: Target) -> dict[str, list[KernelRules]]:
    """By path: the rules of which one must admit an op."""
    if target.builtins is not None:
        return {path: [target.builtins] for path in ("integer", "float kernel", "exempt")}
    rules = load_rules()
    integer = [rules["integer"], *([rules["float32"]] if mac == "float32" else [])]
    return {"integer": integer, "float kernel": [*integer, rules["float_kernels"]]}


def _types(op: Op) -> str:
    operands = ", ".join("none" if v is None else str(v.type.storage) for v in op.operands)
    return f"({operands}) → {', '.join(str(v.type.storage) for v in op.results)}"
