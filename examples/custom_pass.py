"""A pass of one's own: `tflq opt model.tflite --rules custom_pass.py -p merge-transposes`.

Two TRANSPOSEs in a row become one, or nothing where they undo each other.
"""

from typing import ClassVar

import numpy as np

import tflq
from tflq.dialects.tfl.movement import Transpose
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value, constant
from tflq.ir.rewriting import remove_unneeded, replace_values
from tflq.ir.types import i32
from tflq.transforms.pass_manager import Pass, PassResult


class MergeTransposes(Pass):
    """Merges a TRANSPOSE into the one that reads it."""

    name: ClassVar[str] = "merge-transposes"

    def run(self, module: Module) -> PassResult:
        merged = [self._merge(module, function) for function in module.functions]
        remove_unneeded(module, lambda op: isinstance(op, Transpose))
        return PassResult(module, any(merged))

    def _merge(self, module: Module, function: Function) -> bool:
        modified, undone = False, dict[Value, Value]()
        for op in function.ops:
            if not isinstance(op, Transpose) or not isinstance(first := op.input.producer, Transpose):
                continue
            if not (op.perm.is_constant and first.perm.is_constant) or op.input in function.outputs:
                continue
            order = first.perm.array[op.perm.array]
            if (order == np.arange(order.size)).all() and op.result not in function.outputs:
                undone[op.result] = first.input
            else:
                op.operands = [first.input, constant(order, i32)]
            modified = True
        replace_values(module, function, undone)
        return modified


EXTENSION = tflq.Extension(passes=[MergeTransposes])
