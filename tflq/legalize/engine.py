"""The rule engine: a module in the tfl form → the same module in the integer form.

`accept` gives values the types that a TFLite file has, `Walk` goes through one function, `deciding.py` says which path
an operator takes, `calls.py` which functions there are. All refusals are collected into one `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import takewhile
from typing import ClassVar, Final, Literal

from tflq.analysis.known import first_dynamic
from tflq.base.errors import Reason, Refused, UnsupportedError, operators
from tflq.dialects.effects import callees, entry_functions, is_variable
from tflq.dialects.forms import INTEGER_EDGE, ModuleForm, stays_quantized_reason
from tflq.dialects.quant import Scast
from tflq.dialects.tfl.casts import Cast, Dequantize
from tflq.dialects.tfl.state import While
from tflq.ir.module import Function, Metadata, Module
from tflq.ir.ops import Location, Op, Value
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    f32,
    is_narrowed,
    is_quantized,
)
from tflq.ir.verifier import COPIED, bounds_problem
from tflq.legalize.calls import Calls, Interface, copied, densified, is_call, plain_value
from tflq.legalize.deciding import Decider, Policy, unchanged
from tflq.legalize.probing import requantized_if_plain
from tflq.legalize.rule import Memory, Rule, Variables, variables_of
from tflq.numerics.kernel_sets import DEFAULT, IN_FILE, Exactness, kernel_set
from tflq.targets.target import INTEGER, Target
from tflq.transforms.pass_manager import Decision, Decisions, Pass, PassResult, SourceFunctions


class Shared:
    """State shared by the walks of all functions of a module."""

    __slots__ = ("bounds", "calls", "outputs", "plain", "policy", "refused", "variables")

    def __init__(
        self,
        policy: Policy,
        calls: Calls,
        variables: Variables,
        bounds: Mapping[Value, tuple[int, int]] | None = None,
    ) -> None:
        self.policy = policy
        self.calls = calls
        self.variables = variables
        self.plain: dict[Value, Value] = {}
        """The plain value of each quantized tensor."""
        self.outputs: dict[Value, Value] = {}
        """The values that entry points return instead."""
        self.refused: list[Reason] = []
        self.bounds: Mapping[Value, tuple[int, int]] = {} if bounds is None else bounds
        """Of results: what they are clamped to."""


class Walk:
    """A function of the tfl form → one of the integer form: its arguments and results, its operators in order, and the
    calls among them.

    An entry point's arguments and results keep their types (`quant.scast` on either side); those of a function that is
    called (`interface`), and of the calls, are plain. Every other quantized tensor becomes its storage type. Each op's
    result tensor keeps its name.
    """

    def __init__(
        self, function: Function, interface: Interface | None, shared: Shared, decisions: list[Decision]
    ) -> None:
        self._source = function
        self._interface = interface
        self._shared = shared
        self._decisions = decisions
        self._decider = Decider(shared.policy, shared.plain, shared.variables, Memory(function))
        self._b = self._decider.b
        self._plain = shared.plain
        self._behind: dict[Op, list[Op]] = {}

    def run(self) -> Function:
        inputs = [self._argument(place, value) for place, value in enumerate(self._source.inputs)]
        for op in self._source.ops:
            self._visit(op)
        if self._interface is None:
            outputs = {value: self._output(value) for value in dict.fromkeys(self._source.outputs)}
            self._shared.outputs.update(outputs)
            returned = [outputs[v] for v in self._source.outputs]
        else:
            pairs = zip(self._source.outputs, self._interface.results, strict=True)
            returned = [self._returned(value, element) for value, element in pairs]
        ops = [each for op in self._b.ops for each in (op, *self._behind.get(op, ()))] if self._behind else self._b.ops
        return Function(self._source.name, inputs, returned, ops, info=self._source.info)

    def _argument(self, place: int, value: Value) -> Value:
        if not value.type.quantized:
            return value
        if self._interface is None:
            self._plain[value] = self._b.scast(value, value.type.stripped())
            return value
        argument = plain_value(value)
        self._plain[value] = self._requantized(argument, self._interface.arguments[place], value.type.element)
        return argument

    def _returned(self, value: Value, element: ElementType) -> Value:
        """The value that a called function returns: the plain one under its original name, in the parameters of the
        call."""
        plain = self._b.value(value)
        if not value.type.quantized and plain.producer is not None:
            plain.info = value.info
        return self._requantized(plain, value.type.element, element)

    def _requantized(self, x: Value, source: ElementType, target: ElementType) -> Value:
        """A value that a call passes on, under other parameters if these hold."""
        other = requantized_if_plain(self._b, x, source, target)
        return x if other is None else other

    def _output(self, value: Value) -> Value:
        """The value that an entry point returns, with its original type and name."""
        plain = self._plain.get(value)
        if plain is None or value in self._source.inputs or value.is_constant:
            return value
        if not value.type.quantized:
            plain.info = value.info
            return plain
        producer = plain.producer
        if producer is not None and value in producer.operands:
            return value  # a kept operator's own result
        plain.name = ""
        self._b.location = producer.location if producer else None
        ops, count = self._b.ops, len(self._b.ops)
        early = producer is not None and ops[-1] is not producer and value in self._early
        stored = self._b.restated(plain, value.type.shape)
        ops.append(Op(Scast.op_name, [stored], [value], {}, self._b.location))
        if early and producer is not None:
            self._behind[producer] = ops[count:] + self._behind.get(producer, [])
            del ops[count:]
        return value

    @cached_property
    def _early(self) -> Set[Value]:
        """The results of ops before the first one whose result has a dynamic size. The interpreter prepares nothing
        after such an op before it has run. So a copy of a value must stand before it, as the value does."""
        dynamic = first_dynamic(self._shared.calls.module, self._source)
        if dynamic is None:
            return frozenset()
        return {value for op in takewhile(lambda op: op is not dynamic, self._source.ops) for value in op.results}

    def _visit(self, op: Op) -> None:
        self._b.location = op.location
        start = len(self._b.ops)
        done = self._unbounded(self._with_body(op))
        try:
            decision = self._call(done) if is_call(op) else self._decider.decide(done)
        except Refused as refusal:
            self._shared.refused.append(refusal.at(op.location))
            for result in op.results:  # so that later operators can be looked at, too
                self._plain[result] = Value(result.type.stripped(), result.name)
            return
        for result, computed in zip(op.results, done.results, strict=True):
            if computed is not result:
                plain = self._b.clamp(self._b.value(computed), *self._shared.bounds[result])
                plain.name = result.name
                self._plain[result] = plain
        decision.op, decision.emitted = op, self._b.ops[start:]
        self._decisions.append(decision)

    def _with_body(self, op: Op) -> Op:
        """The operator. If its function says how to combine elements, the class of that function's only operator is
        noted."""
        called = callees(op)
        if not called or is_call(op):
            return op
        body = self._shared.calls.module.functions[called[0]].ops
        return op.copy_with(info={**op.info, "body": type(body[0]) if len(body) == 1 else None})

    def _unbounded(self, op: Op) -> Op:
        """The operator with a new tensor for each result that is clamped after it."""
        if self._shared.bounds.keys().isdisjoint(op.results):
            return op
        return op.copy_with(results=[Value(v.type) if v in self._shared.bounds else v for v in op.results])

    def _call(self, op: Op) -> Decision:
        """A call on plain integers, as the called functions are, unless these keep their types."""
        calls = self._shared.calls
        if problem := calls.problem(op):
            raise Refused(problem)
        decision = unchanged(op, stays_quantized_reason(op) or "", calls.warning(op))
        if not calls.strips:
            self._decider.keep(op)
            return decision
        copy = calls.renumbered(op)
        copy.operands = [None if v is None else self._b.value(v) for v in op.operands]
        copy.results = [plain_value(v) if v.type.quantized else v for v in op.results]
        for result in copy.results:
            result.producer = copy
        self._b.ops.append(copy)
        for place, (old, new) in enumerate(zip(op.results, copy.results, strict=True)):
            if old.type.quantized:
                initial = op.operands[place] if isinstance(op, While) else None
                carried = old.type.element if initial is None else initial.type.element
                self._plain[old] = new
                if calls.real and carried != old.type.element:
                    self._plain[old] = self._requantized(new, carried, old.type.element)
        return decision


# Types that text has and TFLite's files do not.


_ANY = "its type is !quant.any, and nothing says its parameters; state them (!quant.uniform)"
_EXPRESSED = "it expresses {}, and kernels compute with what expresses f32; state its scales as those of f32"
_FILES = "state types that a TFLite file has"
_STATE = "nothing keeps the state of an operator within the bounds <{}:{}>; leave them out"


class Accepted:
    """Properties that a module's types no longer have: the bounds of values, and a warning for each input or output
    with bounds."""

    __slots__ = ("bounds", "warnings")

    def __init__(self) -> None:
        self.bounds: Final[dict[Value, tuple[int, int]]] = {}
        self.warnings: Final[list[str]] = []


def accept(module: Module) -> Accepted:
    """Gives the values of a module, in place, the types that a TFLite file has. Text may have others:

        !quant.uniform<i8<-8:7>:f32, 0.5>   results are clamped to the bounds; inputs are expected to keep them
        !quant.calibrated<f32<-1.0:1.0>>    a float, with its statistics in the value's info, as files have them
        !quant.any<i8:f32>                  refused: nothing says the parameters
        !quant.uniform<i8:f64, 0.1>         refused: kernels take scales of float32

    UnsupportedError lists every tensor whose type cannot be honoured.
    """
    accepted, refused = Accepted(), list[str]()
    for index, function in enumerate(module.functions):
        _locate(module, index, function)
        scratch = {v for op in function.ops for v in op.intermediates if v is not None}
        for value in function.values():
            if isinstance(value.type.element, ScalarType):
                continue
            if problem := _take(value, accepted, is_state=is_variable(value) or value in scratch):
                refused.append(f"subgraph {index}, {value.label}: {problem}")
    if refused:
        raise UnsupportedError(f"{len(refused)} tensor(s) have types that cannot be converted:", refused, remedy=_FILES)
    if accepted.bounds:
        entries = [module.functions[index] for index in entry_functions(module)]
        accepted.warnings.extend(w for function in entries for w in _edges(function, accepted.bounds))
    return accepted


def _locate(module: Module, index: int, function: Function) -> None:
    """Gives operators without a location the one that reading a file would give them: reports use it."""
    for number, op in enumerate(function.ops):
        if op.location is None:
            tensor = op.result.name if op.results else ""
            op.location = Location(module.source, index, number, op.name.removeprefix("tfl.").upper(), tensor)


def _take(value: Value, accepted: Accepted, *, is_state: bool) -> str:
    """Gives a value a type that TFLite has. Returns why that is impossible; empty if it is done."""
    element = value.type.element
    if isinstance(element, AnyQuantizedType):
        return _ANY
    if isinstance(element, (CalibratedQuantizedType, NoQuantizedType)):
        if isinstance(element, CalibratedQuantizedType) and element.expressed == f32:
            value.info = {"quantization": {"min": (element.minimum,), "max": (element.maximum,)}, **value.info}
        value.type = value.type.with_element(element.expressed)
        return ""
    if not is_quantized(element):
        return ""
    if element.expressed != f32:
        return _EXPRESSED.format(element.expressed)
    if not is_narrowed(element):
        return ""
    low, high = element.storage_min, element.storage_max
    if is_state:
        return _STATE.format(low, high)
    if problem := bounds_problem(value):
        return problem
    if not value.is_constant:
        accepted.bounds[value] = low, high
    widened = element.replace(storage_min=element.storage.minimum, storage_max=element.storage.maximum)
    value.type = value.type.with_element(widened)
    return ""


def _edges(function: Function, bounds: dict[Value, tuple[int, int]]) -> Iterator[str]:
    """Warnings for callers, who no longer find the bounds in the types."""
    for value in function.inputs:
        if value in bounds:
            low, high = bounds[value]
            yield (
                f"input '{value.name}' is taken to hold integers from {low} to {high}, which a file cannot state; give "
                "it no others"
            )
    for value in function.outputs:
        if value in bounds and value not in function.inputs:
            low, high = bounds[value]
            yield (
                f"output '{value.name}' holds integers from {low} to {high}, which a file cannot state; tell whoever "
                "reads it"
            )


_DENSE = "a sparse constant, made dense"


class BuiltinsOfText(Pass):
    """Ops of `stablehlo`, which text has, become TFLite's builtins, unless they have rules. keep_weights: DEQUANTIZE of
    constant weights stays, so that the file does not grow."""

    name: ClassVar[str] = "stablehlo-to-builtins"
    takes: ClassVar[ModuleForm] = "tfl"
    makes: ClassVar[ModuleForm] = "tfl"

    def __init__(self, keep_weights: bool = True) -> None:
        self.keep_weights: Final = keep_weights

    def run(self, module: Module) -> PassResult:
        if not any("stablehlo" in op.name for op in module.ops()):
            return PassResult(module, modified=False)
        from tflq.legalize.stablehlo_contractions import stands_apart, to_builtins

        if not any(map(stands_apart, module.ops())):
            return PassResult(module, modified=False)
        to_builtins(module, keep_weights=self.keep_weights)
        return PassResult(module, modified=True)


class Legalize(Pass):
    """Quantized operators become the integer form; what became of each is noted (`Decisions`). The options are those of
    `Policy`; by default the state is kept if the target runs recurrent operators."""

    name: ClassVar[str] = "legalize"
    title: ClassVar[str] = "legalization"
    takes: ClassVar[ModuleForm] = "tfl"
    makes: ClassVar[ModuleForm] = "integer"

    def __init__(
        self,
        target: Target = INTEGER,
        fallback: bool = True,
        semantics: Literal["interpreter", "real"] = "interpreter",
        state: Literal["kept", "variables", "lowered"] | None = None,
        rules: Mapping[str | type[Op], Sequence[Rule]] | None = None,
        close: bool = True,
        kernel_set: str = DEFAULT,
    ) -> None:
        self.target: Final = target
        self.fallback: Final = fallback
        self.semantics: Final = semantics
        self.state: Final = state
        self.rules: Final[Mapping[str | type[Op], Sequence[Rule]]] = {} if rules is None else rules
        self.close: Final = close
        self.kernel_set: Final = kernel_set

    def run(self, module: Module) -> PassResult:
        state = self.state or ("kept" if self.target.recurrent else "variables")
        source = SourceFunctions(tuple(module.functions))
        policy = Policy(
            self.fallback, state, self.semantics, self.target, self.rules, self.close, kernel_set(self.kernel_set)
        )
        module, decisions = legalize(module, policy)
        _settle_edges(decisions)
        _note_exactness(module, decisions, self.kernel_set)
        module.record.note(Decisions(_by_source(decisions)))
        module.record.note(source)
        return PassResult(module, modified=True)


def _note_exactness(module: Module, decisions: Sequence[Decision], name: str) -> None:
    """Notes the kernel sets that the result reproduces, also in its metadata. What the metadata of a source says of
    operators that were lowered before still counts; if nothing is lowered, it stays."""
    lowered = [decision.differs_under for decision in decisions if decision.path != "kept"]
    if not lowered:
        return
    exactness = Exactness.of(name, lowered)
    if (source := Exactness.read(module.metadata_of(IN_FILE))) is not None:
        exactness = exactness.behind(source)
    module.record.note(exactness)
    others = (m for m in module.metadata or () if m.name != IN_FILE)
    module.metadata = [*others, Metadata.of(IN_FILE, exactness.text.encode())]


def legalize(module: Module, policy: Policy) -> tuple[Module, list[Decision]]:
    """The module in the integer form, and one decision per operator. The values of `module` are used on.
    UnsupportedError lists every operator refused, or every tensor whose type cannot be honoured."""
    decisions: list[Decision] = []
    accepted = accept(module)
    calls = Calls(module, strips=not policy.target.kernels, real=policy.real)
    shared = Shared(policy, calls, variables_of(module), bounds=accepted.bounds)
    functions: list[Function] = []
    for place, (index, interface) in enumerate(shared.calls.functions):
        function, rows = module.functions[index], decisions
        if place >= len(module.functions):
            function, rows = copied(function), list[Decision]()
        function, spread = densified(function)
        rows += [Decision(op, "integer" if op.result.type.quantized else "kept", _DENSE) for op in spread]
        functions.append(Walk(function, interface, shared, rows).run())
    if shared.refused:
        reasons = list(dict.fromkeys(shared.refused))
        raise UnsupportedError(f"cannot convert {operators(len(reasons))}:", reasons)
    result = Module(
        functions,
        None if module.signatures is None else [s.with_outputs(shared.outputs) for s in module.signatures],
        module.metadata,
        module.description,
        module.version,
        info=module.info,
        source=module.source,
    )
    result.warnings = [w for w in module.warnings if COPIED not in w] + accepted.warnings
    return result, decisions


def _settle_edges(decisions: Sequence[Decision]) -> None:
    """In a model that is in the integer form, casts at its edges read and write stored integers on purpose. Weights of
    its float kernels may be stored as int8."""
    quantized = [d for d in decisions if any(v.type.quantized for v in d.op.tensors)]
    if len(quantized) == len(decisions):
        return
    used = {value for d in decisions for value in d.op.operands}
    if any(isinstance(d.op, Cast) for d in quantized) and all(_is_edge(d.op, used) for d in quantized):
        for decision in quantized:
            decision.reason, decision.warning, decision.exception, decision.remedy = INTEGER_EDGE, "", "", ""


def _is_edge(op: Op, used: Container[Value | None]) -> bool:
    """Whether an op is a cast between an argument of the model or one of its results, and plain numbers. So is the
    DEQUANTIZE of a constant."""
    if isinstance(op, Dequantize):
        return op.input.is_constant
    if not isinstance(op, Cast):
        return False
    if op.input.type.quantized:
        return op.input.producer is None and not op.input.is_constant and not op.output.type.quantized
    return op.output not in used


def _by_source(decisions: Sequence[Decision]) -> list[Decision]:
    """One decision for each op of the source: by now several builtins may stand for one op of text."""
    rows: list[Decision] = []
    for decision in decisions:
        last = rows[-1] if rows else None
        here = decision.op.location
        if last is not None and here is not None and last.op.location is here and last.path == decision.path == "kept":
            last.emitted = [*last.emitted, *decision.emitted]
        else:
            rows.append(decision)
    return rows
