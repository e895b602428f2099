"""Elements in another order, place or number, chosen by index, reduced. What says where or how many is i64."""

from __future__ import annotations

from tflq.dialects import inference as sizes
from tflq.dialects.declare import INT, STRING, OneOf, Operator, attribute, ints, operand, result
from tflq.dialects.inference import Dims, NotInferred, Stated
from tflq.dialects.onnx.elementwise import STORED
from tflq.dialects.traits.types import Elementwise
from tflq.ir.core import Value
from tflq.ir.types import Shape as Extent
from tflq.ir.types import f32, f64, i1, i8, i32, i64, ui8


class _Moved(Operator):
    """The elements of one tensor."""

    T = OneOf(*STORED)
    data: Value = operand(T)
    output: Value = result(T)


class Identity(_Moved, name="onnx.identity"):
    """The input."""

    traits = (Elementwise(_Moved.data, _Moved.output),)


class Reshape(_Moved, name="onnx.reshape"):
    """The same elements in another shape: -1 is what is left, 0 the dim of the input there, or with allowzero 0."""

    shape: Value = operand(i64)
    allowzero: int = attribute(INT, default=0)

    def infer(self, site: Stated) -> Dims:
        dims, wanted = site.dims(self.data), site.ints(self.shape)
        copied = [None if d == 0 and i >= len(dims) else dims[i] if d == 0 else d for i, d in enumerate(wanted)]
        return sizes.reshaped(dims, wanted if self.allowzero else copied)


class Transpose(_Moved, name="onnx.transpose"):
    """Dims in another order."""

    perm: tuple[int, ...] = attribute(ints())

    def infer(self, site: Stated) -> Dims:
        return sizes.permuted(site.dims(self.data, len(self.perm)), self.perm)


class Slice(_Moved, name="onnx.slice"):
    """Every step-th element from a start to an end, of some axes; negative ones count from the end of a dim."""

    starts: Value = operand(i64)
    ends: Value = operand(i64)
    axes: Value = operand(i64)
    steps: Value = operand(i64)

    def infer(self, site: Stated) -> Dims:
        out = list(site.dims(self.data))
        rows = zip(*(site.whole(v) for v in (self.axes, self.starts, self.ends, self.steps)), strict=True)
        for axis, start, end, step in rows:
            size = out[axis]
            stop = None if step < 0 and end < -(1 << 31) else end
            out[axis] = None if size is None else len(range(*slice(start, stop, step).indices(size)))
        return tuple(out)


class Pad(Operator, name="onnx.pad"):
    """Elements around the input: mode is constant, or reflect. pads: those before each dim, then those after each."""

    T = OneOf(f32, f64, i1, i8, ui8, i32, i64)
    data: Value = operand(T)
    pads: Value = operand(i64)
    constant_value: Value | None = operand(T, optional=True)
    output: Value = result(T)
    mode: str = attribute(STRING, default="constant")

    def infer(self, site: Stated) -> Dims:
        dims, pads = site.dims(self.data), site.whole(self.pads)
        return sizes.padded(dims, pads[: len(dims)], pads[len(dims) :])


class Tile(_Moved, name="onnx.tile"):
    """The input, repeated."""

    repeats: Value = operand(i64)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.data)
        return tuple(map(sizes.product, zip(dims, site.ints(self.repeats, len(dims)), strict=True)))


class Expand(_Moved, name="onnx.expand"):
    """The input broadcast with a shape."""

    shape: Value = operand(i64)

    def infer(self, site: Stated) -> Dims:
        return sizes.broadcast(site.dims(self.data), tuple(site.ints(self.shape))) or ()


class Concat(Operator, name="onnx.concat"):
    """Operands one after the other along an axis."""

    T = OneOf(*STORED)
    inputs: list[Value | None] = operand(T, variadic=True)
    output: Value = result(T)
    axis: int = attribute(INT)

    def infer(self, site: Stated) -> Dims:
        return site.joined(self.inputs, self.axis)


