"""Operators in float on quantized constants, per layer, per axis and blockwise.

`hybrid`: the original's kernels, whatever they disregard. `hybrid_real`: the real values of the constants, within what
the kernels lose that quantize activations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator, ints, out_size
from matrix.exact_sums import convolved, depthwise, transposed
from matrix.weighted import int4
from tflq.ir.ops import Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    i32,
    parameters,
    ui8,
)

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]
_LOST = 0.06
"""Of the largest magnitude: what a kernel loses that quantizes activations to 8 bits."""
_SUMMED = 1e-4
"""What float32 loses."""


def blockwise(draw: Draw, storage: ScalarType, shape: tuple[int, ...], data: np.ndarray) -> Value:
    block = draw.one(*(b for b in (2, 4, 8, 16, 32) if shape[-1] % b == 0))
    scales = (draw.rng.uniform(0.01, 0.2, (*shape[:-1], shape[-1] // block))).astype(np.float16)
    ones = (1,) * (len(shape) - 1)
    element = UniformQuantizedSubChannelType.of(storage, tuple(range(len(shape))), (*ones, block), scales)
    value = int4(data, element) if storage == i4 else const(data, element)
    details = {"scales": constant(scales, name="scales"), "zero_points": -1, "block_size": block}
    value.info = {"quantization": {"details": ("BlockwiseQuantization", details)}}
    return value


def _constant(draw: Draw, name: str, shape: tuple[int, ...], axis: int, storage: ScalarType, *, blocks: bool) -> Value:
    data = draw.rng.integers(storage.minimum + storage.signed, storage.maximum, shape, storage.dtype, endpoint=True)
    kind = draw.one("layer", "axis", "axis", "zero point", *(["blocks"] * 3 if blocks else []))
    if kind == "blocks":
        return blockwise(draw, storage, shape, data)
    if kind == "axis" and shape[axis] > 1:
        scales = 0.02 * np.exp2(draw.rng.uniform(-2, 2, shape[axis]))
        element: ElementType = UniformQuantizedPerAxisType.of(storage, axis, scales, 128 if storage == ui8 else 0)
    else:
        zero = draw.whole(storage.minimum // 4, storage.maximum // 2) if kind == "zero point" else 0
        element = UniformQuantizedType.of(storage, draw.rng.uniform(0.01, 0.1), zero)
    return int4(data, element) if storage == i4 else const(data, element)


def _window(draw: Draw, rank: int, axes: str, dilated: bool) -> tuple[dict[str, Any], Any]:
    """Options, and kernel, strides, dilations, padding, input and output sizes."""
    kernel, strides = [draw.whole(1, 3) for _ in range(rank)], [draw.whole(1, 2) for _ in range(rank)]
    dilations = [draw.one(1, 1, 2) if dilated else 1] * rank
    padding = draw.one("SAME", "VALID")
    sizes = [(k - 1) * d + draw.whole(1, 4) for k, d in zip(kernel, dilations, strict=True)]
    out = [out_size(n, k, s, d, padding) for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)]
    options: dict[str, Any] = {"padding": padding, "fused_activation_function": draw.one("NONE", "RELU")}
    options |= {f"stride_{a}": s for a, s in zip(axes, strides, strict=True)}
    options |= {f"dilation_{a}_factor": d for a, d in zip(axes, dilations, strict=True)}
    return options, (kernel, strides, dilations, padding, sizes, out)


def _fully_connected(draw: Draw) -> Any:
    depth, outputs, rows = draw.one(4, 8, 16, 32, 64), draw.whole(1, 12), draw.whole(1, 4)
    options = {
        "fused_activation_function": draw.one("NONE", "RELU"),
        "keep_num_dims": draw.chance(0.5),
        "asymmetric_quantize_inputs": draw.chance(0.5),
    }
    return (rows, depth), (outputs, depth), 0, (rows, outputs), options, lambda x, w: x @ w.T, 9


def _conv_2d(draw: Draw) -> Any:
    options, (kernel, strides, dilations, padding, sizes, out) = _window(draw, 2, "hw", True)
    inputs, outputs = draw.whole(1, 8), draw.whole(1, 8)
    function = lambda x, w: convolved(x, w, strides, dilations, padding)  # noqa: E731
    return (1, *sizes, inputs), (outputs, *kernel, inputs), 0, (1, *out, outputs), options, function, 8


def _depthwise_conv_2d(draw: Draw) -> Any:
    options, (kernel, strides, dilations, padding, sizes, out) = _window(draw, 2, "hw", True)
    inputs, multiplier = draw.whole(1, 8), draw.one(1, 1, 2)
    channels = inputs * multiplier
    function = lambda x, w: depthwise(x, w, strides, dilations, padding)  # noqa: E731
    options["depth_multiplier"] = multiplier
    return (1, *sizes, inputs), (1, *kernel, channels), 3, (1, *out, channels), options, function, 6


def _conv_3d(draw: Draw) -> Any:
    options, (kernel, strides, dilations, padding, sizes, out) = _window(draw, 3, "dhw", True)
    inputs, outputs = draw.whole(1, 4), draw.whole(1, 4)
    function = lambda x, w: convolved(x, w.transpose(4, 0, 1, 2, 3), strides, dilations, padding)  # noqa: E731
    return (1, *sizes, inputs), (*kernel, inputs, outputs), 4, (1, *out, outputs), options, function, 1


def _transpose_conv(draw: Draw) -> Any:
    options, (kernel, strides, _, padding, sizes, out) = _window(draw, 2, "hw", False)
    inputs, outputs = draw.whole(1, 8), draw.whole(1, 8)
    options = {k: v for k, v in options.items() if not k.startswith("dilation")}
    function = lambda x, w: transposed(x, w, sizes, strides, (1, 1), padding)  # noqa: E731
    return (1, *out, inputs), (outputs, *kernel, inputs), 0, (1, *sizes, outputs), options, function, 5


def _batch_matmul(draw: Draw) -> Any:
    batch, rows, depth, columns = draw.whole(1, 3), draw.whole(1, 5), draw.one(4, 8, 20), draw.whole(1, 6)
    adjoint = draw.chance(0.5)
    options = {"adj_x": False, "adj_y": adjoint, "asymmetric_quantize_inputs": draw.chance(0.5)}
    function = lambda x, w: x @ (np.swapaxes(w, -1, -2) if adjoint else w)  # noqa: E731
    shape = (batch, columns, depth) if adjoint else (batch, depth, columns)
    return (batch, rows, depth), shape, 1 if adjoint else 2, (batch, rows, columns), options, function, 4


def _embedding_lookup(draw: Draw) -> Any:
    rows, columns, count = draw.whole(1, 9), draw.one(4, 8, 16, 32), draw.whole(1, 6)
    return (count,), (rows, columns), 0, (count, columns), {}, lambda ids, w: w[ids], 4


_OPERATORS = {
    "fully_connected": (_fully_connected, (i8, i8, i4, ui8, i16)),
    "conv_2d": (_conv_2d, (i8, i8, i4, ui8, i16)),
    "depthwise_conv_2d": (_depthwise_conv_2d, (i8, i8, i4, ui8)),
    "conv_3d": (_conv_3d, (i8, i4, ui8, i16)),
    "transpose_conv": (_transpose_conv, (i8, i8, i4, ui8)),
    "batch_matmul": (_batch_matmul, (i8, i8, i4, ui8, i16)),
    "embedding_lookup": (_embedding_lookup, (i8, i8, i4, ui8, i16)),
}


def _has_kernel(name: str, w: Value) -> bool:
    """Whether an operator in float has a kernel for such weights, right or not."""
    storage, element = str(w.type.storage), w.type.element
    if isinstance(element, UniformQuantizedSubChannelType):
        return storage == "i4" or (storage == "i8" and name in ("fully_connected", "conv_2d", "batch_matmul"))
    axis, zero = isinstance(element, UniformQuantizedPerAxisType), parameters(w.type)[1].reshape(-1)[0]
    if name == "embedding_lookup":
        return storage != "i16" and not zero
    if name == "depthwise_conv_2d":
        return storage == "i8" and (axis or (w.type.shape or ())[-1] == 1)
    if name == "fully_connected" and storage == "i4" and zero:
        return False
    kernels = {"fully_connected": "i8 i4 ui8", "conv_2d": "i8 i4 ui8", "transpose_conv": "i8", "batch_matmul": "i8"}
    return storage in kernels.get(name, "").split()


def _case(draw: Draw, semantics: str) -> Case:
    name = draw.one(*_OPERATORS)
    drawn, storages = _OPERATORS[name]
    shape, filters, axis, out, options, function, version = drawn(draw)
    storage = draw.one(*storages)
    blocks = storage in (i4, i8) and name in ("fully_connected", "embedding_lookup")
    w = _constant(draw, name, filters, axis, storage, blocks=blocks)
    lookup = name == "embedding_lookup"
    x = argument(shape, i32 if lookup else f32)
    y = argument(out, f32, "out0")
    operands: list[Value | None] = [x, w]
    if name == "transpose_conv":
        operands = [ints(*out), w, x]
    bias = (
        draw.rng.normal(0, 1, out[-1]).astype(np.float32) if name not in ("batch_matmul", "embedding_lookup") else None
    )
    if bias is not None and draw.chance(0.3) and name != "conv_2d":
        bias = np.zeros(out[-1], np.float32)
    if bias is not None:
        operands.append(const(bias, f32))
    for i, operand in enumerate(operands):
        if operand is not None:
            operand.name = f"in{i}"
    model = one_op(f"tfl.{name}", operands, [y], options, version)
    batches = (
        [[draw.rng.integers(0, filters[0], shape, np.int32)] for _ in range(2)] if lookup else edge_inputs([x])[:2]
    )
    scale, zero = parameters(w.type)
    table = (w.array.astype(np.float64) - zero) * scale.astype(np.float64)

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        whole = function(arrays[0] if lookup else arrays[0].astype(np.float64), table)
        whole = whole if bias is None else whole + bias
        return [
            np.maximum(whole, 0 if options.get("fused_activation_function") == "RELU" else -np.inf).astype(np.float32)
        ]

    text = f"{name}({', '.join(map(describe, operands))}) -> {describe(y)} {options} {type(w.type.element).__name__}"
    case = Case(model, batches, text, integer=False, everywhere=False, conversion={"semantics": semantics})
    if semantics == "real" or not _has_kernel(name, w):
        reach = max(float(np.abs(exact(b)[0]).max()) for b in batches)
        quantizes = storage in (i8, i4) and not np.any(zero) and not lookup
        case.exact, case.tolerance = exact, (_LOST if quantizes else _SUMMED) * max(reach, 1e-3)  # type: ignore[assignment]
    return case


@generator("hybrid")
def hybrid(draw: Draw) -> Case:
    """As the interpreter runs the original, bit for bit."""
    return _case(draw, "interpreter")


@generator("hybrid_real")
def hybrid_real(draw: Draw) -> Case:
    """As the constants' parameters say."""
    return _case(draw, "real")
