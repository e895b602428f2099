"""Recurrent operators that compute in float: hybrid ones, and those on types that no kernel takes beside a twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs

from matrix.draw import Case, Draw, describe, generator
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    i16,
    i32,
    parameters,
    ui8,
)

__all__: list[str] = []

Slot = tuple[str, tuple[int, ...]] | None
"""The role of an operand and its shape: x an input, w, p, t weights, b a bias, n a norm, h and c states."""
Layout = tuple[str, list[Slot], list[tuple[int, ...]], dict[str, Any]]
"""Name, operands, shapes of the results, options."""


def _activation(draw: Draw) -> str:
    return draw.one("TANH", "TANH", "RELU6", "RELU_N1_TO_1", "RELU")


def _outer(draw: Draw) -> tuple[int, int, bool, tuple[int, int]]:
    """Batch, steps, whether time comes first, and the dims that those make."""
    batch, steps, first = draw.whole(1, 3), draw.whole(1, 4), draw.chance(0.5)
    return batch, steps, first, (steps, batch) if first else (batch, steps)


def _svdf(draw: Draw) -> Layout:
    batch, depth, units, rank, memory = (draw.whole(1, most) for most in (3, 12, 4, 3, 6))
    filters = units * rank
    bias = ("b", (units,)) if draw.chance(0.7) else None
    slots = [("x", (batch, depth)), ("w", (filters, depth)), ("t", (filters, memory)), bias]
    options = {"rank": rank, "fused_activation_function": draw.one("NONE", "TANH", "RELU6")}
    return "svdf", [*slots, ("c", (batch, filters * memory))], [(batch, units)], options


def _rnn_slots(draw: Draw, batch: int, depth: int, units: int) -> list[Slot]:
    return [("w", (units, depth)), ("w", (units, units)), ("b", (units,)), ("h", (batch, units))]


def _rnn(draw: Draw) -> Layout:
    batch, depth, units = (draw.whole(1, most) for most in (3, 12, 8))
    slots = [("x", (batch, depth)), *_rnn_slots(draw, batch, depth, units)]
    return "rnn", slots, [(batch, units)], {"fused_activation_function": _activation(draw)}


def _sequence_rnn(draw: Draw) -> Layout:
    batch, _, first, outer = _outer(draw)
    depth, units = draw.whole(1, 12), draw.whole(1, 8)
    slots = [("x", (*outer, depth)), *_rnn_slots(draw, batch, depth, units)]
    options = {"time_major": first, "fused_activation_function": _activation(draw)}
    return "unidirectional_sequence_rnn", slots, [(*outer, units)], options


def _both(draw: Draw, outer: tuple[int, int], sizes: list[int], options: dict[str, Any]) -> list[tuple[int, ...]]:
    options["merge_outputs"] = draw.chance(0.5)
    return [(*outer, sum(sizes))] if options["merge_outputs"] else [(*outer, size) for size in sizes]


def _both_ways_rnn(draw: Draw) -> Layout:
    batch, _, first, outer = _outer(draw)
    depth, sizes, linked = draw.whole(1, 8), [draw.whole(1, 6), draw.whole(1, 6)], draw.one(0, 1, 2)
    slots: list[Slot] = [("x", (*outer, depth))]
    for units in sizes:
        slots += _rnn_slots(draw, batch, depth, units)
    slots.append(("x", (*outer, depth)) if linked else None)
    slots += [("w", (units, depth)) if linked == 2 else None for units in sizes]
    options = {"time_major": first, "fused_activation_function": _activation(draw)}
    return "bidirectional_sequence_rnn", slots, _both(draw, outer, sizes, options), options


def _gates(draw: Draw, depth: int, cells: int, outputs: int, *, cifg: bool, projected: bool) -> list[Slot]:
    """Weights, peepholes, biases and projection of one LSTM."""
    peephole: Slot = ("p", (cells,)) if draw.chance(0.3) else None
    weights: list[list[Slot]] = [[("w", (cells, depth))] * 4, [("w", (cells, outputs))] * 4]
    groups: list[list[Slot]] = [*weights, [peephole] * 3, [("b", (cells,))] * 4]
    slots: list[Slot] = [None if cifg and place == 0 else slot for group in groups for place, slot in enumerate(group)]
    bias: Slot = ("b", (outputs,)) if projected and draw.chance(0.5) else None
    return [*slots, ("w", (outputs, cells)) if projected else None, bias]


def _clips(draw: Draw, *, projected: bool) -> dict[str, Any]:
    clip = draw.one(0.0, float(np.float32(draw.rng.uniform(0.1, 2))))
    projection = float(np.float32(draw.rng.uniform(0.1, 1))) if projected and draw.chance(0.5) else 0.0
    return {"fused_activation_function": "TANH", "cell_clip": clip, "proj_clip": projection}


def _lstm(draw: Draw) -> Layout:
    name = draw.one("lstm", "unidirectional_sequence_lstm")
    batch, _, first, outer = _outer(draw)
    depth, cells, (cifg, projected, norm) = draw.whole(1, 8), draw.whole(1, 6), (draw.chance(0.4) for _ in range(3))
    outputs = draw.whole(1, cells) if projected else cells
    shape = (batch,) if name == "lstm" else outer
    slots = [("x", (*shape, depth)), *_gates(draw, depth, cells, outputs, cifg=cifg, projected=projected)]
    slots += [("h", (batch, outputs)), ("c", (batch, cells))]
    slots += [("n", (cells,)) if norm and not (cifg and g == 0) else None for g in range(4)]
    options = _clips(draw, projected=projected)
    options |= {"kernel_type": "FULL"} if name == "lstm" else {"time_major": first, "diagonal_recurrent_tensors": False}
    return name, slots, [(*shape, outputs)], options


def _both_ways_lstm(draw: Draw) -> Layout:
    batch, _, first, outer = _outer(draw)
    depth, linked, (cifg, projected) = draw.whole(1, 6), draw.one(0, 1, 2), (draw.chance(0.4) for _ in range(2))
    cells = [draw.whole(1, 5)] * 2  # the kernel refuses others
    sizes = [draw.whole(1, cells[0]) if projected else cells[0]] * 2
    slots: list[Slot] = [("x", (*outer, depth))]
    for c, o in zip(cells, sizes, strict=True):
        slots += _gates(draw, depth, c, o, cifg=cifg, projected=projected)
    for c, o in zip(cells, sizes, strict=True):
        slots += [("h", (batch, o)), ("c", (batch, c))]
    slots.append(("x", (*outer, depth)) if linked else None)
    for c in cells:
        slots += [("w", (c, depth)) if linked == 2 and not (cifg and g == 0) else None for g in range(4)]
    options = _clips(draw, projected=projected) | {"time_major": first}
    return "bidirectional_sequence_lstm", slots, _both(draw, outer, sizes, options), options


LAYOUTS: Mapping[str, Callable[[Draw], Layout]] = {
    "svdf": _svdf,
    "rnn": _rnn,
    "sequence_rnn": _sequence_rnn,
    "both_ways_rnn": _both_ways_rnn,
    "lstm": _lstm,
    "both_ways_lstm": _both_ways_lstm,
}


def _element(draw: Draw, role: str, storages: Mapping[str, ScalarType], shape: tuple[int, ...]) -> ElementType:
    storage = storages[role]
    if storage.is_float:
        return f32
    reach = {"x": 2, "w": 1 / max(1, shape[-1]) ** 0.5, "h": 1, "c": 4, "n": 2}.get(role, 1)
    scale = float(np.float32(reach / storage.maximum * draw.rng.uniform(0.5, 2)))
    if role == "w" and storages["x"] != f32 and len(shape) == 2 and draw.chance(0.15):
        scales = (scale * draw.rng.uniform(0.5, 2, shape[0])).astype(np.float32)
        return UniformQuantizedPerAxisType.of(storage, 0, scales, 0)
    zero = draw.zero_point(storage) if role in "xhc" or storages["x"] != f32 else 0
    return UniformQuantizedType.of(storage, scale, zero)


def _case(draw: Draw, layout: Layout, storages: Mapping[str, ScalarType], **given: Any) -> Case:
    """The operator on these storage types, and on floats."""
    name, slots, shapes, attributes = layout
    attributes = {**attributes, "asymmetric_quantize_inputs": draw.chance(0.3)}
    values: list[Value | None] = []
    reals: list[Value | None] = []
    for place, slot in enumerate(slots):
        if slot is None:
            values.append(None)
            reals.append(None)
            continue
        role, shape = slot
        element = _element(draw, role, storages, shape)
        value, real = _operand(draw, role, shape, element, f"{role}{place}")
        values.append(value)
        reals.append(real)
    outputs = [argument(s, _element(draw, "y", storages, s), f"y{i}") for i, s in enumerate(shapes)]
    model = _file(name, values, outputs, attributes)
    twin = _twin(name, reals, [Value(v.type.with_element(f32), v.name) for v in outputs], attributes)
    inputs = [v for v in values if v is not None and v.buffer is None and not v.info]
    text = f"{name}({', '.join(map(describe, values))}) -> {', '.join(map(describe, outputs))} {attributes}"
    batches = edge_inputs(inputs, draw.whole(0, 1 << 30))
    if name == "bidirectional_sequence_lstm" and attributes["merge_outputs"] and not attributes["time_major"]:
        given |= {"twin": True, "tolerance": 1}  # which no kernel gets right
    wanted = twin if given.pop("twin", True) else None
    return Case(model, batches, text, integer=False, stateful=True, everywhere=False, twin=wanted, **given)


def _file(name: str, operands: list[Value | None], results: list[Value], options: dict[str, Any], *more: Op) -> bytes:
    inputs = [v for v in operands if v is not None and v.buffer is None and not v.info]
    op = Op(f"tfl.{name}", operands, results, options, info={"version": 1})
    return bytes(write(Module([Function("main", inputs, more[-1].results if more else results, [op, *more])])))


def _twin(name: str, operands: list[Value | None], results: list[Value], options: dict[str, Any]) -> bytes:
    """The float model; outputs of both directions are merged by an operator of its own."""
    if not options.get("merge_outputs"):
        return _file(name, operands, results, options)
    sizes = [(operands[place].type.shape or ())[-1] for place in ((8, 25) if "lstm" in name else (2, 6))]  # type: ignore[union-attr]
    outer = (results[0].type.shape or ())[:2]
    parts = [argument((*outer, size), f32, f"part{i}") for i, size in enumerate(sizes)]
    join = Op(
        "tfl.concatenation", list(parts), results, {"axis": 2, "fused_activation_function": "NONE"}, info={"version": 1}
    )
    return _file(name, operands, parts, {**options, "merge_outputs": False}, join)


def _operand(draw: Draw, role: str, shape: tuple[int, ...], element: ElementType, name: str) -> tuple[Value, Value]:
    """An operand, and the same in float."""
    info = {"is_variable": True} if role in "hc" else {}
    if role in "xhc":
        made = [
            Value(TensorType(shape, e), name, info=info) if info else argument(shape, e, name) for e in (element, f32)
        ]
        return made[0], made[1]
    if element == f32:
        real = draw.rng.normal(0, 0.5, shape).astype(np.float32)
        return const(real, f32, name), const(real, f32, name)
    stored = draw.integers(element.storage, shape)  # type: ignore[union-attr]
    if element.storage == i32:  # type: ignore[union-attr]
        stored = stored >> 1
    value = const(stored, element, name)
    scale, zero = parameters(value.type)
    return value, const(((stored.astype(np.int64) - zero) * scale).astype(np.float32), f32, name)


def _hybrid(name: str) -> Callable[[Draw], Case]:
    def made(draw: Draw) -> Case:
        weights = draw.one(i8, i8, ui8)
        storages = dict.fromkeys("xbhcny", f32) | dict.fromkeys("wpt", weights)
        return _case(draw, LAYOUTS[name](draw), storages, twin=False)

    return made


def _without_kernel(name: str) -> Callable[[Draw], Case]:
    def made(draw: Draw) -> Case:
        x, w = draw.storage(i8, ui8, i16), draw.storage(i8, i8, ui8, i16)
        storages = {"x": x, "w": w, "b": i32, "h": x, "y": draw.storage(x, x, i8, i16)}
        storages |= {"c": draw.storage(i8, x), "p": draw.storage(w, i16), "t": w, "n": i16}
        if draw.chance(0.2):  # float activations with weights that no hybrid kernel takes
            storages |= dict.fromkeys("xbhcny", f32) | {"w": i16, "p": i16, "t": i16}
        return _case(draw, LAYOUTS[name](draw), storages, tolerance=1)

    return made


for kind in LAYOUTS:
    generator(f"hybrid_{kind}")(_hybrid(kind))
    generator(f"float_{kind}")(_without_kernel(kind))
