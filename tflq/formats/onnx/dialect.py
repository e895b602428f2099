"""ONNX, opset 18: the operators that tflq writes, on the element types that ONNX Runtime computes on a CPU.

A class has ONNX's name of the operator, and its operands, results and attributes are ONNX's. Layouts are NCHW, or with
a dim of depth before height, with OIHW filters. Integers wrap. Semantics are those of the ONNX specification, except as
a class says.
"""

from __future__ import annotations

from typing import ClassVar

from tflq.dialects import inference as sizes
from tflq.dialects.declare import INT, NUMBER, STRING, OneOf, Operator, attribute, ints, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, NotInferred, convolved, matrix_product, plus
from tflq.dialects.traits import Broadcasts, Elementwise, SameShape
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64
from tflq.ir.types import Shape as Extent

NUMBERS = (i32, i64, f32, f64)
"""The element types that ONNX Runtime computes with."""
STORED = (i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64)
"""The element types of tensors."""


class _Binary(Operator):
    """Of two numbers."""

    T = OneOf(*NUMBERS)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(T)
    traits = (Broadcasts(a, b, c),)


class Add(_Binary, name="onnx.add"):
    """a + b."""


class Sub(_Binary, name="onnx.sub"):
    """a - b."""


class Mul(_Binary, name="onnx.mul"):
    """a * b."""


class Div(_Binary, name="onnx.div"):
    """a / b; of integers toward zero."""


class Max(_Binary, name="onnx.max"):
    """The greater of two."""


class Min(_Binary, name="onnx.min"):
    """The lesser of two."""


class Mod(_Binary, name="onnx.mod"):
    """The remainder, with the divisor's sign; of floats, with fmod = 1, with the dividend's."""

    fmod: int = attribute(INT, default=0)


class Pow(_Binary, name="onnx.pow"):
    """a to the power of b."""


class _Unary(Operator):
    """Of one number."""

    T = OneOf(*NUMBERS)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class Abs(_Unary, name="onnx.abs"):
    """The absolute value."""


class Neg(_Unary, name="onnx.neg"):
    """-x."""


class Relu(_Unary, name="onnx.relu"):
    """x, at least 0."""


class Clip(Operator, name="onnx.clip"):
    """The input between two numbers."""

    T = OneOf(*NUMBERS, i8, ui8)
    input: Value = operand(T)
    min: Value = operand(T)
    max: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class _OfFloat(Operator):
    """Of one float."""

    T = OneOf(f32, f64)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class Ceil(_OfFloat, name="onnx.ceil"):
    """Rounded up."""


class Cos(_OfFloat, name="onnx.cos"):
    """The cosine."""


class Elu(_OfFloat, name="onnx.elu"):
    """x, or e^x - 1 below 0."""


class Erf(_OfFloat, name="onnx.erf"):
    """The error function."""


class Exp(_OfFloat, name="onnx.exp"):
    """e to the power of x."""


class Floor(_OfFloat, name="onnx.floor"):
    """Rounded down."""


class HardSwish(_OfFloat, name="onnx.hard_swish"):
    """x * max(0, min(1, x / 6 + 0.5))."""


class LeakyRelu(_OfFloat, name="onnx.leaky_relu"):
    """x, or alpha * x below 0."""

    alpha: float = attribute(NUMBER, default=0.01)


class Log(_OfFloat, name="onnx.log"):
    """The natural logarithm."""


class Reciprocal(_OfFloat, name="onnx.reciprocal"):
    """One over x."""


class Round(_OfFloat, name="onnx.round"):
    """Rounded to nearest, half to even."""


class Sigmoid(_OfFloat, name="onnx.sigmoid"):
    """1 / (1 + e^-x)."""


class Sign(_OfFloat, name="onnx.sign"):
    """-1, 0 or 1."""


class Sin(_OfFloat, name="onnx.sin"):
    """The sine."""


class Softmax(_OfFloat, name="onnx.softmax"):
    """Powers of e, divided by their sum along an axis."""

    axis: int = attribute(INT, default=-1)


class Sqrt(_OfFloat, name="onnx.sqrt"):
    """The square root."""


