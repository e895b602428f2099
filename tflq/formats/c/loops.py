"""Kernels: a function of C for each root, and the rows of products, pools and reductions.

An operator that makes rows fills `acc`, a row of sums, within loops over the rows. A loop over the row then computes
the tree of its results: branch-free, so that compilers make vectors of it. Rows of convolutions: `convolution.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tflq.analysis.known import Ranges
from tflq.base.errors import Refused
from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import movement as move
from tflq.formats.c.expressions import Expressions, NeedsMoreError, Point
from tflq.formats.c.fusion import Fusion, is_table
from tflq.formats.c.names import MACRO, bytes_of, c_type, count, dims_of, literal, plus
from tflq.formats.c.unit import Kernel, Scratch, Unit
from tflq.ir.core import Op, Value
from tflq.ir.types import i1, i32, i64
from tflq.numerics.convolution import reciprocal_scale
from tflq.numerics.resize import nearest_index, steps_of, taps

AXES: Final = "zyx"
"""Letters of the spatial dims in the names of indices; of two dims the last two."""
_SIZES: Final = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "float": 4, "int64_t": 8}


_SUMS: Final = re.compile(r"(\w+)\[j\]")


class Rows(NamedTuple):
    """Loops that fill a row of sums, to the place where the row is read; the ends of the loops. base: the index of its
    first element in the result. sum: the expression of an element j."""

    begin: Sequence[str]
    end: Sequence[str]
    base: str
    length: int
    sum: str


class Body:
    """The function of one root, as far as it is known: what its tree reads, and its scratch memory."""

    def __init__(self, unit: Unit, fusion: Fusion, ranges: Ranges) -> None:
        self.unit = unit
        self.fusion = fusion
        self.terms = Expressions(unit, fusion, ranges)
        self.scratch: list[Scratch] = []

    def accumulator(self, type: str, size: int, name: str = "acc") -> None:
        """Asks for a row of sums."""
        self.scratch.append(Scratch(type, name, size * _SIZES[type]))

    def operand(self, value: Value) -> tuple[str, str, int]:
        """The name of a tensor that rows are made of, its type in C, and what is taken off its elements beyond a zero
        point."""
        root = self.fusion.root(value)
        if root.is_constant:
            return self.unit.constant(root.array, root.type.storage), c_type(root), 0
        raw = self.fusion.raw.get(root)
        return self.terms.leaf(raw or root), c_type(raw or root), 0 if raw is None else 128

    def finished(self, op: Op, lines: Sequence[str], results: Sequence[Value], shared_from: int) -> Kernel:
        """The kernel of the lines. shared_from: leaves from this one on are read where the result is written."""
        leaves = self.terms.leaves
        parameters = [f"const {c_type(v)} *p{at}" for at, v in enumerate(leaves)]
        parameters += [f"{c_type(v)} *{name}" for v, name in zip(results, result_names(results), strict=True)]
        parameters += [f"{s.type} *{s.name}" for s in self.scratch]
        shape = ", ".join("x".join(map(str, dims_of(v))) or "scalar" for v in results)
        name = self.unit.function(op, parameters, lines, shape)
        sizes = [(count(v), bytes_of(v)) for v in results]
        same = [v for v in leaves[shared_from:] if sizes == [(count(v), bytes_of(v))]]
        return Kernel(name, op, leaves, results, self.scratch, same)


def result_names(results: Sequence[Value]) -> list[str]:
    """The names of the parameters for results."""
    return ["y"] if len(results) == 1 else [f"y{at}" for at in range(len(results))]


def kernel(op: Op, unit: Unit, fusion: Fusion, ranges: Ranges) -> Kernel:
    """The kernel of a root. Refused if no loop computes it."""
    row = fusion.row_of(op.result)
    if row is None and type(op) in _PLAIN and not is_table(op):
        body = Body(unit, fusion, ranges)
        lines = _PLAIN[type(op)](op, body)
        return body.finished(op, lines, op.results, len(body.terms.leaves))
    if row is None:
        return _elementwise(op, unit, fusion, ranges)
    from tflq.formats.c.convolution import convolution

    body = Body(unit, fusion, ranges)
    if isinstance(row, conv.Weighted):
        parts = convolution(row, body)
    else:
        parts = next(make for kind, make in _ROWS if isinstance(row, kind))(row, body)
    shared_from = len(body.terms.leaves)
    lines = [line for part in parts for line in (*part.begin, *_results(part, op.result, row, body), *part.end)]
    return body.finished(row if row.location else op, lines, op.results, shared_from)


def _results(part: Rows, root: Value, row: Op, body: Body) -> list[str]:
    """The loop over one row that computes and stores results. Before it stands the hook of sums, of a product."""
    dims = dims_of(root)
    sums = _SUMS.search(part.sum)
    hook = (
        [f"{MACRO}_SUMS({sums[1]}, y + {part.base}, {part.length})"] if isinstance(row, conv.Weighted) and sums else []
    )
    if part.length == 1:
        point = Point(dims, part.base, "0")
        lines, text = body.terms.stored(point, root, {row.result: part.sum.replace("[j]", "[0]")})
        lines.append(f"y[{part.base}] = ({c_type(root)})({text});")
        return [*hook, "{", *lines, "}"] if hook else lines
    flat = "j" if part.base == "0" else f"{part.base} + j"
    channel = "j" if part.length == (dims or (1,))[-1] else f"(j % {(dims or (1,))[-1]})"
    lines, text = body.terms.stored(Point(dims, flat, channel), root, {row.result: part.sum})
    head = f"for (int32_t j = 0; j < {part.length}; j++) {{"
    return [*hook, head, *lines, f"y[{flat}] = ({c_type(root)})({text});", "}"]


def _elementwise(op: Op, unit: Unit, fusion: Fusion, ranges: Ranges) -> Kernel:
    """A tree without rows: one loop where all elements are alike, one more for channels, or one for each dim."""
    dims = dims_of(op.result) or (1,)
    channels = dims[-1]
    rows = count(op.result) // max(channels, 1)
    step = [int(np.prod(dims[at + 1 :], dtype=np.int64)) for at in range(len(dims))]
    axes = " + ".join(f"i{at} * {s}" if s > 1 else f"i{at}" for at, s in enumerate(step))
    ways: list[tuple[Point, list[str]]] = [
        (Point(dims, "i"), [f"for (int32_t i = 0; i < {count(op.result)}; i++) {{"]),
        (
            Point(dims, f"i * {channels} + j", "j"),
            [f"for (int32_t i = 0; i < {rows}; i++) {{", f"for (int32_t j = 0; j < {channels}; j++) {{"],
        ),
        (
            Point(dims, axes, axes=True),
            [f"for (int32_t i{at} = 0; i{at} < {d}; i{at}++) {{" for at, d in enumerate(dims)],
        ),
    ]  # fmt: skip
    for point, heads in ways:
        body = Body(unit, fusion, ranges)
        try:
            lines, text = body.terms.stored(point, op.result)
        except NeedsMoreError:
            continue
        store = f"y[{point.flat}] = ({c_type(op.result)})({text});"
        return body.finished(op, [*heads, *lines, store, *("}" for _ in heads)], op.results, 0)
    raise Refused(f"{op.short_name.upper()} broadcasts in a way that no loop has")


# Rows of products, pools and reductions.


def _matmul(op: conv.MatMul, body: Body) -> list[Rows]:
    (*outer, m, k), n = dims_of(op.input1), dims_of(op.input2)[-1]
    batches = int(np.prod(dims_of(op.result)[:-2], dtype=np.int64))
    many = [int(np.prod(dims_of(v)[:-2], dtype=np.int64)) for v in (op.input1, op.input2)]
    if any(size not in (1, batches) for size in many) or len(outer) > 1:
        raise Refused("a product of matrices whose outer dims broadcast")
    (a, _, _), (b, _, _) = body.operand(op.input1), body.operand(op.input2)
    storage = op.result.type.storage
    bits = op.input1.type.storage.bits + op.input2.type.storage.bits
    exact = k << bits <= 1 << 31
    type = "float" if storage.is_float else "int32_t" if exact else "int64_t"
    if exact and not storage.is_float:
        body.terms.bounds[op.result] = k << bits
    body.accumulator(type, n)
    left, right = ("g * " if size > 1 else "0 * " for size in many)
    zero = "0.0f" if storage.is_float else "0"
    x = plus(f"{a}[({left}{m} + i) * {k} + k]", 0 if storage.is_float else -op.a_zp)
    w = plus(f"{b}[({right}{k} + k) * {n} + j]", 0 if storage.is_float else -op.b_zp)
    begin = [
        *(f"for (int32_t g = 0; g < {batches}; g++) {{", f"for (int32_t i = 0; i < {m}; i++) {{"),
        *(f"for (int32_t j = 0; j < {n}; j++) {{", f"acc[j] = {zero};", "}"),
        f"for (int32_t k = 0; k < {k}; k++) {{",
        f"const {type} q = {x};",
        *(f"for (int32_t j = 0; j < {n}; j++) {{", f"acc[j] += q * ({w});", "}", "}"),
    ]
    return [Rows(begin, ["}", "}"], f"(g * {m} + i) * {n}", n, read_sum(type, op.result))]


def read_sum(type: str, value: Value, index: str = "j") -> str:
    """The expression of a sum in the row, in the type that expressions of the value have."""
    storage = value.type.storage
    if storage == i64 and type == "int32_t":
        return f"(int64_t)acc[{index}]"
    return f"(int32_t)acc[{index}]" if storage != i64 and type == "int64_t" else f"acc[{index}]"


def _pool(op: conv.Pool, body: Body) -> list[Rows]:
    n, height, width, channels = dims_of(op.input)
    _, rows, columns, _ = dims_of(op.result)
    (kh, kw), (top, _, left, _) = op.kernel, op.pad
    x, _, _ = body.operand(op.input)
    storage, mean = op.result.type.storage, isinstance(op, conv.AvgPool2D)
    type = "float" if storage.is_float else "int32_t" if mean else c_type(op.result)
    body.accumulator(type, channels)
    least = -np.inf if storage.is_float else storage.minimum
    first = ("0.0f" if storage.is_float else "0") if mean else literal(least)
    begin = [
        *(f"for (int32_t g = 0; g < {n}; g++) {{", f"for (int32_t oy = 0; oy < {rows}; oy++) {{"),
        f"for (int32_t ox = 0; ox < {columns}; ox++) {{",
        *(["int32_t n = 0;"] if mean else []),
        *(f"for (int32_t j = 0; j < {channels}; j++) {{", f"acc[j] = {first};", "}"),
        *window((kh, kw), op.stride, (1, 1), (top, left), (height, width), padded=any(op.pad)),
        f"const {c_type(op.input)} *q = {x} + ((g * {height} + iy) * {width} + ix) * {channels};",
        *(["n++;"] if mean else []),
        f"for (int32_t j = 0; j < {channels}; j++) {{",
        *_pooled(op, mean=mean),
        *("}", "}", "}"),
    ]
    text = "acc[j]"
    if isinstance(op, conv.AvgPool2D):
        body.terms.bounds[op.result] = 1 << 16
        text = _mean(op, kh * kw, body)
    base = f"((g * {rows} + oy) * {columns} + ox) * {channels}"
    return [Rows(begin, ["}", "}", "}"], base, channels, text)]


def _pooled(op: conv.Pool, *, mean: bool) -> list[str]:
    if isinstance(op, conv.AvgPool2D) and mean:
        return [f"acc[j] += {plus('q[j]', 0 if op.result.type.storage.is_float else -op.input_zp)};"]
    return ["acc[j] = q[j] > acc[j] ? q[j] : acc[j];"]


def _mean(op: conv.AvgPool2D, most: int, body: Body) -> str:
    """A sum divided by the number of elements, by way of a reciprocal for each number."""
    storage = op.result.type.storage
    if storage.is_float:
        return "acc[j] / (float)n"
    pairs = np.asarray([reciprocal_scale(n) for n in range(1, most + 1)], np.int64)
    m, s = (body.unit.numbers(row, i32) for row in pairs.T)
    scaled = plus(f"scale_one(acc[j], {m}[n - 1], {s}[n - 1])", op.output_zp)
    return f"clamp32({scaled}, {literal(storage.minimum)}, {literal(storage.maximum)})"


def window(
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    before: Sequence[int],
    sizes: Sequence[int],
    *,
    padded: bool,
) -> list[str]:
    """Loops over a window at (oz, oy, ox), without its elements outside of the picture: iz, row iy, column ix."""
    lines = []
    for axis, size, step, apart, first, extent in zip(
        AXES[-len(kernel) :], kernel, stride, dilation, before, sizes, strict=True
    ):
        at = plus(f"o{axis} * {step} + k{axis} * {apart}", -first)
        lines += [f"for (int32_t k{axis} = 0; k{axis} < {size}; k{axis}++) {{", f"const int32_t i{axis} = {at};"]
        lines += [f"if (i{axis} < 0 || i{axis} >= {extent}) {{", "continue;", "}"] if padded else []
    return lines


def _reduction(op: move.Reduction, body: Body) -> list[Rows]:
    dims, storage = dims_of(op.input), op.result.type.storage
    axis = op.axis % len(dims)
    outer, size = int(np.prod(dims[:axis], dtype=np.int64)), dims[axis]
    inner = int(np.prod(dims[axis + 1 :], dtype=np.int64))
    type = "float" if storage.is_float else "int64_t" if storage == i64 else "int32_t"
    first, text = _step(op, type)
    flat = f"(a * {size} + k) * {inner} + j" if inner > 1 else f"a * {size} + k"
    lines, element = body.terms.operand(Point(dims, flat), op.input)
    each = [*lines, text.format(a="acc" if inner == 1 else "acc[j]", x=f"({element})" if " " in element else element)]
    head = f"for (int32_t a = 0; a < {outer}; a++) {{"
    if inner == 1:
        begin = [head, f"{type} acc = {first};", f"for (int32_t k = 0; k < {size}; k++) {{", *each, "}"]
        return [Rows(begin, ["}"], "a", 1, "acc")]
    body.accumulator(type, inner)
    row = f"for (int32_t j = 0; j < {inner}; j++) {{"
    begin = [head, row, f"acc[j] = {first};", "}", f"for (int32_t k = 0; k < {size}; k++) {{", row, *each, "}", "}"]
    return [Rows(begin, ["}"], f"a * {inner}", inner, "acc[j]")]


def _step(op: move.Reduction, type: str) -> tuple[str, str]:
    """The first sum of a reduction, and the statement that takes an element in."""
    storage = op.result.type.storage
    if isinstance(op, (move.ReduceSum, move.ReduceProduct)):
        sign = "+" if isinstance(op, move.ReduceSum) else "*"
        first = ("0" if sign == "+" else "1") + (".0f" if type == "float" else "")
        wraps = type == "int32_t"
        return first, "{a} = add32({a}, {x});" if wraps else f"{{a}} {sign}= {{x}};"
    if isinstance(op, (move.ReduceMin, move.ReduceAll)):
        most = np.inf if storage.is_float else 1 if storage == i1 else storage.maximum
        return literal(most), "{a} = {x} < {a} ? {x} : {a};"
    least = -np.inf if storage.is_float else 0 if storage == i1 else storage.minimum
    return literal(least), "{a} = {x} > {a} ? {x} : {a};"


# Functions of their own: images of another size, the place of the greatest, elements by index.


def _resized(op: move.Resize) -> tuple[list[str], str, list[Any]]:
    """Loops over the places of a resized image, the index of a place's first element, and the ends of both dims."""
    (n, height, width, channels), (_, rows, columns, _) = dims_of(op.input), dims_of(op.result)
    heads = [
        *(f"for (int32_t g = 0; g < {n}; g++) {{", f"for (int32_t oy = 0; oy < {rows}; oy++) {{"),
        f"for (int32_t ox = 0; ox < {columns}; ox++) {{",
    ]
    ends = list(zip(steps_of(op.scale, op.offset), (height, width), (rows, columns), strict=True))
    return heads, f"((g * {rows} + oy) * {columns} + ox) * {channels}", ends


