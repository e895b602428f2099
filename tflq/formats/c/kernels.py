"""Kernels: a function of C for each root, and the rows of products, pools and reductions.

An operator that makes rows fills `acc`, a row of sums, within loops over the rows. A loop over the row then computes
the tree of its results: branch-free, so that compilers make vectors of it. Rows of convolutions: `convolution.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.analysis.known import Ranges
from tflq.base.errors import Refused
from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import movement as move
from tflq.formats.c.convolution import convolution
from tflq.formats.c.expressions import NeedsMoreError, Point, declared_type
from tflq.formats.c.fusion import Fusion, is_elementwise
from tflq.formats.c.loops import Block, Body, Rows, pixel, placed, read_sum, window
from tflq.formats.c.names import MACRO, around, bytes_of, c_type, count, dims_of, index_of, literal, plus
from tflq.formats.c.unit import Kernel, Scratch, Unit, closed, loops
from tflq.ir.ops import Op, Value
from tflq.ir.types import i1, i32
from tflq.numerics.convolution import reciprocal_scale
from tflq.numerics.resize import nearest_index, steps_of, taps


def kernel(op: Op, unit: Unit, fusion: Fusion, ranges: Ranges, *, room: int = 1 << 31) -> Kernel:
    """The kernel of a root. room: the memory that its scratch shall need at most, which changes no other parameter.
    Refused if no loop computes it."""
    row = fusion.row_of(op.result)
    if row is None and is_elementwise(op):
        return _elementwise(op, unit, fusion, ranges)
    body = Body(unit, fusion, ranges, room)
    if row is None:
        return body.finished(op, _PLAIN[type(op)](op, body), op.results)
    if isinstance(row, conv.Weighted):
        parts = convolution(row, body)
    else:
        parts = next(make for kind, make in _ROWS if isinstance(row, kind))(row, body)
    since: int | None = len(body.terms.leaves)
    lines: list[str] = []
    if len(parts) == 1 and body.scratch[:1] == [Scratch(c_type(op.result), "acc", bytes_of(op.result))]:
        since, lines = None, [f"{body.scratch.pop(0).type} *acc = y;"]  # sums of one row become results where they are
    lines += body.declared
    lines += [line for part in parts for line in closed([*part.lines, *_results(part, op.result, row, body)])]
    return body.finished(row if row.location else op, lines, op.results, since)


def _results(part: Rows, root: Value, row: Op, body: Body) -> list[str]:
    """The loop over one row that computes and stores results. Before it stands the hook of sums, of a product."""
    dims = dims_of(root) or (1,)
    name = part.sum.partition("[")[0].rpartition(")")[2]
    hook = [f"{MACRO}_SUMS({name}, y, {part.base}, {part.length})"] if isinstance(row, conv.Weighted) else []
    if part.length == 1:
        index, channel, sum, heads = part.base, "0", part.sum.replace("[j]", "[0]"), ["{"] * len(hook)
    else:
        index, sum, heads = "j" if part.base == "0" else f"{part.base} + j", part.sum, loops(j=part.length)
        channel = part.channel or ("j" if part.length == dims[-1] else f"(j % {dims[-1]})")
    lines, text = body.terms.stored(Point(dims, index, channel), root, {row.result: sum})
    return [*hook, *heads, *lines, f"y[{index}] = ({c_type(root)})({text});"]


def _elementwise(op: Op, unit: Unit, fusion: Fusion, ranges: Ranges) -> Kernel:
    """A tree without rows: one loop where all elements are alike, one more for channels, or one for each dim."""
    dims = dims_of(op.result) or (1,)
    channels = dims[-1]
    indices = {f"i{at}": dim for at, dim in enumerate(dims)}
    element = index_of(np.empty(dims, np.int8).strides)
    ways = (
        (Point(dims, "i"), loops(i=count(op.result))),
        (Point(dims, f"i * {channels} + j", "j"), loops(i=count(op.result) // max(channels, 1), j=channels)),
        (Point(dims, element, [*indices][-1], axes=True), loops(**indices)),
    )
    for point, heads in ways:
        body = Body(unit, fusion, ranges)
        try:
            lines, text = body.terms.stored(point, op.result)
        except NeedsMoreError:
            continue
        store = f"y[{point.flat}] = ({c_type(op.result)})({text});"
        return body.finished(op, closed([*heads, *lines, store]), op.results, 0)
    raise Refused(f"{op.short_name.upper()} broadcasts in a way that no loop has")


# Rows of products, pools and reductions.


def _matmul(op: conv.MatMul, body: Body) -> list[Rows]:
    *outer, m, n = dims_of(op.result)
    batches, k = math.prod(outer), dims_of(op.input1)[-1]
    many = [math.prod(dims_of(v)[:-2]) for v in (op.input1, op.input2)]
    if any(size not in (1, batches) for size in many) or len(outer) > 1:
        raise Refused("a product of matrices whose outer dims broadcast")
    (a, _, _), (b, _, _) = body.operand(op.input1), body.operand(op.input2)
    storage = op.result.type.storage
    bits = op.input1.type.storage.bits + op.input2.type.storage.bits
    exact = k << bits <= 1 << 31
    type = "float" if storage.is_float else "int32_t" if exact else "int64_t"
    if exact and not storage.is_float:
        body.terms.ends[op.result] = np.asarray([-k << bits]), np.asarray([k << bits])
    block = Block.of(n, 8 if type == "int64_t" else 4, body.room)
    body.accumulator(type, block.most, on_stack=block.on_stack)
    left, right = ("g * " if size > 1 else "0 * " for size in many)
    zero = "0.0f" if storage.is_float else "0"
    x = plus(f"{a}[({left}{m} + i) * {k} + k]", 0 if storage.is_float else -op.a_zp)
    w = plus(f"{b}[({right}{k} + k) * {n} + {block.first}j]", 0 if storage.is_float else -op.b_zp)
    first = closed([*loops(j=block.size), f"acc[j] = {zero};"])
    each = closed([*loops(k=k), f"const {type} q = {x};", *loops(j=block.size), f"acc[j] += q * ({w});"])
    lines = [*loops(g=batches, i=m), *block.heads, *first, *each]
    return [block.rows(lines, f"(g * {m} + i) * {n}", read_sum(type, op.result))]


def _pool(op: conv.Pool, body: Body) -> list[Rows]:
    _, *sizes, channels = dims_of(op.input)
    x, _, _ = body.operand(op.input)
    storage, mean = op.result.type.storage, isinstance(op, conv.AvgPool2D)
    zero = op.input_zp if isinstance(op, conv.AvgPool2D) and not storage.is_float else 0
    type = "float" if storage.is_float else "int32_t" if mean else c_type(op.result)
    body.accumulator(type, channels)
    least = -np.inf if storage.is_float else storage.minimum
    first = ("0.0f" if storage.is_float else "0") if mean else literal(least)
    each = [
        *window(op.kernel, op.stride, (1, 1), op.pad[::2], sizes if any(op.pad) else ()),
        f"const {c_type(op.input)} *q = {x} + {pixel(op.input, 'i')};",
        *["n++;"] * mean,
        *loops(j=channels),
        f"acc[j] += {plus('q[j]', -zero)};" if mean else "acc[j] = q[j] > acc[j] ? q[j] : acc[j];",
    ]
    lines = ["int32_t n = 0;"] * mean + closed([*loops(j=channels), f"acc[j] = {first};"]) + closed(each)
    text = "acc[j]"
    if isinstance(op, conv.AvgPool2D):
        body.terms.ends[op.result] = np.asarray([-1 << 16]), np.asarray([1 << 16])
        text = _mean(op, body)
    return placed(op.result, lines, text)


def _mean(op: conv.AvgPool2D, body: Body) -> str:
    """A sum divided by the number of elements, by way of a reciprocal for each number."""
    storage = op.result.type.storage
    if storage.is_float:
        return "acc[j] / (float)n"
    most = math.prod(map(min, op.kernel, dims_of(op.input)[1:-1]))
    pairs = np.asarray([reciprocal_scale(n) for n in range(1, most + 1)], np.int64)
    m, s = (body.unit.numbers(row, i32) for row in pairs.T)
    scaled = plus(f"scale_one(acc[j], {m}[n - 1], {s}[n - 1])", op.output_zp)
    return f"clamp32({scaled}, {literal(storage.minimum)}, {literal(storage.maximum)})"


def _reduction(op: move.Reduction, body: Body) -> list[Rows]:
    dims, type = dims_of(op.input), declared_type(op.result)
    outer, size, inner = around(dims, op.axis)
    first, text = _step(op, type)
    index = f"(a * {size} + k) * {inner} + j" if inner > 1 else f"a * {size} + k"
    lines, element = body.terms.operand(Point(dims, index), op.input)
    each = [*lines, text.format(a="acc" if inner == 1 else "acc[j]", x=f"({element})" if " " in element else element)]
    if inner == 1:
        return [Rows([*loops(a=outer), f"{type} acc = {first};", *closed([*loops(k=size), *each])], "a", 1, "acc")]
    body.accumulator(type, inner)
    start = closed([*loops(j=inner), f"acc[j] = {first};"])
    return [Rows([*loops(a=outer), *start, *closed([*loops(k=size, j=inner), *each])], f"a * {inner}", inner, "acc[j]")]


def _step(op: move.Reduction, type: str) -> tuple[str, str]:
    """The first sum of a reduction, and the statement that takes an element in."""
    storage = op.result.type.storage
    if isinstance(op, (move.ReduceSum, move.ReduceProduct)):
        sign = "+" if isinstance(op, move.ReduceSum) else "*"
        first = ("0" if sign == "+" else "1") + (".0f" if type == "float" else "")
        wraps = type == "int32_t"
        return first, "{a} = add32({a}, {x});" if wraps else f"{{a}} {sign}= {{x}};"
    less = isinstance(op, (move.ReduceMin, move.ReduceAll))
    ends = (-np.inf, np.inf) if storage.is_float else (0, 1) if storage == i1 else (storage.minimum, storage.maximum)
    return literal(ends[less]), f"{{a}} = {{x}} {'<' if less else '>'} {{a}} ? {{x}} : {{a}};"


# Functions of their own: images of another size, the place of the greatest, elements by index.


def _ends(op: move.Resize) -> list[Any]:
    """Steps, and sizes before and after, of both dims."""
    (_, *before, _), (_, *after, _) = dims_of(op.input), dims_of(op.result)
    return list(zip(steps_of(op.scale, op.offset), before, after, strict=True))


def _read_at(op: move.Resize, x: str, row: str, column: str) -> str:
    _, height, width, channels = dims_of(op.input)
    return f"{x} + ((g * {height} + {row}[oy]) * {width} + {column}[ox]) * {channels}"


def _nearest(op: move.Resize, body: Body) -> list[str]:
    """Copies. The row and the column that each place reads are constants, as are fractions between them."""
    x, type, _ = body.operand(op.input)
    iy, ix = (body.unit.numbers(nearest_index(*end), i32) for end in _ends(op))
    n, rows, columns, channels = dims_of(op.result)
    copy = f"memcpy(y + {pixel(op.result, 'o')}, {_read_at(op, x, iy, ix)}, {channels} * sizeof({type}));"
    return closed([*loops(g=n, oy=rows, ox=columns), copy])


def _bilinear(op: move.Resize, body: Body) -> list[Rows]:
    if op.result.type.storage.is_float:
        raise Refused("RESIZE of floats is not written in C")
    ends, (x, x_type, _) = _ends(op), body.operand(op.input)
    (y0, y1, fy), (x0, x1, fx) = ([body.unit.numbers(array, i32) for array in taps(*end)] for end in ends)
    a, b = (steps.n for steps, _, _ in ends)
    type, channels = declared_type(op.result), dims_of(op.input)[3]
    body.accumulator(type, channels)
    corners = [
        f"const {x_type} *q{r}{c} = {_read_at(op, x, row, column)};"
        for r, row in enumerate((y0, y1))
        for c, column in enumerate((x0, x1))
    ]
    text = f"acc[j] = (q00[j] * ({a} - v) + q10[j] * v) * ({b} - w) + (q01[j] * ({a} - v) + q11[j] * v) * w;"
    lines = [f"const {type} v = {fy}[oy], w = {fx}[ox];", *closed([*loops(j=channels), text])]
    return placed(op.result, [*corners, *lines], "acc[j]")


def _argmax(op: move.ArgMax, body: Body) -> list[str]:
    (outer, size, inner), (x, type, _) = around(dims_of(op.input), op.axis), body.operand(op.input)
    better = [f"for (int32_t k = 1; k < {size}; k++) {{", f"if (q[k * {inner}] > q[best * {inner}]) {{", "best = k;"]
    lines = [f"const {type} *q = {x} + a * {size * inner} + j;", "int32_t best = 0;", *closed(better)]
    return closed([*loops(a=outer, j=inner), *lines, f"y[a * {inner} + j] = best;"])


def _gather(op: move.Gather, body: Body) -> list[str]:
    """Rows by index; an index outside takes the nearest row."""
    (n, size, channels), (_, places) = dims_of(op.values), dims_of(op.indices)
    (x, type, _), (at, _, _) = body.operand(op.values), body.operand(op.indices)
    source = f"{x} + (g * {size} + k) * {channels}"
    copy = f"memcpy(y + (g * {places} + i) * {channels}, {source}, {channels} * sizeof({type}));"
    index = f"const int32_t k = clamp32({at}[g * {places} + i], 0, {size - 1});"
    return closed([*loops(g=n, i=places), index, copy])


def _scatter(op: move.Scatter, body: Body) -> list[str]:
    """A copy of all rows, and rows placed by index in it; an index outside places none."""
    (n, size, channels), (_, places) = dims_of(op.values_in), dims_of(op.indices)
    (old, type, _), (at, _, _), (new, _, _) = (body.operand(v) for v in (op.values_in, op.indices, op.input))
    row = f"{new} + (g * {places} + i) * {channels}"
    place = [f"const int32_t k = {at}[g * {places} + i];", f"if (k >= 0 && k < {size}) {{"]
    copy = f"memcpy(y + (g * {size} + k) * {channels}, {row}, {channels} * sizeof({type}));"
    all_rows = f"memmove(y, {old}, {n * size * channels} * sizeof({type}));"
    return closed([all_rows, *loops(g=n, i=places), *place, copy])


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
