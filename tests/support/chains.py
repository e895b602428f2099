"""Small models of a chain of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from support.harness import argument, const
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32

Step = tuple[str, Sequence[Value], Value, Mapping[str, Any], int]
"""Name, operands after the first, result, attributes, version."""


def chain(source: Value, steps: Sequence[Step], outputs: Sequence[Value] = ()) -> bytes:
    """The file of a model in which each operator reads what the one before gives."""
    ops, last = [], source
    for name, operands, result, attributes, version in steps:
        ops.append(Op(name, [last, *operands], [result], dict(attributes), info={"version": version}))
        last = result
    return bytes(write(Module([Function("main", [source], list(outputs) or [last], ops)])))


def dense(changed: float = 0.0) -> bytes:
    """Two float layers and a function."""
    rng = np.random.default_rng(1)
    weights = rng.uniform(-1, 1, (2, 24, 24)).astype(np.float32)
    weights[0, 0, 0] += changed
    shape, bias = (3, 24), const(rng.uniform(-1, 1, 24).astype(np.float32), f32)
    steps: list[Step] = [
        ("tfl.fully_connected", [const(weights[0], f32), bias], argument(shape, f32, "a"), {}, 1),
        ("tfl.tanh", [], argument(shape, f32, "b"), {}, 1),
        ("tfl.fully_connected", [const(weights[1], f32), bias], argument(shape, f32, "y"), {}, 1),
    ]
    return chain(argument(shape, f32, "x"), steps)
