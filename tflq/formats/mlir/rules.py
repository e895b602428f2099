"""A module with ops of MLIR's core dialects → one in the tfl form without them.

What each op becomes is registered by its class: in `core_numbers` what computes element by element, in `core_tensors`
the rest. `Translation` replaces the ops of one function. It keeps a table of what each value has become; what is known
is computed here, by the evaluator. A value may be held with fewer dims than its type has (`tensor.splat` of a number is
that number): it broadcasts; `whole` gives all of it. An index is an i64.

Functions that are called by name are put in the place of their calls; private ones and declarations do not become
functions of the file. Ops without an exact form are refused, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.evaluate.registry import array_of, evaluate_op
from tflq.base.errors import Reason, Refused, UnsupportedError, operators
from tflq.dialects.builder import Builder, Operand, refined
from tflq.dialects.declare import Operator
from tflq.dialects.effects import callees, renumber
from tflq.dialects.forms import TRANSLATED
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.registry import Registry
from tflq.dialects.tfl.arithmetic import Maximum, Minimum
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tfl.movement import BroadcastTo
from tflq.dialects.tfl.state import state_version
from tflq.formats.mlir.dialects.linalg import Call, CallIndirect, Constant
from tflq.formats.mlir.dialects.math import CopySign, Fma
from tflq.formats.mlir.dialects.tensor import Generate, Insert
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Location, Op, Value
from tflq.ir.rewriting import copied
from tflq.ir.types import (
    SCALARS,
    BareType,
    FunctionType,
    ScalarType,
    TensorType,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    is_quantized,
    parameters,
)

Form: TypeAlias = Callable[..., Any]

form: Final[Registry[Form]] = Registry("tflq.formats.mlir")
"""Of an op that computes element by element: `(op, emitter, *operands) -> value`."""

of_tensors: Final[Registry[Form]] = Registry("tflq.formats.mlir")
"""Of any other op: `(op, translation) -> value`."""


COMPUTED = frozenset({i1, i8, i16, i32, i64, index, f32})
"""The element types that TFLite's arithmetic has."""


_LARGE: Final = 2.0**126
_STORED = frozenset(scalar for scalar in SCALARS.values() if scalar.is_integer)
"""The integers of quantized tensors in files."""
_REMEDY = "write it in ops that TFLite has, or compute it outside of the model"
_MISSING: Final[dict[type[Op], str]] = {
    Fma: "TFLite rounds the product and the sum, and math.fma only the sum",
    CopySign: "TFLite has no builtin that reads the sign of 0",
    Generate: "TFLite runs no body for each element",
    Insert: "TFLite writes no single elements",
}


def plain_type(type: TensorType) -> TensorType:
    """The type of the tensor that stands for a value: a scalar is a tensor of rank 0, an index an i64."""
    return TensorType(type.shape, i64 if type.element == index else type.element)


