"""Emitting ops of MLIR's core dialects: arith, math, tensor, shape, linalg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tflq.builder import Emitter
from tflq.dialects.linalg.generic import Generic, Yield
from tflq.dialects.tensor.making import Empty, Splat
from tflq.dialects.tensor.parts import Dim
from tflq.ir.attributes import AffineMap, TypedArray
from tflq.ir.core import Block, Buffer, Region, Value
from tflq.ir.syntax import pack
from tflq.ir.types import BareType, ScalarType, TensorType, bf16, i32, index
from tflq.numerics.bfloat16 import bfloat16_bits

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["INDEX", "dense", "generic", "open_dims", "scalar", "splat", "stored_elements"]

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


def scalar(value: float | np.generic, element: ScalarType) -> Value:
    """A constant outside any tensor."""
    return _constant(BareType.of(element), stored_elements(value, element))


def dense(values: np.ndarray, element: ScalarType) -> Value:
    """A constant tensor."""
    return _constant(TensorType(values.shape, element), stored_elements(values, element))


def _constant(type: TensorType, array: np.ndarray) -> Value:
    data = pack(array, type.storage) if type.storage.bits < 8 else array
    return Value(type, buffer=Buffer.of(data))


def open_dims(b: Emitter, x: Value) -> list[Value]:
    """The sizes of a ranked tensor's unknown dims, in order."""
    unknown = [axis for axis, dim in enumerate(x.type.shape or ()) if dim is None]
    return [b.emit(Dim, [x, scalar(axis, index)], INDEX) for axis in unknown]


def splat(b: Emitter, number: Value, type: TensorType, dims: Sequence[Value]) -> Value:
    """A tensor of one number, of the shape of `type`; the number as it is if `type` is that of a scalar."""
    if isinstance(type, BareType):
        return number
    return b.emit(Splat, [number, *dims], type.with_element(number.type.element))


def generic(
    b: Emitter,
    inputs: Sequence[Value],
    maps: Sequence[AffineMap],
    result: TensorType,
    dims: Sequence[Value],
    body: Callable[[Emitter, Sequence[Value]], Value],
) -> Value:
    """linalg.generic over all elements of `result`, all in parallel. `maps`: of the inputs and the result."""
    rank = len(result.shape or ())
    empty = b.emit(Empty, list(dims), result)
    arguments = [Value(BareType.of(v.type.element)) for v in (*inputs, empty)]
    inner = Emitter()
    inner.op(Yield, [body(inner, arguments)], [])
    attributes = {
        "indexing_maps": list(maps),
        "iterator_types": ["parallel"] * rank,
        "operandSegmentSizes": TypedArray.of(np.array([len(inputs), 1], np.int32), i32),
    }
    op = b.op(Generic, [*inputs, empty], [result], attributes)
    op.regions = [Region([Block(arguments, inner.ops)])]
    return op.result
