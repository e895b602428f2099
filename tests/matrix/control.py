"""Random models of several functions: IF, WHILE and STABLEHLO_COMPOSITE on quantized tensors, nested, and shared.

Each function is a random graph. Between a call and the function called parameters may differ, which the interpreter
disregards; arguments may be results, and constants may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs

from matrix.chains import Graph, renamed
from matrix.draw import Case, Draw, describe, generator
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i1, i8, i16, i32, ui8

TARGETS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"mac": "float32"},
    {"target": "kernels"},
    {"target": "rules/npu_example.toml"},
)
_NO_ATTRIBUTES = np.asarray([0, 0, 1, 0, 0, 36, 1], np.uint8)
"""An empty map, as a FlexBuffer."""
_FUSED = {"fused_activation_function": "NONE"}


class Program:
    """The functions of a model in the making; the first is the one that runs."""

    def __init__(self, draw: Draw, storage: ScalarType, batch: int | None) -> None:
        self.draw, self.storage, self.batch = draw, storage, batch
        self.functions: list[Function] = []
        self.text: list[str] = []

    def reserve(self, name: str) -> int:
        """The index of a function that is to be grown."""
        self.functions.append(Function(name, [], [], []))
        return len(self.functions) - 1

    def graph(self, inputs: Sequence[Value]) -> Graph:
        """A graph on arguments; those that are quantized images may be used by its operators."""
        graph = Graph(self.draw, self.storage, self.batch)
        graph.inputs = list(inputs)
        graph.made = [v for v in inputs if _is_image(v, self.storage)]
        return graph

    def finish(self, index: int, graph: Graph, outputs: Sequence[Value]) -> None:
        function = self.functions[index]
        function.inputs, function.outputs, function.ops = graph.inputs, list(outputs), graph.ops
        called = {k: v for op in graph.ops for k, v in op.attributes.items() if k.endswith("index")}
        lines = [
            f"{', '.join(describe(v) for v in op.results)} = {op.name[4:]}({', '.join(map(describe, op.operands))})"
            for op in graph.ops
        ]
        back = [f"argument {graph.inputs.index(v)}" if v in graph.inputs else describe(v) for v in outputs]
        self.text.append(f"{function.name}: {'; '.join(lines)} -> {back} {called}")

    def inner(self, name: str, given: Sequence[Value], wanted: Sequence[Value], depth: int) -> int:
        """A function that takes what a call gives and gives what it wants; its index."""
        draw, index = self.draw, self.reserve(name)
        inputs = [argument(v.type.shape or (), self.near(v), f"{name}.a{i}") for i, v in enumerate(given)]
        graph = self.graph(inputs)
        self.steps(graph, draw.whole(0, 3), depth)
        outputs: list[Value] = []
        for place, value in enumerate(wanted):
            alike = [v for v in inputs if v.type.shape == value.type.shape and _stored(v) == _stored(value)]
            if draw.chance(0.15) and place < len(given) and inputs[place] in alike:
                outputs.append(inputs[place])
            elif draw.chance(0.08) and value.type.is_static and value.type.quantized:
                outputs.append(const(draw.integers(_stored(value), static(value)), self.near(value), "constant"))
            else:
                outputs.append(self.last(graph, value, alike))
        self.finish(index, graph, outputs)
        return index

    def near(self, value: Value) -> Any:
        """The element of a tensor that a call copies: seldom of other parameters."""
        if value.type.quantized and self.draw.chance(0.12):
            return self.draw.quantized(_stored(value), self.draw.near(0.05))
        return value.type.element

    def last(self, graph: Graph, wanted: Value, alike: Sequence[Value]) -> Value:
        """The result of an operator of its own, of a given type."""
        draw, shape = self.draw, wanted.type.shape or ()
        if not wanted.type.quantized:
            return self.counted(graph, alike[0])
        element = self.near(wanted)
        sources = [v for v in graph.made if v.type.shape == shape] or list(alike)
        x, y = draw.one(*sources), draw.one(*sources)
        name = draw.one("quantize", "add", "mul", "maximum", "reshape", "sub")
        if name == "quantize":
            return graph.emit("quantize", [x], shape, element, {}, 2)
        if name == "reshape":
            dims = np.asarray([-1 if d is None else d for d in shape], np.int32)
            return graph.emit("reshape", [x, const(dims, i32, "dims")], shape, element, {"new_shape": dims})
        if name == "maximum":
            return graph.emit(name, [x, y], shape, element, {}, 1)
        options = dict(_FUSED) if name == "mul" else {**_FUSED, "pot_scale_int16": False}
        other = const(draw.integers(self.storage, (shape[-1] or 1,)), graph.element(), "k") if draw.chance(0.4) else y
        return graph.emit(name, [x, other], shape, element, options, 2)

    def counted(self, graph: Graph, x: Value) -> Value:
        """A counter plus 1, or another plain tensor changed."""
        one = const(np.ones(static(x), np.int64), x.type.element, "one")
        return graph.emit("add", [x, one], x.type.shape or (), x.type.element, {**_FUSED, "pot_scale_int16": False})

    def steps(self, graph: Graph, count: int, depth: int) -> None:
        """Operators, and seldom calls."""
        until = len(graph.ops) + count
        while graph.made and len(graph.ops) < until:
            if depth and self.draw.chance(0.3):
                self.call(graph, self.draw.one("if", "while", "composite"), depth - 1)
                continue
            graph.step()
            graph.made = [v for v in graph.made if 1e-6 < v.type.element.scale < 1e4]  # type: ignore[union-attr]

    def call(self, graph: Graph, kind: str, depth: int = 0) -> list[Value]:
        """An operator that runs functions, on tensors of a graph; its results, which may be used again."""
        draw = self.draw
        given = [draw.one(*graph.made[-3:]) for _ in range(draw.one(1, 1, 2))]
        wanted = [self.similar(draw.one(*given)) for _ in range(draw.one(1, 1, 2))]
        if kind == "if":
            condition = self.condition(graph, given[0])
            attributes = {
                "then_subgraph_index": self.inner("then", given, wanted, depth),
                "else_subgraph_index": self.inner("else", given, wanted, depth),
            }
            return self.emit_call(graph, "if", [condition, *given], wanted, attributes)
        if kind == "composite":
            index = self.inner("body", given, wanted, depth)
            attributes = _composite("body", index)
            results = self.emit_call(graph, "stablehlo_composite", given, wanted, attributes)
            if draw.chance(0.35):
                again = [draw.one(v, *(w for w in graph.made if w.type.shape == v.type.shape)) for v in given]
                same = [Value(v.type, f"again{i}") for i, v in enumerate(wanted)]
                results = [*results, *self.emit_call(graph, "stablehlo_composite", again, same, dict(attributes))]
            return results
        return self.emit_loop(graph, given, depth)

    def similar(self, value: Value) -> Value:
        kept = self.draw.chance(0.5)
        return argument(value.type.shape or (), value.type.element if kept else self.draw.quantized(self.storage, 0.1))

    def emit_call(
        self, graph: Graph, name: str, operands: Sequence[Value], wanted: Sequence[Value], attributes: dict[str, Any]
    ) -> list[Value]:
        for i, value in enumerate(wanted):
            value.name = f"c{len(graph.ops)}.{i}"
        results = list(wanted)
        graph.ops.append(Op(f"tfl.{name}", list(operands), results, attributes, info={"version": 1}))
        graph.made += [v for v in results if _is_image(v, self.storage)]
        return results

    def condition(self, graph: Graph, x: Value) -> Value:
        """Whether the greatest of a tensor is above a constant, as quantized comparisons say; or given."""
        draw = self.draw
        if draw.chance(0.3):
            given = argument((), i1, f"flag{len(graph.inputs)}")
            if graph is self.main:
                graph.inputs.append(given)
                return given
        top = graph.emit("reduce_max", [x, const(np.arange(4), i32, "axes")], (), x.type.element, {"keep_dims": False})
        graph.made.remove(top)
        low, high = self.storage.minimum, self.storage.maximum
        middle = draw.rng.integers(low // 2 + high // 2, high, endpoint=True)
        element: Any = x.type.element if draw.chance(0.6) else draw.quantized(self.storage, x.type.element.scale)  # type: ignore[union-attr]
        flag = graph.emit(
            draw.one("less", "greater", "less_equal"),
            [top, const(np.asarray(middle), element, "middle")],
            (),
            i1,
            {},
            2,
        )
        graph.made.remove(flag)
        return flag

    def emit_loop(self, graph: Graph, given: Sequence[Value], depth: int) -> list[Value]:
        """At most some rounds, sometimes fewer, as a comparison of quantized tensors says; a count is carried along."""
        draw = self.draw
        shape = draw.one((), (1,))
        start = const(np.full(shape, draw.one(0, 0, 1)), i32, "start")
        carried = [start, *given]
        if draw.chance(0.3):
            carried.append(const(draw.rng.integers(-9, 9, (2,)), draw.one(i16, i32), "plain"))
        if draw.chance(0.5):
            order = [int(i) for i in draw.rng.permutation(len(carried))]
            carried = [carried[i] for i in order]
        place = carried.index(start)
        condition = self.test("cond", carried, place)
        body = self.body("body", carried, place, depth)
        attributes = {"cond_subgraph_index": condition, "body_subgraph_index": body}
        wanted = [argument(v.type.shape or (), self.near(v)) for v in carried]
        return self.emit_call(graph, "while", carried, wanted, attributes)

    def test(self, name: str, carried: Sequence[Value], place: int) -> int:
        draw, index = self.draw, self.reserve(name)
        inputs = [argument(v.type.shape or (), self.near(v), f"{name}.a{i}") for i, v in enumerate(carried)]
        graph = self.graph(inputs)
        count = inputs[place]
        limit = const(np.full(static(count), draw.whole(0, 4)), i32, "limit")
        flag = graph.emit("less", [count, limit], count.type.shape or (), i1, {}, 1)
        graph.made.remove(flag)
        if graph.made and draw.chance(0.5):
            self.steps(graph, draw.whole(0, 2), 0)
            other = self.condition(graph, graph.made[-1])
            flag = graph.emit("logical_and", [flag, other], count.type.shape or (), i1, {}, 1)
        self.finish(index, graph, [flag])
        return index

    def body(self, name: str, carried: Sequence[Value], place: int, depth: int) -> int:
        index = self.inner(name, carried, carried, depth)
        function = self.functions[index]
        if function.outputs[place] is function.inputs[place]:
            graph = self.graph(function.inputs)
            graph.ops = function.ops
            function.outputs[place] = self.counted(graph, function.inputs[place])
        return index

    main: Graph | None = None

    def start(self) -> Graph:
        """The graph of the first function."""
        draw = self.draw
        shape = (self.batch, draw.whole(1, 4), draw.whole(1, 4), draw.one(1, 2, 4))
        self.reserve("main")
        self.main = graph = self.graph([])
        for _ in range(draw.one(1, 2)):
            graph.input(shape)
        self.steps(graph, draw.whole(0, 2), 0)
        return graph


def _composite(name: str, body: int) -> dict[str, Any]:
    attributes = {"composite_attributes": _NO_ATTRIBUTES, "composite_attributes_format": "FLEXBUFFERS"}
    return {"name": f"tflq.{name}", "decomposition_subgraph_index": body, "version": 1, **attributes}


def _is_image(value: Value, storage: ScalarType) -> bool:
    return value.type.rank == 4 and isinstance(value.type.element, UniformQuantizedType) and _stored(value) == storage


def static(value: Value) -> tuple[int, ...]:
    """The dims of a tensor that are all known."""
    return tuple(d or 0 for d in value.type.shape or ())


def _stored(value: Value) -> ScalarType:
    return value.type.storage


def written(program: Program, signatures: Sequence[Signature] | None = None) -> bytes:
    if program.batch is not None:  # shapes are bound by the names of inputs
        for function in program.functions:
            renamed(program.draw, function)
    return bytes(write(Module(program.functions, None if signatures is None else list(signatures))))


def _case(draw: Draw, kind: str, depth: int) -> Case:
    """Operators, a call, operators; what the call gives is returned, and more."""
    batch = draw.one(1, 1, 2, None)
    program = Program(draw, draw.storage(i8, ui8, i16), batch)
    graph = program.start()
    results = program.call(graph, kind, depth)
    program.steps(graph, draw.whole(0, 2), 0)
    outputs = [v for v in results if draw.chance(0.7)]
    outputs += [graph.ops[-1].results[0]] if graph.ops[-1].results[0] not in outputs else []
    if draw.chance(0.2):
        outputs.append(draw.one(*graph.inputs))
    program.finish(0, graph, outputs)
    model = written(program)
    return _run_case(draw, program, model)


def _run_case(draw: Draw, program: Program, model: bytes) -> Case:
    inputs = program.functions[0].inputs
    case = Case(model, edge_inputs(inputs, draw.whole(0, 1 << 30)), "\n        ".join(program.text))
    case.conversion = dict(draw.one(*TARGETS))
    case.everywhere = "target" not in case.conversion  # kept kernels differ from resolver to resolver
    if program.batch is None:
        larger = [argument((3, *(v.type.shape or ())[1:]) if v.type.rank else (), v.type.element) for v in inputs]
        case.more = [edge_inputs(larger, draw.whole(0, 1 << 30))]
    return case


@generator("control_if")
def branch(draw: Draw) -> Case:
    return _case(draw, "if", 0)


@generator("control_while")
def loop(draw: Draw) -> Case:
    return _case(draw, "while", 0)


@generator("control_composite")
def composite(draw: Draw) -> Case:
    return _case(draw, "composite", 0)


@generator("control_nested")
def nested(draw: Draw) -> Case:
    return _case(draw, draw.one("if", "while", "composite"), 2)


@generator("control_signatures")
def shared(draw: Draw) -> Case:
    """Two signatures whose functions call one; sometimes one of them is called itself."""
    program = Program(draw, draw.storage(i8, ui8, i16), draw.one(1, 1, None))
    graph = program.start()
    given = [draw.one(*graph.made)]
    wanted = [program.similar(given[0])]
    body = program.inner("shared", given, wanted, 1)
    other = program.reserve("other")
    entries: list[Signature] = []
    attributes = _composite("shared", body)
    for index in (0, other):
        if index:
            graph = program.graph([])
            graph.input(given[0].type.shape or ())
            given = [graph.inputs[0]]
            wanted = [Value(TensorType(v.type.shape, program.near(v))) for v in wanted]
        results = program.emit_call(graph, "stablehlo_composite", given, wanted, dict(attributes))
        program.steps(graph, draw.whole(0, 2), 0)
        outputs = [*results, *([graph.ops[-1].results[0]] if graph.ops[-1].results[0] not in results else [])]
        program.finish(index, graph, outputs)
        entries.append(signature(program.functions[index], index))
    if draw.chance(0.3):
        entries.append(signature(program.functions[body], body))
    model = written(program, entries)
    return _run_case(draw, program, model)


def signature(function: Function, index: int) -> Signature:
    inputs: list[tuple[str | None, Value]] = [(f"in{i}", v) for i, v in enumerate(function.inputs)]
    outputs: list[tuple[str | None, Value]] = [(f"out{i}", v) for i, v in enumerate(function.outputs)]
    return Signature(f"entry{index}", index, inputs, outputs)
