"""Whole models: layers and computed sizes in a row, several inputs, functions, variables and signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from matrix.draw import Draw
from support.harness import const

from resizing.computed import COMPUTED
from resizing.heads import HEADS
from resizing.layers import LAYERS, activation
from resizing.sketch import NONE, Sketch
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i1, i8, i16, i32, resource, ui8
from tflq.transforms.shape_inference import Inference

Sizes = tuple[tuple[int, ...], ...]
"""A shape for each input."""


@dataclass
class Drawn:
    """A model, what its inputs are resized to, and what it is made of. `resizes`: by subgraph of a signature."""

    model: bytes
    resizes: dict[int, list[Sizes]]
    text: str
    parts: list[str] = field(default_factory=list)


def drawn(seed: int, number: int) -> Drawn:
    draw = Draw((seed, number))
    functions: list[Function] = [Function("main", [], [], [])]
    storage = draw.one(i8, i8, i8, ui8, i16)
    openness = draw.one("closed", "closed", "batch", "batch", "image")
    entries = draw.one(1, 1, 1, 1, 1, 1, 2)
    signatures, resizes, parts = [], {}, []
    shared = _shared_body(functions, draw, storage) if entries > 1 and draw.chance(0.5) else None
    stateful = draw.chance(0.12)
    for place in range(entries):
        g = Sketch(draw, storage, functions)
        index = 0
        if place:
            functions.append(Function(f"entry{place}", [], [], []))
            index = len(functions) - 1
        parts += _graph(g, openness, stateful, shared)
        functions[index].inputs, functions[index].ops = g.inputs, g.ops
        functions[index].outputs = _outputs(g)
        names = [(f"in{i}", v) for i, v in enumerate(g.inputs)]
        results = [(f"out{i}", v) for i, v in enumerate(functions[index].outputs)]
        signatures.append(Signature(f"serve{place}", index, names, results))  # type: ignore[arg-type]
        resizes[index] = _resizes(draw, g)
    module = Module(functions, signatures if entries > 1 or draw.chance(0.5) else None)
    _state(module)
    text = f"{storage} {openness}: {' '.join(parts)}"
    return Drawn(bytes(write(module)), resizes, text, parts)


def _graph(g: Sketch, openness: str, stateful: bool, shared: tuple[int, int] | None) -> list[str]:
    """Inputs, a row of layers, and a head. Steps that do not fit are left out."""
    draw = g.draw
    sizes = (draw.one(1, 1, 1, 2), draw.whole(3, 9), draw.whole(3, 9), draw.one(1, 2, 4))
    opened = {"closed": (), "batch": (0,), "image": draw.one((0, 1, 2), (0, 1, 2), (0, 1), (1, 2))}[openness]
    signature = tuple(None if i in opened else d for i, d in enumerate(sizes))
    if draw.chance(0.8):
        sizes = tuple(1 if i in opened else d for i, d in enumerate(sizes))  # type: ignore[assignment]
    x = g.input(signature, sizes)
    parts: list[str] = []
    if stateful:
        x = _variable(g, x)
        parts.append("variable")
    if draw.chance(0.3):
        other = g.input(signature, sizes)
        x = g.emit("add", [x, other], g.element(0.1), **NONE, pot_scale_int16=False, version=2)
        parts.append("second")
    elif draw.chance(0.15):
        vector = g.input((signature[0], sizes[3]), (sizes[0], sizes[3]))
        deep = g.emit("reshape", [vector, g.ints(-1, 1, 1, sizes[3])], vector.type.element, new_shape=None)
        x = g.emit("mul", [x, deep], g.element(0.1), **NONE, version=2)
        parts.append("vector")
    steps = [draw.one(*COMPUTED) if draw.chance(0.55) else draw.one(*LAYERS) for _ in range(draw.whole(1, 4))]
    if shared is not None:
        x = _loop(g, x, shared)
        parts.append("shared")
    elif draw.chance(0.12):
        name = draw.one("loop", "branches")
        x = _loop(g, x, None) if name == "loop" else _branches(g, x)
        parts.append(name)
    for step in (*steps, draw.one(*HEADS)):
        before = len(g.ops)
        made = _step(g, x, step)
        if made is None:
            g.drop(before)
            continue
        parts.append(f"{step.__module__.split('.')[-1]}.{step.__name__}")
        x = made
    if x in g.inputs:
        activation(g, x)
    return parts


def _step(g: Sketch, x: Value, step: Callable[[Sketch, Value], Value]) -> Value | None:
    """What it makes of x; None if it does not fit, or is empty or large."""
    try:
        made = step(g, x)
        sizes = g.shape(made)
    except ValueError:
        return None
    return None if 0 in sizes or max(sizes) > 400 else made


def _outputs(g: Sketch) -> list[Value]:
    """What nothing reads, of the last operators, and seldom what is used."""
    read = {v for op in g.ops for v in op.operands}
    ends = [v for op in g.ops for v in op.results if v not in read and v.type.storage != resource]
    if g.draw.chance(0.15):
        ends += [
            v for v in [g.draw.one(*(v for op in g.ops for v in op.results))] if v.type.quantized and v not in ends
        ]
    return ends


def _shared_body(functions: list[Function], draw: Draw, storage: object) -> tuple[int, int]:
    """A loop's condition and body, of any shapes; their indices."""
    g = Sketch(draw, storage, functions)  # type: ignore[arg-type]
    element = g.element()
    return _functions(g, element)


