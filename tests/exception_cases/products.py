"""Convolutions, matrix products and their kind: sums that leave the kernel's types, tensors that it reads as others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op, packed

from exception_cases.case import Case, cases, per_layer
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i2,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

__all__: list[str] = []

_FUSED = {"fused_activation_function": "NONE"}
_WINDOW = {**_FUSED, "padding": "VALID", "stride_h": 1, "stride_w": 1}
_DILATED = {**_WINDOW, "dilation_h_factor": 1, "dilation_w_factor": 1}
_ROWS = {**_FUSED, "keep_num_dims": False}
_MATMUL = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}


def _drawn(shape: tuple[int, ...], storage: ScalarType, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(storage.minimum, storage.maximum, shape, endpoint=True)


def _weights(shape: tuple[int, ...], element: ElementType) -> Value:
    storage = element.storage if isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)) else i8
    return const(_drawn(shape, storage), element, "w")


def _bias(count: int, storage: ScalarType, scale: float, most: int = 3000) -> Value:
    numbers = np.random.default_rng(1).integers(-most, most, count, endpoint=True)
    return const(numbers, per_layer(storage, scale), "bias")


def _case(
    name: str, operands: Sequence[Value | None], result: Value, options: dict[str, Any], when: str = "", **more: Any
) -> Case:
    inputs = edge_inputs([v for v in operands if v is not None and v.buffer is None])
    return Case(name.upper(), one_op(f"tfl.{name}", operands, [result], options, 2), when, inputs, **more)


@cases
def leaving_the_range() -> Iterator[Case]:
    """Results of so small a scale that their sums, scaled, leave the kernel's types: dead channels have such."""
    small, narrow = per_layer(i8, 2e-6, 3), per_layer(i16, 1e-12)
    x8, x16, w = per_layer(i8, 0.5, 3), per_layer(i16, 0.5), per_layer(i8, 0.5)
    image, out = (1, 4, 4, 3), (1, 3, 3, 4)
    for x, y, acc in ((x8, small, i32), (x16, narrow, i64)):
        bias = _bias(4, acc, 0.25)
        yield _case("conv_2d", [argument(image, x), _weights((4, 2, 2, 3), w), bias], argument(out, y, "y"), _DILATED)
        depth = {**_DILATED, "depth_multiplier": 1}
        operands = [argument(image, x), _weights((1, 2, 2, 3), w), _bias(3, acc, 0.25)]
        yield _case("depthwise_conv_2d", operands, argument((1, 3, 3, 3), y, "y"), depth)
        size = const(np.asarray([1, 5, 5, 4]), i32, "size")
        operands = [size, _weights((4, 2, 2, 3), w), argument(image, x), bias]
        yield _case("transpose_conv", operands, argument((1, 5, 5, 4), y, "y"), _WINDOW)
        operands = [argument((2, 8), x), _weights((4, 8), w), bias]
        yield _case("fully_connected", operands, argument((2, 4), y, "y"), _ROWS)
        sides = [argument((2, 3, 4), x, "a"), argument((2, 4, 5), x, "b")]
        yield _case("batch_matmul", sides, argument((2, 3, 5), y, "y"), _MATMUL)
    sides = [argument((2, 3, 4), per_layer(i16, 1.0), "a"), argument((2, 4, 5), per_layer(i16, 1.0), "b")]
    yield _case("batch_matmul", sides, argument((2, 3, 5), per_layer(i16, 0.5), "y"), _MATMUL)
    operands = [argument((2, 8), x16), _weights((4, 8), w), _bias(4, i64, 0.25, 1 << 60)]
    yield _case("fully_connected", operands, argument((2, 4), per_layer(i16, 1e13), "y"), _ROWS, "a bias near 2^60")


