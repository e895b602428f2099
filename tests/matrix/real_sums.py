"""Multiply-accumulate operators on types that no kernel takes: equal to the real sums, rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, ints, known, out_size
from matrix.exact_sums import convolved, depthwise, requantized, transposed
from matrix.weighted import int4
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

Sums = Callable[[np.ndarray, np.ndarray], np.ndarray]


def centred(value: Value, stored: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Stored integers less their zero points."""
    element = value.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        shape = [-1 if a == element.axis else 1 for a in range(stored.ndim)]
        return stored.astype(np.int64) - element.zero_points.reshape(shape)
    return stored.astype(np.int64) - element.zero_point  # type: ignore[union-attr]


def scales_of(value: Value) -> np.ndarray:
    element = value.type.element
    return np.atleast_1d(np.asarray(getattr(element, "scales", getattr(element, "scale", 1.0)), np.float64))


def target(draw: Draw) -> dict[str, Any]:
    """Options of the conversion."""
    return draw.mac() | ({"target": "kernels"} if draw.chance(0.3) else {})


class _Types:
    """The types of a signature that no kernel has."""

    def __init__(self, draw: Draw, name: str) -> None:
        free = name.startswith("conv_3d")
        kinds = ["unsigned axis", "mixed", "result"]
        kinds += ["bias"] if name != "fully_connected" else []
        kinds += ["int4"] * 2 if name == "transpose_conv" else []
        kind = draw.one(*kinds) if not free else "free"
        self.x, self.w = draw.storage(), draw.one(i8, i8, i8, i4)
        self.per_axis, self.bias = draw.chance(0.6), draw.one("none", "same", "same", "same", "wide")
        if self.x == ui8:
            self.w = ui8
        self.result = self.x
        if kind == "unsigned axis":
            self.x = self.result = self.w = ui8
            self.per_axis = True
        elif kind == "mixed":
            self.x, self.w = draw.one((ui8, i8), (i8, ui8), (ui8, i4), (i16, ui8))
            self.result = draw.one(self.x, self.x, i8, ui8, i16)
            self.bias = draw.one(self.bias, "other", "float")
        elif kind == "result":
            others = (t for t in (i8, ui8, i16, i32) if t is not self.x and not (t is i16 and self.x is ui8))
            self.result = draw.one(*others)
        elif kind == "int4":
            self.x = self.result = draw.one(i8, i16)
            self.w = i4
        elif kind == "bias":
            self.x = self.result = draw.one(i8, i8, i16)
            self.w, self.bias = i8, draw.one("float", "wide", "narrow" if self.x == i8 else "float")
        else:
            self.w = draw.one(self.w, self.w, self.w, i16 if draw.chance(0.2) else i8)
            self.result = draw.one(self.x, self.x, self.x, i8, i16, i32 if self.w != i16 else i16)
            self.bias = draw.one(self.bias, "other", "float", "computed" if self.result != i32 else "none")
        self.unsigned_bias = self.w == ui8 or name == "fully_connected"


def _filter(draw: Draw, t: _Types, axis: int, channels: int, free: bool) -> ElementType:
    storage = t.w
    if not t.per_axis or channels < 2:
        zero = draw.zero_point(storage) if storage == ui8 or (free and draw.chance(0.3)) else 0
        return UniformQuantizedType.of(storage, draw.scale(-12, 0), zero)
    scales = draw.scale(-12, 0) * np.exp2(draw.rng.uniform(-2, 2, channels))
    zeros: Any = 0
    if storage == ui8:
        zeros = draw.one(128, draw.rng.integers(0, 256, channels), draw.rng.integers(100, 150, channels))
    return UniformQuantizedPerAxisType.of(storage, axis, scales, zeros)