class CoreEmitter(Builder):
    """Ops on integers and floats, elementwise; operands broadcast.

    Integers of up to 32 bits are computed in i32, in which TFLite has all arithmetic, and narrowed, which wraps. How
    large some floats can be is known (`reach`): they are neither infinite nor NaN.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reach: dict[Value, float] = {}

    def reach(self, x: Value) -> float | None:
        """A bound of |x|; None if there is none, or x can be NaN."""
        if not x.is_constant:
            return self._reach.get(x)
        most = float(np.abs(x.array.astype(np.float64)).max(initial=0))
        return most if np.isfinite(most) else None

    def within(self, x: Value, reach: float | None) -> Value:
        """x, with its bound noted, and what roundings add to that; a bound near the end of f32 says nothing."""
        if reach is not None and reach < _LARGE:
            self._reach[x] = reach * (1 + 2.0**-20)
        return x

    def signed(self, x: Value) -> Value:
        """A signed integer of up to 32 bits, as i32; the 1 of i1 is -1."""
        wide = self.cast(x, i32)
        return self.sub(0, wide) if x.type.storage == i1 else wide

    def unsigned(self, x: Value) -> Value:
        """An unsigned integer of up to 16 bits, as i32."""
        storage = x.type.storage
        wide = self.cast(x, i32)
        return self.bitwise_and(wide, storage.maximum * 2 + 1) if storage in (i8, i16) else wide

    def narrowed(self, x: Value, to: ScalarType) -> Value:
        """An i32 modulo the width of a type."""
        if to == i1:
            return self.equal(self.bitwise_and(x, 1), 1)
        return self.cast(x, to)

    def converted(self, x: Value, to: ScalarType) -> Value:
        """CAST of TFLite."""
        return x if x.type.element == to else self.emit(Cast, [x], to)

    def compare(self, kind: type[Operator], x: Operand, y: Operand) -> Value:
        """A comparison of TFLite."""
        return self.emit(kind, self.alike(x, y), i1)

    def choose(self, condition: Value, x: Operand, y: Operand) -> Value:
        """SELECT_V2 of TFLite."""
        return self.emit(SelectV2, [condition, *self.alike(x, y)])

    def limited(self, x: Value, least: float | None, most: float | None) -> Value:
        """x within limits, by MAXIMUM and MINIMUM of TFLite; None is no limit."""
        for kind, limit in ((Maximum, least), (Minimum, most)):
            x = x if limit is None else self.emit(kind, self.alike(x, limit))
        return x


class Translation:
    """The translation of one function. `functions`: those that can be called, by name. `refused`: collects reasons."""

    def __init__(
        self, function: Function, number: int, functions: Mapping[str, Function], refused: list[Reason], source: str
    ) -> None:
        self.b = CoreEmitter()
        self._function, self._number = function, number
        self._functions, self._refused, self._source = functions, refused, source
        self._env: dict[Value, Value] = {}
        self._calling: list[str] = [str(function.name)]
        self._at = 0

    def run(self) -> dict[Value, Value]:
        """Replaces the ops of the function. Returns the translations of its results."""
        function = self._function
        for value in function.inputs:
            value.type = self._edge(value, "input")
        self.translate(function.ops)
        returned = {}
        for value in function.outputs:
            self._edge(value, "output")
            try:
                returned[value] = self._returned(value)
            except Refused as refusal:
                returned[value] = value
                if not self._refused:  # else it may be about what stands for the result of a refused op
                    label = f"function {self._number} '{function.name}', output '{value.name}'"
                    self._refused.append(refusal.within(label, self._source))
        function.outputs = [returned[value] for value in function.outputs]
        function.ops = self.b.ops
        for op in function.ops:
            if isinstance(op, BroadcastTo):
                state_version(op)  # no interpreter has version 1
        function.tensors = []
        return returned

    def _edge(self, value: Value, kind: str) -> TensorType:
        """The type of an input or output of the file."""
        type = value.type
        if type.shape is None or isinstance(type.element, FunctionType):
            what = "is unranked" if type.shape is None else "is a function"
            reason = f"{kind} '{value.name}' {what}, and a file's {kind}s are tensors of known rank"
            self._refused.append(Reason(reason, subgraph=self._number, remedy="state its rank"))
        return plain_type(type)

    def _returned(self, value: Value) -> Value:
        """The tensor in the place of a function's result, with the result's type and name."""
        if isinstance(value.type.element, FunctionType) or value.type.shape is None:
            return value
        if self._env.get(value, value) is value:
            return value
        tensor = self.whole(value)
        if tensor.is_constant or tensor in self._function.inputs or tensor.name:
            tensor = self.b.identity(tensor)
        tensor.name, tensor.info = value.name, value.info
        return tensor

    # --- values

    def value(self, value: Value) -> Value:
        """The translation of a value, which broadcasts to the value's shape."""
        now = self._env.get(value)
        if now is None and value.is_constant and isinstance(value.type.element, ScalarType):
            now = self._env[value] = constant(array_of(value), value.type.element)
        return value if now is None else now

    def whole(self, value: Value) -> Value:
        """The translation of a value, with all its elements."""
        now, shape = self.value(value), value.type.shape
        if now.type.shape == shape or shape is None or is_quantized(now.type.element):
            return now
        if now.is_constant and None not in shape:
            return constant(np.broadcast_to(array_of(now), _static(shape)), now.type.storage, compact=False)
        if None not in shape:
            dims = self.b.constant(np.array(shape, np.int32), i32)
            return self.b.emit(BroadcastTo, [now, dims], TensorType(shape, now.type.element))
        if now.type.rank != len(shape):
            raise Refused("a number stands for a tensor of unknown size here", "state its dims")
        return now

    def known(self, value: Value) -> np.ndarray | None:
        """The elements of a value, if they are known."""
        now = self.value(value)
        if not now.is_constant or is_quantized(now.type.element):
            return None
        shape = value.type.shape
        return np.broadcast_to(array_of(now), _static(shape)) if shape is not None and None not in shape else None

    def is_known(self, value: Value) -> bool:
        """Whether a value is a constant, whatever its size."""
        now = self.value(value)
        return now.is_constant and isinstance(now.type.element, ScalarType)

    def become(self, value: Value, now: Value) -> None:
        """Notes what a value is now."""
        self._env[value] = now

    # --- ops

    def translate(self, ops: Sequence[Op]) -> None:
        """Emits what computes ops, one after the other."""
        for op in ops:
            self._at += 1
            tensor = op.result.name if op.results else ""
            place = Location(self._source, self._number, self._at - 1, op.name.upper(), tensor)
            self.b.location = op.location or place
            try:
                self._visit(op)
            except Refused as refusal:
                label = f"function {self._number} '{self._function.name}', {op.name}"
                label += f", {op.result.label}" if op.results else ""
                self._refused.append(refusal.within(label, self._source, self._number))
                for result in op.results:  # so that later ops can be looked at, too
                    self._env[result] = Value(plain_type(result.type))

    def _visit(self, op: Op) -> None:
        if isinstance(op, (Call, CallIndirect)):
            self._call(op)
        elif isinstance(op, Constant):
            pass  # the call reads it
        elif op.name.partition(".")[0] in TRANSLATED:
            results = self._computed(op)
            for old, new in zip(op.results, results, strict=True):
                if old.name and not new.is_constant and not new.name and old not in self._function.outputs:
                    new.name = old.name
                self._env[old] = new
        else:
            self._keep(op)

    def _computed(self, op: Op) -> Sequence[Value]:
        elementwise = form.get(type(op))
        if (folded := self._folded(op, elementwise is not None)) is not None:
            return folded
        if elementwise is not None:
            _check_types(op)
            answer = elementwise(op, self.b, *(self.value(v) for v in op.present_operands))
        elif (function := of_tensors.get(type(op))) is not None:
            answer = function(op, self)
        else:
            raise Refused(_MISSING.get(type(op), "TFLite has no builtin that computes it exactly"), _REMEDY)
        return [answer] if isinstance(answer, Value) else answer

    def _folded(self, op: Op, elementwise: bool) -> list[Value] | None:
        """The results of an op on what is known; None if it must be computed as the model runs. Refused if they are
        undefined."""
        if op.regions or not all(v is not None and self.is_known(v) for v in op.operands):
            return None
        if not elementwise and not all(v.type.is_static for v in op.results):
            return None
        operands = op.present_operands
        arrays = [array_of(self.value(v)) if elementwise else self.known(v) for v in operands]
        if any(array is None for array in arrays):
            return None
        try:
            results = evaluate_op(op, arrays)
        except (ArithmeticError, IndexError) as error:
            raise Refused(f"it is undefined: {error}", "the model must not compute it") from None
        except NotImplementedError:
            return None
        if results is None:
            return None
        return [constant(a, v.type.storage) for a, v in zip(results, op.results, strict=True)]

    def _keep(self, op: Op) -> None:
        """An op of another dialect, on what its operands are now."""
        operands = [None if v is None else self.whole(v) for v in op.operands]
        if isinstance(op, (Dcast, Qcast, Scast)):
            _check_storage(op)
            source, target = self.whole(op.input), op.result.type
            op.result.type = TensorType(refined(target.shape, source.type.shape), target.element)
            operands = [self.b.restated(source, op.result.type.shape)]
        for result in op.results:
            if isinstance(result.type, BareType):  # a scalar: a tensor of rank 0
                result.type = TensorType(result.type.shape, result.type.element)
        op.operands = operands
        op.location = self.b.location
        self.b.ops.append(op)
        if isinstance(op, Dcast):
            self.b.within(op.result, _largest(op.input.type))

    # --- calls

    def _call(self, op: Call | CallIndirect) -> None:
        """The callee's ops in the place of the call."""
        name = str(op.callee) if isinstance(op, Call) else self._referred(op.callee)
        function = self._functions.get(name)
        if function is None:
            raise Refused(f"@{name} is declared without a body", "define it in this module")
        if name in self._calling:
            raise Refused(f"@{name} calls itself", "a TFLite file has no recursion; write it as a loop")
        inner: dict[Value, Value] = dict(zip(function.inputs, op.inputs, strict=True))
        self._calling.append(name)
        self.translate(copied(function.ops, inner))
        self._calling.pop()
        for result, value in zip(op.results, function.outputs, strict=True):
            self._env[result] = self.value(inner.get(value, value))

    def _referred(self, callee: Value) -> str:
        producer = callee.producer
        if isinstance(producer, Constant):
            return str(producer.value)
        raise Refused("which function it calls is not known before the model runs", "call it by name")


