"""One function's walk: its arguments and results, its operators in order, and the calls among them.

An entry point's arguments and results keep their types (`quant.scast` on either side); those of a function that is
called, and of the calls, are plain (`tflq.legalize.calls`). Every other quantized tensor becomes its storage type. Each
op's result tensor keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from tflq.analysis.sized import first_dynamic
from tflq.dialects.calls import callees
from tflq.dialects.forms import kept_reason
from tflq.dialects.quant.casts import Scast
from tflq.dialects.tfl.control import While
from tflq.errors import Reason, Refused
from tflq.ir.core import Function, Op, Value
from tflq.ir.types import ElementType, UniformQuantizedType
from tflq.legalize.calls import Calls, Interface, is_call, plain_value
from tflq.legalize.deciding import Decider, Policy
from tflq.legalize.decision import Decision, kept
from tflq.legalize.in_place import Memory
from tflq.legalize.scaling import requantized
from tflq.legalize.variables import Variables
from tflq.light import dataclass, field

__all__ = ["Shared", "Walk"]


@dataclass(slots=True)
class Shared:
    """What the walks of a module's functions share."""

    policy: Policy
    calls: Calls
    variables: Variables
    plain: dict[Value, Value] = field(default_factory=dict)
    """What each quantized tensor has become."""
    outputs: dict[Value, Value] = field(default_factory=dict)
    """What entry points return instead."""
    refused: list[Reason] = field(default_factory=list)
    bounds: Mapping[Value, tuple[int, int]] = field(default_factory=dict)
    """Of results: what they are clamped to."""


class Walk:
    """A function of the tfl form → one of the integer form. `interface`: what it takes and gives, if it is called."""

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
        return Function(self._source.name, inputs, returned, self._b.ops, info=self._source.info)

    def _argument(self, place: int, value: Value) -> Value:
        if not value.type.quantized:
            return value
        if self._interface is None:
            self._plain[value] = self._b.scast(value, value.type.stripped())
            return value
        given = plain_value(value)
        self._plain[value] = self._requantized(given, self._interface.arguments[place], value.type.element)
        return given

    def _returned(self, value: Value, element: ElementType) -> Value:
        """The value a function that is called returns: plain, under its original name, for the type it is taken as."""
        plain = self._b.value(value)
        if not value.type.quantized and plain.producer is not None:
            plain.info = value.info
        return self._requantized(plain, value.type.element, element)

    def _requantized(self, x: Value, source: ElementType, target: ElementType) -> Value:
        """What a call passes under other parameters, where these hold."""
        if isinstance(source, UniformQuantizedType) and isinstance(target, UniformQuantizedType):
            return requantized(self._b, x, source, target)
        return x

    def _output(self, value: Value) -> Value:
        """The value an entry point returns: of its original type, under its original name."""
        plain = self._plain.get(value)
        if plain is None or value in self._source.inputs or value.is_constant:
            return value
        if not value.type.quantized:
            plain.info = value.info
            return plain
        producer = plain.producer
        if producer is not None and producer.operands and producer.operands[0] is value:
            return value  # a kept operator's own result
        plain.name = ""
        self._b.location = producer.location if producer else None
        ops, count = self._b.ops, len(self._b.ops)
        early = producer is not None and ops[-1] is not producer and self._is_early(value)
        stored = self._b.restated(plain, value.type.shape)
        ops.append(Op(Scast.op_name, [stored], [value], {}, self._b.location))
        if early:
            made, place = ops[count:], next(i for i, op in enumerate(ops) if op is producer) + 1
            del ops[count:]
            ops[place:place] = made
        return value

    def _is_early(self, value: Value) -> bool:
        """Whether an op behind that of the value has a result of dynamic size. The interpreter prepares nothing behind
        such a one before it has run, so a copy of the value must stand in front of it, as the value does."""
        dynamic = first_dynamic(self._shared.calls.module, self._source)
        return dynamic is not None and any(
            value in op.results for op in takewhile(lambda op: op is not dynamic, self._source.ops)
        )

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
        decision.op, decision.made = op, self._b.ops[start:]
        self._decisions.append(decision)

    def _with_body(self, op: Op) -> Op:
        """The operator; one whose function says how to combine elements with the class of that one's only operator."""
        called = callees(op)
        if not called or is_call(op):
            return op
        body = self._shared.calls.module.functions[called[0]].ops
        info = {**op.info, "body": type(body[0]) if len(body) == 1 else None}
        return Op(op.name, op.operands, op.results, op.attributes, op.location, info=info)

    def _unbounded(self, op: Op) -> Op:
        """The operator with a new tensor for each result that is clamped after it."""
        if self._shared.bounds.keys().isdisjoint(op.results):
            return op
        results = [Value(v.type) if v in self._shared.bounds else v for v in op.results]
        return Op(
            op.name, op.operands, results, op.attributes, op.location, info=op.info, intermediates=op.intermediates
        )

    def _call(self, op: Op) -> Decision:
        """A call on plain integers, as the functions called are, unless these keep their types."""
        calls = self._shared.calls
        if problem := calls.problem(op):
            raise Refused(problem)
        decision = kept(op, kept_reason(op) or "", calls.warning(op))
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
                given = op.operands[place] if isinstance(op, While) else None
                carried = old.type.element if given is None else given.type.element
                self._plain[old] = new
                if calls.real and carried != old.type.element:
                    self._plain[old] = self._requantized(new, carried, old.type.element)
        return decision
