"""Stated shapes and inferred ones: where they differ, and the former replaced by the latter."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.ir.core import Module, Op, Value
from tflq.ir.types import Shape, TensorType
from tflq.shapes.inference import Inference
from tflq.shapes.site import text

__all__ = ["SHAPE_INFO", "contradictions", "infer", "place", "set_shape", "stale"]

SHAPE_INFO = ("shape", "shape_signature", "has_rank")
"""What `Value.info` keeps of the forms that a shape has in a file."""


def infer(module: Module) -> Module:
    """The module (changed in place) with the shapes that follow from its arguments' as they are stated: unknown dims
    filled in, and those that an interpreter would disregard replaced by what it computes.

    What cannot be inferred stays as it is.
    """
    inference = Inference(module, {})
    for value, shape in inference.shapes.items():
        set_shape(value, _filled(value.type.shape, shape))
    return module


def contradictions(module: Module) -> list[str]:
    """Where a module states a result's shape that an interpreter would not compute: one sentence for each."""
    return [
        f"{where}: '{value.name}' is stated as {text(value.type.shape)}, but an interpreter computes {text(shape)}"
        for where, value, shape in stale(module, Inference(module, {}))
    ]


def stale(module: Module, inference: Inference) -> Iterator[tuple[str, Value, Shape]]:
    """Results whose stated shape has a dim other than the one inferred: place, value, inferred shape."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for value in op.results:
                stated, shape = value.type.shape, inference.shapes.get(value)
                if stated is None or shape is None:
                    continue
                differ = (a is not None and b is not None and a != b for a, b in zip(stated, shape, strict=False))
                if len(stated) != len(shape) or any(differ):
                    yield place(op, index), value, shape


def place(op: Op, function: int) -> str:
    """Where an op is, for a message."""
    return str(op.location) if op.location is not None else f"function {function}, {op.name}"


def set_shape(value: Value, shape: Shape) -> None:
    """Gives a value a shape; what its file said of the old one goes."""
    if shape == value.type.shape or value.is_constant:
        return
    value.type = TensorType(shape, value.type.element)
    value.info = {key: item for key, item in value.info.items() if key not in SHAPE_INFO}


def _filled(stated: Shape, shape: Shape) -> Shape:
    """The inferred dims, and the stated ones where those are not known."""
    if shape is None:
        return stated
    if stated is None or len(stated) != len(shape):
        return shape
    return tuple(s if d is None else d for s, d in zip(stated, shape, strict=True))
