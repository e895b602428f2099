"""Rows of convolutions: one row of sums for each place of the result.

Fast loops: a window is copied into a row of int16 with the zero point less off, where padding is 0, and is multiplied
with weights as they are stored, four places by two channels at a time; where memory is short, two places or one. A
depthwise convolution has a pointer to each element of the window, one of them to a row of zero points outside of the
picture, and one expression over channels. They need sums below 2^31, which the weights prove. All else takes plain
loops, with sums of 64 bits where they need it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tflq.analysis.placing import aligned
from tflq.analysis.products import channel_ends
from tflq.dialects.tosa import convolution as conv
from tflq.formats.c.loops import AXES, ON_STACK, Block, Body, Ints, Rows, flat, pixel, placed, read_sum, window
from tflq.formats.c.names import dims_of, plus
from tflq.formats.c.unit import Scratch, closed, loops
from tflq.ir.types import i8, i32, i64

_MOST_TAPS: Final = 25
"""Elements of a window to which a depthwise convolution has pointers, on the stack."""
_AT_ONCE: Final = 9
_TOGETHER: Final = 16
"""Elements of a window that one step of a loop multiplies, where there are vectors. Zeros fill the last step."""
_WIDE: Final = (4, 2, 1)
"""Places whose windows are copied at a time, where there is room for them."""


def convolution(op: conv.Weighted, body: Body) -> list[Rows]:
    """The rows of any convolution. Where the room of a body is small, few channels have sums at a time, then fewer
    windows are copied."""
    ends, outputs = channel_ends(op), dims_of(op.result)[-1]
    fits = ends is not None and max(-int(ends[0].min(initial=0)), int(ends[1].max(initial=0))) <= i32.maximum
    if ends is not None:
        limit = (i32 if op.result.type.storage == i32 else i64).maximum
        body.terms.ends[op.result] = np.maximum(ends[0], -limit), np.minimum(ends[1], limit)
    type = "float" if op.result.type.storage.is_float else "int32_t" if fits else "int64_t"
    if fits and op.weight.is_constant and op.weight.type.storage.bits <= 8 and op.weight.array.dtype == np.int8:
        height, width, *_, multiplier = dims = dims_of(op.weight)
        k, places = math.prod(dims[1:]), math.prod(dims_of(op.result)[:-1])
        below = k <= 1 << 15 or not op.weight_zp  # sums of a window, times the zero point
        if isinstance(op, conv.Conv2D) and below:
            for wide in _WIDE:
                room = body.room - aligned(2 * _padded(k) * wide)
                block = Block.of(outputs, 4 * wide, room)
                if room >= 0 and wide <= places and (not block.on_stack or 4 * wide * block.most <= ON_STACK):
                    return _columns(op, body, wide, block)
        if isinstance(op, conv.DepthwiseConv2D) and height * width <= _MOST_TAPS and multiplier == 1:
            return _by_taps(op, body, Block.of(outputs, 4, body.room))
    bytes, floats = 8 if type == "int64_t" else 4, type == "float"  # sums of a row of floats may be results
    return _plain(op, body, type, Block.of(outputs, bytes, body.room, whole=floats))


def _bias(op: conv.Weighted, body: Body, type: str, index: str, more: np.ndarray | int = 0) -> str:
    """The expression of a channel's bias, in the type of the sums. more: what is added to a constant one."""
    if not op.bias.is_constant:
        return f"{body.operand(op.bias)[0]}[{index if op.bias.type.sizes[0] > 1 else 0}]"
    bias = op.bias.array.reshape(-1) + more
    if (bias == bias[:1]).all():
        return f"{float(bias[0])!r}f" if type == "float" else str(bias[0].item())
    return f"{body.unit.numbers(bias, op.bias.type.storage)}[{index}]"


# Plain loops.