def _functions(g: Sketch, element: object) -> tuple[int, int]:
    """i < limit, and (i + 1, limit, f(x))."""

    def arguments(name: str) -> list[Value]:
        numbers = [Value(TensorType((), i32), f"{name}.{word}") for word in ("i", "limit")]
        return [*numbers, Value(TensorType(None, element), f"{name}.x")]  # type: ignore[arg-type]

    one, two = arguments("cond"), arguments("body")
    short = Value(TensorType((), i1), "short")
    condition = Function("cond", one, [short], [Op("tfl.less", [*one[:2]], [short], {}, info={"version": 1})])
    more, done = Value(TensorType((), i32), "more"), Value(TensorType(None, element), "done")  # type: ignore[arg-type]
    half = Value(TensorType(None, element), "half")  # type: ignore[arg-type]
    step = const(np.asarray(1), i32, "step")
    value = const(np.asarray(3), element, "k")  # type: ignore[arg-type]
    options = {**NONE, "pot_scale_int16": False}
    ops = [
        Op("tfl.add", [two[0], step], [more], dict(options), info={"version": 1}),
        Op("tfl.relu", [two[2]], [half], {}, info={"version": 2}),
        Op("tfl.add", [half, value], [done], dict(options), info={"version": 2}),
    ]
    g.functions += [condition, Function("body", two, [more, two[1], done], ops)]
    return len(g.functions) - 2, len(g.functions) - 1


def _loop(g: Sketch, x: Value, shared: tuple[int, int] | None) -> Value:
    """WHILE as many times as there are rows."""
    if shared is None:
        cond, body = _functions(g, x.type.element)
    else:
        cond, body = shared
        element = g.functions[body].inputs[2].type.element
        x = x if x.type.element == element else g.emit("quantize", [x], element, version=2)
    limit = g.draw.one(g.dim(x, 0), g.number(2))
    types = [i32, i32, x.type.element]
    loop = g.op("while", [g.number(0), limit, x], types, cond_subgraph_index=cond, body_subgraph_index=body)
    return loop.results[2]


