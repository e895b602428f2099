"""Windows of one channel each."""

from __future__ import annotations

from typing import ClassVar

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.constants import NoZeros
from tflq.dialects.traits.kernels import Unbounded
from tflq.dialects.traits.quantization import QuantizedTogether, SameScale
from tflq.dialects.traits.types import SameElementType, Window
from tflq.dialects.windows import places, slide
from tflq.ir.core import Value
from tflq.ir.types import i8, i16

__all__ = ["AveragePool2D", "L2Pool2D", "MaxPool2D", "Pool2D", "ReduceWindow"]


class Pool2D(Operator):
    """Windows of height and width."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    filter_width: int = attribute(default=0, positive=True)
    filter_height: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    traits: ClassVar[tuple[Trait, ...]] = (Window(input),)

    def infer(self, site: Stated) -> Dims:
        n, *sizes, c = site.dims(self.input, 4)
        kernel, strides = (self.filter_height, self.filter_width), (self.stride_h, self.stride_w)
        return (n, *slide(sizes, kernel, strides, self.padding), c)


class AveragePool2D(Pool2D, name="tfl.average_pool_2d", newest=3):
    """The mean of each window, of the elements inside the input. Source: kernels/pooling.cc."""

    __slots__ = ()
    traits = (
        SameScale(Pool2D.input, Pool2D.output),
        SameElementType(Pool2D.input, Pool2D.output),
        *Pool2D.traits,
    )
    versions = (Needs(3, Pool2D.input, i16), Needs(2, Pool2D.input, i8))


class MaxPool2D(Pool2D, name="tfl.max_pool_2d", newest=3):
    """The greatest element of each window. Source: kernels/pooling.cc."""

    __slots__ = ()
    traits = (
        QuantizedTogether(Pool2D.input, Pool2D.output),
        SameScale(Pool2D.input, Pool2D.output),
        SameElementType(Pool2D.input, Pool2D.output),
        *Pool2D.traits,
    )
    versions = (Needs(3, Pool2D.input, i16), Needs(2, Pool2D.input, i8))


class L2Pool2D(Pool2D, name="tfl.l2_pool_2d"):
    """The root of the mean square of each window. Source: kernels/pooling.cc."""

    __slots__ = ()


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

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input)
        window, strides, dilations = (site.ints(v, len(dims)) for v in (self.shape, self.strides, self.dilations))
        return tuple(map(places, dims, window, strides, dilations))