def _plain(op: conv.Weighted, body: Body, type: str, block: Block) -> list[Rows]:
    """Sums of the elements that a window has in the picture, or that a transposed convolution adds to a place."""
    _, *spatial, channels = dims_of(op.input)
    outputs = dims_of(op.result)[-1]
    (x, x_type, more), (w, w_type, _) = body.operand(op.input), body.operand(op.weight)
    deep = isinstance(op, conv.DepthwiseConv2D)
    kernel = dims_of(op.weight)[:-2] if deep else dims_of(op.weight)[1:-1]
    if isinstance(op, conv.Conv2D) and op.weight.is_constant and op.weight.array.dtype == np.int8:
        w = _filters(op, body)  # the same constant as where windows are copied
    body.accumulator(type, block.most, on_stack=block.on_stack)
    at = f"({block.first}o)" if block.first else "o"
    if isinstance(op, conv.TransposeConv2D):
        taps = _inverse(kernel, op.stride, op.out_pad[::2], spatial)
    else:
        assert isinstance(op, (conv.Conv2D, conv.Conv3D, conv.DepthwiseConv2D))
        taps = window(kernel, op.stride, op.dilation, op.pad[::2], spatial if any(op.pad) else ())
    taps.append(f"const {x_type} *q = {x} + {pixel(op.input, 'i')};")
    if deep:
        multiplier = dims_of(op.weight)[3]
        q, v = _factors(op, type, more, f"q[{at} / {multiplier}]" if multiplier > 1 else f"q[{at}]", f"v[{at}]")
        weights = f"const {w_type} *v = {w} + {flat('', 'k', kernel)} * {outputs};"
        taps += [weights, *loops(o=block.size), f"acc[o] += {q} * {v};"]
    else:
        q, v = _factors(op, type, more, "q[c]", "v[c]")
        weights = f"const {w_type} *v = {w} + {flat(at, 'k', kernel)} * {channels};"
        sums = [f"{type} s = 0;", *closed([*loops(c=channels), f"s += {q} * {v};"]), "acc[o] += s;"]
        if type == "float":
            sums = [f"acc[o] += dotf(q, v, {channels});"]
        elif x_type == w_type == "int8_t" and type == "int32_t" and not op.weight_zp and channels <= 1 << 15:
            sums = [f"acc[o] += dot8(q, v, {channels}, {op.input_zp});"]
        taps += [*loops(o=block.size), weights, *sums]
    first = closed([*loops(o=block.size), f"acc[o] = {_bias(op, body, type, at)};"])
    return placed(op.result, [*block.heads, *first, *closed(taps)], read_sum(type, op.result), block)


def _factors(op: conv.Weighted, type: str, more: int, x: str, w: str) -> tuple[str, str]:
    """An element and a weight without zero points, of which the product has the type of the sums."""
    if type == "float":
        return x, w
    x, w = plus(x, -op.input_zp - more), plus(w, -op.weight_zp)
    wide = "(int64_t)" if type == "int64_t" else ""
    return f"{wide}({x})", f"({w})"


def _inverse(kernel: Ints, stride: Ints, before: Ints, sizes: Ints) -> list[str]:
    """Loops over the elements iy, ix that a transposed convolution adds to (oy, ox), each times ky, kx of a filter."""
    lines = []
    for axis, size, step, first, extent in zip(AXES[-len(kernel) :], kernel, stride, before, sizes, strict=True):
        index = f"const int32_t a{axis} = {plus(f'o{axis}', -first)} - k{axis}, i{axis} = a{axis} / {step};"
        outside = f"if (a{axis} < 0 || a{axis} % {step} != 0 || i{axis} >= {extent}) {{"
        lines += [*loops(**{f"k{axis}": size}), index, outside, "continue;", "}"]
    return lines


# Fast loops.


def _columns(op: conv.Conv2D, body: Body, wide: int, block: Block) -> list[Rows]:
    """So many places at a time, and others by themselves. With a zero point of the weights, the sum of a window's
    elements is less off as often."""
    *outer, outputs = dims_of(op.result)
    places, k, zero = math.prod(outer), math.prod(dims_of(op.weight)[1:]), op.weight_zp
    n, b, even = _padded(k), block.first, _even(block.size)
    copies = Scratch("int16_t", "col", 2 * n * wide)
    x, x_type, more = body.operand(op.input)
    w = f"{_filters(op, body)} + b * {k}" if b else _filters(op, body)
    body.room -= aligned(copies.size)
    body.accumulator("int32_t", (block.most + block.most % 2) * wide, on_stack=block.on_stack)
    body.scratch.append(copies)
    copy = _filled(op, x, x_type, more)
    less = f" - {zero} * total[r]" if zero > 0 else f" + {-zero} * total[r]" if zero else ""
    if zero:
        copy += ["total[r] = 0;", *closed([*loops(k=k), "total[r] += d[k];"])]
    start = f"a[o] = {_bias(op, body, 'int32_t', f'{b}o')}{less};"

    def rows(at_once: int, head: str) -> Rows:
        """Rows of so many places."""
        row = [f"int16_t *d = col + r * {n};", "const int32_t at = p + r;"]
        lines = [head, *[f"int32_t total[{at_once}];"] * bool(zero), *closed([*loops(r=at_once), *row, *copy])]
        lines += [*block.heads, *loops(r=at_once), f"int32_t *a = acc + r * {even};"]
        lines += [*closed([*loops(o=block.size), start]), "}", f"dot{at_once}(col, {w}, {n}, {k}, {even}, acc);"]
        lines += [*loops(r=at_once), f"int32_t *s = acc + r * {even};"]
        return block.rows(lines, f"(p + r) * {outputs}", read_sum("int32_t", op.result).replace("acc", "s"))

    whole = places // wide * wide
    parts = [rows(wide, f"for (int32_t p = 0; p < {whole}; p += {wide}) {{")]
    if places > whole:
        parts.append(rows(1, f"for (int32_t p = {whole}; p < {places}; p++) {{"))
    if n > k:
        clear = f"memset(col, 0, {n * wide} * sizeof(int16_t));"
        parts[0] = parts[0]._replace(lines=[clear, *parts[0].lines])
    return parts


