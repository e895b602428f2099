"""Emitting ops of MLIR's core dialects: arith, math, tensor, shape, linalg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tflq.builder import Emitter, Kind
from tflq.dialects.linalg.generic import Generic, Yield
from tflq.dialects.tensor.making import Empty, Splat
from tflq.dialects.tensor.parts import Dim
from tflq.ir.attributes import AffineMap, TypedArray
from tflq.ir.core import Block, Buffer, Op, Region, Value
from tflq.ir.syntax import pack
from tflq.ir.types import BareType, ScalarType, TensorType, bf16, i32, index
from tflq.numerics.bfloat16 import bfloat16_bits

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["INDEX", "CoreBuilder", "stored_elements"]

INDEX = BareType.of(index)


def stored_elements(values: npt.ArrayLike, element: ScalarType) -> np.ndarray:
    """Numbers as elements of a type are held: of a signless integer modulo its width, of bf16 as bits."""
    if element is bf16:
        return bfloat16_bits(values)
    if not element.is_integer:
        return np.asarray(values, element.dtype)
    wide = np.asarray(values, object)
    half = 1 << (element.bits - 1)
    wrapped = ((wide + half) % (2 * half)) - half if element.signed else wide % (2 * half)
    return np.asarray(wrapped, element.dtype)


class CoreBuilder(Emitter):
    """Ops of MLIR's core dialects; each method makes one, `scalar`, `dense` and `size` constants."""

    def scalar(self, value: float | np.generic, element: ScalarType) -> Value:
        """A constant outside any tensor."""
        return self._given(BareType.of(element), stored_elements(value, element))

    def dense(self, values: np.ndarray, element: ScalarType) -> Value:
        """A constant tensor."""
        return self._given(TensorType(values.shape, element), stored_elements(values, element))

    def _given(self, type: TensorType, array: np.ndarray) -> Value:
        data = pack(array, type.storage) if type.storage.bits < 8 else array
        return Value(type, buffer=Buffer.of(data))

    def size(self, number: int) -> Value:
        return self.scalar(number, index)

    def dims(self, x: Value) -> list[Value]:
        """The sizes of a ranked tensor's unknown dims, in order."""
        return [
            self.emit(Dim, [x, self.size(axis)], INDEX) for axis, dim in enumerate(x.type.shape or ()) if dim is None
        ]

    def splat(self, scalar: Value, type: TensorType, dims: Sequence[Value]) -> Value:
        """A tensor of one number, of the shape of `type`; a scalar as it is if that is none."""
        if isinstance(type, BareType):
            return scalar
        return self.emit(Splat, [scalar, *dims], type.with_element(scalar.type.element))

    def same(self, kind: Kind, *operands: Value) -> Value:
        """An op whose result is of its first operand's type."""
        return self.emit(kind, list(operands), operands[0].type)

    def cast(self, kind: Kind, x: Value, to: ScalarType) -> Value:
        """An op whose result is as its operand, of another element type."""
        return self.emit(kind, [x], x.type.with_element(to))

    def generic(
        self,
        inputs: Sequence[Value],
        maps: Sequence[AffineMap],
        result: TensorType,
        dims: Sequence[Value],
        body: Callable[[CoreBuilder, Sequence[Value]], Value],
    ) -> Value:
        """linalg.generic over all elements of `result`, all in parallel. `maps`: of the inputs and the result."""
        rank = len(result.shape or ())
        empty = self.emit(Empty, list(dims), result)
        arguments = [Value(BareType.of(v.type.element)) for v in (*inputs, empty)]
        inner = CoreBuilder()
        inner.op(Yield, [body(inner, arguments)], [])
        attributes = {
            "indexing_maps": list(maps),
            "iterator_types": ["parallel"] * rank,
            "operandSegmentSizes": TypedArray.of(np.array([len(inputs), 1], np.int32), i32),
        }
        op = Op(Generic.op_name, [*inputs, empty], [Value(result)], attributes, self.location)
        op.regions = [Region([Block(arguments, inner.ops)])]
        self.ops.append(op)
        return op.result