@cases
def read_as_others() -> Iterator[Case]:
    """Parameters that the kernel disregards, and types that it takes for others."""
    x8, x16, y16 = per_layer(i8, 0.05, 3), per_layer(i16, 0.001), per_layer(i16, 0.01)
    image, out = (1, 4, 4, 3), (1, 3, 3, 4)
    depth = {**_DILATED, "depth_multiplier": 1}
    w = _weights((1, 2, 2, 3), per_layer(i8, 0.02, 9))
    y = argument((1, 3, 3, 3), per_layer(i8, 0.2, -5), "y")
    yield _case("depthwise_conv_2d", [argument(image, x8), w, _bias(3, i32, 0.001)], y, depth)
    size = const(np.asarray([1, 5, 5, 4]), i32, "size")
    w = _weights((4, 2, 2, 3), per_layer(i8, 0.02, 9))
    y = argument((1, 5, 5, 4), per_layer(i8, 0.2, -5), "y")
    yield _case("transpose_conv", [size, w, argument(image, x8), _bias(4, i32, 0.001)], y, _WINDOW)
    several = UniformQuantizedPerAxisType.of(i8, 0, np.linspace(0.01, 0.02, 4), 0)
    bias = const(np.arange(4), UniformQuantizedPerAxisType.of(i32, 0, several.scales * np.float32(0.05), 0), "bias")
    operands = [argument((2, 8), x8), _weights((4, 8), several), bias]
    yield _case("fully_connected", operands, argument((2, 4), y16, "y"), _ROWS)
    rows, wide = _weights((4, 8), per_layer(i16, 0.001)), _bias(4, i64, 1e-6, 1 << 40)
    y = argument((2, 4), per_layer(i16, 0.1), "y")
    yield _case("fully_connected", [argument((2, 8), x16), rows, wide], y, {**_ROWS, "quantized_bias_type": "FLOAT32"})
    w = _weights((4, 2, 2, 3), per_layer(i8, 0.02))
    operands = [argument(image, x16), w, _bias(4, i32, 2e-5)]
    yield _case("conv_2d", operands, argument(out, y16, "y"), _DILATED, chance=True)
    far = _weights((4, 2, 2, 3), per_layer(i16, 0.02, 400))
    operands = [argument(image, per_layer(ui8, 0.05, 9)), far, _bias(4, i32, 0.001)]
    yield _case("conv_2d", operands, argument(out, per_layer(ui8, 0.2, 5), "y"), _DILATED)
    farther = _weights((4, 2, 2, 3), per_layer(i32, 0.02, 100000))
    operands = [argument(image, per_layer(ui8, 0.05, 9)), farther, _bias(4, i32, 0.001)]
    yield _case("conv_2d", operands, argument(out, per_layer(ui8, 0.2, 5), "y"), _DILATED)
    sides = [argument((2, 3, 4), x16, "a"), argument((2, 4, 5), x16, "b")]
    yield _case("batch_matmul", sides, argument((2, 3, 5), per_layer(i8, 0.2), "y"), _MATMUL, chance=True)
    sides = [argument((None, 8), x16), _weights((4, 8), per_layer(i8, 0.02))]
    y = argument((None, 4), per_layer(i8, 0.2), "y")
    yield _case("fully_connected", [*sides, None], y, _ROWS, "batch open")


@cases
def hybrid() -> Iterator[Case]:
    """Float activations, quantized weights."""
    x, y = argument((2, 8), f32), argument((2, 4), f32, "y")
    yield _case("fully_connected", [x, _weights((4, 8), per_layer(i8, 0.25, 3)), None], y, _ROWS)
    x, y = argument((1, 4, 4, 3), f32), argument((1, 3, 3, 4), f32, "y")
    operands = [x, _weights((4, 2, 2, 3), per_layer(i8, 0.25, 3)), const(np.zeros(4, np.float32), f32, "bias")]
    yield _case("conv_2d", operands, y, _DILATED)
    ids = const(np.asarray([0, 1, 3]), i32, "ids")
    for storage, columns in ((i4, 3), (i4, 5), (i2, 2), (i2, 6)):
        table = packed(_drawn((4, columns), storage), per_layer(storage, 0.25))
        yield _case("embedding_lookup", [ids, table], argument((3, columns), f32, "y"), {})
