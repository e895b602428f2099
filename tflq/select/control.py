"""Control flow and variables: IF, WHILE and resource variables, which are the same things under other names.

A variable is a resource with its name. Its initial value is written by a function that CALL_ONCE runs, which
`select.variables` makes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.control import If, While
from tflq.dialects.tfl.state import AssignVariable, ReadVariable, VarHandle
from tflq.dialects.tosa.control import CondIf, WhileLoop
from tflq.dialects.tosa.state import VariableRead, VariableWrite
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i32
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


@lowering(VariableRead)
def variable_read(op: VariableRead, k: Kernels) -> Value:
    return k.emit(ReadVariable, [_handle(op, k)], op.result.type)


@lowering(VariableWrite)
def variable_write(op: VariableWrite, k: Kernels) -> Sequence[Value]:
    return k.op(AssignVariable, [_handle(op, k), k.value(op.input)], []).results


def _handle(op: VariableRead | VariableWrite, k: Kernels) -> Value:
    """The variable's number, in an INT32 tensor, which the kernels take like one of type RESOURCE. That type has no
    numpy form: the interpreter's `get_tensor` crashes on it. Source: kernels/read_variable.cc, assign_variable.cc."""
    type = TensorType((1,), i32)
    return k.emit(VarHandle, [], type, container="", shared_name=op.variable)
