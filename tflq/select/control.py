"""Control flow and variables: IF, WHILE and resource variables, which are the same things under other names.

A variable is a resource with its name. Its initial value is written by a function that CALL_ONCE runs, which
`select.variables` makes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i32
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering("tosa.cond_if")
def cond_if(op: Op, k: Kernels) -> Sequence[Value]:
    a = op.attributes
    graphs = {"then_subgraph_index": a["then_graph"], "else_subgraph_index": a["else_graph"]}
    return k.op("tfl.if", [k.value(v) for v in op.operands if v], [v.type for v in op.results], graphs).results


@lowering("tosa.while_loop")
def while_loop(op: Op, k: Kernels) -> Sequence[Value]:
    a = op.attributes
    graphs = {"cond_subgraph_index": a["cond_graph"], "body_subgraph_index": a["body_graph"]}
    return k.op("tfl.while", [k.value(v) for v in op.operands if v], [v.type for v in op.results], graphs).results


@lowering("tosa.variable_read")
def variable_read(op: Op, k: Kernels) -> Value:
    return k.emit("tfl.read_variable", [_handle(op, k)], op.result.type)


@lowering("tosa.variable_write")
def variable_write(op: Op, k: Kernels) -> Sequence[Value]:
    return k.op("tfl.assign_variable", [_handle(op, k), k.value(op.operand(0))], []).results


def _handle(op: Op, k: Kernels) -> Value:
    """The variable's number, in an INT32 tensor, which the kernels take like one of type RESOURCE. That type has no
    numpy form: the interpreter's `get_tensor` crashes on it. Source: kernels/read_variable.cc, assign_variable.cc."""
    type = TensorType((1,), i32)
    return k.emit("tfl.var_handle", [], type, container="", shared_name=op.attributes["name"])
