"""One op of MLIR's core dialects on arrays, and texts evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.analysis.evaluate.registry import Run, array_of, evaluate_function
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.parser import parse_module
from tflq.ir.types import TensorType, named_scalar
from tflq.ir.verifier import verify


def one(
    name: str, arrays: Sequence[np.ndarray], types: Sequence[str], results: Sequence[str], **attributes: Any
) -> Any:
    """What an op makes of arrays of these element types; elements of bf16 are bits. One array, or a list of them."""
    from tflq.analysis.evaluate.registry import evaluate_op

    operands: list[Value | None] = [Value(_typed(a, t)) for a, t in zip(arrays, types, strict=True)]
    shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
    op = Op(name, operands, [Value(_typed(np.empty(shape), t)) for t in results], attributes)
    for constraint in op.constraints:
        assert constraint(op) is None
    made = evaluate_op(op, list(arrays))
    assert made is not None
    return made[0] if len(made) == 1 else made


def _typed(array: np.ndarray, element: str) -> TensorType:
    found = named_scalar(element)
    assert found is not None
    return TensorType(np.shape(array), found)


def of_text(text: str, *arrays: np.ndarray | np.generic) -> list[np.ndarray]:
    """What the first function of a text that has a body makes of arrays."""
    module = parse_module(text)
    verify(module)
    return evaluated(module, *arrays)


def evaluated(module: Module, *arrays: np.ndarray | np.generic) -> list[np.ndarray]:
    function = next(f for f in module.functions if not f.info.get("declaration"))
    env = evaluate_function(function, dict(zip(function.inputs, map(np.asarray, arrays), strict=True)), Run(module))
    return [env[v] if v in env else array_of(v) for v in function.outputs]
