"""Rows of convolutions: one row of sums for each place of the result.

Fast loops: a window is copied into a row of int16 with the zero point less off, where padding is 0, and is multiplied
with weights as they are stored, two places by two channels at a time. A depthwise convolution has a pointer to each
element of the window, one of them to a row of zero points outside of the picture, and one expression over channels.
They need sums below 2^31, which the weights prove. All else takes plain loops, with sums of 64 bits where they need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.tosa import convolution as conv
from tflq.formats.c.loops import AXES, Body, Rows, read_sum, window
from tflq.formats.c.names import dims_of, plus
from tflq.formats.c.unit import Scratch
from tflq.ir.types import i8, i32, i64

_MOST_TAPS: Final = 25
"""Elements of a window to which a depthwise convolution has pointers, on the stack."""
_AT_ONCE: Final = 9
_Direct: TypeAlias = conv.Conv2D | conv.Conv3D | conv.DepthwiseConv2D


def convolution(op: conv.Weighted, body: Body) -> list[Rows]:
    """The rows of any convolution."""
    bound = _bound(op)
    fits = bound is not None and bound < 1 << 31
    if bound is not None:
        body.terms.bounds[op.result] = min(bound, (1 << 31) - 1) if op.result.type.storage == i32 else bound
    if fits and op.weight.is_constant and op.weight.type.storage.bits <= 8 and op.weight.array.dtype == np.int8:
        if isinstance(op, conv.Conv2D):
            return _columns(op, body)
        if isinstance(op, conv.DepthwiseConv2D) and _taps(op) <= _MOST_TAPS and dims_of(op.weight)[3] == 1:
            return _by_taps(op, body)
    type = "float" if op.result.type.storage.is_float else "int32_t" if fits else "int64_t"
    if isinstance(op, conv.TransposeConv2D):
        return _transposed(op, body, type)
    assert isinstance(op, _Direct)
    return _plain(op, body, type)


def _taps(op: conv.DepthwiseConv2D) -> int:
    return dims_of(op.weight)[0] * dims_of(op.weight)[1]


def _bound(op: conv.Weighted) -> int | None:
    """The greatest magnitude of any sum on the way; None if weights or bias are not known."""
    if op.result.type.storage.is_float or not op.weight.is_constant or not op.bias.is_constant:
        return None
    weights = np.abs(op.weight.array.astype(np.int64)) + abs(op.weight_zp)
    axes = (0, 1) if isinstance(op, conv.DepthwiseConv2D) else tuple(range(1, weights.ndim))
    storage = op.input.type.storage
    reach = max(storage.maximum - op.input_zp, op.input_zp - storage.minimum)
    most = int(weights.sum(axis=axes).max(initial=0)) * reach
    return most + int(np.abs(op.bias.array.astype(np.int64)).max(initial=0))


def _bias(op: conv.Weighted, body: Body, type: str, index: str) -> str:
    """The expression of a channel's bias, in the type of the sums."""
    if op.bias.is_constant and (op.bias.array == op.bias.array.reshape(-1)[:1]).all():
        number = op.bias.array.reshape(-1)[0].item()
        return f"{float(number)!r}f" if type == "float" else str(number)
    known = op.bias.is_constant
    name = body.unit.numbers(op.bias.array, op.bias.type.storage) if known else body.operand(op.bias)[0]
    return f"{name}[{index}]" if op.bias.type.sizes[0] > 1 else f"{name}[0]"


# Plain loops.


