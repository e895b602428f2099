"""The rule engine: a module in the tfl form → the same module in the integer form.

Per op, in order: an op without a quantized tensor passes through; a kept operator (custom, recurrent, hybrid with
a kernel) keeps its quantized tensors behind `quant.scast`, and so does one that the target has a kernel for; then the
rules of its name; then the fallback, dequantize → the float operator → requantize, if allowed; else the op is refused.
A recurrent operator that a kernel computes, and that may not be kept, goes by its rules or is refused: in float its
state would be another one. Calls of functions and functions that are called go by `tflq.legalize.calls`. All refusals
of a module are collected into one `UnsupportedError`. Function arguments and results keep their types (`quant.scast`
on either side); every other quantized tensor becomes its storage type. Each op's result tensor keeps its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tflq.errors import UnsupportedError
from tflq.flatbuffer.verify_notes import COPIED
from tflq.ir.core import Function, Module, Op, Signature, Value
from tflq.ir.forms import KEPT, RECURRENT
from tflq.ir.types import ElementType, TensorType, UniformQuantizedType
from tflq.legalize.calls import CALLS, Calls, Interface, copied, plain_value
from tflq.legalize.densified import densified
from tflq.legalize.fallback import fall_back
from tflq.legalize.hybrid import computes_in_float, disregarded, without_kernel
from tflq.legalize.recurrent import signatures as recurrent
from tflq.legalize.rule import RULES, NotApplicable, Rejected, Rewritten, RuleBuilder
from tflq.legalize.scaling import requantized
from tflq.legalize.target_kernels import TargetKernels
from tflq.targets import INTEGER, Target

__all__ = ["KEPT", "Decision", "Semantics", "State", "legalize"]

_DENSE = "a sparse constant, made dense"
Semantics = Literal["interpreter", "real"]
State = Literal["kept", "variables", "lowered"]

_OUTLIVES = "its state lives in resource variables, which reset_all_variables() does not reset"


@dataclass(slots=True)
class Decision:
    """What became of one operator of the source model: a row of the report."""

    op: Op
    path: str  # "kept", "integer" or "float"
    reason: str = ""
    warning: str = ""
    made: list[Op] = field(default_factory=list)


def legalize(
    module: Module,
    *,
    fallback: bool = True,
    state: State = "kept",
    semantics: Semantics = "interpreter",
    target: Target = INTEGER,
) -> tuple[Module, list[Decision]]:
    """The module in the integer form, and one decision per operator; the values of the module given are used on.

    state: whether operators with variable tensors are "kept", or go by their rules to variables: TFLite's ("variables",
    with a warning, since they outlive `reset_all_variables()`) or TOSA's ("lowered").
    semantics: what holds where a reference kernel disregards quantization parameters: the kernel ("interpreter", with
    a warning), or the parameters ("real").
    target: whose quantized kernels are kept.
    UnsupportedError lists every operator refused.
    """
    decisions: list[Decision] = []
    refused: list[str] = []
    mapping: dict[Value, Value] = {}
    outputs: dict[Value, Value] = {}
    variables = _named_variables(module)
    calls = Calls(module, strips=not target.kernels, real=semantics == "real")
    functions: list[Function] = []
    for place, (index, interface) in enumerate(calls.made):
        function, rows = module.functions[index], decisions
        if place >= len(module.functions):
            function, rows = copied(function), list[Decision]()
        function, spread = densified(function)
        rows += [Decision(op, "integer" if op.result.type.quantized else "kept", _DENSE) for op in spread]
        functions.append(
            _Legalizer(
                function,
                rows,
                refused,
                fallback,
                mapping,
                outputs,
                variables,
                state,
                semantics,
                target,
                calls,
                interface,
            ).run()
        )
    if refused:
        reasons = list(dict.fromkeys(refused))
        raise UnsupportedError(f"{len(reasons)} operator(s) cannot be converted:", reasons)
    result = Module(
        functions,
        None if module.signatures is None else [_remap(s, outputs) for s in module.signatures],
        module.metadata,
        module.description,
        module.version,
        info=module.info,
        source=module.source,
    )
    result.warnings = [w for w in module.warnings if not w.endswith(COPIED)]
    return result, decisions


def _named_variables(module: Module) -> dict[Value, str]:
    """The names that the module's handles of variables have."""
    words = ("container", "shared_name")
    return {
        op.result: "/".join(op.attributes[w] for w in words if op.attributes.get(w))
        for op in module.ops()
        if op.name == "tfl.var_handle"
    }