class Tanh(_OfFloat, name="onnx.tanh"):
    """The hyperbolic tangent."""


# Comparisons and choices.


class _Comparison(Operator):
    """Two numbers, compared."""

    T = OneOf(*NUMBERS)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(i1)
    traits = (Broadcasts(a, b, c),)


class Equal(_Comparison, name="onnx.equal"):
    """a = b."""


class Greater(_Comparison, name="onnx.greater"):
    """a > b."""


class GreaterOrEqual(_Comparison, name="onnx.greater_or_equal"):
    """a ≥ b."""


class Less(_Comparison, name="onnx.less"):
    """a < b."""


class LessOrEqual(_Comparison, name="onnx.less_or_equal"):
    """a ≤ b."""


class PRelu(Operator, name="onnx.p_relu"):
    """x, or slope * x below 0; the slope broadcasts to x."""

    T = OneOf(f32, f64)
    x: Value = operand(T)
    slope: Value = operand(T)
    y: Value = result(T)
    traits = (Broadcasts(x, slope, y),)


class IsNaN(Operator, name="onnx.is_nan"):
    """Whether it is NaN."""

    x: Value = operand(OneOf(f32, f64))
    y: Value = result(i1)
    traits = (Elementwise(x, y),)


class Where(Operator, name="onnx.where"):
    """x where the condition holds, else y."""

    T = OneOf(i32, i64, f32, f64, ui8)
    condition: Value = operand(i1)
    x: Value = operand(T)
    y: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(condition, x, y, output),)


# Bits and logic.


class _OfTruth(Operator):
    """Of two truth values."""

    a: Value = operand(i1)
    b: Value = operand(i1)
    c: Value = result(i1)
    traits = (Broadcasts(a, b, c),)


class And(_OfTruth, name="onnx.and"):
    """Whether both are true."""


class Or(_OfTruth, name="onnx.or"):
    """Whether one is true."""


class Xor(_OfTruth, name="onnx.xor"):
    """Whether one of two is true."""


class Not(Operator, name="onnx.not"):
    """Whether it is false."""

    x: Value = operand(i1)
    y: Value = result(i1)
    traits = (Elementwise(x, y),)


class _OfBits(Operator):
    """Of the bits of two integers."""

    T = OneOf(i8, i16, i32, i64, ui8, ui16, ui32, ui64)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(T)
    traits = (Broadcasts(a, b, c),)


class BitwiseAnd(_OfBits, name="onnx.bitwise_and"):
    """Bits that both have."""


class BitwiseOr(_OfBits, name="onnx.bitwise_or"):
    """Bits that one has."""


class BitwiseXor(_OfBits, name="onnx.bitwise_xor"):
    """Bits that differ."""


class BitwiseNot(Operator, name="onnx.bitwise_not"):
    """Bits that it does not have."""

    T = OneOf(i8, i16, i32, i64, ui8, ui16, ui32, ui64)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class BitShift(Operator, name="onnx.bit_shift"):
    """x shifted by y bits, zeros come in. direction: LEFT or RIGHT."""

    T = OneOf(ui8, ui32, ui64)
    x: Value = operand(T)
    y: Value = operand(T)
    z: Value = result(T)
    direction: str = attribute(STRING)
    traits = (Broadcasts(x, y, z),)


# Between element types.


class Cast(Operator, name="onnx.cast"):
    """The numbers in another type: integers wrap; a float loses its fraction, and must fit."""

    input: Value = operand(OneOf(*STORED))
    output: Value = result(OneOf(*STORED))
    traits = (Elementwise(input, output),)


# Elements in another order, place or number, chosen by index, reduced. What says where or how many is i64.


class _Moved(Operator):
    """The elements of one tensor."""

    T = OneOf(*STORED)
    data: Value = operand(T)
    output: Value = result(T)


class Identity(_Moved, name="onnx.identity"):
    """The input."""

    traits = (Elementwise(_Moved.data, _Moved.output),)