def _plain(op: _Direct, body: Body, type: str) -> list[Rows]:
    n, *spatial, channels = dims_of(op.input)
    _, *places, outputs = dims_of(op.result)
    (x, x_type, more), (w, w_type, _) = body.operand(op.input), body.operand(op.weight)
    deep = isinstance(op, conv.DepthwiseConv2D)
    kernel = dims_of(op.weight)[:-2] if deep else dims_of(op.weight)[1:-1]
    axes = AXES[-len(kernel) :]
    body.accumulator(type, outputs)
    loops = window(kernel, op.stride, op.dilation, op.pad[::2], spatial, padded=any(op.pad))
    line = f"const {x_type} *q = {x} + {_flat('g', 'i', axes, spatial)} * {channels};"
    at = _flat("", "k", axes, kernel)
    ends = ["}"] * len(axes)
    if deep:
        multiplier = dims_of(op.weight)[3]
        q, v = _factors(op, type, more, f"q[o / {multiplier}]" if multiplier > 1 else "q[o]", "v[o]")
        weights = f"const {w_type} *v = {w} + {at} * {outputs};"
        each = [f"for (int32_t o = 0; o < {outputs}; o++) {{", f"acc[o] += {q} * {v};", "}"]
        inner = [*_first(op, body, type, outputs), *loops, line, weights, *each, *ends]
    else:
        q, v = _factors(op, type, more, "q[c]", "v[c]")
        weights = f"const {w_type} *v = {w} + {_flat('o', 'k', axes, kernel)} * {channels};"
        each = [f"for (int32_t c = 0; c < {channels}; c++) {{", f"s += {q} * {v};", "}"]
        sums = [f"for (int32_t o = 0; o < {outputs}; o++) {{", f"{type} s = {_bias(op, body, type, 'o')};"]
        inner = [*sums, *loops, line, weights, *each, *ends, "acc[o] = s;", "}"]
    return _placed((n, *places), outputs, inner, read_sum(type, op.result))


def _flat(first: str, letter: str, axes: str, sizes: Sequence[int]) -> str:
    """The index of an element by those of all dims but the last, of which `first` is that of the first dim."""
    text = first
    for axis, size in zip(axes, sizes, strict=True):
        text = f"({text} * {size} + {letter}{axis})" if text else f"{letter}{axis}"
    return text


def _factors(op: conv.Weighted, type: str, more: int, x: str, w: str) -> tuple[str, str]:
    """An element and a weight without zero points, of which the product has the type of the sums."""
    if type == "float":
        return x, w
    x, w = plus(x, -op.input_zp - more), plus(w, -op.weight_zp)
    wide = "(int64_t)" if type == "int64_t" else ""
    return f"{wide}({x})", f"({w})"


def _first(op: conv.Weighted, body: Body, type: str, outputs: int) -> list[str]:
    return [f"for (int32_t o = 0; o < {outputs}; o++) {{", f"acc[o] = {_bias(op, body, type, 'o')};", "}"]


def _placed(places: Sequence[int], outputs: int, inner: list[str], text: str) -> list[Rows]:
    """Rows at each place of the result: (batch, ...)."""
    axes = AXES[1 - len(places) :]
    names = ["g", *(f"o{axis}" for axis in axes)]
    heads = [f"for (int32_t {at} = 0; {at} < {size}; {at}++) {{" for at, size in zip(names, places, strict=True)]
    base = f"{_flat('g', 'o', axes, places[1:])} * {outputs}"
    return [Rows([*heads, *inner], ["}"] * len(places), base, outputs, text)]


def _shape(op: conv.Weighted) -> tuple[int, int, int, int, int, int, int]:
    """Batches, height, width and channels of the input; height, width and channels of the result."""
    n, height, width, channels = dims_of(op.input)
    return (n, height, width, channels, *dims_of(op.result)[1:])  # type: ignore[return-value]


