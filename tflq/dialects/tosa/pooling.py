"""Windows of one channel each."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, INT, OneOf, Operator, attribute, ints, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.traits.elements import WithinRange
from tflq.dialects.traits.operands import ConstantOperands
from tflq.dialects.windows import convolved
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, ui8

__all__ = ["AvgPool2D", "MaxPool2D", "Pool"]


class Pool(Operator):
    """Windows of height and width."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    kernel: tuple[int, ...] = attribute(ints(2))
    stride: tuple[int, ...] = attribute(ints(2))
    pad: tuple[int, ...] = attribute(ints(4))

    def infer(self, site: Stated) -> Dims:
        n, *sizes, channels = site.dims(self.input, 4)
        return (n, *convolved(sizes, self.kernel, self.stride, self.pad), channels)


class AvgPool2D(Pool, name="tosa.avg_pool2d"):
    """The mean of each window."""

    __slots__ = ()
    input_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    traits = (ConstantOperands(input_zp=Pool.input, output_zp=Pool.output),)


class MaxPool2D(Pool, name="tosa.max_pool2d"):
    """The greatest element of each window."""

    __slots__ = ()
    traits = (WithinRange(Pool.input),)
