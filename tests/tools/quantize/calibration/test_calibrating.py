"""Calibration: what is seen, that it does not depend on how it is gathered, and what goes on after an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.analysis.statistics import PointStatistics, Statistics, merge_statistics, read_statistics, write_statistics
from tflq.base.errors import FileError, InvalidModelError, OptionError
from tflq.numerics.ranges import finite_bins, histogram
from tflq.tools.quantize.calibration.calibrate import digests

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
POINTS = ["x", "first", "positive", "second", "y"]


def calibrated(model: Path, data: Any, destination: Path, **options: Any) -> bytes:
    tflq.calibrate(model, data, destination, **options)
    return destination.read_bytes()


def test_what_is_seen_is_what_the_model_computes(tmp_path: Path) -> None:
    data = samples(20)
    module = net()
    statistics = tflq.calibrate(written(tmp_path, module), list(data)).statistics
    assert list(statistics.points) == POINTS
    assert len(statistics.samples) == 20
    weights = [op.operand(1).array for op in module.main.ops if op.short_name == "fully_connected"]
    first = data @ weights[0].T
    for key, values in (("x", data), ("first", first), ("positive", np.maximum(first, 0))):
        point = statistics.points[key]
        assert point.count == values.size
        lows, highs = (np.array(side, np.float64) for side in (point.sample_minima, point.sample_maxima))
        np.testing.assert_allclose(lows, values.min(axis=1), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(highs, values.max(axis=1), rtol=1e-5, atol=1e-6)
        assert (point.minimum, point.maximum) == (lows.min(), highs.max())
    assert statistics.points["x"].bins == finite_bins(histogram(data))
    assert sum(statistics.points["y"].bins.values()) == 160


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_workers_or_splits(tmp_path: Path) -> None:
    model, data = written(tmp_path, net()), samples(50)
    whole = calibrated(model, list(data), tmp_path / "whole.json")
    assert calibrated(model, iter(data), tmp_path / "three.json", workers=3) == whole
    for name, save in (("stored", np.savez), ("compressed", np.savez_compressed)):
        save(tmp_path / f"{name}.npz", given=data)
        assert calibrated(model, tmp_path / f"{name}.npz", tmp_path / f"{name}.json", workers=2) == whole
    parts = [tflq.calibrate(model, list(part)).statistics for part in np.split(data, [1, 7, 20])]
    write_statistics(tmp_path / "merged.json", merge_statistics(parts))
    assert (tmp_path / "merged.json").read_bytes() == whole
    assert read_statistics(tmp_path / "whole.json") == merge_statistics(parts)


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    model, data = written(tmp_path, net()), samples(50)
    whole = calibrated(model, list(data), tmp_path / "whole.json")
    tflq.calibrate(model, list(data[:33]), tmp_path / "some.json.part")
    assert calibrated(model, list(data), tmp_path / "some.json", resume=True) == whole
    assert not (tmp_path / "some.json.part").exists()


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    model, destination = written(tmp_path, net()), tmp_path / "some.json"
    np.savez(tmp_path / "data.npz", given=samples(200))
    whole = calibrated(model, tmp_path / "data.npz", tmp_path / "whole.json")
    script = (
        "import sys, tflq.tools.quantize.calibration.calibrate as c\n"
        "if __name__ == '__main__':\n"
        "    c.SAVED_EVERY = 0\n"
        "    import tflq; tflq.calibrate(*sys.argv[1:], resume=True)\n"
    )
    (tmp_path / "run.py").write_text(script)
    line = [sys.executable, str(tmp_path / "run.py"), str(model), str(tmp_path / "data.npz"), str(destination)]
    for _ in range(2):
        process = subprocess.Popen(line, start_new_session=True)
        before = _samples(destination)
        while process.poll() is None and _samples(destination) <= before:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(line, check=True)
    assert destination.read_bytes() == whole


def _samples(destination: Path) -> int:
    part = destination.with_name("some.json.part")
    return len(read_statistics(part).samples) if part.exists() else -1


@pytest.mark.slow
def test_only_what_has_changed_is_measured_again(tmp_path: Path) -> None:
    data, destination = samples(20), tmp_path / "statistics.json"
    calibrated(written(tmp_path, net()), list(data), destination)
    edited = written(tmp_path, net(last="tfl.logistic"), "edited.tflite")
    again = tflq.calibrate(edited, list(data), destination, resume=True)
    assert list(again.reused) == POINTS[:4]
    assert destination.read_bytes() == calibrated(edited, list(data), tmp_path / "anew.json")
    more = samples(25)
    more[:20] = data
    assert calibrated(edited, list(more), destination, resume=True) == calibrated(
        edited, list(more), tmp_path / "more.json"
    )


@pytest.mark.parametrize(("changed", "what"), [(samples(20, 1), "sample 0 is not the one"), (samples(20)[:9], "has 9")])
def test_other_data_cannot_be_resumed(tmp_path: Path, changed: np.ndarray, what: str) -> None:
    model = written(tmp_path, net())
    before = calibrated(model, list(samples(20)), tmp_path / "some.json")
    with pytest.raises(OptionError, match=what):
        tflq.calibrate(model, list(changed), tmp_path / "some.json", resume=True)
    assert (tmp_path / "some.json").read_bytes() == before


def test_digests_are_of_what_produces_a_value() -> None:
    one, same, other, last = (digests(m.main) for m in (net(), net(), net(1), net(last="tfl.logistic")))
    assert list(one.values()) == list(same.values())
    assert [a == b for a, b in zip(one.values(), last.values(), strict=True)].count(False) == 1
    changed = [v.name for (v, a), b in zip(one.items(), other.values(), strict=True) if a != b]
    assert changed == ["first/weights", "first", "positive", "second/weights", "second", "y"]


def test_what_is_not_finite_is_an_error_or_counted(tmp_path: Path) -> None:
    model, data = written(tmp_path, net()), samples(20)
    data[17, 3] = np.inf
    with pytest.raises(OptionError, match="sample 17 gives NaN or infinity at 'x'"):
        tflq.calibrate(model, list(data), tmp_path / "s.json")
    assert not (tmp_path / "s.json").exists()
    point = tflq.calibrate(model, list(data), ignore_nonfinite=True).statistics.points["x"]
    assert (point.count, point.infinite, point.nan) == (159, 1, 0)
    assert np.isfinite(np.array([point.minimum, point.maximum], np.float64)).all()


def test_a_sample_that_does_not_fit_is_named_by_the_process_that_reads_it(tmp_path: Path) -> None:
    model, folder = written(tmp_path, net()), tmp_path / "data"
    folder.mkdir()
    for place, count in enumerate((8, 8, 7)):
        np.save(folder / f"{place}.npy", samples(1)[0, :count])
    with pytest.raises(OptionError, match=r"input 'given' has the shape .* and the sample of .*2\.npy \(7,\)"):
        tflq.calibrate(model, folder, tmp_path / "s.json", workers=2)
    assert not (tmp_path / "s.json").exists()


def test_no_samples_and_no_model_are_errors(tmp_path: Path) -> None:
    model = written(tmp_path, net())
    with pytest.raises(OptionError, match="no samples"):
        tflq.calibrate(model, [], tmp_path / "s.json")
    with pytest.raises(OptionError, match="there is no signature 'run'"):
        tflq.calibrate(model, list(samples(1)), signature="run")
    with pytest.raises(InvalidModelError):
        tflq.calibrate(Path(__file__), list(samples(1)))
    with pytest.raises(FileError, match="never replaced"):
        tflq.calibrate(model, list(samples(1)), model)
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]


def test_a_model_without_signature_runs_its_first_subgraph(tmp_path: Path) -> None:
    model = written(tmp_path, net(signature=False))
    assert list(tflq.calibrate(model, [{"x": row} for row in samples(2)]).statistics.points) == POINTS


def test_statistics_of_different_models_do_not_merge() -> None:
    parts = [Statistics({"x": PointStatistics(1, 0.0, 1.0, digest=digest)}) for digest in "ab"]
    with pytest.raises(OptionError, match="'x' have another digest"):
        merge_statistics(parts)
    with pytest.raises(OptionError, match="there is no point 'x', and the statistics before have it"):
        merge_statistics([parts[0], Statistics({"y": PointStatistics(0)})])