def _read_at(op: move.Resize, x: str, row: str, column: str) -> str:
    _, height, width, channels = dims_of(op.input)
    return f"{x} + ((g * {height} + {row}[oy]) * {width} + {column}[ox]) * {channels}"


def _nearest(op: move.Resize, body: Body) -> list[str]:
    """Copies. The row and the column that each place reads are constants, as are fractions between them."""
    heads, base, ends = _resized(op)
    x, type, _ = body.operand(op.input)
    iy, ix = (body.unit.numbers(nearest_index(*end), i32) for end in ends)
    size = f"{dims_of(op.input)[3]} * sizeof({type})"
    return [*heads, f"memcpy(y + {base}, {_read_at(op, x, iy, ix)}, {size});", "}", "}", "}"]


def _bilinear(op: move.Resize, body: Body) -> list[Rows]:
    if op.result.type.storage.is_float:
        raise Refused("RESIZE of floats is not written in C")
    heads, base, ends = _resized(op)
    x, x_type, _ = body.operand(op.input)
    (y0, y1, fy), (x0, x1, fx) = ([body.unit.numbers(array, i32) for array in taps(*end)] for end in ends)
    a, b = (steps.n for steps, _, _ in ends)
    type, channels = "int64_t" if op.result.type.storage == i64 else "int32_t", dims_of(op.input)[3]
    body.accumulator(type, channels)
    corners = [
        f"const {x_type} *q{r}{c} = {_read_at(op, x, row, column)};"
        for r, row in enumerate((y0, y1))
        for c, column in enumerate((x0, x1))
    ]
    lines = [
        f"const {type} v = {fy}[oy], w = {fx}[ox];",
        f"for (int32_t j = 0; j < {channels}; j++) {{",
        f"acc[j] = (q00[j] * ({a} - v) + q10[j] * v) * ({b} - w) + (q01[j] * ({a} - v) + q11[j] * v) * w;",
        "}",
    ]
    return [Rows([*heads, *corners, *lines], ["}", "}", "}"], base, channels, "acc[j]")]


