"""Control flow: IF and WHILE."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.control import If, While
from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.ir.core import Value
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(CondIf)
def cond_if(op: CondIf, k: Kernels) -> Sequence[Value]:
    graphs = {"then_subgraph_index": op.then_graph, "else_subgraph_index": op.else_graph}
    return k.op(If, [k.value(v) for v in op.operands if v], [v.type for v in op.results], graphs).results


@lowering(WhileLoop)
def while_loop(op: WhileLoop, k: Kernels) -> Sequence[Value]:
    graphs = {"cond_subgraph_index": op.cond_graph, "body_subgraph_index": op.body_graph}
    return k.op(While, [k.value(v) for v in op.operands if v], [v.type for v in op.results], graphs).results
