"""The file of statistics, and points that become statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.analysis.statistics import PointStatistics, read_statistics, write_statistics
from tflq.dialects.quant.regions import Stats, StatsRef
from tflq.errors import FileError, OptionError
from tflq.ir.core import Module
from tflq.ir.parser import parse_module
from tflq.ir.verifier import verify
from tflq.named_passes import parse_pipeline
from tflq.passes.regions.apply_statistics import apply_statistics

SEEN = {
    "conv/1": PointStatistics(24, -1.5, 2.5),
    "weights": PointStatistics(6, -0.9, 0.75, 1, (-0.9, -0.5, 0.0), (0.1, 0.75, 0.0)),
    "never": PointStatistics(0),
}


def observed(*keys: str) -> Module:
    points = "\n".join(
        f'%p{place} = "quant.stats_ref"(%a) {{statsKey = "{key}"}} : (tensor<2x3xf32>) -> tensor<2x3xf32>'
        for place, key in enumerate(keys)
    )
    returned = f"%p{len(keys) - 1} : tensor<2x3xf32>"
    return parse_module(f"func.func @f(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {{\n{points}\nreturn {returned}\n}}")


def document(point: Any, **changes: Any) -> dict[str, Any]:
    return {"format": "tflq.statistics", "version": 1, "points": {"conv/1": point}, **changes}


def written(folder: Path, content: Any) -> Path:
    path = folder / "statistics.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_holds_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    write_statistics(path, SEEN)
    assert read_statistics(path) == SEEN
    with pytest.raises(FileError):
        write_statistics(path, {})
    assert read_statistics(path) == SEEN
    write_statistics(path, {}, force=True)
    assert read_statistics(path) == {}


@pytest.mark.parametrize(
    ("point", "what"),
    [
        ([1], "not an object"),
        ({"count": -1}, "'count'"),
        ({"count": True, "min": 0, "max": 1}, "'count'"),
        ({"count": 1, "min": 0}, "'max'"),
        ({"count": 1, "min": 0, "max": float("inf")}, "'max'"),
        ({"count": 1, "min": 0, "max": "1"}, "'max'"),
        ({"count": 1, "min": 2, "max": 1}, "above the largest"),
        ({"count": 0, "min": 0, "max": 1}, "no element was seen"),
        ({"count": 1, "min": 0, "max": 1, "mean": 0}, "'mean' is not known"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0}, "go together"),
        ({"count": 1, "min": 0, "max": 1, "axis": -1, "axis_min": [0], "axis_max": [1]}, "counted from 0"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0, "axis_min": [0], "axis_max": [1, 1]}, "1 numbers"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0, "axis_min": [2], "axis_max": [1]}, "above the largest"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0, "axis_min": 0, "axis_max": 1}, "'axis_min'"),
    ],
)
def test_faults_of_a_point_name_it(tmp_path: Path, point: Any, what: str) -> None:
    with pytest.raises(OptionError, match=what) as caught:
        read_statistics(written(tmp_path, document(point)))
    assert caught.value.reasons[0].value == "conv/1"
    assert caught.value.reasons[0].path.endswith("statistics.json")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "not a JSON file"),
        ([], "not a file of statistics"),
        ({"version": 1, "points": {}}, "not a file of statistics"),
        (document({}, version=3), "version 3"),
        (document({}, points=[]), "no 'points'"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: Any, what: str) -> None:
    with pytest.raises(FileError, match=what):
        read_statistics(written(tmp_path, content))


def test_points_become_statistics(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    write_statistics(path, SEEN)
    module = observed("conv/1", "weights", "never")
    assert parse_pipeline(f"quant-apply-stats{{statistics={path}}}").run(module).modified
    verify(module)
    first, second, third = module.main.ops
    assert isinstance(first, Stats)
    assert isinstance(second, Stats)
    assert first.layer_stats.tolist() == [-1.5, 2.5]
    assert first.axis_stats is None
    assert second.axis_stats is not None
    np.testing.assert_array_equal(second.axis_stats, np.array([[-0.9, 0.1], [-0.5, 0.75], [0, 0]], np.float32))
    assert second.axis == 1
    assert isinstance(third, StatsRef)
    assert third.stats_key == "never"


def test_a_point_without_statistics_is_an_error_and_nothing_changes() -> None:
    module = observed("conv/1", "conv/2")
    with pytest.raises(OptionError, match="no statistics of 1 point: 'conv/2'") as caught:
        apply_statistics(module, SEEN, "statistics.json")
    assert caught.value.reasons[0].remedy == "did you mean 'conv/1'?"
    assert all(isinstance(op, StatsRef) for op in module.main.ops)


@pytest.mark.parametrize("axis", [0, 2])
def test_statistics_of_another_tensor_are_refused(axis: int) -> None:
    seen = PointStatistics(6, 0.0, 1.0, axis, (0.0,) * 3, (1.0,) * 3)
    with pytest.raises(OptionError, match=f"3 indices of axis {axis}, and the tensor is"):
        apply_statistics(observed("conv/1"), {"conv/1": seen})


def test_the_pass_needs_a_file() -> None:
    with pytest.raises(OptionError, match="needs statistics"):
        parse_pipeline("quant-apply-stats").run(observed("conv/1"))
