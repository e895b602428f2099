"""The documentation is a site without dead links, and the first notebook runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a dead link, or a page that the navigation lacks, fails."""
    for module in ("mkdocs", "material", "mkdocstrings"):
        if find_spec(module) is None:
            pytest.skip("THE SITE IS NOT BUILT: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pages_are_there_and_can_be_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert places >= {"index.html", "guide/deploy.html", "cli.html", "api.html", "ARCHITECTURE.html"}
    assert "tflq.convert" in (site / "api.html").read_text(encoding="utf-8")
    assert "A quantized TFLite model becomes" in (site / "examples" / "first_steps.html").read_text(encoding="utf-8")


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in ("index.html", "guide/deploy.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert 'src="http' not in text
        assert 'rel="stylesheet" href="http' not in text


def test_the_first_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    notebook = json.loads((ROOT / "examples" / "first_steps.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)  # noqa: S102
    assert names["result"].verdict == "equal"
    assert names["sizes"]["kernels"] < names["sizes"]["TOSA"] < names["sizes"]["integer"]