def _bias(draw: Draw, t: _Types, units: np.ndarray, channels: int, reach: float) -> tuple[Value | None, Any]:
    """A bias and what it is in counts of the sum."""
    kind = t.bias
    if kind == "none":
        return None, 0
    counts = np.asarray(draw.rng.uniform(-reach, reach, channels))
    if draw.chance(0.1):
        counts *= 2.0**10
    if kind == "float":
        real = (counts * units).astype(np.float32)
        return const(real, f32), real.astype(np.float64) / units
    storage = {"narrow": i16, "wide": i64 if t.x != i16 else i32}.get(kind, i64 if t.x == i16 else i32)
    if kind == "computed":
        storage = i32
    scale = np.maximum(units.astype(np.float32), np.float32(1e-37))
    factor = draw.near(0.3) if kind == "other" and not t.unsigned_bias else 1.0
    if factor != 1:
        scale = (scale * np.float32(factor)).astype(np.float32)
        counts = counts / factor
    stored = np.clip(np.rint(counts), storage.minimum // 2, storage.maximum // 2).astype(storage.dtype)
    if scale.size > 1:
        element: ElementType = UniformQuantizedPerAxisType.of(storage, 0, scale, 0)
    else:
        element = UniformQuantizedType.of(storage, float(scale[0]), 0)
    if kind == "computed":
        return argument((channels,), element), None
    wanted = stored * (scale.astype(np.float64) / units) if factor != 1 else stored
    return const(stored, element), wanted


def _case(
    draw: Draw,
    name: str,
    t: _Types,
    shape: Sequence[int],
    filters: tuple[int, ...],
    axis: int,
    out: Sequence[int],
    options: dict[str, Any],
    sums: Sums,
    first: Sequence[Value] = (),
    opened: bool = True,
) -> Case:
    """`sums` is of the input and of the filters, both centred; the operands `first` come before the rest."""
    source = draw.quantized(t.x)
    free = name.startswith("conv_3d")
    channels = filters[axis]
    w_type = _filter(draw, t, axis, channels, free)
    data = draw.integers(t.w, filters)
    w = int4(data, w_type) if t.w == i4 else const(data, w_type)
    if free and name == "conv_3d" and not t.per_axis and t.w in (i8, ui8) and draw.chance(0.1):
        w = argument(filters, w_type)
    units = source.scale * scales_of(w)
    depth = math.prod(filters) // channels
    span = (t.x.maximum - t.x.minimum) / 4 * (t.w.maximum - t.w.minimum) / 4 * math.sqrt(depth)
    if t.result == i32:
        scale = draw.one(float(np.max(units)), float(np.max(units)) * draw.rng.uniform(1, 60))
    else:
        scale = draw.near(float(np.median(units)) * span * 2 / (t.result.maximum - t.result.minimum))
    zero = draw.zero_point(t.result) if t.result.bits == 8 else 0
    made = UniformQuantizedType.of(t.result, scale, zero)
    bias, added = _bias(draw, t, units, channels, span)
    x = argument(tuple(shape), source)
    if draw.chance(0.06):
        x = known(draw, x)
    operands: list[Value | None] = [*first, w, x] if first else [x, w]
    if bias is not None or (name != "depthwise_conv_2d" and draw.chance(0.5)):
        operands.append(bias)
    result = argument(tuple(out), made)
    inputs = [v for v in operands if v is not None and v.buffer is None]
    batches = edge_inputs(inputs, draw.whole(0, 1 << 30))
    if opened and x in inputs and draw.chance(0.2):
        for value in (x, result):
            value.type = TensorType((None, *(value.type.shape or ())[1:]), value.type.element)
    for i, operand in enumerate(operands):
        if operand is not None:
            operand.name = f"in{i}"
    result.name = "out0"

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        given = dict(zip(inputs, arrays, strict=True))
        left, right = (centred(v, v.array if v.is_constant else given[v]) for v in (x, w))
        whole = sums(left, right)
        offset = given[bias].astype(np.float64) if bias in given else added
        return [requantized(whole, offset, units / made.scale, made, options["fused_activation_function"])]

    model = one_op(f"tfl.{name}", operands, [result], options)
    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(result)} {options} bias {t.bias}"
    coarse = (i16 in (t.x, t.result)) and (
        t.w == i16 or t.bias in ("other", "float", "computed")
    )  # more than 32 bits matter
    conversion = target(draw) | {"semantics": "real"}  # kernels take weights of the other sign for their own
    ported = conversion.get("target") == "kernels"  # uint8 may come to an int8 kernel, which rounds in fixed point
    tolerance = 1 if t.result == i32 or coarse or ported else 0
    case = Case(model, batches, text, tolerance=tolerance, exact=exact, conversion=conversion)
    case.integer = t.result != i32  # whose sums can leave 32 bits
    if None in (result.type.shape or ()):
        case.more = [edge_inputs([argument((3, *shape[1:]), source) if v is x else v for v in inputs], 5)]
    return case


