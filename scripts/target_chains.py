"""Models of what a runtime may put together (measure_target.py): QUANTIZE and DEQUANTIZE, and builtins in a row, among
them the forms of `tflq/formats/tflite/lowering/portable_edges.py` and `portable_movement.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from scripts.target_trials import PLAIN, SHAPE, Make, Trial, depthwise, made, plain, whole
from tflq.dialects.tfl import activation, arithmetic, casts, convolution
from tflq.formats.tflite.lowering import portable_movement as moved
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.formats.tflite.lowering.portable_edges import levels
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i8, i32, ui8
from tflq.numerics.fixed_point import quantize_multipliers
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.distance import Distance
from tflq.numerics.requantize.split import Split
from tflq.numerics.requantize.staircase import rescale_thresholds


def edges() -> Iterator[Trial]:
    """QUANTIZE and DEQUANTIZE by parameters, and QUANTIZE between int8 and uint8 of one scale."""
    for storage in (i8, ui8):
        for scale, zero in ((1.0, 0), (0.0078125, 0), (0.0235, (storage.minimum + storage.maximum + 1) // 2)):
            type = TensorType(SHAPE, UniformQuantizedType.of(storage, scale, zero))
            name = f"scale {scale:g}, zero point {zero}"
            yield made("dequantize", name, lambda k, x: k.emit(casts.Dequantize, [x], f32), type)
            yield made("quantize", name, lambda k, x, t=type: k.emit(casts.Quantize, [x], t), plain(f32), small=200)
            other = ui8 if storage is i8 else i8
            twin = TensorType(SHAPE, UniformQuantizedType.of(other, scale, zero + other.minimum - storage.minimum))
            yield made("quantize", name, lambda k, x, t=twin: k.emit(casts.Quantize, [x], t), type)


def chains() -> Iterator[Trial]:
    """Requantizations by lines after nothing, a convolution, two, or a depthwise one, and in a model with a quantized
    tensor: with what a runtime may put together, and with what it may not."""
    real, stored = plain(f32, _CHAIN), TensorType(_CHAIN, UniformQuantizedType.of(i8, 1.0, 0))
    for first in ("", "conv_2d ", "conv_2d conv_2d ", "depthwise_conv_2d ", "dequantize conv_2d "):
        type = stored if first.startswith("dequantize") else real
        for name, line in LINES.items():
            yield made("", f"{first}{name}", lambda k, x, n=first, f=line: f(k, _before(k, x, n)), type, small=64)
    for form in ("of the image", "of one dim"):
        name = f"conv_2d gather mul conv_2d, index {form}"
        yield made(
            "",
            name,
            lambda k, x, n=form: _looked_up(k, _before(k, x, "conv_2d"), flat=n != "of the image"),
            real,
            small=4,
        )
    yield from _rounded()
    yield from _moved()


def _rounded() -> Iterator[Trial]:
    """QUANTIZE of numbers halfway between two levels, and the form that stands for it; levels as real numbers."""
    element = UniformQuantizedType.of(i8, 0.5, 3)
    halves = plain(f32, (1, 256, 12))

    def whole(k: KernelBuilder, x: Value) -> Value:
        return k.mul(_floor(k, x), k.constant(0.25, f32))

    def by_thresholds(k: KernelBuilder, x: Value) -> Value:
        twin = levels(k, whole(k, x), element, "half_away")
        assert twin is not None
        return twin.value

    def as_real(k: KernelBuilder, x: Value) -> Value:
        return k.mul(_floor(k, k.add(x, k.constant(131, f32))), k.constant(0.0235, f32))

    stored = TensorType(halves.shape, element)
    yield made(
        "", "mul quantize, halves", lambda k, x: k.emit(casts.Quantize, [whole(k, x)], stored), halves, small=600
    )
    yield made("", "mul quantize, halves, by thresholds", by_thresholds, halves, small=600)
    yield made("", "add floor mul", as_real, halves, small=128)


def _moved() -> Iterator[Trial]:
    """Forms of operators that move elements, between convolutions."""
    mirrored = {1: np.pad(np.arange(32), 3, mode="reflect"), 2: np.pad(np.arange(24), 2, mode="symmetric")}
    forms: dict[str, Make] = {
        "space_to_batch_nd": lambda k, x: moved.blocks_as_batches(k, x, (4, 3)),
        "batch_to_space_nd": lambda k, x: moved.batches_as_blocks(k, moved.blocks_as_batches(k, x, (4, 3)), (2, 2)),
        "mirror_pad": lambda k, x: moved.by_index(k, x, mirrored),
        "tile": lambda k, x: moved.repeated(k, x, (1, 2, 13, 1)),
    }
    for name, form in forms.items():
        yield made(
            "",
            f"conv_2d {name} conv_2d",
            lambda k, x, f=form: _before(k, f(k, _before(k, x, "conv_2d")), "conv_2d"),
            plain(f32, _CHAIN),
            small=16,
        )


def _looked_up(k: KernelBuilder, x: Value, *, flat: bool) -> Value:
    """A table of the numbers of an image between convolutions, beside the image."""
    clipped, shape = k.minimum(k.maximum(x, k.constant(0, f32)), k.constant(255, f32)), x.type.shape or ()
    index, table = k.cast(clipped, i32), k.constant(np.random.default_rng(4).integers(-9, 10, 256), f32)
    found = k.refold(k.gather(table, k.reshape(index, (None,))), shape) if flat else k.gather(table, index)
    return _before(k, k.mul(x, found), "conv_2d")


_CHAIN: Final = (1, 32, 24, 12)


def _before(k: KernelBuilder, x: Value, name: str) -> Value:
    options = {"padding": "SAME"} | PLAIN
    for kind in name.split():
        if kind == "dequantize":
            x = k.emit(casts.Dequantize, [x], f32)
        elif kind == "conv_2d":
            weights = k.constant(np.random.default_rng(1).integers(-9, 10, (12, 1, 1, 12)), f32)
            x = k.emit(convolution.Conv2D, [x, weights, whole(k, 12)], **options)
        else:
            x = depthwise(k, x, **options)
    return x


_M: Final = np.random.default_rng(2).uniform(0.011, 0.031, 12).astype(np.float32)
_C: Final = np.random.default_rng(3).uniform(0.1, 0.9, 12).astype(np.float32)


def _floor(k: KernelBuilder, x: Value) -> Value:
    return k.emit(arithmetic.Floor, [x])


def _scaled(k: KernelBuilder, x: Value, fused: str = "NONE") -> Value:
    return k.add(k.mul(x, k.row(_M, f32)), k.row(_C, f32), fused)


def _relu(k: KernelBuilder, x: Value) -> Value:
    return k.emit(activation.Relu, [x])


def _proven(k: KernelBuilder, x: Value, *, steps: bool) -> Value:
    """A requantization that holds with either rounding of sums: a line, or two steps."""
    run = np.arange(12) * 40.0 + (400 if steps else 30)
    mantissa, left = quantize_multipliers(1 / run)
    shift = 31 - left.astype(np.int64)
    least = -128 if steps else 0
    thresholds = rescale_thresholds(np.arange(least + 1, least + 256), mantissa, shift)
    ends = np.full(12, -(1 << 22)), np.full(12, 1 << 22)
    slope = mantissa / 2.0**shift
    fit = (Split if steps else Distance).fit(Climb(thresholds, slope, *ends, least))
    assert fit is not None
    return fit.apply_to_whole(x, KernelOps(k))


LINES: Final[dict[str, Make]] = {
    "mul": lambda k, x: k.mul(x, k.row(_M, f32)),
    "mul add": _scaled,
    "mul add floor": lambda k, x: _floor(k, _scaled(k, x)),
    "sub mul add floor": lambda k, x: _floor(k, _scaled(k, k.sub(x, k.constant(7, f32)))),
    "mul floor add": lambda k, x: k.add(_floor(k, k.mul(x, k.row(_M, f32))), k.row(_C, f32)),
    "relu mul floor": lambda k, x: _floor(k, k.mul(_relu(k, x), k.row(_M, f32))),
    "sub relu mul floor": lambda k, x: _floor(k, k.mul(k.sub(k.constant(99, f32), x, "RELU"), k.row(_M, f32))),
    "mul add6 mul floor": lambda k, x: _floor(k, k.mul(_scaled(k, x, "RELU6"), k.constant(42.6, f32))),
    "line": lambda k, x: _proven(k, x, steps=False),
    "line in two steps": lambda k, x: _proven(k, x, steps=True),
    "clip mul floor": lambda k, x: _floor(
        k, k.mul(k.minimum(k.maximum(x, k.row(-50 - 9 * _C, f32)), k.row(900 * _C, f32)), k.row(_M, f32))
    ),
}
"""Lines as builtins. "line" and "line in two steps" are proven with either rounding of sums."""
