"""Variables of the integer form → resource variables of the same names. A function writes their initial values, which
CALL_ONCE runs first.

An interpreter resets variable tensors (`reset_all_variables()`), but not resource variables. A signature of the same
function writes the initial values again, for callers that ask for it. Such a signature has no inputs and no outputs,
which interpreters take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.dialects.tfl.control import CallOnce
from tflq.dialects.tfl.state import AssignVariable, ReadVariable, VarHandle
from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Function, Module, Op, Signature, Value
from tflq.ir.types import TensorType, i32
from tflq.light import dataclass
from tflq.select.lowering import Kernels, lowering

__all__ = ["RESET", "DeclareVariables"]

RESET: Final = "tflq_reset"
"""The signature that writes the initial values."""


@dataclass(frozen=True)
class DeclareVariables(Pass):
    """Variables become resource variables that CALL_ONCE writes first. Handles of the model's own become such that can
    be read.

    In the place of VARIABLE comes one new function that writes all initial values, called once by every function that
    declares any. reset: it is the signature `tflq_reset`, too; UnsupportedError if the module has such a signature.
    """

    name: ClassVar[str] = "declare-variables"
    title: ClassVar[str] = "declaration of variables"
    takes: ClassVar[Form] = "integer"
    reset: bool = False

    def run(self, module: Module) -> PassResult:
        initial: dict[str, Variable] = {}
        own = {op.shared_name: None for op in module.ops() if isinstance(op, VarHandle)}
        for function in module.functions:
            declarations = [op for op in function.ops if isinstance(op, Variable)]
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
            _add_signature(module, bool(initial), list(own))
        return PassResult(module, _retype_handles(module) or bool(initial))


def _retype_handles(module: Module) -> bool:
    """Makes handles INT32 that only READ_VARIABLE and ASSIGN_VARIABLE of their function take (`_handle` says why).
    Whether there are any."""
    modified = False
    for function in module.functions:
        others = {v for op in function.ops if not isinstance(op, (ReadVariable, AssignVariable)) for v in op.operands}
        others.update(function.outputs)
        for op in function.ops:
            if isinstance(op, VarHandle) and op.resource not in others and op.resource.type.element != i32:
                op.resource.type = op.resource.type.with_element(i32)
                modified = True
    return modified


def _add_signature(module: Module, needed: bool, own: list[str]) -> None:
    """Makes the last function the signature, if there is something to reset; warns of what it does not reset."""
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
    if needed and own:
        names = ", ".join(f"'{name}'" for name in own)
        module.warnings.append(
            f"signature '{RESET}' does not reset the model's own variables {names}; create the interpreter anew to "
            "reset these, too"
        )


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