def _argmax(op: move.ArgMax, body: Body) -> list[str]:
    dims, (x, type, _) = dims_of(op.input), body.operand(op.input)
    axis = op.axis % len(dims)
    outer, size = int(np.prod(dims[:axis], dtype=np.int64)), dims[axis]
    inner = int(np.prod(dims[axis + 1 :], dtype=np.int64))
    return [
        *(f"for (int32_t a = 0; a < {outer}; a++) {{", f"for (int32_t j = 0; j < {inner}; j++) {{"),
        f"const {type} *q = {x} + a * {size * inner} + j;",
        "int32_t best = 0;",
        f"for (int32_t k = 1; k < {size}; k++) {{",
        *(f"if (q[k * {inner}] > q[best * {inner}]) {{", "best = k;", "}", "}"),
        *(f"y[a * {inner} + j] = best;", "}", "}"),
    ]


def _gather(op: move.Gather, body: Body) -> list[str]:
    """Rows by index; an index outside takes the nearest row."""
    (n, size, channels), (_, places) = dims_of(op.values), dims_of(op.indices)
    (x, type, _), (at, _, _) = body.operand(op.values), body.operand(op.indices)
    source = f"{x} + (g * {size} + k) * {channels}"
    copy = f"memcpy(y + (g * {places} + i) * {channels}, {source}, {channels} * sizeof({type}));"
    return [
        *(f"for (int32_t g = 0; g < {n}; g++) {{", f"for (int32_t i = 0; i < {places}; i++) {{"),
        f"const int32_t k = clamp32({at}[g * {places} + i], 0, {size - 1});",
        *(copy, "}", "}"),
    ]


