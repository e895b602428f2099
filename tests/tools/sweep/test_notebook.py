"""The notebook for Kaggle runs from its first cell to its last, with a cache that has its model."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tflq.tools.sweep.store import read_results

pytest.importorskip("kagglehub", reason="KAGGLE IS NOT TESTED: pip install kagglehub")

ROOT = Path(__file__).parents[3]
HANDLE = "tensorflow/efficientnet/tfLite/lite0-int8/2"


def test_its_cells_run(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "hub" / "models" / HANDLE
    folder.mkdir(parents=True)
    shutil.copy(models / "cnn_int8.tflite", folder / "2.tflite")
    folder.with_name("2.complete").touch()
    shown: list[Any] = []
    display = ModuleType("IPython.display")
    display.__dict__.update(FileLink=str, Markdown=str, display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    notebook = json.loads((ROOT / "examples" / "kaggle_sweep.ipynb").read_text())
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and not text.startswith("%pip"):
            exec(compile(text, cell["id"], "exec"), names)  # noqa: S102
    results = list(read_results(tmp_path / "sweep"))
    assert {r["target"]: r["status"] for r in results} == {"integer": "ok", "kernels": "ok"}
    (entry,) = tomllib.loads((tmp_path / "kaggle.toml").read_text())["model"]
    assert entry["verified"]
    assert entry["sha256"] == results[0]["model"]["sha256"]
    assert "2 ok" in shown[0] or "| ok |" in shown[0]
    assert shown[1] == "sweep/index.html"
