"""Random models with resource variables of quantized tensors: set by CALL_ONCE, read, changed and kept from run to run.

Integers are kept as they are, whatever parameters they are read and written with. Branches and loops read and write
them, too, and two signatures share them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from support.harness import argument, const, edge_inputs

from matrix.chains import Graph
from matrix.control import TARGETS, Program, signature, static, written
from matrix.draw import Case, Draw, generator
from tflq.ir.module import Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, resource, ui8


class State(Program):
    """A program with variables; each is of one shape, and is read and written under its parameters, or others."""

    def __init__(self, draw: Draw, storage: ScalarType) -> None:
        super().__init__(draw, storage, 1)
        self.held: list[Value] = []
        self.words: list[tuple[str, str]] = []

    def declare(self, like: Value) -> None:
        self.held.append(self.similar(like))
        self.words.append((self.draw.one("", "", "here"), f"state{len(self.words)}"))

    def handle(self, graph: Graph, place: int) -> Value:
        shape = (None, (), (1,))[len(graph.ops) % 3]
        result = Value(TensorType(shape, resource), f"handle{len(graph.ops)}")
        container, name = self.words[place]
        graph.ops.append(_op("var_handle", [], [result], container=container, shared_name=name))
        return result

    def begin(self, graph: Graph) -> None:
        """CALL_ONCE of a function that gives each variable a value; without it, nothing can be read first."""
        index = self.reserve("start")
        inner = self.graph([])
        for place, like in enumerate(self.held):
            start = const(self.draw.integers(self.storage, static(like)), self.near(like), "start")
            handle = self.handle(inner, place)
            if self.draw.chance(0.2):
                start = inner.emit("quantize", [start], like.type.shape or (), self.near(like), {}, 2)
            inner.ops.append(_op("assign_variable", [handle, start], []))
        self.finish(index, inner, [])
        graph.ops.append(_op("call_once", [], [], init_subgraph_index=index))

    def touch(self, graph: Graph, place: int, handle: Value | None = None) -> None:
        """Reads a variable, computes, and writes it."""
        draw, like = self.draw, self.held[place]
        shape = like.type.shape or ()
        handle = handle or self.handle(graph, place)
        read = argument(shape, self.near(like), f"read{len(graph.ops)}")
        graph.ops.append(_op("read_variable", [handle], [read]))
        graph.made.append(read)
        self.steps(graph, draw.whole(0, 2), 0)
        alike = [v for v in graph.made if v.type.shape == shape]
        if draw.chance(0.8):
            new = draw.one(*alike) if draw.chance(0.3) else self.last(graph, like, alike)
            again = handle if draw.chance(0.5) else self.handle(graph, place)
            graph.ops.append(_op("assign_variable", [again, new], []))


def _op(name: str, operands: list[Value | None], results: list[Value], **attributes: Any) -> Op:
    return Op(f"tfl.{name}", operands, results, attributes, info={"version": 1})


def _started(draw: Draw) -> tuple[State, Graph]:
    program = State(draw, draw.storage(i8, ui8, i16))
    graph = program.start()
    for _ in range(draw.one(1, 1, 2)):
        program.declare(draw.one(*graph.made))
    once = len(graph.ops)
    program.begin(graph)
    graph.ops.insert(0, graph.ops.pop(once))
    return program, graph


def _finished(draw: Draw, program: State, graph: Graph, signatures: list[Signature] | None = None) -> Case:
    results = [v for op in graph.ops for v in op.results if v.type.quantized]
    outputs = list(dict.fromkeys([draw.one(*results), results[-1]]))
    program.finish(0, graph, outputs)
    if signatures is not None:
        signatures.insert(0, signature(program.functions[0], 0))
    rng = np.random.default_rng(draw.whole(0, 1 << 30))
    batches = [*edge_inputs(graph.inputs, int(rng.integers(1 << 30))), *edge_inputs(graph.inputs, 1)]
    case = Case(written(program, signatures), batches, "\n        ".join(program.text))
    case.stateful = True
    case.conversion = dict(draw.one(*TARGETS))
    case.everywhere = "target" not in case.conversion
    return case


@generator("variables")
def variables(draw: Draw) -> Case:
    program, graph = _started(draw)
    for _ in range(draw.whole(1, 3)):
        program.touch(graph, draw.whole(0, len(program.held) - 1))
    return _finished(draw, program, graph)


@generator("variables_inside")
def variables_inside(draw: Draw) -> Case:
    """Branches and bodies touch variables, by handles of their own."""
    program, graph = _started(draw)
    kind = draw.one("if", "while", "composite")
    functions = len(program.functions)
    program.call(graph, kind)
    for index in range(functions, len(program.functions)):
        function = program.functions[index]
        if function.name != "cond":
            inner = program.graph(function.inputs)
            inner.made += [v for op in function.ops for v in op.results if v.type.rank == 4]
            inner.ops = function.ops
            program.touch(inner, draw.whole(0, len(program.held) - 1))
    program.touch(graph, 0)
    return _finished(draw, program, graph)


@generator("variables_shared")
def variables_shared(draw: Draw) -> Case:
    """A second signature reads what the first one writes; it sets it itself where it runs alone."""
    program, graph = _started(draw)
    program.touch(graph, 0)
    index = program.reserve("other")
    other = program.graph([])
    other.input(program.held[0].type.shape or ())
    other.ops.append(_op("call_once", [], [], init_subgraph_index=graph.ops[0].attributes["init_subgraph_index"]))
    program.touch(other, 0)
    program.finish(index, other, [v for op in other.ops for v in op.results if v.type.quantized][:2])
    return _finished(draw, program, graph, [signature(program.functions[index], index)])