def _scatter(op: move.Scatter, body: Body) -> list[str]:
    """A copy of all rows, and rows placed by index in it; an index outside places none."""
    (n, size, channels), (_, places) = dims_of(op.values_in), dims_of(op.indices)
    (old, type, _), (at, _, _), (new, _, _) = (body.operand(v) for v in (op.values_in, op.indices, op.input))
    row = f"{new} + (g * {places} + i) * {channels}"
    return [
        f"memmove(y, {old}, {n * size * channels} * sizeof({type}));",
        *(f"for (int32_t g = 0; g < {n}; g++) {{", f"for (int32_t i = 0; i < {places}; i++) {{"),
        f"const int32_t k = {at}[g * {places} + i];",
        f"if (k >= 0 && k < {size}) {{",
        f"memcpy(y + (g * {size} + k) * {channels}, {row}, {channels} * sizeof({type}));",
        *("}", "}", "}"),
    ]  # fmt: skip


_ROWS: Final[tuple[tuple[Any, Callable[[Any, Body], list[Rows]]], ...]] = (
    (conv.MatMul, _matmul),
    (conv.Pool, _pool),
    (move.Reduction, _reduction),
    (move.Resize, _bilinear),
)
_PLAIN: Final[dict[type[Op], Callable[[Any, Body], list[str]]]] = {
    move.Resize: _nearest,
    move.ArgMax: _argmax,
    move.Gather: _gather,
    move.Scatter: _scatter,
}
