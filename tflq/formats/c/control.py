"""Control flow: a kernel that calls functions of the module, on memory within its scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tflq.dialects.tosa import movement as move
from tflq.formats.c.loops import Body, result_names
from tflq.formats.c.names import bytes_of, c_type
from tflq.formats.c.unit import Kernel, Scratch

if TYPE_CHECKING:
    from tflq.formats.c.graph import Graph

CONTROL: Final = (move.CondIf, move.WhileLoop)


def controlled(op: move.CondIf | move.WhileLoop, body: Body, called: Callable[[int], Graph]) -> Kernel:
    """The kernel of control flow. called: the function of an index. Refused if it calls itself."""
    inputs = [body.operand(v)[0] for v in op.inputs if v is not None]
    outputs = result_names(op.outputs)
    if isinstance(op, move.CondIf):
        condition = body.operand(op.condition)[0]
        graphs = [called(op.then_graph), called(op.else_graph)]
        then, otherwise = (_call(graph, inputs, outputs) for graph in graphs)
        lines = [f"if ({condition}[0] != 0) {{", then, "} else {", otherwise, "}"]
    else:
        graphs = [called(op.cond_graph), called(op.body_graph)]
        after = [f"t{at}" for at in range(len(outputs))]
        body.scratch += [Scratch(c_type(v), t, bytes_of(v)) for v, t in zip(op.outputs, after, strict=True)]
        body.scratch.append(Scratch("uint8_t", "more", 1))
        sizes = [bytes_of(v) for v in op.outputs]
        lines = [f"memcpy({y}, {x}, {size});" for y, x, size in zip(outputs, inputs, sizes, strict=True)]
        lines += ["for (;;) {", _call(graphs[0], outputs, ["more"]), "if (more[0] == 0) {", "return;", "}"]
        lines.append(_call(graphs[1], outputs, after))
        lines += [f"memcpy({y}, {t}, {size});" for y, t, size in zip(outputs, after, sizes, strict=True)]
        lines.append("}")
    body.scratch.append(Scratch("uint8_t", "arena", max(graph.size for graph in graphs)))
    return body.finished(op, lines, op.outputs, len(body.terms.leaves))


def _call(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    return f"{graph.symbol}({', '.join([*inputs, *outputs, 'arena'])});"