def _check_storage(op: Dcast | Qcast | Scast) -> None:
    """Refused if a file cannot store such integers."""
    for value in op.tensors:
        if value.type.quantized and value.type.storage not in _STORED:
            raise Refused(f"TFLite has no tensors stored in {value.type.storage}", "store it in the next wider type")


def _largest(type: TensorType) -> float:
    """The largest number that a quantized tensor can hold, without its sign."""
    scale, zero_point = parameters(type)
    zero = zero_point.astype(np.float64)
    steps = np.maximum(type.storage.maximum - zero, zero - type.storage.minimum)
    return float((np.asarray(scale, np.float64) * steps).max())


def _check_types(op: Op) -> None:
    """Refused if TFLite has no arithmetic on an element type."""
    for value in op.tensors:
        if value.type.element not in COMPUTED:
            what = f"TFLite has no arithmetic on {value.type.element}"
            raise Refused(what, "write it in one of i1, i8, i16, i32, i64, f32")


def constant(array: np.ndarray, element: ScalarType, *, compact: bool = True) -> Value:
    """A constant; with `compact` a scalar, if all elements are the same bytes."""
    elements = np.ascontiguousarray(array)
    if np.ndim(array) == 0:
        elements = elements.reshape(())
    if compact and elements.size > 1:
        raw = elements.reshape(-1).view(np.uint8).reshape(elements.size, -1)
        if (raw == raw[0]).all():
            elements = elements.reshape(-1)[:1].reshape(())
    kind = i64 if element == index else element
    return Value(TensorType(elements.shape, kind), buffer=Buffer.of(elements, kind))


