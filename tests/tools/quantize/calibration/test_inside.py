"""Values inside of IF and WHILE: their ends over all runs of a body, and of the branches that were taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import SIZE, dense, samples, written

import tflq
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32, i1, i32

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
WEIGHTS = (np.random.default_rng(0).normal(size=(2, SIZE, SIZE)) / 2).astype(np.float32)
RUNS = 3


def value(name: str, kind: Any = f32, shape: tuple[int, ...] = ()) -> Value:
    return Value(TensorType((1, SIZE) if kind == f32 and not shape else shape, kind), name)


def whole(number: int) -> Value:
    return constant(np.array(number, np.int32))


def net() -> Module:
    """IF the elements' sum is positive a product, else one that is computed three times, in a WHILE."""
    x, y, first, other, last = (value(name) for name in ("x", "y", "first", "other", "last"))
    total, is_positive = Value(TensorType((), f32), "total"), value("positive", i1)
    axes = constant(np.array([0, 1], np.int32))
    branches = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    main = [
        Op("tfl.sum", [x, axes], [total], {"keep_dims": False}),
        Op("tfl.greater", [total, constant(np.array(0, np.float32))], [is_positive], {}),
        Op("tfl.if", [is_positive, x], [y], branches),
    ]
    product = value("product")
    loop = Op("tfl.while", [whole(0), other], [value("count", i32), last], {})
    loop.attributes |= {"cond_subgraph_index": 3, "body_subgraph_index": 4}
    at, before, go = value("at", i32), value("before"), value("go", i1)
    place, state, step, after = value("place", i32), value("state"), value("step"), value("after", i32)
    body = [
        dense(WEIGHTS[1], state, step, "inner"),
        Op("tfl.add", [place, whole(1)], [after], {"fused_activation_function": "NONE"}),
    ]
    return Module(
        [
            Function("main", [x], [y], main),
            Function("then", [first], [product], [dense(WEIGHTS[0], first, product, "outer")]),
            Function("else", [other], [last], [loop]),
            Function("cond", [at, before], [go], [Op("tfl.less", [at, whole(RUNS)], [go], {})]),
            Function("body", [place, state], [after, step], body),
        ],
        [Signature("serve", 0, [("given", x)], [("made", y)])],
    )


def states(row: np.ndarray) -> list[np.ndarray]:
    """What goes into each run of the body, and what comes out of the last."""
    rows = [row]
    for _ in range(RUNS):
        rows.append(rows[-1] @ WEIGHTS[1].T)
    return rows


def test_ends_are_those_of_all_runs_and_of_branches_that_were_taken(tmp_path: Path) -> None:
    data = samples(12)
    points = tflq.calibrate(written(tmp_path, net()), list(data)).statistics.points
    taken = data.sum(axis=1) > 0
    loops = np.array([states(row) for row in data[~taken]])
    for key, rows in (("product", data[taken] @ WEIGHTS[0].T), ("state", loops[:, :-1]), ("step", loops[:, 1:])):
        assert [points[key].minimum, points[key].maximum] == pytest.approx([rows.min(), rows.max()], rel=1e-5)
        assert points[key].count == 2 * len(rows)
        reached = [least is not None for least in points[key].sample_minima]
        assert reached == list(taken if key == "product" else ~taken)
    assert points["x"].count == data.size


@pytest.mark.parametrize("change", [lambda data: data, np.abs], ids=["both", "one branch"])
def test_what_was_seen_inside_is_quantized(tmp_path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """A body that no sample reached stays float."""
    model, out, data = written(tmp_path, net()), tmp_path / "int8.tflite", change(samples(12))
    result = tflq.quantize(model, out, calibration=list(data))
    products = {row.tensor: row.quantized for row in result.rows if row.operator == "fully_connected"}
    assert products == {"product": True, "step": change is not np.abs}
    assert result.decibels is not None
    assert result.decibels > 25
    tflq.convert(out, tmp_path / "integer.tflite")
    assert tflq.verify(out, tmp_path / "integer.tflite").verdict == "equal"


def test_functions_that_several_operators_run_stay(tmp_path: Path) -> None:
    module = net()
    module.main.ops[-1].attributes["else_subgraph_index"] = 1
    points = tflq.calibrate(written(tmp_path, module), list(samples(6))).statistics.points
    assert "product" not in points
