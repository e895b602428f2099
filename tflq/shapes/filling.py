"""Stated shapes and inferred ones: where they differ, and the former replaced by the latter."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.dialects.inference import text
from tflq.errors import Reason
from tflq.ir.core import Module, Op, Value
from tflq.ir.types import Shape, TensorType
from tflq.shapes.inference import Inference

__all__ = ["SHAPE_INFO", "contradictions", "infer", "reason", "set_shape", "stale"]

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
        str(
            reason(
                op,
                index,
                f"'{value.name}' is stated as {text(value.type.shape)}, but an interpreter computes {text(shape)}",
            )
        )
        for index, op, value, shape in stale(module, Inference(module, {}))
    ]


def stale(module: Module, inference: Inference) -> Iterator[tuple[int, Op, Value, Shape]]:
    """Results whose stated shape has a dim other than the one inferred: function, op, value, inferred shape."""
    for index, function in enumerate(module.functions):
        for op in function.ops:
            for value in op.results:
                stated, shape = value.type.shape, inference.shapes.get(value)
                if stated is None or shape is None:
                    continue
                differ = (a is not None and b is not None and a != b for a, b in zip(stated, shape, strict=False))
                if len(stated) != len(shape) or any(differ):
                    yield index, op, value, shape


def reason(op: Op, function: int, what: str, remedy: str = "") -> Reason:
    """What is wrong with an op's shapes."""
    if op.location is None:
        return Reason(what, subgraph=function, place=f"function {function}, {op.name}", remedy=remedy)
    return Reason.at(op.location, what, remedy=remedy)


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