def _remap(signature: Signature, outputs: dict[Value, Value]) -> Signature:
    """The signature with the values its function now returns."""
    if signature.outputs is None:
        return signature
    return replace(signature, outputs=[(name, outputs.get(value, value)) for name, value in signature.outputs])


class _Legalizer:
    """One function's walk."""

    def __init__(
        self,
        function: Function,
        decisions: list[Decision],
        refused: list[str],
        fallback: bool,
        mapping: dict[Value, Value],
        outputs: dict[Value, Value],
        variables: dict[Value, str],
        state: State,
        semantics: Semantics,
        target: Target,
        calls: Calls,
        interface: Interface | None,
    ) -> None:
        self.source = function
        self.calls = calls
        self.interface = interface
        self.decisions = decisions
        self.refused = refused
        self.fallback = fallback
        self.plain: dict[Value, Value] = mapping
        self.outputs = outputs
        self.state = state
        self.b = RuleBuilder([], self.plain, variables, real=semantics == "real")
        self.kernels = TargetKernels(target, self.plain, self.b) if target.kernels else None

    def run(self) -> Function:
        inputs = list(self.source.inputs)
        for place, value in enumerate(inputs):
            if value.type.quantized and self.interface is None:
                self.plain[value] = self.b.scast(value, value.type.stripped())
            elif value.type.quantized and self.interface is not None:
                inputs[place] = given = plain_value(value)
                self.plain[value] = self._requantized(given, self.interface.arguments[place], value.type.element)
        for op in self.source.ops:
            self._visit(op)
        if self.interface is None:
            outputs = {value: self._output(value) for value in dict.fromkeys(self.source.outputs)}
            self.outputs.update(outputs)
            returned = [outputs[v] for v in self.source.outputs]
        else:
            pairs = zip(self.source.outputs, self.interface.results, strict=True)
            returned = [self._returned(value, element) for value, element in pairs]
        return Function(self.source.name, inputs, returned, self.b.ops, info=self.source.info)

    def _returned(self, value: Value, element: ElementType) -> Value:
        """The value a function that is called returns: plain, under its original name, for the type it is taken as."""
        plain = self.b.value(value)
        if not value.type.quantized and plain.producer is not None:
            plain.info = value.info
        return self._requantized(plain, value.type.element, element)

    def _requantized(self, x: Value, source: ElementType, target: ElementType) -> Value:
        """What a call passes under other parameters, where these hold."""
        if isinstance(source, UniformQuantizedType) and isinstance(target, UniformQuantizedType):
            return requantized(self.b, x, source, target)
        return x

    def _output(self, value: Value) -> Value:
        """The value a function returns: of its original type, under its original name."""
        plain = self.plain.get(value)
        if plain is None or value in self.source.inputs or value.is_constant:
            return value
        if not value.type.quantized:
            plain.info = value.info
            return plain
        producer = plain.producer
        if producer is not None and producer.operands and producer.operands[0] is value:
            return value  # a kept operator's own result
        plain.name = ""
        self.b.location = producer.location if producer else None
        if value.type.shape is None and plain.type.shape is not None:
            plain = self.b.emit("tosa.identity", [plain], value.type.stripped())
        self.b.ops.append(Op("quant.scast", [plain], [value], {}, self.b.location))
        return value

    def _visit(self, op: Op) -> None:
        self.b.location = op.location
        start = len(self.b.ops)
        decision = self._decide(op)
        if decision is not None:
            decision.made = self.b.ops[start:]
            self.decisions.append(decision)

    def _decide(self, op: Op) -> Decision | None:
        if op.name in CALLS:
            return self._call(op)
        quantized = any(v.type.quantized for v in op.values)
        if not quantized:
            self._pass_through(op)
            return Decision(op, "kept", "no quantized tensor")
        in_float, stateful = computes_in_float(op), op.name in RECURRENT
        missing = recurrent.without_kernel(op, real=self.b.real) if stateful else ""
        if in_float and not stateful:
            missing = without_kernel(op, real=self.b.real)
        if op.name in KEPT and not (stateful and (missing or in_float or self.state != "kept")):
            self._keep(op)
            return Decision(op, "kept", KEPT[op.name])
        if in_float and self.kernels is not None:
            missing = missing or self.kernels.hybrid(op)
        if in_float and not missing:
            self._pass_through(op)
            return Decision(op, "kept", "hybrid: floats with quantized constants", disregarded(op))
        narrow = "" if op.name == "tfl.dequantize" else _narrow(op)
        reasons = [why for why in (missing, narrow) if why]
        in_float |= bool(missing)
        if self.kernels is not None and not in_float:
            verdict = self.kernels.keep(op)
            if verdict.kept:
                return Decision(op, "kept", verdict.reason)
            reasons.append(verdict.reason)
        for candidate in () if in_float or narrow else RULES.get(op.name, ()):
            start = len(self.b.ops)
            answer = candidate(op, self.b)
            if isinstance(answer, NotApplicable):
                del self.b.ops[start:]
                reasons.append(answer.reason)
                continue
            if isinstance(answer, Rejected):
                self._refuse(op, answer.reason)
                return None
            if isinstance(answer, Value):
                answer = Rewritten([answer])
            elif not isinstance(answer, Rewritten):
                answer = Rewritten(answer)
            if self.b.real and answer.warning:
                del self.b.ops[start:]
                reasons.append(answer.warning)
                continue
            self._name_results(op, answer.results, start)
            warnings = [answer.warning, _OUTLIVES if stateful and self.state == "variables" else ""]
            return Decision(op, "integer", answer.note, "; ".join(w for w in warnings if w))
        reason = "; ".join(reasons) or f"{op.name[4:].upper()} has no integer rule"
        if stateful and not missing:
            self._refuse(op, reason if self.state == "lowered" else f"{reason}; keep it as it is (state 'kept')")
            return None
        if not self.fallback:
            self._refuse(op, f"{reason}; allow the float fallback to convert it")
            return None
        start = len(self.b.ops)
        answer = fall_back(op, self.b)
        if isinstance(answer, NotApplicable):
            self._refuse(op, f"{reason}; {answer.reason}")
            return None
        self._name_results(op, answer, start)
        return Decision(op, "float", reason)

    def _call(self, op: Op) -> Decision | None:
        """A call on plain integers, as the functions called are, unless these keep their types."""
        if problem := self.calls.problem(op):
            self._refuse(op, problem)
            return None
        decision = Decision(op, "kept", KEPT[op.name], self.calls.warning(op))
        if not self.calls.strips:
            self._keep(op)
            return decision
        copy = self.calls.renumbered(op)
        copy.operands = [None if v is None else self.b.value(v) for v in op.operands]
        copy.results = [plain_value(v) if v.type.quantized else v for v in op.results]
        for result in copy.results:
            result.producer = copy
        self.b.ops.append(copy)
        for place, (old, new) in enumerate(zip(op.results, copy.results, strict=True)):
            if old.type.quantized:
                given = op.operands[place] if op.name == "tfl.while" else None
                carried = old.type.element if given is None else given.type.element
                self.plain[old] = new
                if self.calls.real and carried != old.type.element:
                    self.plain[old] = self._requantized(new, carried, old.type.element)
        return decision

    def _refuse(self, op: Op, reason: str) -> None:
        self.refused.append(f"{op.location}: {reason}")
        for result in op.results:  # so that later operators can be looked at, too
            self.plain[result] = Value(result.type.stripped(), result.name)

    def _pass_through(self, op: Op) -> None:
        operands = [None if v is None else self.b.typed(v) for v in op.operands]
        copy = Op(op.name, operands, op.results, op.attributes, op.location)
        copy.info, copy.intermediates = op.info, op.intermediates
        self.b.ops.append(copy)

    def _keep(self, op: Op) -> None:
        self._pass_through(op)
        for result in op.results:
            if result.type.quantized:
                self.plain[result] = self.b.scast(result, result.type.stripped())

    def _name_results(self, op: Op, results: Sequence[Value], start: int) -> None:
        if len(results) != len(op.results):
            raise AssertionError(f"rule for {op.name} gave {len(results)} results for {len(op.results)}")
        fresh = {v for made in self.b.ops[start:] for v in made.results}
        for old, new in zip(op.results, results, strict=True):
            if new.type.storage != old.type.storage:
                raise AssertionError(f"rule for {op.name} gave {new.type.storage} for {old.type.storage}")
            if new not in fresh:
                new = self.b.identity(new)
            fresh.discard(new)
            new.name = old.name
            if old.type.shape is not None and new.type.shape != old.type.shape:
                new.type = TensorType(old.type.shape, new.type.element)
            self.plain[old] = new


def _narrow(op: Op) -> str:
    """Why no rule is for an op, if it computes on tensors of less than 8 bits; empty if it does not."""
    for value in op.values:
        if value.type.quantized and not value.is_constant and value.type.storage.bits < 8:
            return f"no kernel on plain integers reads or writes '{value.name}' of {value.type.storage}"
    return ""
