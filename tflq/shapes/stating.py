"""What a file states of tensors with open dims: the shape that they are allocated with before the model is resized.

A file has two shapes for such a tensor: the signature, with -1 for an open dim, and the one that readers go by until
they know better. The second follows from what the inputs state.
"""

from __future__ import annotations

from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.calls import entry_functions
from tflq.dialects.forms import Form
from tflq.ir.core import Module, Value
from tflq.ir.types import Shape
from tflq.shapes.inference import Inference, is_complete
from tflq.shapes.site import stored_shape

__all__ = ["StateShapes"]


class StateShapes(Pass):
    """Has tensors with open dims state the shape that they are allocated with. What an entry point returns states what
    it did, as does a tensor whose shape cannot be inferred."""

    name: ClassVar[str] = "state-shapes"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        if all(value.type.is_static for function in module.functions for value in function.values()):
            return PassResult(module, modified=False)
        modified = False
        entries = [module.functions[index] for index in entry_functions(module)]
        inference = Inference(module, {v: stored_shape(v) for function in entries for v in function.inputs})
        fixed = {v for function in entries for v in (*function.inputs, *function.outputs)}
        for value, shape in inference.shapes.items():
            if value not in fixed and _is_open(value) and _fits(value, shape):
                value.info = {**value.info, "shape": shape}
                modified = True
        return PassResult(module, modified)


def _is_open(value: Value) -> bool:
    return value.type.shape is not None and None in value.type.shape


def _fits(value: Value, shape: Shape) -> bool:
    """Whether a shape is whole, and one of those that the tensor's type allows."""
    dims = value.type.shape
    if not is_complete(shape) or shape is None or dims is None or len(shape) != len(dims):
        return False
    return all(d in (None, s) for d, s in zip(dims, shape, strict=True))
