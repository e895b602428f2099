"""Windows of one channel each."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.constants import NoZeros
from tflq.dialects.traits.kernels import Unbounded
from tflq.dialects.traits.quantization import QuantizedTogether, SameScale
from tflq.dialects.traits.types import SameElementType, Window
from tflq.ir.core import Value
from tflq.ir.types import i8, i16

__all__ = ["AveragePool2D", "L2Pool2D", "MaxPool2D", "ReduceWindow"]


class AveragePool2D(Operator, name="tfl.average_pool_2d", newest=3):
    """The mean of each window, of the elements inside the input. Source: kernels/pooling.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    filter_width: int = attribute(default=0, positive=True)
    filter_height: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    traits = (SameScale(input, output), SameElementType(input, output), Window(input))
    versions = (Needs(3, input, i16), Needs(2, input, i8))


class MaxPool2D(Operator, name="tfl.max_pool_2d", newest=3):
    """The greatest element of each window. Source: kernels/pooling.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    filter_width: int = attribute(default=0, positive=True)
    filter_height: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    traits = (QuantizedTogether(input, output), SameScale(input, output), SameElementType(input, output), Window(input))
    versions = (Needs(3, input, i16), Needs(2, input, i8))


class L2Pool2D(Operator, name="tfl.l2_pool_2d"):
    """The root of the mean square of each window. Source: kernels/pooling.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    filter_width: int = attribute(default=0, positive=True)
    filter_height: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    traits = (Window(input),)


class ReduceWindow(Operator, name="tfl.reduce_window"):
    """A reduction of each window, as `reduce_function` says. Source: kernels/reduce_window.cc."""

    __slots__ = ()
    input: Value = operand()
    init: Value = operand()
    shape: Value = operand(indices=True)
    strides: Value = operand(indices=True)
    dilations: Value = operand(indices=True)
    output: Value = result()
    reduce_function: str = attribute(default="UNSUPPORTED")
    traits = (NoZeros(strides, dilations), Unbounded())
