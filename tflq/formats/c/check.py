"""The self-test of a program: inputs that are drawn alike here and in C, and a checksum of what comes out.

Element i of input n is of the bits of a hash of i and n. A checksum adds up the elements, each times a hash of its
place. Only programs whose evaluation takes a moment have one, and none of which a result may differ.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tflq.analysis.evaluate.registry import Run, array_of, evaluate_function
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, Pool
from tflq.formats.c.graph import Graph
from tflq.formats.c.names import MACRO, NAME, c_type, count, declared, dims_of
from tflq.formats.c.program import Program
from tflq.formats.c.unit import closed, helpers, indented
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value

_DRAWN: Final = {"i1": 1, "i8": 8, "ui8": 8, "i16": 16, "i32": 2, "f32": 8}
"""Element types of inputs that can be drawn, and the bits of a hash that an element is."""
_MOST: Final = 4_000_000
_MOST_ELEMENTS: Final = 400_000
"""Multiplications, and elements of all operators, up to which a program has a test: milliseconds of an evaluation."""
_CALLS: Final = 1000
"""Calls of functions by control flow up to which a program has a test."""
_STEPS: Final = 2


def _hash(count: int, seed: int) -> np.ndarray:
    """32 bits for each index below a count."""
    h = (np.arange(count, dtype=np.uint32) + np.uint32(seed)) * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    h *= np.uint32(2246822519)
    return np.asarray(h ^ (h >> np.uint32(13)))


def drawn(value: Value, seed: int) -> np.ndarray:
    """The elements of an input; integers of 32 bits are small, and floats within 2 of 0."""
    h, storage = _hash(count(value), seed), value.type.storage
    top = (h.view(np.int32) if storage.name in ("i8", "i16", "f32") else h) >> (32 - _DRAWN[storage.name])
    return np.asarray(top / 64 if storage.is_float else top, storage.dtype).reshape(value.type.sizes)


def checksum(arrays: list[np.ndarray]) -> int:
    rows = (array.reshape(-1).astype(np.uint32) * _hash(array.size, at) for at, array in enumerate(arrays))
    return sum(int(row.sum(dtype=np.uint32)) for row in rows) % (1 << 32)


class _Bounded(Run):
    """A run that ends after so many calls of functions, since a loop may have no end."""

    calls = 0

    def call(self, index: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
        self.calls += 1
        if self.calls > _CALLS:
            raise NotImplementedError
        return super().call(index, arrays)


def _elements(op: Op) -> int:
    """The elements that the evaluator has of an operator: of its results, or of its padded input."""
    if not isinstance(op, (Conv2D, Conv3D, DepthwiseConv2D, Pool)):
        return max((count(v) for v in op.results), default=0)
    padded = [dim + sum(op.pad[2 * at : 2 * at + 2]) for at, dim in enumerate(dims_of(op.input)[1:-1])]
    return count(op.result) + math.prod((*dims_of(op.input)[:: len(padded) + 1], *padded))


def expected(program: Program, graph: Graph, module: Module) -> int | None:
    """The checksum of tflq's evaluator, of steps from the first state on; None if it says nothing, or takes long."""
    function = graph.function
    large = program.products > _MOST or sum(map(_elements, program.ops)) > _MOST_ELEMENTS
    can_draw = all(v.type.storage.name in _DRAWN for v in function.inputs)
    can_draw &= all(map(count, [*function.inputs, *function.outputs]))
    if large or not can_draw or program.inexact or any(v.type.storage.is_float for v in function.outputs):
        return None
    run = _Bounded(module)
    run.variables.update({name: value.array for name, (_, value) in program.state.items()})
    outputs: list[np.ndarray] = []
    try:
        for step in range(_STEPS):
            inputs = {v: drawn(v, 97 * step + at) for at, v in enumerate(function.inputs)}
            env = evaluate_function(function, inputs, run)
            outputs += [env[v] if v in env else array_of(v) for v in function.outputs]
    except (NotImplementedError, ArithmeticError, IndexError, ValueError, TypeError):
        return None
    return checksum(outputs)


def main(program: Program, module: Module) -> str:
    """The text of the test of all entries that have one; "" if none has."""
    totals = [(graph, expected(program, graph, module)) for _, graph in program.entries]
    tests = [_test(graph, total, program) for graph, total in totals if total is not None]
    if not tests:
        return ""
    arena = f"static union {{ uint64_t align; uint8_t bytes[{MACRO}_ARENA_BYTES]; }} arena;\n"
    state = f"static {NAME}_state state;\n" if program.state else ""
    calls = " | ".join(f"{graph.symbol}_test()" for graph, total in totals if total is not None)
    head = f"\n#ifdef {MACRO}_MAIN\n#include <stdio.h>\n\n{''.join(helpers(tests))}\n\n{arena}{state}\n"
    return f"{head}{''.join(tests)}int main(void) {{\n  return {calls};\n}}\n#endif\n"


def _test(graph: Graph, total: int, program: Program) -> str:
    """The function that runs an entry on drawn inputs, and compares the checksum of its outputs: 0 if it is equal."""
    inputs, outputs = graph.function.inputs, graph.function.outputs
    tensors = zip(graph.parameters, [*inputs, *outputs], strict=True)
    lines = [f"static {declared(v, name)};" for name, v in tensors]
    lines += [f"{NAME}_init(&state);"] if program.state else []
    steps = ["uint32_t total = 0;", f"for (uint32_t step = 0; step < {_STEPS}U; step++) {{"]
    for at, value in enumerate(inputs):
        each = [f"const uint32_t h = hash(i + 97U * step + {at}U);", f"in{at}[i] = {_element(value)};"]
        steps += closed([f"for (uint32_t i = 0; i < {count(value)}U; i++) {{", *each])
    names = [*graph.parameters, *(["&state"] if program.state else []), "arena.bytes"]
    steps += closed([f"if ({graph.symbol}_run({', '.join(names)}) != 0) {{", "return 2;"])
    for at, value in enumerate(outputs):
        each = [f"total += (uint32_t)out{at}[i] * hash(i + (step * {len(outputs)}U + {at}U));"]
        steps += closed([f"for (uint32_t i = 0; i < {count(value)}U; i++) {{", *each])
    lines += closed(steps)
    lines.append(f'printf("{graph.symbol}: %s\\n", total == {total}U ? "pass" : "fail");')
    lines.append(f"return total == {total}U ? 0 : 1;")
    return f"static int {graph.symbol}_test(void) {{\n{indented(lines)}}}\n\n"


def _element(value: Value) -> str:
    if value.type.storage.is_float:
        return "(float)(int8_t)(h >> 24) / 64.0f"
    return f"({c_type(value)})(h >> {32 - _DRAWN[value.type.storage.name]})"
