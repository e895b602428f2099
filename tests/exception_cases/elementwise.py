"""Operators of one element each whose scales take the kernel out of what C++ defines, or of the range of its types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from support.harness import argument, const, one_op

from exception_cases.case import Case, cases, per_layer
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i1, i8, i16, i32, i64, ui8

__all__: list[str] = []

_FUSED = {"fused_activation_function": "NONE"}
_SUMS = {**_FUSED, "pot_scale_int16": False}
_COMPARISONS = "equal not_equal less less_equal greater greater_equal".split()


def _every(storage: ScalarType) -> np.ndarray:
    """All values of 8 bits, 256 of the others."""
    return np.linspace(storage.minimum, storage.maximum, 256).round().astype(storage.dtype)


def _two(
    name: str,
    elements: Sequence[UniformQuantizedType],
    options: dict[str, Any],
    when: str = "",
    shape: tuple[int | None, int] = (256, 256),
) -> Case:
    """An operator of two operands on all pairs of their values; those of a second operand, a row, are not 0."""
    first, second, *made = elements
    operands = [argument(shape, first), argument((1, 256), second, "y")]
    result = argument(shape, made[0] if made else i1, "z")
    x, y = np.repeat(_every(first.storage)[:, None], 256, 1), _every(second.storage)[None]
    if name in _COMPARISONS and second.storage is i16:
        y = np.arange(-128, 128, dtype=np.int16)[None]
    y = np.where(y == second.zero_point, y + 1, y).astype(y.dtype)
    return Case(name.upper(), one_op(f"tfl.{name}", operands, [result], options, 2), when, [[x, y]])


def _one(
    name: str,
    source: UniformQuantizedType,
    result: UniformQuantizedType,
    options: dict[str, Any] | None = None,
    size: int = 256,
    when: str = "",
) -> Case:
    model = one_op(f"tfl.{name}", [argument((1, size), source)], [argument((1, size), result, "y")], options or {})
    return Case(name.upper(), model, when, [[_every(source.storage)[None, :size]]])


@cases
def sums_and_products() -> Iterator[Case]:
    x, y = per_layer(i8, 1.0, 3), per_layer(i8, 0.75, -5)
    for scale in (2.0**-20, 2.0**-53):
        yield _two("sub", [x, y, per_layer(i8, scale, 7)], _SUMS)
    alike = one_op("tfl.sub", [argument((1, 256), x), argument((1, 256), y, "y")], [
        argument((1, 256), per_layer(i8, 2.0**-20, 7), "z")
    ], _SUMS, 2)  # fmt: skip
    yield Case("SUB", alike, "of one shape", [[_every(i8)[None], _every(i8)[None, ::-1]]])
    yield _two("sub", [per_layer(i16, 1.0), per_layer(i16, 0.75), per_layer(i16, 2.0**-20)], _SUMS)
    yield _two("sub", [x, y, per_layer(i8, 2.0**-53, 7)], _SUMS, "batch open", (None, 256))
    fused = _two("add", [x, y, per_layer(i8, 1 / 64, 7)], {**_SUMS, "fused_activation_function": "TANH"}, "fused TANH")
    yield replace(fused, real=lambda x, y: np.tanh(x + y))
    yield _two("mul", [x, y, per_layer(i8, 2.0**-30, 7)], _FUSED)
    yield _two("mul", [per_layer(i16, 1.0), per_layer(i16, 1.0), per_layer(i16, 2.0**-10)], _FUSED)
    for storage in (i8, ui8, i16):
        zero = 128 if storage is ui8 else 0
        element = per_layer(storage, 1 / 16, zero)
        yield _two("div", [element, element, element], _FUSED)
    yield _two("div", [x, y, per_layer(i8, 2.0**-40, 7)], _FUSED)
    yield _two("div", [per_layer(i8, 2.0**-40, 3), y, per_layer(i8, 1.0, 7)], _FUSED)


@cases
def comparisons() -> Iterator[Case]:
    for name in _COMPARISONS:
        yield _two(name, [per_layer(i8, 3.0, 1), per_layer(i8, 1 / 256)], {})
    for name in _COMPARISONS[:2]:
        yield _two(name, [per_layer(i16, 3.0), per_layer(i16, 1 / 256)], {})
        yield _two(name, [per_layer(i16, 300.0), per_layer(i16, 1 / 256)], {})


@cases
def activations() -> Iterator[Case]:
    x, y = per_layer(i8, 0.5, 3), per_layer(i8, 1e-10, -5)
    for name in ("abs", "quantize", "relu", "relu6", "relu_n1_to_1", "relu_0_to_1"):
        yield _one(name, x, y)
    yield _one("leaky_relu", x, y, {"alpha": 0.25})
    yield _one("leaky_relu", x, x, {"alpha": 1e10}, when="alpha 1e10")
    for size in (256, 13):
        yield _one("hard_swish", per_layer(i8, 1e9, 3), per_layer(i8, 1e9, -5), size=size)
    for name in ("logistic", "tanh"):
        yield _one(name, per_layer(i16, 1e6), per_layer(i16, 2.0**-15))
    yield _one("log", per_layer(i16, 1e34), per_layer(i16, 0.01))
    positive = _one("rsqrt", per_layer(i8, 1e12, -128), per_layer(i8, 1.0, -5))
    yield replace(positive, inputs=[[np.maximum(_every(i8), -127)[None]]])
    slope = const(np.linspace(-127, 127, 256).round()[None], per_layer(i8, 0.5, 1), "alpha")
    operands = [argument((1, 256), x), slope]
    yield Case("PRELU", one_op("tfl.prelu", operands, [argument((1, 256), y, "y")], {}), "", [[_every(i8)[None]]])
    operands = [argument((1, 256), x), argument((1, None), per_layer(ui8, 0.5, 100), "alpha")]
    model = one_op("tfl.prelu", operands, [argument((1, 256), per_layer(i8, 9.0), "y")], {})
    yield Case("PRELU", model, "shape of alpha open", [[_every(i8)[None], _every(ui8)[None]]])


@cases
def reductions() -> Iterator[Case]:
    for name, source, result in (
        ("mean", per_layer(i8, 1.0, 3), per_layer(i8, 1e-10, -5)),
        ("sum", per_layer(ui8, 1.0, 3), per_layer(ui8, 1e-10, 5)),
        ("mean", per_layer(i16, 1.0), per_layer(i16, 1e-10)),
        ("reduce_prod", per_layer(i16, 1 / 16), per_layer(i16, 1 / 16)),
        ("reduce_prod", per_layer(i8, 16.0), per_layer(i8, 1 / 4096)),
    ):
        operands = [argument((64, 4), source), const(np.asarray([1]), i32, "axes")]
        model = one_op(f"tfl.{name}", operands, [argument((64,), result, "y")], {"keep_dims": False}, 2)
        yield Case(name.upper(), model, "", [[_every(source.storage).reshape(64, 4)]])


@cases
def of_several() -> Iterator[Case]:
    fine, coarse = per_layer(ui8, 1e-10, 3), per_layer(ui8, 1.0, 128)
    operands = [argument((1, 256), coarse), argument((1, 256), fine, "y")]
    options = {**_FUSED, "axis": 0}
    model = one_op("tfl.concatenation", operands, [argument((2, 256), fine, "z")], options, 2)
    yield Case("CONCATENATION", model, "", [[_every(ui8)[None]] * 2])
    wide = per_layer(i32, 0.1)
    model = one_op(
        "tfl.add_n", [argument((1, 256), wide, n) for n in "ab"], [argument((1, 256), per_layer(i32, 0.3), "y")], {}
    )
    yield Case("ADD_N", model, "", [[_every(i32)[None] // 4] * 2])
    model = one_op(
        "tfl.zeros_like",
        [argument((1, 4), per_layer(i32, 0.1, 5))],
        [argument((1, 4), per_layer(i32, 0.1, 5), "y")],
        {},
    )
    yield Case("ZEROS_LIKE", model, "", [[np.zeros((1, 4), np.int32)]])
    pool = {**_FUSED, "padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
    for name in ("average_pool_2d", "max_pool_2d"):
        element = per_layer(i8, 1e-10, 3)
        made = [argument((1, 8, 8, 1), element, "y")]
        options = {**pool, "fused_activation_function": "RELU6"}
        model = one_op(f"tfl.{name}", [argument((1, 16, 16, 1), element)], made, options, 2)
        yield Case(name.upper(), model, "fused RELU6", [[_every(i8).reshape(1, 16, 16, 1)]], chance=True)
        several = UniformQuantizedPerAxisType.of(i8, 3, np.asarray([0.1, 0.2]), 0)
        made, options = [argument((1, 8, 8, 2), several, "y")], {**pool, "fused_activation_function": "RELU"}
        model = one_op(f"tfl.{name}", [argument((1, 16, 16, 2), per_layer(i8, 0.1))], made, options, 2)
        yield Case(name.upper(), model, "fused RELU", chance=True)


@cases
def windows() -> Iterator[Case]:
    x, first = argument((None, 4), per_layer(i8, 0.1, 3)), argument((), per_layer(i8, 0.1, 3), "first")
    numbers = [const(np.asarray(v), i64, "n") for v in ([1, 2], [1, 2], [1, 1])]
    result = [argument((None, 2), per_layer(i8, 0.2, 3), "y")]
    model = one_op("tfl.reduce_window", [x, first, *numbers], result, {"reduce_function": "ADD"})
    yield Case("REDUCE_WINDOW", model, "batch open", [[_every(i8).reshape(64, 4), np.asarray(3, np.int8)]])