def _padded(k: int) -> int:
    """The elements of a copied window, with the zeros behind it."""
    return -(-k // _TOGETHER) * _TOGETHER


def _filters(op: conv.Conv2D, body: Body) -> str:
    """The name of the weights. Loops read a filter more where their number is odd, and where a window ends in zeros."""
    outputs, *dims = dims_of(op.weight)
    k = math.prod(dims)
    return body.unit.constant(np.append(op.weight.array, np.zeros(outputs % 2 * k + _padded(k) - k, np.int8)), i8)


def _even(size: int | str) -> str:
    """A number of filters as loops need it, which take two at a time."""
    return f"({size} + {size} % 2)" if isinstance(size, str) else str(size + size % 2)


def _filled(op: conv.Conv2D, x: str, x_type: str, more: int) -> list[str]:
    """Statements that copy the window of place `at` to d."""
    (_, height, width, channels), (_, rows, columns, _) = dims_of(op.input), dims_of(op.result)
    _, kh, kw, _ = dims_of(op.weight)
    zero = -op.input_zp - more
    if kh == kw == 1 and tuple(op.stride) == (1, 1) and not any(op.pad):
        return closed([*loops(c=channels), f"d[c] = (int16_t)({plus(f'{x}[at * {channels} + c]', zero)});"])
    run = kw if op.dilation[1] == 1 else 1  # places of a row of the window that lie behind each other
    lines = [
        f"const int32_t g = at / {rows * columns}, oy = at / {columns} % {rows}, ox = at % {columns};",
        *window((kh, kw // run), op.stride, op.dilation, op.pad[::2]),
        f"const int32_t n = {pixel(op.input, 'i')};",
        f"int16_t *e = d + (ky * {kw} + kx) * {channels};",
    ]
    k = run * channels
    whole = closed([*loops(c=k), copy := f"e[c] = (int16_t)({plus(f'{x}[n + c]', zero)});"])
    if not any(op.pad):
        return closed([*lines, *whole])
    lines += [f"if (iy >= 0 && iy < {height} && ix >= 0 && ix <= {width - run}) {{", *whole, "} else {"]
    lines += [f"const int32_t end = iy < 0 || iy >= {height} ? 0 : min32({run}, {width} - ix) * {channels};"]
    lines += [f"memset(e, 0, {k} * sizeof(int16_t));"]
    return closed([*lines, f"for (int32_t c = max32(0, -ix) * {channels}; c < end; c++) {{", copy])


def _by_taps(op: conv.DepthwiseConv2D, body: Body, block: Block) -> list[Rows]:
    """All elements of the window at once, for a filter of one output per channel. Two products of int8 are added in
    int16, where that holds them; what zero points add is in the first sums."""
    _, height, width, channels = dims_of(op.input)
    kh, kw = dims_of(op.weight)[:2]
    count = kh * kw
    x, x_type, more = body.operand(op.input)
    w, zero = body.unit.constant(op.weight.array, i8), op.input_zp + more
    body.accumulator("int32_t", block.most, on_stack=block.on_stack)
    b = block.first
    at = f"{x} + {pixel(op.input, 'i')}"
    if any(op.pad):
        storage = body.fusion.raw.get(body.fusion.root(op.input), op.input).type.storage
        outside = body.unit.constant(np.full(channels, zero), storage)
        at = f"iy < 0 || iy >= {height} || ix < 0 || ix >= {width} ? {outside} : {at}"
    taps = window((kh, kw), op.stride, op.dilation, op.pad[::2])
    inner = [f"const {x_type} *t[{count}];", *closed([*taps, f"t[ky * {kw} + kx] = {at};"]), *block.heads]
    weights = op.weight.array.reshape(count, channels)
    off = -zero * weights.sum(axis=0, dtype=np.int64)
    in_pairs = x_type == "int8_t" and not op.weight_zp and weights.min() > -128 and op.bias.is_constant
    in_pairs = in_pairs and abs(op.bias.array + off).max() + (count << 14) <= i32.maximum
    zero, off = (0, off) if in_pairs else (zero, np.zeros_like(off))
    for first in range(0, count, _AT_ONCE):
        group = range(first, min(first + _AT_ONCE, count))
        inner += [f"const {x_type} *const x{k} = t[{k}];" for k in group]
        start = _bias(op, body, "int32_t", f"{b}o", off) if first == 0 else "acc[o]"
        factors = [(f"x{k}[{b}o]", f"{w}[{k * channels} + {b}o]") for k in group]
        if in_pairs:
            products = [f"{q} * {v}" for q, v in factors]
            terms = [f"(int16_t)({' + '.join(products[k : k + 2])})" for k in range(0, len(products), 2)]
        else:
            terms = [f"(int16_t)({plus(q, -zero)}) * (int16_t)({plus(v, -op.weight_zp)})" for q, v in factors]
        inner += closed([*loops(o=block.size), f"acc[o] = {start} + {' + '.join(terms)};"])
    return placed(op.result, inner, read_sum("int32_t", op.result), block)
