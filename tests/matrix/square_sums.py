"""Roots and powers of sums of squares, which no kernel computes on these tensors: the real results, in double."""

from __future__ import annotations

import numpy as np
from support.harness import argument, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, out_size
from matrix.segments import stored_real
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i8, i16, ui8

__all__: list[str] = []


def _case(draw: Draw, name: str, x: Value, y: Value, options: dict[str, object], function: object) -> Case:
    x.name, y.name = "in0", "out0"
    source, output = x.type.element, y.type.element
    assert isinstance(source, UniformQuantizedType)
    assert isinstance(output, UniformQuantizedType)
    model = one_op(f"tfl.{name}", [x], [y], options)
    text = f"{name}({describe(x)}) -> {describe(y)} {options}"
    case = Case(model, edge_inputs([x], draw.whole(0, 1 << 30)), text, everywhere=False)

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        real = (arrays[0].astype(np.float64) - source.zero_point) * source.scale
        return [stored_real(function(real) / output.scale, output)]  # type: ignore[operator]

    case.exact = exact
    if source.storage == i16:
        case.integer, case.tolerance = False, 1
    return case


@generator("l2_pool_real")
def l2_pool(draw: Draw) -> Case:
    storage, padding = draw.storage(), draw.one("SAME", "VALID")
    kernel, strides = draw.dims(2, 1, 4), draw.dims(2, 1, 3)
    size = [draw.whole(k, k + 5) for k in kernel]
    out = [out_size(n, k, s, 1, padding) for n, k, s in zip(size, kernel, strides, strict=True)]
    x, channels = draw.quantized(storage, draw.scale(-8, 0)), draw.whole(1, 5)
    options: dict[str, object] = {"padding": padding, "fused_activation_function": draw.one("NONE", "NONE", "RELU6")}
    options |= {"stride_h": strides[0], "stride_w": strides[1], "filter_height": kernel[0], "filter_width": kernel[1]}
    before = [max((o - 1) * s + k - n, 0) // 2 for o, s, k, n in zip(out, strides, kernel, size, strict=True)]
    most = 6.0 if options["fused_activation_function"] == "RELU6" else np.inf

    def function(real: np.ndarray) -> np.ndarray:
        y = np.zeros((1, *out, channels))
        for i, j in np.ndindex(*out):
            rows, columns = (
                slice(max(s * p - e, 0), s * p - e + k)
                for s, p, e, k in zip(strides, (i, j), before, kernel, strict=True)
            )
            y[0, i, j] = np.sqrt(np.square(real[0, rows, columns]).mean((0, 1)))
        return np.minimum(y, most)

    y = argument((1, *out, channels), draw.quantized(storage, draw.near(x.scale)))
    return _case(draw, "l2_pool_2d", argument((1, *size, channels), x), y, options, function)


@generator("l2_normalization_real")
def l2_normalization(draw: Draw) -> Case:
    storage, shape = draw.storage(), (*draw.dims(draw.whole(0, 3), 1, 4), draw.whole(1, 40))
    x = draw.quantized(storage, draw.scale(-9, 2))
    y = draw.quantized(storage, draw.near(2.0 ** (1 - storage.bits)))

    def function(real: np.ndarray) -> np.ndarray:
        return real / np.maximum(np.sqrt(np.square(real).sum(-1, keepdims=True)), 1e-6)

    options: dict[str, object] = {"fused_activation_function": "NONE"}
    return _case(draw, "l2_normalization", argument(shape, x), argument(shape, y), options, function)


@generator("local_response_real")
def local_response(draw: Draw) -> Case:
    storage, shape = draw.storage(i8, ui8, i16), (1, *draw.dims(2), draw.whole(1, 12))
    x = draw.quantized(storage, draw.scale(-8, -2))
    radius = draw.whole(1, 4)
    alpha, beta, bias = draw.one(1.0, 0.25), draw.one(0.5, 0.75, 1.0), draw.one(1.0, 0.5)

    def function(real: np.ndarray) -> np.ndarray:
        around = np.pad(np.square(real), [(0, 0), (0, 0), (0, 0), (radius, radius - 1)])
        total = sum(around[..., i : i + shape[-1]] for i in range(2 * radius))
        return real * (bias + alpha * total) ** -beta

    options: dict[str, object] = {"radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
    y = argument(shape, draw.quantized(storage, draw.near(x.scale)))
    return _case(draw, "local_response_normalization", argument(shape, x), y, options, function)
