"""The file of statistics, and points that become statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tflq.analysis.statistics import PointStatistics, Statistics, read_statistics, write_statistics
from tflq.errors import FileError, OptionError

POINTS = {
    "conv/1": PointStatistics(24, -1.5, 2.5),
    "weights": PointStatistics(6, -0.9, 0.75, 1, (-0.9, -0.5, 0.0), (0.1, 0.75, 0.0)),
    "never": PointStatistics(0),
}
SEEN = Statistics(POINTS)


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
        write_statistics(path, Statistics({}))
    assert read_statistics(path) == SEEN
    write_statistics(path, Statistics({}), force=True)
    assert read_statistics(path) == Statistics({})


@pytest.mark.parametrize(
    ("point", "what"),
    [
        ([1], "a list of 1 is not a table"),
        ({"count": -1}, "count: -1 is not a whole number, from 0 on"),
        ({"count": True, "min": 0, "max": 1}, "count: true is not a whole number"),
        ({"count": 1, "min": 0}, "'max'"),
        ({"count": 1, "min": 0, "max": float("inf")}, "max: inf is not a finite number"),
        ({"count": 1, "min": 0, "max": "1"}, "max: '1' is not a finite number"),
        ({"count": 1, "min": 2, "max": 1}, "above the largest"),
        ({"count": 0, "min": 0, "max": 1}, "if elements were seen"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0}, "go together"),
        (
            {"count": 1, "min": 0, "max": 1, "axis": -1, "axis_min": [0], "axis_max": [1]},
            "axis: -1 is not a whole number",
        ),
        ({"count": 1, "min": 0, "max": 1, "axis": 0, "axis_min": [0], "axis_max": [1, 1]}, "1 numbers"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0, "axis_min": [2], "axis_max": [1]}, "above the largest"),
        ({"count": 1, "min": 0, "max": 1, "axis": 0, "axis_min": 0, "axis_max": 1}, "axis_min: 0 is not a list"),
    ],
)
def test_faults_of_a_point_name_it(tmp_path: Path, point: Any, what: str) -> None:
    with pytest.raises(OptionError, match=what) as caught:
        read_statistics(written(tmp_path, document(point)))
    assert "points.conv/1" in caught.value.reasons[0].what
    assert caught.value.reasons[0].path.endswith("statistics.json")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"sample_min": [0.0]}, "'sample_min' has 1 numbers and 'sample_max' 0"),
        ({"sample_min": [None, 0.0], "sample_max": [1.0, None]}, "not of the same samples"),
        ({"sample_min": [2.0], "sample_max": [1.0]}, "above the largest"),
        ({"histogram": [3]}, "histogram: "),
        ({"histogram": [3, 1, 2, 1]}, "not bins in their order"),
        ({"histogram": [3, 0]}, "not bins in their order"),
        ({"histogram": [8160, 1]}, "not bins in their order"),
        ({"nan": -1}, "nan: -1"),
        ({"digest": 1}, "digest: 1 is not a text"),
    ],
)
def test_faults_of_the_second_version(tmp_path: Path, fields: dict[str, Any], what: str) -> None:
    point = {"count": 1, "min": 0, "max": 1}
    with pytest.raises(OptionError, match=what):
        read_statistics(written(tmp_path, document(point | fields, version=2)))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "not a JSON file"),
        ([], "not a file of statistics"),
        ({"version": 1, "points": {}}, "not a file of statistics"),
        (document({}, version=3), "version: 3 is not version 1 to 2"),
        (document({}, points=[]), "points: a list of 0 is not a table"),
        (document({"count": 0}, version=2, samples=[1]), r"samples\[0\]: 1 is not a text"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: Any, what: str) -> None:
    with pytest.raises(OptionError, match=what):
        read_statistics(written(tmp_path, content))
