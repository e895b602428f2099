"""Several operators: shared tensors, outputs that are used inside, odd names, unknown batches, signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs

from matrix.draw import Case, Draw, describe, generator, ints, model_of
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i16, i32, i64, ui8

_FUSED = "fused_activation_function"


def _dims(x: Value) -> tuple[int | None, int, int, int]:
    """The dims of an NHWC tensor; all but the batch are known."""
    n, h, w, c = x.type.shape or ()
    return n, h or 0, w or 0, c or 0


class Graph:
    """Grows a random graph of NHWC tensors; every tensor made so far may be used again."""

    def __init__(self, draw: Draw, storage: ScalarType, batch: int | None) -> None:
        self.draw, self.storage, self.batch = draw, storage, batch
        self.ops: list[Op] = []
        self.inputs: list[Value] = []
        self.made: list[Value] = []

    def element(self, scale: float | None = None) -> UniformQuantizedType:
        return self.draw.quantized(self.storage, self.draw.near(0.05) if scale is None else scale)

    def emit(
        self,
        name: str,
        operands: list[Value | None],
        shape: tuple[int | None, ...],
        element: object,
        options: dict[str, Any],
        version: int = 1,
    ) -> Value:
        result = argument(shape, element, f"t{len(self.ops)}")  # type: ignore[arg-type]
        self.ops.append(Op("tfl." + name, operands, [result], options, info={"version": version}))
        self.made.append(result)
        return result

    def input(self, shape: tuple[int | None, ...]) -> Value:
        value = argument(shape, self.element(), f"x{len(self.inputs)}")
        self.inputs.append(value)
        self.made.append(value)
        return value

    def step(self) -> None:
        x = self.draw.one(*self.made[-3:])
        if x.type.rank != 4:
            return
        getattr(
            self,
            "_"
            + self.draw.one(
                "conv", "depthwise", "binary", "activation", "pool", "concat", "move", "requantize", "constant", "split"
            ),
        )(x)

    def _conv(self, x: Value, depthwise: bool = False) -> None:
        draw, (n, h, w, c) = self.draw, _dims(x)
        out = c if depthwise else draw.one(2, 4, 5)
        k = draw.one(1, 2, 3)
        stored = ui8 if self.storage == ui8 else i8
        if stored == ui8:
            kind: object = draw.quantized(ui8, draw.scale(-8, -5))
        else:
            kind = UniformQuantizedPerAxisType.of(i8, 3 if depthwise else 0, np.exp2(draw.rng.uniform(-8, -5, out)), 0)
        weights = const(draw.integers(stored, (1, k, k, out) if depthwise else (out, k, k, c)), kind, "w")  # type: ignore[arg-type]
        wide = self.storage == i16
        bias = const(draw.rng.integers(-4000, 4000, out), i64 if wide else i32, "bias")
        scales = np.float32(x.type.element.scale) * np.asarray(getattr(kind, "scales", getattr(kind, "scale", None)))  # type: ignore[union-attr]
        typed = (
            UniformQuantizedPerAxisType.of(i64 if wide else i32, 0, scales, 0)
            if scales.ndim
            else UniformQuantizedType.of(i32, float(scales))
        )
        bias = const(bias.array, typed, "bias")
        options = {
            "padding": "SAME",
            "stride_h": 1,
            "stride_w": 1,
            "dilation_h_factor": 1,
            "dilation_w_factor": 1,
            _FUSED: draw.activation(),
        }
        if depthwise:
            options["depth_multiplier"] = 1
        scale = (
            float(np.median(scales)) * 64 * 60 * k * (1 if depthwise else c**0.5) / (1 if self.storage != i16 else 4)
        )
        self.emit(
            "depthwise_conv_2d" if depthwise else "conv_2d",
            [x, weights, bias],
            (n, h, w, out),
            self.element(draw.near(scale)),
            options,
            3,
        )

    def _depthwise(self, x: Value) -> None:
        self._conv(x, depthwise=True)

    def _binary(self, x: Value) -> None:
        draw, name = self.draw, self.draw.one("add", "sub", "mul")
        alike = [v for v in self.made if v.type.shape == x.type.shape]
        y = draw.one(*alike)
        options: dict[str, Any] = (
            {_FUSED: draw.activation()} if name == "mul" else {_FUSED: draw.activation(), "pot_scale_int16": False}
        )
        a, b = x.type.element.scale, y.type.element.scale  # type: ignore[union-attr]
        scale = a * b * 64 if name == "mul" else max(a, b) * 1.5
        self.emit(name, [x, y], x.type.shape or (), self.element(draw.near(scale)), options, 2)

    def _activation(self, x: Value) -> None:
        name = self.draw.one("relu", "relu6", "logistic", "tanh", "leaky_relu", "softmax", "hard_swish")
        if name == "hard_swish" and self.storage == i16:
            name = "logistic"
        options = {"leaky_relu": {"alpha": 0.25}, "softmax": {"beta": 1.0}}.get(name, {})
        fixed = {
            "logistic": {i8: (256, -128), ui8: (256, 0), i16: (32768, 0)},
            "tanh": {i8: (128, 0), ui8: (128, 128), i16: (32768, 0)},
            "softmax": {i8: (256, -128), ui8: (256, 0), i16: (32768, 0)},
        }.get(name)
        y = (
            UniformQuantizedType.of(self.storage, 1 / fixed[self.storage][0], fixed[self.storage][1])
            if fixed
            else x.type.element
        )
        self.emit(name, [x], x.type.shape or (), y, options, {"softmax": 3, "logistic": 3, "tanh": 3}.get(name, 1))

    def _pool(self, x: Value) -> None:
        options = {
            "padding": "SAME",
            "stride_h": 1,
            "stride_w": 1,
            "filter_height": 2,
            "filter_width": 2,
            _FUSED: "NONE",
        }
        name = self.draw.one("average_pool_2d", "max_pool_2d")
        self.emit(name, [x], x.type.shape or (), x.type.element, options, 3)

    def _concat(self, x: Value) -> None:
        shape = x.type.shape or ()
        alike = [
            v for v in self.made if v.type.shape == shape and (self.storage == ui8 or v.type.element == x.type.element)
        ]
        parts = [self.draw.one(*alike) for _ in range(self.draw.whole(1, 2))]
        total = (*shape[:3], (shape[3] or 0) * (len(parts) + 1))
        self.emit("concatenation", [x, *parts], total, x.type.element, {"axis": 3, _FUSED: "NONE"}, 2)

    def _move(self, x: Value) -> None:
        n, h, w, c = _dims(x)
        name = self.draw.one("transpose", "slice", "pad", "reshape")
        if name == "transpose":
            self.emit(name, [x, ints(0, 2, 1, 3)], (n, w, h, c), x.type.element, {}, 2)
        elif name == "slice":
            self.emit(name, [x, ints(0, 0, 0, 0), ints(-1, -1, -1, 1)], (n, h, w, 1), x.type.element, {}, 2)
        elif name == "pad":
            pairs = const(np.asarray([[0, 0], [0, 1], [1, 0], [0, 0]], np.int32), i32, "pads")
            self.emit(name, [x, pairs], (n, h + 1, w + 1, c), x.type.element, {}, 2)
        else:
            shape = ints(-1, w, h, c)
            self.emit(name, [x, shape], (n, w, h, c), x.type.element, {"new_shape": shape.array})

    def _split(self, x: Value) -> None:
        """Halves of which one may be used by nobody."""
        n, h, w, c = _dims(x)
        if c % 2:
            return
        halves = [argument((n, h, w, c // 2), x.type.element, f"t{len(self.ops)}.{i}") for i in range(2)]
        axis = const(np.asarray(self.draw.one(3, -1), np.int32), i32, "axis")
        self.ops.append(Op("tfl.split", [axis, x], halves, {"num_splits": 2}, info={"version": 2}))
        self.made.extend(halves)

    def _requantize(self, x: Value) -> None:
        y = self.element(self.draw.near(x.type.element.scale))  # type: ignore[union-attr]
        self.emit("quantize", [x], x.type.shape or (), y, {}, 2)

    def _constant(self, x: Value) -> None:
        c = _dims(x)[3]
        other = const(self.draw.integers(self.storage, (c,)), self.element(), "k")
        name = self.draw.one("add", "mul")
        options: dict[str, Any] = {_FUSED: "NONE"} if name == "mul" else {_FUSED: "NONE", "pot_scale_int16": False}
        a, b = x.type.element.scale, other.type.element.scale  # type: ignore[union-attr]
        self.emit(
            name,
            [x, other],
            x.type.shape or (),
            self.element(a * b * 64 if name == "mul" else max(a, b) * 1.5),
            options,
            2,
        )


def renamed(draw: Draw, function: Function) -> None:
    """Sometimes names that are missing or not unique."""
    kind = draw.one("own", "own", "empty", "same", "some")
    for value in function.values():
        if kind == "empty" or (kind == "some" and draw.chance(0.4)):
            value.name = ""
        elif kind == "same":
            value.name = "t"


def _outputs(draw: Draw, graph: Graph) -> list[Value]:
    """The last tensor, with others: used inside, inputs themselves, one twice, a constant."""
    results = [result for op in graph.ops for result in op.results]
    outputs = [results[-1]]
    if draw.chance(0.4):
        outputs.append(draw.one(*results))
    if draw.chance(0.15):
        outputs.append(draw.one(*graph.inputs))
    if draw.chance(0.15):
        outputs.append(outputs[0])
    if draw.chance(0.1):
        outputs.append(const(draw.integers(graph.storage, (2, 3)), graph.element(), "constant"))
    return outputs if draw.chance(0.5) else [outputs[i] for i in draw.rng.permutation(len(outputs))]


def _grown(draw: Draw, batch: int | None) -> Graph:
    graph = Graph(draw, draw.storage(), batch)
    shape = (batch, draw.whole(1, 6), draw.whole(1, 6), draw.one(1, 2, 4))
    for _ in range(draw.one(1, 1, 2)):
        graph.input(shape)
    steps = draw.whole(2, 6)
    while len(graph.ops) < steps:
        graph.step()
    return graph


def _text(graph: Graph, outputs: list[Value]) -> str:
    names = {v: str(i) for i, v in enumerate(graph.made)}
    lines = []
    for op in graph.ops:
        operands = ", ".join(names[v] if v in names else describe(v) for v in op.operands)
        lines.append(f"{'/'.join(names[v] for v in op.results)}={op.name[4:]}({operands}){describe(op.result)}")
    return "; ".join([*lines, f"-> {[names.get(v, 'constant') for v in outputs]}"])


@generator("chain")
def chain(draw: Draw) -> Case:
    batch = draw.one(1, 1, 2, None)
    graph = _grown(draw, batch)
    outputs = _outputs(draw, graph)
    function = Function("main", graph.inputs, outputs, graph.ops)
    text = _text(graph, outputs)
    renamed(draw, function)
    model = bytes(write(Module([function])))
    case = Case(model, edge_inputs(graph.inputs, draw.whole(0, 1 << 30)), text, conversion=draw.mac())
    if batch is None:
        larger = [argument((3, *(v.type.shape or ())[1:]), v.type.element) for v in graph.inputs]
        case.more = [edge_inputs(larger, draw.whole(0, 1 << 30))]
    return case


@generator("flatten")
def flatten(draw: Draw) -> Case:
    """SHAPE, STRIDED_SLICE, PACK and RESHAPE before FULLY_CONNECTED, as converters flatten an open batch."""
    graph = Graph(draw, draw.storage(), None)
    x = graph.input((None, draw.whole(1, 4), draw.whole(1, 4), draw.one(1, 2, 3)))
    _, h, w, c = _dims(x)
    size = graph.emit("shape", [x], (4,), i32, {"out_type": "INT32"})
    masks = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis")} | {"shrink_axis_mask": 1}
    batch = graph.emit("strided_slice", [size, ints(0), ints(1), ints(1)], (), i32, masks)
    count = const(np.asarray(draw.one(-1, h * w * c), np.int32), i32, "count")
    shape = graph.emit("pack", [batch, count], (2,), i32, {"values_count": 2, "axis": 0})
    flat = graph.emit(
        "reshape",
        [x, shape],
        (None, draw.one(None, h * w * c)),
        x.type.element,
        {"new_shape": np.asarray([], np.int32)},
    )
    stored = ui8 if graph.storage == ui8 else i8
    weights = const(draw.integers(stored, (3, h * w * c)), UniformQuantizedType.of(stored, 0.01), "w")
    y = graph.element(draw.near(x.type.element.scale * 0.4))  # type: ignore[union-attr]
    options = {_FUSED: draw.activation(), "keep_num_dims": False, "weights_format": "DEFAULT"}
    graph.emit("fully_connected", [flat, weights, None], (None, 3), y, options)
    outputs = [graph.ops[-1].result]
    case = Case(
        model_of(graph.inputs, outputs, graph.ops),
        edge_inputs(graph.inputs, draw.whole(0, 1 << 30)),
        _text(graph, outputs),
    )
    case.more = [edge_inputs([argument((3, h, w, c), x.type.element)])]
    return case


@generator("float_edges")
def float_edges(draw: Draw) -> Case:
    """QUANTIZE, a few operators, DEQUANTIZE, as converters of trained models write them; some with float inside."""
    graph = Graph(draw, draw.storage(), 1)
    x = argument((1, draw.whole(1, 6), draw.whole(1, 6), draw.one(1, 2, 4)), f32, "x")
    graph.emit("quantize", [x], x.type.shape or (), graph.element(), {}, 2)
    while len(graph.ops) < 4:
        graph.step()
    inner = graph.ops[-1].result
    inside = draw.chance(0.4)
    if inside:
        real = graph.emit("dequantize", [inner], inner.type.shape or (), f32, {}, 3)
        real = graph.emit(draw.one("exp", "neg", "floor"), [real], real.type.shape or (), f32, {}, 1)
        inner = graph.emit("quantize", [real], real.type.shape or (), graph.element(), {}, 2)
    y = graph.emit("dequantize", [inner], inner.type.shape or (), f32, {}, 3)
    outputs = [y, *([draw.one(*graph.made)] if draw.chance(0.3) else [])]
    return Case(
        model_of([x], outputs, graph.ops),
        edge_inputs([x], draw.whole(0, 1 << 30)),
        _text(graph, outputs),
        integer=False,
        everywhere=not inside,  # float operators of their own differ from kernel to kernel
        conversion=draw.mac(),
    )


@generator("signatures")
def signatures(draw: Draw) -> Case:
    """Two entry points to two functions; each is run."""
    functions, entries = [], []
    for index in range(2):
        graph = _grown(draw, 1)
        outputs = [op.result for op in graph.ops[-2:]]
        functions.append(Function(f"f{index}", graph.inputs, outputs, graph.ops))
        inputs: list[tuple[str | None, Value]] = [(f"in{i}", v) for i, v in enumerate(graph.inputs)]
        results: list[tuple[str | None, Value]] = [(f"out{i}", v) for i, v in enumerate(outputs)]
        entries.append(Signature(f"entry{index}", index, inputs, results))
    model = bytes(write(Module(functions, entries)))
    return Case(
        model, edge_inputs(functions[0].inputs, draw.whole(0, 1 << 30)), "two signatures", conversion=draw.mac()
    )
