"""Operators on quantized tensors that TFLite has no kernel for: the conversion is within one count of what the float
kernel makes of the real values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, out_size
from matrix.elementwise import broadcast_shapes
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedPerAxisType, f32, i8, i16, i32, parameters, ui8

__all__: list[str] = []


def _float(value: Value) -> Value:
    """The float tensor of what a quantized one stands for."""
    if not value.type.quantized:
        return value
    if not value.is_constant:
        return argument(value.type.shape or (), f32, value.name)
    scale, zero = parameters(value.type)
    return const((value.array.astype(np.int32) - zero).astype(np.float32) * scale, f32, value.name)


def _case(
    draw: Draw,
    name: str,
    operands: Sequence[Value],
    result: Value,
    attributes: dict[str, Any],
    kernels: str = "BUILTIN_REF",
) -> Case:
    for i, operand in enumerate(operands):
        operand.name = f"in{i}"
    result.name = "out0"
    model = one_op(f"tfl.{name}", operands, [result], attributes)
    twin = one_op(f"tfl.{name}", [_float(v) for v in operands], [_float(result)], attributes)
    batches = edge_inputs([v for v in operands if v.buffer is None], draw.whole(0, 1 << 30))
    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(result)} {attributes}"
    return Case(model, batches, text, integer=False, tolerance=1, reference=kernels, everywhere=False, twin=twin)


@generator("unary_without_kernel")
def unary(draw: Draw) -> Case:
    name = draw.one("square", "sin", "cos", "ceil", "floor", "round", "sign", "elu", "exp")
    storage = draw.storage(*((ui8,) if name in ("elu", "exp") else (i8, ui8, i16)))
    shape = draw.dims(draw.whole(1, 4), 1, 8)
    x = draw.quantized(storage, draw.scale(-9, -4))
    reach = 2.0 ** (storage.bits - 1) * x.scale
    y = draw.quantized(storage, draw.near(max(reach, 1.0) * 2 / 2**storage.bits))
    return _case(draw, name, [argument(shape, x)], argument(shape, y), {}, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")


@generator("binary_without_kernel")
def binary(draw: Draw) -> Case:
    name = draw.one("squared_difference", "atan2", "add_per_axis", "mul_per_axis")
    storage = draw.storage(*((ui8, i16) if name == "squared_difference" else (i8, ui8, i16)))
    first, second, out = broadcast_shapes(draw)
    if len(out) > 4 or name.startswith("atan"):
        first = second = out = (*out[:2], draw.whole(1, 9))
    x, y = draw.quantized(storage, draw.scale(-8, -3)), draw.quantized(storage, draw.scale(-8, -3))
    z = draw.quantized(storage, draw.near(max(x.scale, y.scale)))
    operands = [argument(first, x), argument(second, y)]
    options: dict[str, Any] = {}
    if name.endswith("per_axis"):
        name, options = name[:3], {"fused_activation_function": draw.one("NONE", "RELU", "RELU6")}
        shape = (*draw.dims(draw.whole(1, 3)), draw.whole(1, 8))
        axis = draw.whole(0, len(shape) - 1)
        scales = np.asarray([draw.near(x.scale) for _ in range(shape[axis])], np.float64)
        zero = draw.zero_point(storage)
        operands = [argument(shape, UniformQuantizedPerAxisType.of(storage, axis, scales, zero)), argument(shape, y)]
        out = shape
    return _case(draw, name, operands, argument(out, z), options)


@generator("add_n")
def add_n(draw: Draw) -> Case:
    storage, shape = draw.storage(), draw.dims(draw.whole(1, 4))
    x = draw.quantized(storage, draw.scale(-8, 0))
    operands = [argument(shape, x) for _ in range(draw.whole(2, 5))]
    return _case(draw, "add_n", operands, argument(shape, draw.quantized(storage, draw.near(x.scale * 2))), {})


@generator("cumsum")
def cumsum(draw: Draw) -> Case:
    storage, shape = draw.storage(), draw.dims(draw.whole(1, 4))
    x = draw.quantized(storage, draw.scale(-8, 0))
    axis = draw.whole(-len(shape), len(shape) - 1)
    options = {"exclusive": draw.chance(0.5), "reverse": draw.chance(0.5)}
    result = argument(shape, draw.quantized(storage, draw.near(x.scale * 3)))
    return _case(draw, "cumsum", [argument(shape, x), const(np.asarray(axis), i32)], result, options)


@generator("l2_pool")
def l2_pool(draw: Draw) -> Case:
    storage, padding = draw.storage(), draw.one("SAME", "VALID")
    kernel, strides = draw.dims(2, 1, 4), draw.dims(2, 1, 3)
    size = [draw.whole(k, k + 5) for k in kernel]
    out = [out_size(n, k, s, 1, padding) for n, k, s in zip(size, kernel, strides, strict=True)]
    x, channels = draw.quantized(storage, draw.scale(-8, 0)), draw.whole(1, 8)
    options = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "filter_height": kernel[0],
        "filter_width": kernel[1],
        "fused_activation_function": "NONE",
    }
    result = argument((1, *out, channels), draw.quantized(storage, draw.near(x.scale)))
    return _case(draw, "l2_pool_2d", [argument((1, *size, channels), x)], result, options)


@generator("local_response_normalization")
def local_response(draw: Draw) -> Case:
    storage, shape = draw.storage(), (1, *draw.dims(2), draw.whole(1, 12))
    x = draw.quantized(storage, draw.scale(-8, -2))
    options = {"radius": draw.whole(0, 4), "bias": 1.0, "alpha": draw.one(1.0, 0.25), "beta": draw.one(0.5, 1.0)}
    result = argument(shape, draw.quantized(storage, draw.near(x.scale)))
    return _case(draw, "local_response_normalization", [argument(shape, x)], result, options)


@generator("batch_matmul_without_kernel")
def batch_matmul(draw: Draw) -> Case:
    n, k, m = draw.dims(3, 1, 8)
    x, y = draw.quantized(ui8, draw.scale(-8, -3)), draw.quantized(ui8, draw.scale(-8, -3))
    z = draw.quantized(ui8, draw.near(x.scale * y.scale * 64 * k**0.5))
    adjoint = draw.chance(0.5), draw.chance(0.5)
    operands = [
        argument((2, k, n) if adjoint[0] else (2, n, k), x),
        argument((2, m, k) if adjoint[1] else (2, k, m), y),
    ]
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1], "asymmetric_quantize_inputs": False}
    return _case(draw, "batch_matmul", operands, argument((2, n, m), z), options)
