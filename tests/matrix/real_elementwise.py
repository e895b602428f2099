"""Elementwise operators whose parameters no kernel computes: per axis on either side, mixed storage types, int16.

The conversion is compared with the real function in double, rounded half away from zero: equal where integers can be
exact, else within one count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op, real_of

from matrix.draw import Case, Draw, describe, generator, ints, known
from matrix.elementwise import broadcast_shapes
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i1,
    i8,
    i16,
    parameters,
    ui8,
)

_BOUNDS = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}
_CONVERSIONS: tuple[dict[str, Any], ...] = ({}, {}, {"target": "kernels"}, {"semantics": "real"})


def parametrized(draw: Draw, storage: ScalarType, shape: Sequence[int], scale: float, per_axis: float) -> ElementType:
    """Parameters per layer or, with a probability, per axis."""
    axes = [a for a, d in enumerate(shape) if d > 1]
    if not axes or not draw.chance(per_axis):
        return draw.quantized(storage, scale)
    axis = draw.one(*axes)
    scales = np.asarray([scale * 2.0 ** draw.rng.uniform(-2, 2) for _ in range(shape[axis])])
    zeros = [draw.zero_point(storage) for _ in scales] if draw.chance(0.3) else draw.zero_point(storage)
    return UniformQuantizedPerAxisType.of(storage, axis, scales, zeros)


def stored_of(value: Value, real: np.ndarray) -> np.ndarray:
    """The nearest stored integers, halves away from zero; the zero point where there is no number."""
    if not value.type.quantized:
        return real.astype(value.type.storage.dtype)
    scale, zero = parameters(value.type)
    with np.errstate(all="ignore"):
        counts = np.nan_to_num(real / scale.astype(np.float64), nan=0.0, posinf=1e12, neginf=-1e12)
    rounded = np.sign(counts) * np.floor(np.abs(counts) + 0.5) + zero
    storage = value.type.storage
    return np.clip(rounded, storage.minimum, storage.maximum).astype(storage.dtype)


def real_case(
    draw: Draw,
    name: str,
    operands: Sequence[Value],
    result: Value,
    attributes: dict[str, Any],
    function: Callable[..., np.ndarray],
    **more: Any,
) -> Case:
    """A case of one operator, compared with a function of real values; operands without parameters are passed on."""
    operands = list(operands)
    if len(operands) > 1 and draw.chance(0.25):
        at = draw.whole(0, len(operands) - 1)
        operands[at] = known(draw, operands[at]) if operands[at].buffer is None else operands[at]
    for i, operand in enumerate(operands):
        operand.name = f"in{i}"
    result.name = "out0"
    model = one_op(f"tfl.{name}", operands, [result], attributes, more.pop("version", 2))
    inputs = [v for v in operands if v.buffer is None]

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        given = iter(arrays)
        stored = [v.array if v.buffer is not None else next(given) for v in operands]
        reals = [real_of(v, a) if v.type.quantized else a for v, a in zip(operands, stored, strict=True)]
        with np.errstate(all="ignore"):
            return [stored_of(result, function(*reals))]

    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(result)} {attributes}"
    batches = edge_inputs(inputs, draw.whole(0, 1 << 30))
    return Case(model, batches, text, everywhere=False, exact=exact, **{"conversion": draw.one(*_CONVERSIONS), **more})


def _storages(draw: Draw, kind: str) -> tuple[ScalarType, ScalarType, ScalarType]:
    storage = draw.storage()
    if kind == "mixed":
        return draw.storage(), draw.storage(), draw.storage()
    return storage, storage, storage


def _reach(element: ElementType) -> float:
    scale = np.max(getattr(element, "scales", getattr(element, "scale", 1.0)))
    return float(scale) * 2.0 ** (element.storage.bits - 1)  # type: ignore[union-attr]


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "squared_difference": lambda x, y: np.square(x - y),
}
_EXACT = ("mul", "maximum", "minimum")


@generator("real_binary")
def real_binary(draw: Draw) -> Case:
    name = draw.one(*_FUNCTIONS)
    kind = draw.one("axis", "axis", "mixed")
    a, b, c = _storages(draw, kind)
    first, second, out = broadcast_shapes(draw)
    chance = 0.6 if kind == "axis" else 0.2
    x = parametrized(draw, a, first, draw.scale(-8, 0) * 2.0 ** (8 - a.bits), chance)
    y = parametrized(draw, b, second, _reach(x) * 2.0 ** (draw.rng.uniform(-3, 3) + 1 - b.bits), chance)
    most = {"mul": _reach(x) * _reach(y), "div": 16 * _reach(x) / _reach(y)}.get(name, max(_reach(x), _reach(y)) * 1.5)
    most = most**2 if name == "squared_difference" else most
    far = name not in ("div", "squared_difference") and draw.chance(0.15)  # of which some have no integer form
    near = (draw.near(most) if far else most * 2.0 ** draw.rng.uniform(-2, 2)) / 2.0 ** (c.bits - 1)
    z = parametrized(draw, c, out, near, chance)
    plain = all(not isinstance(e, UniformQuantizedPerAxisType) for e in (x, y, z))
    fused = name in ("add", "sub", "mul", "div")
    activation = draw.one("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1") if fused and not far else "NONE"
    options: dict[str, Any] = {"fused_activation_function": activation} if fused else {}
    if name in ("add", "sub"):
        options["pot_scale_int16"] = False
    bounds, function = _BOUNDS[activation], _FUNCTIONS[name]
    more: dict[str, Any] = {"integer": name != "div" or c != i16}
    if name in ("maximum", "minimum") or (plain and a == b):  # which a kernel computes otherwise
        more["conversion"] = {"semantics": "real"}
    if plain and a == b == c and name != "squared_difference":
        return real_binary(draw)
    return real_case(
        draw,
        name,
        [argument(first, x), argument(second, y)],
        argument(out, z),
        options,
        lambda u, v: np.clip(function(u, v), *bounds),
        tolerance=0 if name in _EXACT and activation == "NONE" else 1,
        **more,
    )


@generator("squared_difference_16bit")
def squared_difference(draw: Draw) -> Case:
    first, second, out = broadcast_shapes(draw)
    x = draw.quantized(i16, 2.0 ** draw.rng.uniform(-16, -6))
    y = x if draw.chance(0.4) else draw.quantized(i16, x.scale * 2.0 ** draw.rng.uniform(-3, 3))
    z = draw.quantized(i16, x.scale**2 * 2.0 ** (15 + draw.rng.uniform(-4, 4)))
    operands = [argument(first, x), argument(second, y)]
    return real_case(
        draw, "squared_difference", operands, argument(out, z), {}, _FUNCTIONS["squared_difference"], tolerance=1
    )


_COMPARISONS: dict[str, Callable[..., np.ndarray]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@generator("real_comparison")
def real_comparison(draw: Draw) -> Case:
    """Of ratios that are small fractions, too, where values are equal."""
    name = draw.one(*_COMPARISONS)
    first, second, out = broadcast_shapes(draw)
    a, b, _ = _storages(draw, draw.one("axis", "mixed"))
    x = parametrized(draw, a, first, draw.scale(-8, 0), 0.5)
    near = float(np.max(getattr(x, "scales", getattr(x, "scale", 1.0))))
    ratio = draw.one(1.0, 2.0, 0.25, 3.0, 0.75, draw.rng.uniform(0.1, 10), 2.0 ** (a.bits - b.bits))
    y = parametrized(draw, b, second, near * ratio, 0.5)
    operands = [argument(first, x), argument(second, y)]
    conversion = {"semantics": "real"}
    return real_case(draw, name, operands, argument(out, i1), {}, _COMPARISONS[name], conversion=conversion)


@generator("real_prelu")
def real_prelu(draw: Draw) -> Case:
    a, w, c = _storages(draw, draw.one("axis", "mixed"))
    shape = draw.dims(draw.whole(1, 4), 1, 6)
    slopes = shape[draw.whole(0, len(shape) - 1) :]
    x = parametrized(draw, a, shape, draw.scale(-8, 0) * 2.0 ** (8 - a.bits), 0.5)
    y = parametrized(draw, w, slopes, draw.scale(-9, -5) * 2.0 ** (8 - w.bits), 0.5)
    z = parametrized(draw, c, shape, draw.near(_reach(x) / 2.0 ** (c.bits - 1)), 0.5)
    return real_case(
        draw,
        "prelu",
        [argument(shape, x), argument(slopes, y)],
        argument(shape, z),
        {},
        lambda u, v: np.where(u >= 0, u, u * v),
        version=1,
        conversion={"semantics": "real"},
        tolerance=int(a == c and not any(isinstance(e, UniformQuantizedPerAxisType) for e in (x, y, z))),  # a kernel's
    )


@generator("requantize")
def requantize(draw: Draw) -> Case:
    """QUANTIZE from and to scales per axis."""
    shape = draw.dims(draw.whole(1, 5), 1, 7)
    a, c = draw.storage(), draw.storage()
    x = parametrized(draw, a, shape, draw.scale(-8, 0), 0.7)
    z = parametrized(draw, c, shape, draw.near(_reach(x) / 2.0 ** (c.bits - 1)), 0.7)
    if not any(isinstance(e, UniformQuantizedPerAxisType) for e in (x, z)):
        return requantize(draw)
    return real_case(
        draw, "quantize", [argument(shape, x)], argument(shape, z), {}, lambda u: u, tolerance=int(c == i16)
    )


_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs,
    "neg": np.negative,
    "square": np.square,
    "tanh": np.tanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "relu_n1_to_1": lambda x: np.clip(x, -1, 1),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.3 * x),
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "floor": np.floor,
    "sin": np.sin,
    "sign": np.sign,
}


@generator("real_unary")
def real_unary(draw: Draw) -> Case:
    """Mixed storage types, and scales per axis."""
    name, shape = draw.one(*_UNARY), draw.dims(draw.whole(1, 4), 1, 7)
    a, c = draw.storage(), draw.storage()
    per_axis = 0.2 if a != c else 0.8
    x = parametrized(draw, a, shape, draw.scale(-7, -3) * 2.0 ** (8 - a.bits), per_axis)
    most = min(max(_reach(x), 1.0), 1e4)
    z = parametrized(draw, c, shape, draw.near(most / 2.0 ** (c.bits - 1)), per_axis)
    if a == c and not any(isinstance(e, UniformQuantizedPerAxisType) for e in (x, z)):
        return real_unary(draw)
    options = {"alpha": 0.3} if name == "leaky_relu" else {}
    axes = {e.axis: e.scales.size for e in (x, z) if isinstance(e, UniformQuantizedPerAxisType)}
    small = a.bits == 8 or np.prod([*axes.values()]) <= 16
    operands, result = [argument(shape, x)], argument(shape, z)
    return real_case(draw, name, operands, result, options, _UNARY[name], version=1, tolerance=1, integer=bool(small))


@generator("fake_quant")
def fake_quant(draw: Draw) -> Case:
    shape = draw.dims(draw.whole(1, 4), 1, 7)
    a, c = draw.storage(i8, ui8, i16), draw.storage(i8, ui8, i16)
    low, high = -float(np.float32(draw.rng.uniform(0, 6))), float(np.float32(draw.rng.uniform(0.1, 6)))
    bits, narrow = draw.one(8, 8, 16, 4, 2, draw.whole(2, 16)), draw.chance(0.3)
    x = parametrized(draw, a, shape, 12 / 2.0**a.bits, 0.2 if a.bits == 8 else 0)
    z = parametrized(draw, c, shape, draw.near(12 / 2.0**c.bits), 0.2 if a.bits == 8 else 0)
    least, greatest = (1 if narrow else 0), 2**bits - 1
    scale = (np.float32(high) - np.float32(low)) / np.float32(greatest - least)
    zero = np.clip(np.floor(np.float32(least) - np.float32(low) / scale + np.float32(0.5)), least, greatest)

    def function(u: np.ndarray) -> np.ndarray:
        steps = (
            np.clip(u.astype(np.float32), (least - zero) * scale, (greatest - zero) * scale) - (least - zero) * scale
        )
        return np.floor(steps * (np.float32(1) / scale) + np.float32(0.5)) * scale + (least - zero) * scale

    options = {"min": low, "max": high, "num_bits": bits, "narrow_range": narrow}
    return real_case(
        draw,
        "fake_quant",
        [argument(shape, x)],
        argument(shape, z),
        options,
        function,
        version=1,
        tolerance=1,
    )


@generator("floor_division_real")
def floor_division(draw: Draw) -> Case:
    """Zero divisors, too; of one number a table, else in float: compared with the float kernels' arithmetic."""
    name = draw.one("floor_div", "floor_mod")
    a, b, c = _storages(draw, draw.one("axis", "mixed"))
    shape, alone = draw.dims(draw.whole(1, 4), 1, 5), draw.chance(0.4)
    x = parametrized(draw, a, shape, draw.scale(-8, 0) * 2.0 ** (8 - a.bits), 0.3)
    y = draw.quantized(b, _reach(x) / 2.0 ** (b.bits - 1) * 0.37)
    z = parametrized(draw, c, shape, draw.near(_reach(x) / 2.0 ** (c.bits - 1)), 0.2)
    number = const(np.asarray(draw.integers(b, ())), y)

    def function(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        u, v = u.astype(np.float32), v.astype(np.float32)
        if name == "floor_div":
            return np.floor(u / v).astype(np.float64)
        left = np.fmod(u, v)
        return np.nan_to_num(np.where((left != 0) & ((left < 0) != (v < 0)), left + v, left)).astype(np.float64)

    return real_case(
        draw,
        name,
        [argument(shape, x), number if alone else argument(shape, y)],
        argument(shape, z),
        {},
        function,
        tolerance=1,
        integer=alone and a.bits == 8,
        conversion={"semantics": "real"},
    )


@generator("power_with_a_number")
def power(draw: Draw) -> Case:
    """POW and ATAN2 of one number."""
    name, storage = draw.one("pow", "atan2"), draw.storage()
    shape = draw.dims(draw.whole(1, 4), 1, 6)
    x = draw.quantized(storage, draw.scale(-7, -4) * 2.0 ** (8 - storage.bits))
    other = draw.storage()
    centre = 128 if other == ui8 else 0
    y = UniformQuantizedType.of(other, 0.0125, centre)
    z = draw.quantized(storage, draw.near(_reach(x) / 2.0 ** (storage.bits - 1)))
    number = const(np.asarray(draw.whole(centre - 100, centre + 100)), y)
    operands = [argument(shape, x), number][:: draw.one(1, -1) if name == "atan2" else 1]

    def function(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Of floats of DEQUANTIZE: an exponent that is whole among them counts as one."""
        u, v = (w.astype(np.float32).astype(np.float64) for w in (u, v))
        return np.power(u, v) if name == "pow" else np.arctan2(u, v)

    return real_case(draw, name, operands, argument(shape, z), {}, function, tolerance=1)


_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "sum": np.sum,
    "mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
}


@generator("real_reduction")
def real_reduction(draw: Draw) -> Case:
    """Mixed storage types, scales per axis, the reduced one, too; products of uint8 and int16."""
    name = draw.one(*_REDUCTIONS, "reduce_prod")
    shape = draw.dims(draw.whole(1, 4), 1, 5)
    axes = sorted({draw.whole(0, len(shape) - 1) for _ in range(draw.one(1, 1, 2))})
    a, c = draw.storage(), draw.storage()
    keep, per_axis = draw.chance(0.5), 0.2 if a != c else 0.8
    scale = 1.5 * 2.0 ** (1 - a.bits) if name == "reduce_prod" else draw.scale(-8, 0)
    x = parametrized(draw, a, shape, scale, per_axis)
    out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    z = parametrized(draw, c, out, draw.near(_reach(x) / 2.0 ** (c.bits - 1)), per_axis)
    plain = a == c and not any(isinstance(e, UniformQuantizedPerAxisType) for e in (x, z))
    if plain and (name != "reduce_prod" or a != ui8):
        return real_reduction(draw)
    operands = [argument(shape, x), ints(*axes)]
    function = _REDUCTIONS[name]
    axis = tuple(axes)
    return real_case(
        draw,
        name,
        operands,
        argument(out, z),
        {"keep_dims": keep},
        lambda u, _: function(u, axis=axis, keepdims=keep),
        tolerance=1,
    )
