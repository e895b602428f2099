"""Elements in another order, place or number, one builtin each, with casts around it for types that it lacks; variables
and control flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from tflq.base import sized
from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.forms import ModuleForm
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tfl.indexing import Gather as TflGather
from tflq.dialects.tfl.indexing import ScatterND
from tflq.dialects.tfl.state import AssignVariable, CallOnce, If, ReadVariable, VarHandle, While
from tflq.dialects.tosa.movement import (
    Concat,
    CondIf,
    Gather,
    Identity,
    Pad,
    Reshape,
    Reverse,
    Scatter,
    Slice,
    Tile,
    Transpose,
    Variable,
    VariableRead,
    VariableWrite,
    WhileLoop,
)
from tflq.formats.tflite.lowering.lowering import Tflite, Twin, centred, integers_of, lowering, moved
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, i1, i8, i16, i32
from tflq.transforms.pass_manager import Pass, PassResult


@lowering(Identity)
def identity(op: Identity, k: Tflite) -> Value:
    return k.copy(k.value(op.input))


@lowering(Reshape)
def reshape(op: Reshape, k: Tflite) -> Value:
    """The first dim is left to be inferred, where no other is: it is the one that a resized batch changes."""
    shape = op.result.type.dims
    return moved(k, k.value(op.input), lambda x, _: k.in_shape(x, shape))


@lowering(Transpose)
def transpose(op: Transpose, k: Tflite) -> Value:
    """A copy for an empty permutation, in whose place TRANSPOSE reads stray memory."""
    x, perms = k.value(op.input), op.perms
    return moved(k, x, lambda v, _: k.transpose(v, perms)) if perms else k.copy(x)


@lowering(Slice)
def slice_(op: Slice, k: Tflite) -> Value:
    """A dim taken whole ends where it ends, so that the batch can be resized; SLICE keeps the result shape stated."""
    x, begin = k.value(op.input), op.start
    sizes = list(zip(begin, op.size, x.type.dims, strict=True))
    whole = sum(1 << i for i, (start, size, dim) in enumerate(sizes) if size is None or (start == 0 and size == dim))
    end = tuple(start + (size or 0) for start, size, _ in sizes)

    def sliced(v: Value, _: int) -> Value:
        return k.strided_slice(v, tuple(begin), end, (1,) * len(end), end_mask=whole)

    return moved(k, x, sliced)


@lowering(Concat)
def concat(op: Concat, k: Tflite) -> Value:
    return joined(k, [k.value(v) for v in op.inputs if v is not None], op.axis)


def joined(k: Tflite, xs: Sequence[Value], axis: int) -> Value:
    """CONCATENATION; of twins, if any operand has one."""
    twins = [k.twins[x] for x in xs if x in k.twins]
    if not twins:
        return k.concatenation(xs, axis)
    offset = twins[0].offset
    whole = k.concatenation([centred(k, x, offset) for x in xs], axis)
    return integers_of(k, Twin(whole, offset), xs[0].type.storage)


def _carried(k: Tflite, x: Value, emit: Callable[[Value], Value], carriers: Mapping[ScalarType, ScalarType]) -> Value:
    """`emit` of x, in another type if the kernel lacks x's: `carriers` has the one to take."""
    storage = x.type.storage
    return k.cast(emit(k.cast(x, carriers[storage])), storage) if storage in carriers else emit(x)


@lowering(Pad)
def pad(op: Pad, k: Tflite) -> Value:
    amounts = np.reshape(np.asarray(op.padding, np.int32), (-1, 2))
    x = k.value(op.input1)
    if not amounts.any():
        return k.copy(x)

    def padded(v: Value, offset: int = 0) -> Value:
        return k.padv2(v, amounts, op.pad_const - offset)

    return moved(k, x, padded) if x in k.twins else _carried(k, x, padded, {i1: i8})


@lowering(Tile)
def tile(op: Tile, k: Tflite) -> Value:
    multiples = k.constant(op.multiples)

    def tiled(v: Value) -> Value:
        return k.emit(tfl.Tile, [v, multiples])

    return _carried(k, k.value(op.input1), tiled, {i1: i8, i16: i32})


@lowering(Reverse)
def reverse(op: Reverse, k: Tflite) -> Value:
    x = k.value(op.input1)
    return k.emit(tfl.ReverseV2, [x, k.constant([op.axis])])


# Elements chosen or placed by index.
#
# GATHER and SCATTER move rows, per batch. A scatter is a gather as well: SCATTER_ND of the rows' numbers says which row
# each place of the result takes, if any, and one GATHER takes it from the values and rows together.


@lowering(Gather)
def gather(op: Gather, k: Tflite) -> Value:
    values, indices = k.value(op.values), k.value(op.indices)
    return k.emit(TflGather, [values, indices], axis=1, batch_dims=1)


@lowering(Scatter)
def scatter(op: Scatter, k: Tflite) -> Value:
    values, indices, rows = k.value(op.values_in), k.value(op.indices), k.value(op.input)
    batch, places, channels = op.values_out.type.sizes
    count = (indices.type.shape or (0, 0))[1] or 0
    all_places, all_rows = batch * places, batch * count
    flat = k.add(indices, sized.arange(batch)[:, None] * places) if batch > 1 else indices
    numbers = k.constant(sized.arange(1, all_rows + 1))
    table = [k.reshape(flat, (all_rows, 1)), numbers, k.constant([all_places])]
    row_numbers = k.emit(ScatterND, table, i32)
    value_rows = k.constant(sized.arange(all_places))
    index = k.emit(SelectV2, [k.greater(row_numbers, 0), k.add(row_numbers, all_places - 1), value_rows])
    both = [k.reshape(values, (all_places, channels)), k.reshape(rows, (all_rows, channels))]
    return k.reshape(k.gather(k.concatenation(both, 0), index), (batch, places, channels))


