"""README.md and the guide show what the commands print, figures included, and the library example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import make_readme

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with the project's models."""
    make_readme.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", make_readme.PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("folder")
def test_commands_print_what_it_shows(page: Path) -> None:
    """All but times and versions of other packages. `python scripts/make_readme.py` writes it anew."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    for block in make_readme.blocks(page.read_text(encoding="utf-8")):
        made = make_readme.printed(block)
        assert make_readme.same(block, made), made


def test_pages_have_commands() -> None:
    assert {page.stem for page in make_readme.PAGES if make_readme.blocks(page.read_text(encoding="utf-8"))} >= {
        "README",
        "deploy",
    }


def test_it_can_be_read_as_text() -> None:
    assert [line for line in TEXT.splitlines() if len(line) > 120] == []


def test_what_may_differ() -> None:
    assert make_readme.same("in 0.39 s, ai-edge-litert 2.3.0,", "in 12 s, ai-edge-litert 2.1.6,")
    assert not make_readme.same("12.2 KiB", "12.3 KiB")


@pytest.mark.usefixtures("folder")
def test_the_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    example = TEXT.split("```python\n")[1].split("```")[0]
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    expected = re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == expected