class Reshape(_Moved, name="onnx.reshape"):
    """The elements in another shape: -1 is what is left, 0 the dim of the input there, or with allowzero 0."""

    shape: Value = operand(i64)
    allowzero: int = attribute(INT, default=0)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, wanted = site.dims(self.data), site.ints(self.shape)
        copied = [None if d == 0 and i >= len(dims) else dims[i] if d == 0 else d for i, d in enumerate(wanted)]
        return sizes.reshaped(dims, wanted if self.allowzero else copied)


class Transpose(_Moved, name="onnx.transpose"):
    """Dims in another order."""

    perm: tuple[int, ...] = attribute(ints())

    def infer(self, site: DeclaredShapes) -> Dims:
        return sizes.permuted(site.dims(self.data, len(self.perm)), self.perm)


class Slice(_Moved, name="onnx.slice"):
    """Every step-th element from a start to an end, of some axes; negative ones count from the end of a dim."""

    starts: Value = operand(i64)
    ends: Value = operand(i64)
    axes: Value = operand(i64)
    steps: Value = operand(i64)

    def infer(self, site: DeclaredShapes) -> Dims:
        out = list(site.dims(self.data))
        rows = zip(*(site.whole(v) for v in (self.axes, self.starts, self.ends, self.steps)), strict=True)
        for axis, start, end, step in rows:
            if not -len(out) <= axis < len(out):
                raise Misfit(f"axis {axis} of a tensor of rank {len(out)}")
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

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, pads = site.dims(self.data), site.whole(self.pads)
        return sizes.padded(dims, pads[: len(dims)], pads[len(dims) :])


class Tile(_Moved, name="onnx.tile"):
    """The input, repeated."""

    repeats: Value = operand(i64)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.data)
        return tuple(map(sizes.product, zip(dims, site.ints(self.repeats, len(dims)), strict=True)))


class Expand(_Moved, name="onnx.expand"):
    """The input broadcast with a shape."""

    shape: Value = operand(i64)

    def infer(self, site: DeclaredShapes) -> Dims:
        return sizes.broadcast(site.dims(self.data), tuple(site.ints(self.shape))) or ()


class Concat(Operator, name="onnx.concat"):
    """Operands one after the other along an axis."""

    T = OneOf(*STORED)
    inputs: list[Value | None] = operand(T, variadic=True)
    output: Value = result(T)
    axis: int = attribute(INT)

    def infer(self, site: DeclaredShapes) -> Dims:
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

    def infer(self, site: DeclaredShapes) -> Dims:
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

    def infer(self, site: DeclaredShapes) -> Dims:
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

    def infer(self, site: DeclaredShapes) -> Dims:
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

    def infer(self, site: DeclaredShapes) -> list[Extent]:
        dims = site.dims(self.x)
        (count,) = site.ints(self.k, 1)
        return [sizes.replaced(dims, site.axis(self.axis, len(dims)), count)] * 2


class NonZero(Operator, name="onnx.non_zero"):
    """The indices of the elements that are not 0: a row for each dim."""

    x: Value = operand(OneOf(i1, i8, ui8, i32, i64, f32))
    y: Value = result(i64)

    def infer(self, site: DeclaredShapes) -> Dims:
        return (len(site.dims(self.x)), None)


class _IndexAlong(Operator):
    """An index along an axis."""

    data: Value = operand(OneOf(f32, f64, i8, ui8, i32))
    reduced: Value = result(i64)
    axis: int = attribute(INT)
    keepdims: int = attribute(INT)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.data)
        return sizes.reduced(dims, (site.axis(self.axis, len(dims)),), keep=bool(self.keepdims))


class ArgMax(_IndexAlong, name="onnx.arg_max"):
    """The first index of the greatest element."""


class ArgMin(_IndexAlong, name="onnx.arg_min"):
    """The first index of the least element."""


# Reductions over several axes.


class _Reduction(Operator):
    """Over axes."""

    T = OneOf(f32, f64, i32, i64)
    data: Value = operand(T)
    axes: Value = operand(i64)
    reduced: Value = result(T)
    keepdims: int = attribute(INT)

    def infer(self, site: DeclaredShapes) -> Dims:
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

    def infer(self, site: DeclaredShapes) -> Dims:
        return (len(site.dims(self.data)),)