# Variables of the integer form → resource variables of the same names. A function writes their initial values, which
# CALL_ONCE runs first.
#
# An interpreter resets variable tensors (`reset_all_variables()`), but not resource variables. A signature of the
# same function writes the initial values again, for callers that ask for it. Such a signature has no inputs and no
# outputs, which interpreters take.


RESET: Final = "tflq_reset"
"""The signature that writes the initial values."""


class DeclareVariables(Pass):
    """Variables become resource variables that CALL_ONCE writes first; the model's own handles become ones that can be
    read.

    One new function, in the place of all VARIABLEs, writes all initial values; every function that declares any calls
    it once. reset: it is also the signature `tflq_reset`; UnsupportedError if the module has such a signature.
    """

    name: ClassVar[str] = "declare-variables"
    title: ClassVar[str] = "declaration of variables"
    takes: ClassVar[ModuleForm] = "integer"

    def __init__(self, reset: bool = False) -> None:
        self.reset: Final = reset

    def run(self, module: Module) -> PassResult:
        initial: dict[str, Variable] = {}
        model_variables = {op.shared_name: None for function in module.functions for op in function.ops_of(VarHandle)}
        for function in module.functions:
            declarations = function.ops_of(Variable)
            if not declarations:
                continue
            for op in declarations:
                initial.setdefault(op.variable, op)
            attributes = {"init_subgraph_index": len(module.functions)}
            call = Op(CallOnce.op_name, [], [], attributes, declarations[0].location)
            function.ops = [call, *(op for op in function.ops if not isinstance(op, Variable))]
        if initial:
            writes = [
                Op(VariableWrite.op_name, [op.initial_value], [], {"name": name}, op.location)
                for name, op in initial.items()
            ]
            module.functions.append(Function("initial_values", [], [], writes))
        if self.reset:
            _add_signature(module, bool(initial), list(model_variables))
        return PassResult(module, _retype_handles(module) or bool(initial))


def _retype_handles(module: Module) -> bool:
    """Makes handles INT32 if only READ_VARIABLE and ASSIGN_VARIABLE of their function take them (`_handle` says why).
    Whether there are any."""
    modified = False
    for function in module.functions:
        users = function.users() if function.has_ops(VarHandle) else {}
        for op in function.ops_of(VarHandle):
            known = all(isinstance(user, (ReadVariable, AssignVariable)) for user in users.get(op.resource, ()))
            if known and op.resource not in function.outputs and op.resource.type.element != i32:
                op.resource.type = op.resource.type.with_element(i32)
                modified = True
    return modified


def _add_signature(module: Module, needed: bool, model_variables: list[str]) -> None:
    """Makes the last function the signature, if there is something to reset; warns of variables that it leaves."""
    if any(signature.key == RESET for signature in module.signatures or ()):
        what, remedy = f"the model has a signature '{RESET}' already", "convert it without a reset signature"
        raise UnsupportedError(Reason(what, remedy=remedy))
    if needed:
        signature = Signature(RESET, len(module.functions) - 1, [], [])
        module.signatures = [*(module.signatures or ()), signature]
    else:
        module.warnings.append(
            f"no state was lowered into variables, so there is no signature '{RESET}' to add; leave --reset-signature "
            "out, or lower the state with --state variables"
        )
    if needed and model_variables:
        names = ", ".join(f"'{name}'" for name in model_variables)
        module.warnings.append(
            f"signature '{RESET}' does not reset the model's own variables {names}; create the interpreter anew to "
            "reset these, too"
        )


@lowering(VariableRead)
def variable_read(op: VariableRead, k: Tflite) -> Value:
    return k.emit(ReadVariable, [_handle(op, k)], op.result.type)


@lowering(VariableWrite)
def variable_write(op: VariableWrite, k: Tflite) -> Sequence[Value]:
    return k.op(AssignVariable, [_handle(op, k), k.value(op.input)], []).results


def _handle(op: VariableRead | VariableWrite, k: Tflite) -> Value:
    """The variable's number, in an INT32 tensor, which the kernels take like one of type RESOURCE. That type has no
    numpy form: the interpreter's `get_tensor` crashes on it. Source: kernels/read_variable.cc, assign_variable.cc."""
    type = TensorType((1,), i32)
    return k.emit(VarHandle, [], type, container="", shared_name=op.variable)


# Control flow.


@lowering(CondIf)
def cond_if(op: CondIf, k: Tflite) -> Sequence[Value]:
    graphs = {"then_subgraph_index": op.then_graph, "else_subgraph_index": op.else_graph}
    return k.op(If, [k.value(v) for v in op.operands if v], [v.type for v in op.results], graphs).results


@lowering(WhileLoop)
def while_loop(op: WhileLoop, k: Tflite) -> Sequence[Value]:
    graphs = {"cond_subgraph_index": op.cond_graph, "body_subgraph_index": op.body_graph}
    return k.op(While, [k.value(v) for v in op.operands if v], [v.type for v in op.results], graphs).results
