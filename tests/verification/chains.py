"""Small models of a chain of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflq.formats.tflite.writer import write
from tflq.ir.core import Function, Module, Op, Value

Step = tuple[str, Sequence[Value], Value, Mapping[str, Any], int]
"""Name, operands after the first, result, attributes, version."""


def chain(source: Value, steps: Sequence[Step], outputs: Sequence[Value] = ()) -> bytes:
    """The file of a model in which each operator reads what the one before gives."""
    ops, last = [], source
    for name, operands, result, attributes, version in steps:
        ops.append(Op(name, [last, *operands], [result], dict(attributes), info={"version": version}))
        last = result
    return bytes(write(Module([Function("main", [source], list(outputs) or [last], ops)])))