class Range(Operator, name="onnx.range"):
    """start, start + delta, ... below limit."""

    T = OneOf(i32, i64)
    start: Value = operand(T)
    limit: Value = operand(T)
    delta: Value = operand(T)
    output: Value = result(T)

    def infer(self, _: DeclaredShapes) -> Dims:
        return (None,)


# Convolutions, products of matrices, pools, resized images.


class _Windows(Operator):
    """Windows over the spatial dims; `pads` has the elements before each, then those after each."""

    strides: tuple[int, ...] = attribute(ints())
    pads: tuple[int, ...] = attribute(ints())


def _placed(sizes: Dims, kernel: Dims, op: _Windows, dilations: tuple[int, ...] | None = None) -> Dims:
    half = len(sizes)
    pairs = [n for pair in zip(op.pads[:half], op.pads[half:], strict=True) for n in pair]
    if None in kernel:
        raise NotInferred("the size of its filter is not known")
    return convolved(sizes, kernel, op.strides, pairs, dilations)


class Conv(_Windows, name="onnx.conv"):
    """Windows times a weight [outputs, inputs of a group, ...], plus a bias."""

    x: Value = operand(f32)
    w: Value = operand(f32)
    b: Value | None = operand(f32, optional=True)
    y: Value = result(f32)
    dilations: tuple[int, ...] = attribute(ints())
    group: int = attribute(INT, default=1)

    def infer(self, site: DeclaredShapes) -> Dims:
        n, _, *sizes = site.dims(self.x)
        outputs, _, *kernel = site.dims(self.w)
        return (n, outputs, *_placed(tuple(sizes), tuple(kernel), self, self.dilations))


class ConvTranspose(_Windows, name="onnx.conv_transpose"):
    """The transpose of a convolution, by a weight [inputs, outputs of a group, ...]."""

    x: Value = operand(f32)
    w: Value = operand(f32)
    b: Value | None = operand(f32, optional=True)
    y: Value = result(f32)

    def infer(self, site: DeclaredShapes) -> Dims:
        n, _, *sizes = site.dims(self.x)
        _, outputs, *kernel = site.dims(self.w)
        half = len(sizes)
        steps = [None if size is None else (size - 1) * s for size, s in zip(sizes, self.strides, strict=True)]
        cropped = [-a - b for a, b in zip(self.pads[:half], self.pads[half:], strict=True)]
        return (n, outputs, *map(plus, steps, kernel, cropped))


class MatMul(Operator, name="onnx.mat_mul"):
    """Products of the last two dims; those before them broadcast."""

    T = OneOf(f32, f64, i32, i64)
    a: Value = operand(T)
    b: Value = operand(T)
    y: Value = result(T)

    def infer(self, site: DeclaredShapes) -> Dims:
        return matrix_product(site.dims(self.a), site.dims(self.b))


class Gemm(Operator, name="onnx.gemm"):
    """Rows times a matrix, or with transB its transpose, plus a row."""

    a: Value = operand(f32)
    b: Value = operand(f32)
    c: Value | None = operand(f32, optional=True)
    y: Value = result(f32)
    transposed: int = attribute(INT, default=0, key="transB")

    def infer(self, site: DeclaredShapes) -> Dims:
        outputs = site.dims(self.b, 2)[0 if self.transposed else 1]
        return (site.dims(self.a, 2)[0], outputs)


class AveragePool(_Windows, name="onnx.average_pool"):
    """The mean of each window; with count_include_pad zeros around the input count."""

    x: Value = operand(f32)
    y: Value = result(f32)
    kernel_shape: tuple[int, ...] = attribute(ints())
    count_include_pad: int = attribute(INT, default=0)

    def infer(self, site: DeclaredShapes) -> Dims:
        n, c, *sizes = site.dims(self.x)
        return (n, c, *_placed(tuple(sizes), self.kernel_shape, self))


class MaxPool(_Windows, name="onnx.max_pool"):
    """The greatest element of each window."""

    T = OneOf(f32, f64, i8, ui8)
    x: Value = operand(T)
    y: Value = result(T)
    kernel_shape: tuple[int, ...] = attribute(ints())

    def infer(self, site: DeclaredShapes) -> Dims:
        n, c, *sizes = site.dims(self.x)
        return (n, c, *_placed(tuple(sizes), self.kernel_shape, self))


