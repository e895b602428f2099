"""The documentation is a site without dead links, it describes what `import tflq` offers, and a notebook runs."""

from __future__ import annotations

import html
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tflq

ROOT = Path(__file__).resolve().parents[1]
NAMES = [name for name in tflq.__all__ if not name.startswith("_")]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(tflq, name))]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(tflq, name))]


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


@pytest.mark.slow
def test_pages_are_there_and_can_be_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert places >= {"index.html", "guide/deploy.html", "cli.html", "api.html", "ARCHITECTURE.html", "operators.html"}
    assert "tflq.convert" in (site / "api.html").read_text(encoding="utf-8")
    assert "A quantized TFLite model becomes" in (site / "examples" / "first_steps.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in ("index.html", "guide/deploy.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert 'src="http' not in text
        assert 'rel="stylesheet" href="http' not in text


@pytest.mark.slow
def test_the_python_page_describes_every_public_name(site: Path) -> None:
    source = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    page = (site / "api.html").read_text(encoding="utf-8")
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
    assert "`tflq.__version__`" in source
    for name in NAMES:
        assert re.search(rf"^\| `tflq\.{name}` \| \S.+ \|$", source, re.MULTILINE), name
        assert f'id="{getattr(tflq, name).__module__}.{name}"' in page, name
        summary = (inspect.getdoc(getattr(tflq, name)) or "").partition("\n\n")[0]
        assert summary, name
        assert " ".join(summary.replace("`", "").split()) in words, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_describe_parameters_results_and_errors(name: str) -> None:
    call = getattr(tflq, name)
    sections = described(call)
    assert sections["parameters"] == parameters(call)
    assert {"returns", "raises", "example"} <= set(sections)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_describe_fields_properties_and_methods(name: str) -> None:
    kind = getattr(tflq, name)
    if is_dataclass(kind):
        assert described(kind)["attributes"] == [each.name for each in fields(kind)]
    for member in members(kind):
        sections = described(member)
        assert sections.get("parameters", []) == parameters(member)[1:], member.__qualname__


def described(which: Any) -> dict[str, list[str]]:
    """The sections of a docstring, and the names that each describes."""
    griffe = pytest.importorskip("griffe", reason="needs mkdocstrings: pip install '.[docs]'")
    text = inspect.getdoc(which) if which.__doc__ else ""
    assert text, f"{which.__qualname__} has no docstring"
    found: dict[str, list[str]] = {}
    for section in griffe.parse_google(griffe.Docstring(text), warnings=False):
        kind = section.kind.value
        listed = kind in ("parameters", "attributes")
        assert not listed or all(item.description.strip() for item in section.value), text
        key = section.value.kind if kind == "admonition" else kind
        found[key] = [item.name for item in section.value] if listed else []
    return found


def parameters(call: Callable[..., Any]) -> list[str]:
    """Names of the parameters of a function."""
    return list(inspect.signature(call).parameters)


def members(kind: type) -> Iterator[Callable[..., Any]]:
    """Functions behind the public properties and methods that a class defines itself."""
    for name, member in vars(kind).items():
        if isinstance(member, property):
            function: Any = member.fget
        elif isinstance(member, cached_property):
            function = member.func
        else:
            function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            yield function


def notebook_names(name: str) -> dict[str, Any]:
    """What a notebook has defined after its cells ran, in the current folder."""
    names: dict[str, Any] = {}
    notebook = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)  # noqa: S102
    return names


def test_the_first_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    monkeypatch.chdir(ROOT)
    names = notebook_names("first_steps")
    assert names["result"].verdict == "equal"
    assert names["sizes"]["kernels"] < names["sizes"]["TOSA"] < names["sizes"]["integer"]


def test_the_notebook_on_quantizing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    names = notebook_names("quantize")
    assert not names["result"].kept
    assert names["better"].decibels > names["debugging"].decibels > 35
    assert names["verification"].verdict == "equal"