def _transposed(op: conv.TransposeConv2D, body: Body, type: str) -> list[Rows]:
    """A place of the result gathers what elements of the input would add to it."""
    n, height, width, channels, rows, columns, outputs = _shape(op)
    (x, x_type, more), (w, w_type, _) = body.operand(op.input), body.operand(op.weight)
    kh, kw = dims_of(op.weight)[1:3]
    (sh, sw), (top, _, left, _) = op.stride, op.out_pad
    body.accumulator(type, outputs)
    q, v = _factors(op, type, more, "q[c]", "v[c]")

    def inverse(axis: str, size: int, step: int, before: int, extent: int) -> list[str]:
        return [
            f"for (int32_t k{axis} = 0; k{axis} < {size}; k{axis}++) {{",
            f"const int32_t a{axis} = {plus(f'o{axis}', -before)} - k{axis}, i{axis} = a{axis} / {step};",
            f"if (a{axis} < 0 || a{axis} % {step} != 0 || i{axis} >= {extent}) {{",
            "continue;",
            "}",
        ]

    inner = [
        *_first(op, body, type, outputs),
        *inverse("y", kh, sh, top, height),
        *inverse("x", kw, sw, left, width),
        f"const {x_type} *q = {x} + ((g * {height} + iy) * {width} + ix) * {channels};",
        f"for (int32_t o = 0; o < {outputs}; o++) {{",
        f"const {w_type} *v = {w} + ((o * {kh} + ky) * {kw} + kx) * {channels};",
        f"{type} s = {'0.0f' if type == 'float' else '0'};",
        f"for (int32_t c = 0; c < {channels}; c++) {{",
        f"s += {q} * {v};",
        *("}", "acc[o] += s;", "}", "}", "}"),
    ]
    return _placed((n, rows, columns), outputs, inner, read_sum(type, op.result))


# Fast loops.


def _columns(op: conv.Conv2D, body: Body) -> list[Rows]:
    """Two places at a time, and the last by itself. With a zero point of the weights, the sum of a window's elements is
    less off as often."""
    n, _, _, channels, rows, columns, outputs = _shape(op)
    _, kh, kw, _ = dims_of(op.weight)
    places, k, zero = n * rows * columns, kh * kw * channels, op.weight_zp
    x, x_type, more = body.operand(op.input)
    w = body.unit.constant(op.weight.array, i8)
    wide = 2 if places > 1 else 1
    body.accumulator("int32_t", outputs * wide)
    body.scratch.append(Scratch("int16_t", "col", 2 * k * wide))
    less = f" - {zero} * total" if zero > 0 else f" + {-zero} * total" if zero else ""
    fill = _filled(op, x, x_type, more)
    if zero:
        fill += ["int32_t total = 0;", f"for (int32_t k = 0; k < {k}; k++) {{", "total += d[k];", "}"]
    first = f"a[o] = {_bias(op, body, 'int32_t', 'o')}{less};"
    fill += [f"for (int32_t o = 0; o < {outputs}; o++) {{", first, "}"]
    last, text = outputs - 1, read_sum("int32_t", op.result)
    by_two = [f"for (int32_t o = 0; o + 1 < {outputs}; o += 2) {{", "", "}"]
    parts = []
    if places > 1:
        by_two[1] = f"dot22(col, col + {k}, {w} + o * {k}, {w} + (o + 1) * {k}, {k}, acc + o, acc + {outputs} + o);"
        odd = [f"dot11(col + {r * k}, {w} + {last * k}, {k}, acc + {r * outputs + last});" for r in (0, 1)]
        begin = [
            *(f"for (int32_t p = 0; p + 1 < {places}; p += 2) {{", "for (int32_t r = 0; r < 2; r++) {"),
            *(f"int16_t *d = col + r * {k};", f"int32_t *a = acc + r * {outputs};", "const int32_t at = p + r;"),
            *(*fill, "}", *by_two, *(odd if outputs % 2 else [])),
            *("for (int32_t r = 0; r < 2; r++) {", f"int32_t *s = acc + r * {outputs};"),
        ]
        parts.append(Rows(begin, ["}", "}"], f"(p + r) * {outputs}", outputs, text.replace("acc", "s")))
    if places % 2:
        by_two[1] = f"dot12(col, {w} + o * {k}, {w} + (o + 1) * {k}, {k}, acc + o);"
        odd = [f"dot11(col, {w} + {last * k}, {k}, acc + {last});"]
        begin = ["{", "int16_t *d = col;", "int32_t *a = acc;", f"const int32_t at = {places - 1};", *fill, "}"]
        begin += [*by_two, *(odd if outputs % 2 else [])]
        parts.append(Rows(begin, [], str((places - 1) * outputs), outputs, text))
    return parts