class Resize(Operator, name="onnx.resize"):
    """Images of other sizes, which are those of all dims. mode: nearest or linear."""

    x: Value = operand(f32)
    roi: Value | None = operand(f32, optional=True)
    scales: Value | None = operand(f32, optional=True)
    sizes: Value = operand(i64)
    y: Value = result(f32)
    mode: str = attribute(STRING)
    coordinate_transformation_mode: str = attribute(STRING)
    nearest_mode: str = attribute(STRING, default="round_prefer_floor")

    def infer(self, site: DeclaredShapes) -> Dims:
        return tuple(site.ints(self.sizes))


# Graphs inside of an operator: they read what is defined before it. `onnx.yield`, which is no operator in a file, ends
# each with its results.


class Yield(Operator, name="onnx.yield"):
    """The results of a graph."""

    values: list[Value | None] = operand(variadic=True)


def _graphs(op: _Graphs) -> str | None:
    """The constraint that an op has its graphs, and that each takes and gives what it should."""
    if [len(region.blocks) for region in op.regions] != [1] * len(op.graphs):
        return f"it must have graphs of one block: {', '.join(op.graphs)}"
    takes, gives = op.sides()
    for name, region in zip(op.graphs, op.regions, strict=True):
        arguments, ops = region.block.arguments, region.block.ops
        if [v.type.element for v in arguments] != takes:
            return f"its graph '{name}' must take {', '.join(map(str, takes)) or 'nothing'}"
        if not ops or not isinstance(ops[-1], Yield) or [v.type.element for v in ops[-1].present_operands] != gives:
            return f"its graph '{name}' must end with an onnx.yield of {', '.join(map(str, gives)) or 'nothing'}"
    return None


class _Graphs(Operator):
    """An operator with graphs: the names of the attributes that hold them in a file."""

    graphs: ClassVar[tuple[str, ...]] = ()
    constraints = (_graphs,)

    def sides(self) -> tuple[list[ElementType], list[ElementType]]:
        """The element types that each graph takes and gives."""
        return [], [v.type.element for v in self.results]


class If(_Graphs, name="onnx.if"):
    """The results of one of two graphs, which take nothing."""

    cond: Value = operand(i1)
    outputs: list[Value] = result(variadic=True)
    graphs = ("then_branch", "else_branch")


class Loop(_Graphs, name="onnx.loop"):
    """The results of a graph that is run as long as the first of them holds. It takes the number of the run, whether
    the condition holds, and what it gave before, at first the operands. trip_count: the most runs."""

    trip_count: Value | None = operand(i64, optional=True)
    cond: Value = operand(i1)
    initial: list[Value | None] = operand(variadic=True)
    outputs: list[Value] = result(variadic=True)
    graphs = ("body",)

    def sides(self) -> tuple[list[ElementType], list[ElementType]]:
        carried = [v.type.element for v in self.present_operands[-len(self.results) :]] if self.results else []
        return [i64, i1, *carried], [i1, *(v.type.element for v in self.results)]


# Between real numbers and stored integers. A row of scales is for the indices of an axis.


class DequantizeLinear(Operator, name="onnx.dequantize_linear"):
    """(x - x_zero_point) * x_scale."""

    T = OneOf(i8, ui8, i32)
    x: Value = operand(T)
    x_scale: Value = operand(f32)
    x_zero_point: Value = operand(T)
    y: Value = result(f32)
    axis: int = attribute(INT, default=1)
    traits = (SameShape(x, y),)


class QuantizeLinear(Operator, name="onnx.quantize_linear"):
    """x / y_scale rounded to nearest, half to even, plus y_zero_point, saturated."""

    T = OneOf(i8, ui8)
    x: Value = operand(f32)
    y_scale: Value = operand(f32)
    y_zero_point: Value = operand(T)
    y: Value = result(T)
    axis: int = attribute(INT, default=1)
    traits = (SameShape(x, y),)