def _branches(g: Sketch, x: Value) -> Value:
    """IF there is more than one row."""
    several = g.emit("greater", [g.dim(x, 0), g.number(1)], i1)
    places = []
    for name in ("relu", "neg"):
        a, b = (Value(TensorType(None, x.type.element), f"{name}.{word}") for word in "ab")
        kind = "relu" if name == "relu" else "quantize"
        op = Op(f"tfl.{kind}", [a], [b], {}, info={"version": 2})
        g.functions.append(Function(name, [a], [b], [op]))
        places.append(len(g.functions) - 1)
    then, other = places
    return g.emit("if", [several, x], x.type.element, then_subgraph_index=then, else_subgraph_index=other)


def _variable(g: Sketch, x: Value) -> Value:
    """x and a variable of one row, which keeps what was added before."""
    channels, element = g.shape(x)[3], x.type.element
    rng = np.random.default_rng(3)
    start = const(rng.integers(-50, 50, (1, 1, 1, channels)) + (100 if g.storage == ui8 else 0), element, "start")

    def handle(name: str) -> Value:
        return Value(TensorType(g.draw.one((), (1,)), resource), name)

    inside, outside = handle("inside"), handle("outside")
    word = {"container": "", "shared_name": "state"}
    ops = [
        Op("tfl.var_handle", [], [inside], dict(word), info={"version": 1}),
        Op("tfl.assign_variable", [inside, start], [], {}, info={"version": 1}),
    ]
    g.functions.append(Function("start", [], [], ops))
    g.op("call_once", [], [], init_subgraph_index=len(g.functions) - 1)
    g.ops.append(Op("tfl.var_handle", [], [outside], dict(word), info={"version": 1}))
    read = Value(TensorType((1, 1, 1, channels), element), "read")
    g.ops.append(Op("tfl.read_variable", [outside], [read], {}, info={"version": 1}))
    total = g.emit("add", [x, read], element, **NONE, pot_scale_int16=False, version=2)
    least = g.emit("reduce_max", [total, g.ints(0, 1, 2)], element, keep_dims=True, version=2)
    kept = g.emit("reshape", [least, g.ints(1, 1, 1, channels)], element, new_shape=None)
    g.ops.append(Op("tfl.assign_variable", [outside, kept], [], {}, info={"version": 1}))
    return total


def _resizes(draw: Draw, g: Sketch) -> list[Sizes]:
    """As stated; every batch of 1, 2 and 3; other heights and widths where the signatures leave them open; each input
    alone."""
    sizes = [g.sizes[v] for v in g.inputs]
    found: list[Sizes] = [tuple(sizes)]
    found += [tuple((n, *s[1:]) for s in sizes) for n in (1, 2, 3)]
    for n in (1, 1, 2):
        new = {1: draw.whole(2, 12), 2: draw.whole(2, 12)}
        found.append(tuple(_opened(v, s, {0: n, **new}) for v, s in zip(g.inputs, sizes, strict=True)))
    if len(sizes) > 1:
        found += [tuple((3, *s[1:]) if i == j else s for j, s in enumerate(sizes)) for i in range(len(sizes))]
    return list(dict.fromkeys(found))


def _opened(value: Value, sizes: tuple[int, ...], new: dict[int, int]) -> tuple[int, ...]:
    pairs = enumerate(zip(value.type.shape or (), sizes, strict=True))
    return tuple(new[i] if i == 0 or (d is None and i in new) else s for i, (d, s) in pairs)


def _state(module: Module) -> None:
    """Gives every tensor the shapes that a converter states of it: with -1 for what an open input leaves open."""
    inputs = [v for f in module.functions for v in f.inputs]
    entries = [v for v in inputs if "shape" in v.info]
    stored = Inference(module, {v: tuple(v.info["shape"]) for v in entries}).shapes
    for value, shape in Inference(module, {}).shapes.items():
        if value.is_constant or value in entries or value.type.storage == resource:
            continue
        whole = stored.get(value)
        value.type = TensorType(shape if shape is not None else whole, value.type.element)
        if whole is not None and None not in whole and None in (value.type.shape or ()):
            value.info = {**value.info, "shape": whole}