def _filled(op: conv.Conv2D, x: str, x_type: str, more: int) -> list[str]:
    """Statements that copy the window of place `at` to d."""
    _, height, width, channels, rows, columns, _ = _shape(op)
    _, kh, kw, _ = dims_of(op.weight)
    q = f"(int16_t)({plus('q[c]', -op.input_zp - more)})"
    point = kh == kw == 1 and tuple(op.stride) == (1, 1) and not any(op.pad)
    whole = (kh, kw, rows, columns) == (height, width, 1, 1) and not any(op.pad) and tuple(op.dilation) == (1, 1)
    if point or whole:
        k = kh * kw * channels
        source = f"const {x_type} *q = {x} + at * {k};"
        return [source, f"for (int32_t c = 0; c < {k}; c++) {{", f"d[c] = {q};", "}"]
    (sh, sw), (dh, dw), (top, _, left, _) = op.stride, op.dilation, op.pad
    place = [f"const int32_t g = at / {rows * columns}, oy = at / {columns} % {rows}, ox = at % {columns};"]
    within = [
        f"const {x_type} *q = {x} + ((g * {height} + iy) * {width} + ix) * {channels};",
        *(f"for (int32_t c = 0; c < {channels}; c++) {{", f"e[c] = {q};", "}"),
    ]
    if any(op.pad):
        outside = f"if (iy < 0 || iy >= {height} || ix < 0 || ix >= {width}) {{"
        within = [outside, f"memset(e, 0, {channels} * sizeof(int16_t));", "continue;", "}", *within]
    return [
        *place,
        f"for (int32_t ky = 0; ky < {kh}; ky++) {{",
        f"const int32_t iy = {plus(f'oy * {sh} + ky * {dh}', -top)};",
        f"for (int32_t kx = 0; kx < {kw}; kx++) {{",
        f"const int32_t ix = {plus(f'ox * {sw} + kx * {dw}', -left)};",
        f"int16_t *e = d + (ky * {kw} + kx) * {channels};",
        *(*within, "}", "}"),
    ]


def _by_taps(op: conv.DepthwiseConv2D, body: Body) -> list[Rows]:
    """All elements of the window at once, for a filter of one output per channel."""
    n, height, width, channels, rows, columns, outputs = _shape(op)
    kh, kw = dims_of(op.weight)[:2]
    (top, _, left, _), count = op.pad, kh * kw
    x, x_type, more = body.operand(op.input)
    w, zero = body.unit.constant(op.weight.array, i8), op.input_zp + more
    body.accumulator("int32_t", outputs)
    at = f"{x} + ((g * {height} + iy) * {width} + ix) * {channels}"
    if any(op.pad):
        storage = body.fusion.raw.get(body.fusion.root(op.input), op.input).type.storage
        outside = body.unit.constant(np.full(channels, zero), storage)
        at = f"iy < 0 || iy >= {height} || ix < 0 || ix >= {width} ? {outside} : {at}"
    wide = op.result.type.storage == i64
    inner = [
        f"const {x_type} *t[{count}];",
        f"for (int32_t ky = 0; ky < {kh}; ky++) {{",
        f"const int32_t iy = {plus(f'oy * {op.stride[0]} + ky * {op.dilation[0]}', -top)};",
        f"for (int32_t kx = 0; kx < {kw}; kx++) {{",
        f"const int32_t ix = {plus(f'ox * {op.stride[1]} + kx * {op.dilation[1]}', -left)};",
        f"t[ky * {kw} + kx] = {at};",
        *("}", "}"),
    ]
    for first in range(0, count, _AT_ONCE):
        group = range(first, min(first + _AT_ONCE, count))
        inner += [f"const {x_type} *const x{k} = t[{k}];" for k in group]
        start = _bias(op, body, "int32_t", "o") if first == 0 else "acc[o]"
        terms = [
            f"(int16_t)({plus(f'x{k}[o]', -zero)}) * (int16_t)({plus(f'{w}[{k * outputs} + o]', -op.weight_zp)})"
            for k in group
        ]
        inner += [f"for (int32_t o = 0; o < {outputs}; o++) {{", f"acc[o] = {start} + {' + '.join(terms)};", "}"]
    return _placed((n, rows, columns), outputs, inner, read_sum("int32_t", op.result) if wide else "acc[j]")
