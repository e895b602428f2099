"""A backend from outside: the one of docs/new-backend.md, as a package that is installed."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.cli import main
from tflq.formats import backend as backends

pytestmark = pytest.mark.usefixtures("forked")

PAGE = Path(__file__).parents[2] / "docs" / "new-backend.md"
MODEL = Path(__file__).parents[2] / "models" / "cnn_int8.tflite"


def _forget() -> None:
    backends._outside.cache_clear()
    backends._loaded.cache_clear()
    sys.modules.pop("my_package", None)


@pytest.fixture(autouse=True)
def ints(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package, also for processes that are started."""
    place = tmp_path_factory.mktemp("packages")
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    (place / "my_package.py").write_text(code[1])
    info = place / "my_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tflq.backends]\nints = my_package:BACKEND\n")
    monkeypatch.syspath_prepend(str(place))
    paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    _forget()
    yield importlib.import_module("my_package")
    _forget()


def test_it_is_chosen_by_suffix_by_name_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.ints"
    assert main.run(["convert", str(MODEL), str(out), "--json"]) == 0
    conversion = tflq.convert(MODEL, format="ints")
    assert conversion.data == out.read_bytes()
    assert conversion.report.counts["integer"]
    capsys.readouterr()
    assert main.run(["convert", "--help-all"]) == 0
    assert "ints" in capsys.readouterr().out
    with pytest.raises(tflq.OptionError, match="did you mean 'ints'"):
        tflq.convert(MODEL, format="int")
    with pytest.raises(tflq.OptionError, match="mac 'float32' is for TFLite files"):
        tflq.convert(MODEL, format="ints", mac="float32")
    with pytest.raises(tflq.OptionError, match=r"target 'tosa' is not known; known for \.ints files: "):
        tflq.convert(MODEL, format="ints", target="tosa")


def test_each_signature_has_a_file_that_runs_it(tmp_path: Path) -> None:
    model = MODEL.with_name("two_signatures.tflite")
    tflq.convert(model, tmp_path / "out.ints")
    first, second = (tmp_path / f"out.{key}.ints" for key in ("classify", "embed"))
    assert first.read_bytes() != second.read_bytes()
    assert all(tflq.verify(model, path).equal for path in (first, second))


def test_what_has_no_evaluator_is_said_not_to_run(tmp_path: Path) -> None:
    model = MODEL.with_name("lstm_float.tflite")
    tflq.convert(model, tmp_path / "out.ints")
    assert "no evaluator" in str(tflq.verify(model, tmp_path / "out.ints"))


def test_it_has_other_suffixes(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert tflq.convert(MODEL, out).format == "ints"
    assert tflq.verify(MODEL, out).passed
    assert tflq.convert(MODEL, tmp_path / "out.bin", format="ints").format == "ints"
    with pytest.raises(tflq.OptionError, match="the suffix says another format than tosa"):
        tflq.convert(MODEL, tmp_path / "o.json", format="tosa")
    with pytest.raises(tflq.OptionError, match=r"there are \.tflite, .*, \.ints, \.json"):
        tflq.convert(MODEL, tmp_path / "out.jsn")


def test_the_command_line_takes_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = tmp_path / "out.json", tmp_path / "report"
    assert main.run(["convert", str(MODEL), str(out), "--format", "ints", "--report", str(report), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["files"], said["options"]["format"]) == ([str(out)], "ints")
    assert said["bytes_out"] == out.stat().st_size
    assert said["report"] == json.loads(report.read_text())
    assert main.run(["convert", str(MODEL), "-o", str(tmp_path / "many"), "--format", "ints", "--quiet"]) == 0
    assert (tmp_path / "many" / "cnn_int8.ints").read_bytes() == out.read_bytes()
    capsys.readouterr()
    assert main.run(["convert", str(MODEL), "-", "--format", "inst"]) == 2
    assert "did you mean 'ints'?" in capsys.readouterr().err.lower()


def test_a_sweep_converts_and_verifies_with_it(tmp_path: Path) -> None:
    assert main.run(["sweep", str(MODEL), "-o", str(tmp_path / "s"), "--target", "ints", "--no-cache"]) == 0
    (line,) = (tmp_path / "s" / "results.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert (found["target"], found["status"]) == ("ints", "ok")
    assert "tflq.analysis.evaluate" in found["verification"]["interpreter"]


def test_it_is_verified(tmp_path: Path, ints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.ints"
    tflq.convert(MODEL, out)
    assert tflq.verify(MODEL, out).passed
    run = ints.Runner.compute

    def wrong(self: Any, inputs: Any) -> list[np.ndarray]:
        return [array ^ 1 for array in run(self, inputs)]

    monkeypatch.setattr(ints.Runner, "compute", wrong)
    assert not tflq.verify(MODEL, out).passed
