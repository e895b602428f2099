"""Tensors one after the other, and a tensor in parts."""

from __future__ import annotations

from typing import Any

from tflq.dialects import inference as sizes
from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import Dims, Misfit, Stated, agree, plus
from tflq.dialects.tfl import Needs
from tflq.dialects.traits.operands import Axes, Axis, ComputedEarly, Counts, MovesElements, SizedBy
from tflq.dialects.traits.quantization import AsksSameScale, Misreads, QuantizedTogether, SameScale
from tflq.dialects.traits.types import SameElementType
from tflq.ir.core import Value
from tflq.ir.types import Shape, i1, i8, i16, i32, ui8, ui32


class Concatenation(Operator, name="tfl.concatenation", newest=7):
    """Operands one after the other along an axis. Source: kernels/concatenation.cc."""

    values: list[Value | None] = operand(variadic=True)
    output: Value = result()
    axis: int = attribute(default=0)
    fused_activation_function: str = attribute(default="NONE")
    traits = (
        QuantizedTogether(values, output),
        Axis(axis, output),
        SameElementType(values, output),
        Misreads("copied"),
        AsksSameScale(i8),
        MovesElements(values),
        ComputedEarly(),
    )
    versions = (Needs(4, values, ui32), Needs(3, values, i16), Needs(2, values, i8))

    def infer(self, site: Stated) -> Dims:
        return site.joined(self.values, self.axis)


def _divides(input: Any, outputs: Any, axis: Any, count: Any) -> tuple[Trait, ...]:
    """What is true of operators that divide a tensor along an axis into `count` parts."""
    return (
        SameScale(input, outputs),
        Axes(axis, input),
        Counts(count, outputs),
        SameElementType(input, outputs),
        Misreads("copied"),
        MovesElements(input),
    )


class Split(Operator, name="tfl.split", newest=5):
    """Equal parts along an axis. Source: kernels/split.cc."""

    axis: Value = operand(indices=True)
    input: Value = operand()
    outputs: list[Value] = result(variadic=True)
    num_splits: int = attribute(default=0)
    traits = (*_divides(input, outputs, axis, num_splits), SizedBy(axis))
    versions = (Needs(4, input, i16), Needs(3, input, i32), Needs(2, input, i8))

    def infer(self, site: Stated) -> list[Shape]:
        dims, count = site.dims(self.input), len(self.outputs)
        axis = site.chosen_axis(self.axis, len(dims))
        if axis is None:
            return [(None,) * len(dims)] * count
        size = dims[axis]
        if size is not None and size % count:
            raise Misfit(f"{size} does not divide into {count} parts")
        return [sizes.replaced(dims, axis, None if size is None else size // count)] * count


class SplitV(Operator, name="tfl.split_v", newest=3):
    """Parts of given sizes along an axis. Source: kernels/split_v.cc."""

    input: Value = operand()
    sizes: Value = operand(indices=True)
    axis: Value = operand(indices=True)
    outputs: list[Value] = result(variadic=True)
    num_splits: int = attribute(default=0)
    traits = (*_divides(input, outputs, axis, num_splits), SizedBy(sizes, axis))
    versions = (Needs(2, input, i8),)

    def infer(self, site: Stated) -> list[Shape]:
        """At most one size is -1: what is left."""
        dims = site.dims(self.input)
        counts = site.ints(self.sizes, len(self.outputs))
        axis = site.chosen_axis(self.axis, len(dims))
        if axis is None:
            return [(None,) * len(dims)] * len(counts)
        rest = plus(dims[axis], *(None if n is None else -max(n, 0) for n in counts))
        if rest is not None and (rest < 0 or (rest and -1 not in counts)):
            raise Misfit(f"sizes {counts} do not add up to {dims[axis]}")
        return [sizes.replaced(dims, axis, rest if n == -1 else n) for n in counts]


class Pack(Operator, name="tfl.pack", newest=5):
    """Operands along a new axis. Source: kernels/pack.cc."""

    values: list[Value | None] = operand(variadic=True)
    output: Value = result()
    values_count: int = attribute(default=0)
    axis: int = attribute(default=0)
    traits = (
        SameScale(values, output),
        Axis(axis, values, more=1),
        Counts(values_count, values),
        SameElementType(values, output),
        Misreads("copied"),
        AsksSameScale(i8, ui8, i16),
        MovesElements(values),
    )
    versions = (Needs(4, values, ui32), Needs(3, values, i16), Needs(2, values, i8))

    def infer(self, site: Stated) -> Dims:
        dims = site.common(self.values)
        return sizes.with_dim(dims, site.axis(self.axis, len(dims) + 1), len(self.values))


class Unpack(Operator, name="tfl.unpack", newest=6):
    """Each index of an axis by itself. Source: kernels/unpack.cc."""

    input: Value = operand()
    outputs: list[Value] = result(variadic=True)
    num: int = attribute(default=0)
    axis: int = attribute(default=0)
    traits = (
        SameScale(input, outputs),
        Axis(axis, input),
        Counts(num, outputs),
        SameElementType(input, outputs),
        Misreads("copied"),
        AsksSameScale(i8, ui8, i16),
        MovesElements(input),
    )
    versions = (Needs(2, input, i8), Needs(2, input, ui8), Needs(3, input, i1), Needs(4, input, i16))

    def infer(self, site: Stated) -> list[Shape]:
        dims = site.dims(self.input)
        axis = site.axis(self.axis, len(dims))
        agree(dims[axis], len(self.outputs), "the dim that is unpacked and the results")
        return [sizes.without_dim(dims, axis)] * len(self.outputs)
