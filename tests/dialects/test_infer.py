"""The shape that an op infers is that of its result on the evaluator and on TOSA's reference model,
for random operands; where fewer dims are known it says less, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.raised import outputs_of
from support.running import reference

from tflq.builder import Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.inference import Misfit, broadcast
from tflq.dialects.tosa import movement as moving
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Add
from tflq.dialects.tosa.bits import BitwiseNot
from tflq.dialects.tosa.comparison import Greater, Select
from tflq.dialects.tosa.reduction import ArgMax, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceSum
from tflq.ir.core import Function, Module, Value
from tflq.ir.types import ScalarType, Shape, TensorType, i1, i32

Sizes = tuple[int, ...]
Drawn = tuple[list[Sizes], dict[str, Any]]


def _sizes(rng: np.random.Generator, rank: int = 0) -> Sizes:
    return tuple(rng.integers(1, 6, rank or rng.integers(1, 5)).tolist())


def _meeting(rng: np.random.Generator, count: int) -> Drawn:
    whole = _sizes(rng)
    return [tuple(d if rng.integers(3) else 1 for d in whole) for _ in range(count)], {}


def _axis(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"axis": int(rng.integers(len(shape)))}


def _concat(rng: np.random.Generator) -> Drawn:
    (shape,), attributes = _axis(rng)
    at = attributes["axis"]
    return [(*shape[:at], int(n), *shape[at + 1 :]) for n in rng.integers(1, 5, rng.integers(1, 4))], attributes


def _pad(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"padding": tuple(rng.integers(0, 3, 2 * len(shape)).tolist()), "pad_const": 0}


def _slice(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    start = tuple(int(rng.integers(d)) for d in shape)
    return [shape], {
        "start": start,
        "size": tuple(int(rng.integers(d - s)) + 1 for d, s in zip(shape, start, strict=True)),
    }


def _tile(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"multiples": _sizes(rng, len(shape))}


def _transpose(rng: np.random.Generator) -> Drawn:
    shape = _sizes(rng)
    return [shape], {"perms": tuple(rng.permutation(len(shape)).tolist())}


CASES: dict[type[Operator], tuple[Callable[[np.random.Generator], Drawn], Sequence[ScalarType], ScalarType]] = {
    Add: (lambda rng: _meeting(rng, 2), (i32,), i32),
    Greater: (lambda rng: _meeting(rng, 2), (i32,), i1),
    Select: (lambda rng: _meeting(rng, 3), (i1, i32), i32),
    BitwiseNot: (lambda rng: _meeting(rng, 1), (i32,), i32),
    Clamp: (lambda rng: ([_sizes(rng)], {"min_val": -1, "max_val": 1}), (i32,), i32),
    ArgMax: (_axis, (i32,), i32),
    ReduceAll: (_axis, (i1,), i1),
    ReduceAny: (_axis, (i1,), i1),
    ReduceMax: (_axis, (i32,), i32),
    ReduceMin: (_axis, (i32,), i32),
    ReduceSum: (_axis, (i32,), i32),
    moving.Concat: (_concat, (i32,), i32),
    moving.Pad: (_pad, (i32,), i32),
    moving.Reverse: (_axis, (i32,), i32),
    moving.Slice: (_slice, (i32,), i32),
    moving.Tile: (_tile, (i32,), i32),
    moving.Transpose: (_transpose, (i32,), i32),
}
# The kinds that the reference model takes on random int32 operands, in a fixed order: workers must collect alike.
ON_MODEL = (
    Add,
    Select,
    ReduceMax,
    ReduceSum,
    moving.Concat,
    moving.Pad,
    moving.Slice,
    moving.Tile,
    moving.Transpose,
)


def _made(kind: type[Operator], shapes: Sequence[Shape], attributes: dict[str, Any]) -> tuple[Module, list[Value]]:
    _, storages, element = CASES[kind]
    e = Emitter()
    values = [Value(TensorType(s, storages[min(i, len(storages) - 1)]), f"x{i}") for i, s in enumerate(shapes)]
    result = e.emit(kind, values, element, **attributes)
    result.name = "y"
    return Module([Function("main", values, [result], e.ops)]), values


def _arrays(rng: np.random.Generator, values: Sequence[Value]) -> list[np.ndarray]:
    return [np.asarray(rng.integers(0, 2, [d or 0 for d in v.type.shape or ()]), v.type.storage.dtype) for v in values]


@pytest.mark.parametrize("kind", CASES)
def test_evaluator(kind: type[Operator]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        shapes, attributes = CASES[kind][0](rng)
        module, values = _made(kind, shapes, attributes)
        (found,) = outputs_of(module, _arrays(rng, values))
        assert module.main.outputs[0].type.shape == found.shape, (shapes, attributes)
        less = [tuple(d if rng.integers(2) else None for d in s) for s in shapes]
        partly = _made(kind, less, attributes)[0].main.outputs[0].type.shape
        assert partly is not None
        assert len(partly) == found.ndim
        assert all(p in (None, d) for p, d in zip(partly, found.shape, strict=True)), (less, attributes)
        assert _made(kind, [None, *shapes[1:]], attributes)[0].main.outputs[0].type.shape is None


@pytest.mark.parametrize("kind", ON_MODEL, ids=lambda kind: kind.op_name)
def test_reference_model(kind: type[Operator]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        shapes, attributes = CASES[kind][0](rng)
        module, values = _made(kind, shapes, attributes)
        (found,) = reference(module, _arrays(rng, values))
        assert module.main.outputs[0].type.shape == found.shape, (shapes, attributes)


def test_broadcast_is_numpys() -> None:
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(2000):
        shapes = [tuple(rng.choice([1, 1, 2, 3], rng.integers(4)).tolist()) for _ in range(rng.integers(1, 4))]
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            refused += 1
            with pytest.raises(Misfit, match="do not broadcast"):
                broadcast(*shapes)
        else:
            assert broadcast(*shapes) == expected
    assert 0 < refused < 2000


def test_nothing_is_added_for_operands_that_do_not_fit() -> None:
    e = Emitter()
    with pytest.raises(Misfit, match=r"\[2\] and \[3\] do not broadcast"):
        e.emit(Add, [Value(TensorType((n,), i32)) for n in (2, 3)], i32)
    assert not e.ops