class CumSum(Operator, name="onnx.cum_sum"):
    """Sums of the elements up to each along an axis."""

    T = OneOf(i32, i64, f32, f64)
    x: Value = operand(T)
    axis: Value = operand(i64)
    y: Value = result(T)
    exclusive: int = attribute(INT, default=0)
    reverse: int = attribute(INT, default=0)
    traits = (Elementwise(x, y),)


# Elements chosen or placed by index.


class Gather(Operator, name="onnx.gather"):
    """Slices of an axis by index; negative indices count from its end."""

    T = OneOf(*STORED)
    data: Value = operand(T)
    indices: Value = operand(OneOf(i32, i64))
    output: Value = result(T)
    axis: int = attribute(INT, default=0)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.data)
        axis = site.axis(self.axis, len(dims))
        return (*dims[:axis], *site.dims(self.indices), *dims[axis + 1 :])


class GatherND(Operator, name="onnx.gather_nd"):
    """Slices of the first dims after batch_dims by rows of indices."""

    T = OneOf(*STORED)
    data: Value = operand(T)
    indices: Value = operand(i64)
    output: Value = result(T)
    batch_dims: int = attribute(INT, default=0)

    def infer(self, site: Stated) -> Dims:
        dims, rows = site.dims(self.data), site.dims(self.indices, least=1)
        if rows[-1] is None:
            raise NotInferred("the length of its indices is not known")
        return (*rows[:-1], *dims[self.batch_dims + rows[-1] :])


class ScatterND(Operator, name="onnx.scatter_nd"):
    """The input with slices of its first dims replaced, by rows of indices."""

    T = OneOf(*STORED)
    data: Value = operand(T)
    indices: Value = operand(i64)
    updates: Value = operand(T)
    output: Value = result(T)

    def infer(self, site: Stated) -> Dims:
        return site.dims(self.data)


class TopK(Operator, name="onnx.top_k"):
    """The greatest or least elements along an axis in order, and their indices; of equals the first."""

    T = OneOf(f32, f64, i32, i64)
    x: Value = operand(T)
    k: Value = operand(i64)
    values: Value = result(T)
    indices: Value = result(i64)
    axis: int = attribute(INT)
    largest: int = attribute(INT, default=1)

    def infer(self, site: Stated) -> list[Extent]:
        dims = site.dims(self.x)
        (count,) = site.ints(self.k, 1)
        return [sizes.replaced(dims, site.axis(self.axis, len(dims)), count)] * 2


class ArgMax(Operator, name="onnx.arg_max"):
    """The first index of the greatest element."""

    data: Value = operand(OneOf(f32, f64, i8, ui8, i32))
    reduced: Value = result(i64)
    axis: int = attribute(INT)
    keepdims: int = attribute(INT)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.data)
        return sizes.reduced(dims, (site.axis(self.axis, len(dims)),), keep=bool(self.keepdims))


# Reductions over several axes.


class _Reduction(Operator):
    """Over axes."""

    T = OneOf(f32, f64, i32, i64)
    data: Value = operand(T)
    axes: Value = operand(i64)
    reduced: Value = result(T)
    keepdims: int = attribute(INT)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.data)
        axes = [site.axis(a, len(dims)) for a in site.whole(self.axes)]
        return sizes.reduced(dims, axes, keep=bool(self.keepdims))


class ReduceSum(_Reduction, name="onnx.reduce_sum"):
    """The sum."""


class ReduceMax(_Reduction, name="onnx.reduce_max"):
    """The greatest."""


class ReduceMin(_Reduction, name="onnx.reduce_min"):
    """The least."""


class ReduceMean(_Reduction, name="onnx.reduce_mean"):
    """The mean."""


class ReduceProd(_Reduction, name="onnx.reduce_prod"):
    """The product."""


# Shapes.


class Shape(Operator, name="onnx.shape"):
    """The dims of a tensor."""

    data: Value = operand(OneOf(*STORED))
    shape: Value = result(i64)

    def infer(self, site: Stated) -> Dims:
        return (len(site.dims(self.data)),)