def _spatial(draw: Draw, rank: int) -> tuple[str, list[int], list[int], list[int], list[int], list[int]]:
    """Padding, kernel, strides, dilations, input and output sizes."""
    padding = draw.one("SAME", "VALID")
    kernel, strides = [draw.whole(1, 3) for _ in range(rank)], [draw.one(1, 1, 2, 3) for _ in range(rank)]
    dilated = draw.chance(0.3)
    dilations = [draw.one(1, 2) if dilated else 1 for _ in range(rank)]
    sizes = [
        draw.whole((k - 1) * d + 1 if padding == "VALID" else 1, (k - 1) * d + 5)
        for k, d in zip(kernel, dilations, strict=True)
    ]
    out = [out_size(n, k, s, d, padding) for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]
    return padding, kernel, strides, dilations, sizes, out


def _options(draw: Draw, padding: str, strides: list[int], dilations: list[int] | None, axes: str) -> dict[str, Any]:
    options: dict[str, Any] = {"padding": padding}
    options |= {f"stride_{a}": s for a, s in zip(axes, strides, strict=True)}
    if dilations is not None:
        options |= {f"dilation_{a}_factor": d for a, d in zip(axes, dilations, strict=True)}
    options["fused_activation_function"] = draw.one("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
    return options


@generator("real_conv_2d")
def conv_2d(draw: Draw) -> Case:
    padding, kernel, strides, dilations, sizes, out = _spatial(draw, 2)
    groups = draw.one(1, 1, 1, 2, 3)
    inputs, outputs, batch = draw.one(1, 2, 3, 8, 24), groups * draw.one(1, 2, 3, 7), draw.one(1, 1, 2)
    options = _options(draw, padding, strides, dilations, "hw")
    sums = lambda x, w: convolved(x, w, strides, dilations, padding)  # noqa: E731
    shape, filters = (batch, *sizes, inputs * groups), (outputs, *kernel, inputs)
    return _case(draw, "conv_2d", _Types(draw, "conv_2d"), shape, filters, 0, (batch, *out, outputs), options, sums)


@generator("real_depthwise_conv_2d")
def depthwise_conv_2d(draw: Draw) -> Case:
    padding, kernel, strides, dilations, sizes, out = _spatial(draw, 2)
    inputs, multiplier, batch = draw.one(1, 2, 3, 8), draw.one(1, 1, 2, 3), draw.one(1, 1, 2)
    outputs = inputs * multiplier
    options = _options(draw, padding, strides, dilations, "hw") | {"depth_multiplier": multiplier}
    sums = lambda x, w: depthwise(x, w, strides, dilations, padding)  # noqa: E731
    shape, filters, made = (batch, *sizes, inputs), (1, *kernel, outputs), (batch, *out, outputs)
    types = _Types(draw, "depthwise_conv_2d")
    return _case(draw, "depthwise_conv_2d", types, shape, filters, 3, made, options, sums)


@generator("real_fully_connected")
def fully_connected(draw: Draw) -> Case:
    depth, outputs = draw.one(1, 2, 3, 8, draw.whole(1, 64), 300), draw.one(1, 2, 3, draw.whole(1, 40))
    lead = draw.dims(draw.whole(1, 3), 1, 4)
    keep = draw.chance(0.5)
    made = (*lead, outputs) if keep else (math.prod(lead), outputs)
    options = {"fused_activation_function": draw.one("NONE", "RELU", "RELU6"), "keep_num_dims": keep}
    sums = lambda x, w: (x @ w.T).reshape(made if x.shape[0] == lead[0] else (*x.shape[:-1], outputs))  # noqa: E731
    types = _Types(draw, "fully_connected")
    opened = keep or len(lead) == 1
    return _case(
        draw, "fully_connected", types, (*lead, depth), (outputs, depth), 0, made, options, sums, opened=opened
    )


@generator("real_transpose_conv")
def transpose_conv(draw: Draw) -> Case:
    padding, small, kernel, strides, out = _transposed(draw, 2, [1, 1])
    inputs, outputs, batch = draw.one(1, 2, 3, 8, 17), draw.one(1, 2, 3, 9), draw.one(1, 1, 2)
    options = _options(draw, padding, strides, None, "hw")
    sums = lambda x, w: transposed(x, w, out, strides, (1, 1), padding)  # noqa: E731
    shape, filters, made = (batch, *small, inputs), (outputs, *kernel, inputs), (batch, *out, outputs)
    types = _Types(draw, "transpose_conv")
    first = [ints(*made)]
    return _case(draw, "transpose_conv", types, shape, filters, 0, made, options, sums, first, opened=False)


def _transposed(draw: Draw, rank: int, dilations: list[int]) -> tuple[str, list[int], list[int], list[int], list[int]]:
    """Padding, input sizes, kernel, strides and output sizes."""
    padding = draw.one("SAME", "VALID")
    strides, kernel = [draw.whole(1, 3) for _ in range(rank)], [draw.whole(1, 3) for _ in range(rank)]
    small, out = [draw.whole(1, 4) for _ in range(rank)], []
    for s, k, n, d in zip(strides, kernel, small, dilations, strict=True):
        extent = (k - 1) * d + 1
        low, high = (
            ((n - 1) * s + 1, n * s) if padding == "SAME" else ((n - 1) * s + extent, (n - 1) * s + extent + s - 1)
        )
        out.append(draw.whole(low, high))
    return padding, small, kernel, strides, out


@generator("real_conv_3d")
def conv_3d(draw: Draw) -> Case:
    padding, kernel, strides, dilations, sizes, out = _spatial(draw, 3)
    inputs, outputs, batch = draw.one(1, 2, 3, 8), draw.one(1, 2, 3, 7), draw.one(1, 1, 2)
    options = _options(draw, padding, strides, dilations, "dhw")
    sums = lambda x, w: convolved(x, w.transpose(4, 0, 1, 2, 3), strides, dilations, padding)  # noqa: E731
    shape, filters, made = (batch, *sizes, inputs), (*kernel, inputs, outputs), (batch, *out, outputs)
    return _case(draw, "conv_3d", _Types(draw, "conv_3d"), shape, filters, 4, made, options, sums)


@generator("real_conv_3d_transpose")
def conv_3d_transpose(draw: Draw) -> Case:
    dilations = [draw.one(1, 2) for _ in range(3)] if draw.chance(0.3) else [1, 1, 1]
    padding, small, kernel, strides, out = _transposed(draw, 3, dilations)
    inputs, outputs, batch = draw.one(1, 2, 3, 8), draw.one(1, 2, 3, 5), draw.one(1, 1, 2)
    options = _options(draw, padding, strides, dilations, "dhw")
    sums = lambda x, w: transposed(x, w.transpose(3, 0, 1, 2, 4), out, strides, dilations, padding)  # noqa: E731
    shape, filters, made = (batch, *small, inputs), (*kernel, outputs, inputs), (batch, *out, outputs)
    types = _Types(draw, "conv_3d_transpose")
    first = [ints(*made)]
    return _case(draw, "conv_3d_transpose", types, shape, filters, 3, made, options, sums, first, opened=False)
