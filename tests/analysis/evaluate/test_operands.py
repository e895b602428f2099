"""Evaluators of TFLite's operators on operands of any type and rank: arrays, or an error that says they have none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tflq.analysis.evaluate.registry import evaluate_op, evaluator
from tflq.dialects.declare import Operator
from tflq.ir.index import DIALECTS
from tflq.ir.ops import Op, Value, op_class
from tflq.ir.types import SCALARS, TensorType

_TYPES = [SCALARS[name] for name in ("i1", "i8", "i32", "f32", "complex<f32>")]
_SHAPES = [(), (0,), (3,), (2, 2)]


def _evaluated() -> list[type[Operator]]:
    kinds = (op_class(f"tfl.{name}") for names in DIALECTS["tfl"].values() for name in names.split())
    return [kind for kind in kinds if kind is not None and issubclass(kind, Operator) and evaluator.get(kind)]


@pytest.mark.parametrize("kind", _evaluated(), ids=lambda kind: kind.op_name)
def test_operands_of_any_type_and_rank(kind: type[Operator]) -> None:
    for storage, shape, indices in itertools.product(_TYPES, _SHAPES, _SHAPES):
        shapes = [indices if slot.indices else shape for slot in kind.operand_slots]
        types = [SCALARS["i32"] if slot.indices else storage for slot in kind.operand_slots]
        operands: list[Value | None] = [Value(TensorType(s, t)) for s, t in zip(shapes, types, strict=True)]
        results = [Value(TensorType(shape, storage)) for _ in kind.result_slots]
        arrays: list[np.ndarray | None] = [np.ones(s, t.dtype) for s, t in zip(shapes, types, strict=True)]
        try:
            evaluate_op(Op(kind.op_name, operands, results), arrays)
        except (NotImplementedError, ArithmeticError, IndexError, ValueError):
            continue
