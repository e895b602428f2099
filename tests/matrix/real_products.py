"""Matrix products on types that no kernel takes, and weights with a scale per block: the real sums, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from matrix.draw import Case, Draw, describe, generator
from matrix.exact_sums import requantized
from matrix.hybrid import blockwise
from matrix.real_sums import centred, scales_of, target
from matrix.weighted import int4
from tflq.ir.types import (
    ElementType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i4,
    i8,
    i16,
    i32,
    parameters,
    ui8,
)

__all__: list[str] = []


@generator("real_batch_matmul")
def batch_matmul(draw: Draw) -> Case:
    """Sides of other types than the kernel's, or quantized per column."""
    x_type, y_type, z_type = draw.one(
        (ui8, ui8, ui8), (ui8, ui8, ui8), (ui8, i8, ui8), (i8, ui8, i8), (i8, i8, i16), (i8, i16, i16), (i16, ui8, i16),
        (ui8, ui8, i8), (ui8, ui8, i32), (i8, i4, i8), (i16, i16, i8),
    )  # fmt: skip
    rows, depth, columns = draw.whole(1, 8), draw.one(1, 3, 8, draw.whole(1, 60)), draw.whole(1, 8)
    adjoint = draw.chance(0.5), draw.chance(0.5)
    outer = draw.dims(draw.whole(0, 2), 1, 3)
    lead = [outer, tuple(draw.one(1, d) for d in outer)[draw.whole(0, len(outer)) :]]
    lead = lead[::-1] if draw.chance(0.5) else lead
    first = (*lead[0], *((depth, rows) if adjoint[0] else (rows, depth)))
    second = (*lead[1], *((columns, depth) if adjoint[1] else (depth, columns)))
    fixed = y_type == i4 or draw.chance(0.5)
    source = draw.quantized(x_type)
    per_column = fixed and columns > 1 and draw.chance(0.5)
    if per_column:
        axis = len(second) - (2 if adjoint[1] else 1)
        zeros: Any = draw.rng.integers(0, 256, columns) if y_type == ui8 else 0
        scales = draw.scale(-12, 0) * np.exp2(draw.rng.uniform(-2, 2, columns))
        right: ElementType = UniformQuantizedPerAxisType.of(y_type, axis, scales, zeros)
    else:
        right = draw.quantized(y_type) if y_type != i4 else UniformQuantizedType.of(i4, draw.scale(-9, 0), 0)
    x, y = argument(first, source), argument(second, right)
    if fixed:
        data = draw.integers(y_type, second)
        y = int4(data, right) if y_type == i4 else const(data, right)
    elif draw.chance(0.2):
        x = const(draw.integers(x_type, first), source)
    span = 2.0 ** (x_type.bits + y_type.bits - 4) * depth**0.5
    units = source.scale * scales_of(y)
    largest = float(np.max(units))
    made = draw.quantized(
        z_type, largest * draw.rng.uniform(1, 9) if z_type == i32 else draw.near(largest * span * 2.0**-z_type.bits)
    )
    result = argument((*np.broadcast_shapes(*lead), rows, columns), made)
    for value, name in ((x, "in0"), (y, "in1"), (result, "out0")):
        value.name = name
    inputs = [v for v in (x, y) if not v.is_constant]

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        given = dict(zip(inputs, arrays, strict=True))
        sides = [centred(v, v.array if v.is_constant else given[v]) for v in (x, y)]
        one, other = (np.swapaxes(s, -1, -2) if swap else s for s, swap in zip(sides, adjoint, strict=True))
        return [requantized(one @ other, 0, units / made.scale, made, "NONE")]

    options = {"adj_x": adjoint[0], "adj_y": adjoint[1], "asymmetric_quantize_inputs": False}
    model = one_op("tfl.batch_matmul", [x, y], [result], options)
    text = f"batch_matmul({describe(x)}, {describe(y)}) -> {describe(result)} {options}"
    conversion = target(draw) | ({"semantics": "real"} if (x_type, y_type, z_type) == (i8, i8, i8) else {})
    batches = edge_inputs(inputs, draw.whole(0, 1 << 30))
    return Case(model, batches, text, tolerance=int(z_type == i32), exact=exact, conversion=conversion)


@generator("real_blocks")
def blocks(draw: Draw) -> Case:
    """FULLY_CONNECTED with a scale per block of weights."""
    depth, outputs, rows = draw.one(8, 16, 32, 64, 128), draw.whole(1, 12), draw.whole(1, 4)
    x_type, storage = draw.storage(), draw.one(i4, i8)
    x = argument((rows, depth), draw.quantized(x_type, draw.scale(-9, -2)), "x")
    data = draw.rng.integers(storage.minimum, storage.maximum, (outputs, depth), np.int8, endpoint=True)
    w = blockwise(draw, storage, (outputs, depth), data)
    w.name = "w"
    scale = parameters(w.type)[0].astype(np.float64)
    span = x.type.element.scale * 0.1 * 2.0 ** (x_type.bits + storage.bits - 4) * depth**0.5  # type: ignore[union-attr]
    storage = draw.one(x_type, x_type, i8, i16)
    zero = draw.zero_point(storage) if storage.bits == 8 else 0
    made = UniformQuantizedType.of(storage, draw.near(span * 2.0**-storage.bits), zero)
    y = argument((rows, outputs), made, "y")
    real = draw.rng.normal(0, span / 8, outputs)
    kind = draw.one("none", "float", "integer")
    unit = np.float32(x.type.element.scale * 0.01)  # type: ignore[union-attr]
    bias = const(real.astype(np.float32), f32, "b")
    if kind == "integer":
        stored = np.clip(np.rint(real / unit), -(2**30), 2**30)
        bias, real = const(stored, UniformQuantizedType.of(i32, float(unit), 0), "b"), stored * np.float64(unit)
    options: dict[str, Any] = {"fused_activation_function": draw.one("NONE", "RELU")}
    options["keep_num_dims"] = draw.chance(0.5)

    def exact(arrays: list[np.ndarray]) -> list[np.ndarray]:
        sums = centred(x, arrays[0]) @ (data * scale).T * (x.type.element.scale / made.scale)  # type: ignore[union-attr]
        added = 0.0 if kind == "none" else real / made.scale
        return [requantized(sums, added, np.ones(1), made, options["fused_activation_function"])]

    model = one_op("tfl.fully_connected", [x, w, None if kind == "none" else bias], [y], options)
    text = f"fully_connected({describe(x)}, {describe(w)} blockwise) -> {describe(y)} {options} bias {kind}"
    batches = edge_inputs([x], draw.whole(0, 1 << 30))
    narrow = span / made.scale < 1 << 17  # wider sums leave no bits behind the point
    return Case(model, batches, text, integer=narrow, tolerance=1, exact=exact, conversion=target(draw))