def _static(shape: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(dim or 0 for dim in shape)


def lower_core(module: Module) -> None:
    """Replaces the ops (the module is changed in place). UnsupportedError lists every op that has no exact form."""
    refused: list[Reason] = []
    defined = {index: f for index, f in enumerate(module.functions) if not f.info.get("declaration")}
    named = {signature.function for signature in module.signatures or ()}
    named |= {index for op in module.ops() for index in callees(op)}
    indices = [index for index, f in defined.items() if index in named or f.info.get("visibility") != "private"]
    indices = indices or list(defined)
    copies = {str(f.name): _detached(f) for f in defined.values()}
    outputs: dict[Value, Value] = {}
    for number in indices:
        function = module.functions[number]
        outputs |= Translation(function, number, copies, refused, module.source).run()
    if refused:
        remedy = "write it in the ops that docs/core.md lists"
        raise UnsupportedError(f"cannot convert {operators(len(refused))}:", refused, remedy=remedy)
    numbers = {old: new for new, old in enumerate(indices)}
    module.functions = [module.functions[index] for index in indices]
    for op in module.ops():
        renumber(op, numbers)
    if module.signatures is not None:
        for signature in module.signatures:
            signature.function = numbers[signature.function]
        module.signatures = [signature.with_outputs(outputs) for signature in module.signatures]


def _detached(function: Function) -> Function:
    """A copy of a function, to put in the place of calls, whatever becomes of the function itself."""
    known = {value: Value(value.type) for value in function.inputs}
    inputs = list(known.values())
    ops = copied(function.ops, known)
    return Function(function.name, inputs, [known.get(v, v) for v in function.outputs], ops)
