"""ai-edge-quantizer's files of ranges: read, written, and read by ai-edge-quantizer itself where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.analysis.statistics import PointStatistics, Statistics, read_statistics, write_in_form
from tflq.errors import FileError, OptionError

SEEN = Statistics(
    {
        "conv;bias": PointStatistics(24, -1.5, 2.5, sample_minima=(-1.5, -0.5), sample_maxima=(0.5, 2.5)),
        "never": PointStatistics(0),
    },
    ("a", "b"),
)
RANGES = {"minmax": (-1.5, 2.5), "ema": (-1.45, 0.6)}
RECORDED: dict[str, Any] = {
    "model_qsvs": {
        "serving_default_image:0": {"min": [[[[-3.8102478981018066]]]], "max": [[[[3.0711550712585450]]]]},
        "dense": {"min": [0.0], "max": [2.3200307], "hessian": [[1.0]], "num_samples": 3},
        "scalar": {"min": -1, "max": 0},
        "unused": {},
    },
    "metadata": {"num_samples_calibrated": 3},
}
"""As version 0.10 writes: of all tensors kept, by its profiler, and of one that was not seen."""


def written(folder: Path, content: Any) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("range", RANGES)
def test_what_is_written_is_the_range(tmp_path: Path, range: str) -> None:
    path = tmp_path / "result.json"
    write_in_form(path, SEEN, "ai-edge-quantizer", range)
    low, high = RANGES[range]
    document = json.loads(path.read_text())
    assert list(document["model_qsvs"]) == ["conv;bias"]
    assert document["metadata"]["num_samples_calibrated"] == 2
    point = read_statistics(path).points["conv;bias"]
    assert (point.minimum, point.maximum) == pytest.approx((low, high), abs=1e-12)
    with pytest.raises(FileError):
        write_in_form(path, SEEN, "ai-edge-quantizer", range)


def test_the_quantizer_reads_it(tmp_path: Path) -> None:
    reader = pytest.importorskip("ai_edge_quantizer.utils.calibration_utils", reason="needs ai-edge-quantizer")
    write_in_form(tmp_path / "result.json", SEEN, "ai-edge-quantizer", "minmax")
    points, metadata = reader.load_calibration_results(str(tmp_path / "result.json"))
    assert {key: np.asarray(end).tolist() for key, end in points["conv;bias"].items()} == {"min": [-1.5], "max": [2.5]}
    assert metadata["num_samples_calibrated"] == 2


@pytest.mark.parametrize("document", [RECORDED, RECORDED["model_qsvs"] | {"unused": {"min": [0.0], "max": [0.0]}}])
def test_its_files_are_read(tmp_path: Path, document: Any) -> None:
    points = read_statistics(written(tmp_path, document)).points
    ends = {key: (point.minimum, point.maximum) for key, point in points.items()}
    assert ends["serving_default_image:0"] == (-3.8102478981018066, 3.0711550712585450)
    assert ends["dense"] == (0.0, 2.3200307)
    assert ends["scalar"] == (-1.0, 0.0)
    assert bool(points["unused"].count) == (document is not RECORDED)


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"min": [0.0]}, "'min' or 'max' is missing"),
        ([0.0, 1.0], "a list of 2 is not a table"),
        ({"min": [0.0, 1.0], "max": [1.0]}, "min: a list of 2 is not a finite number"),
        ({"min": [0.0], "max": [[1.0], []]}, "max: a list of 2 is not a finite number"),
        ({"min": [0.0], "max": ["one"]}, "max: 'one' is not a finite number"),
        ({"min": [None], "max": [1.0]}, "min: null is not a finite number"),
        ({"min": [2.0], "max": [1.0]}, "is not above"),
    ],
)
def test_faults_name_the_tensor(tmp_path: Path, entry: Any, what: str) -> None:
    with pytest.raises(OptionError, match=what) as caught:
        read_statistics(written(tmp_path, {"model_qsvs": {"dense": entry}}))
    assert "model_qsvs.dense" in caught.value.reasons[0].what


@pytest.mark.parametrize("document", [{"model_qsvs": []}, {}, {"dense": 1}])
def test_another_document_is_refused(tmp_path: Path, document: Any) -> None:
    with pytest.raises(OptionError, match="not a file of statistics"):
        read_statistics(written(tmp_path, document))


def test_a_range_belongs_to_one_form(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has what all ranges need"):
        write_in_form(tmp_path / "s.json", SEEN, "tflq", "ema")
    with pytest.raises(OptionError, match="is not known"):
        write_in_form(tmp_path / "s.json", SEEN, "tensorflow", "minmax")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="needs a histogram"):
        write_in_form(tmp_path / "s.json", SEEN, "ai-edge-quantizer", "mse")
    assert not (tmp_path / "s.json").exists()
