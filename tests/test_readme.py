"""README.md and the guide show what the commands print, figures included, and the library example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.pages import readme

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, with the project's models."""
    readme.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", readme.PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("folder")
def test_a_page_can_be_followed(page: Path) -> None:
    """From top to bottom, and commands print what it shows, but for times and versions of other packages.
    `python scripts/make_docs.py` writes it anew."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    walk = readme.Walk(page.read_text(encoding="utf-8"))
    walk.follow()
    assert not walk.wrong
    for block, now in walk.shown:
        assert readme.same(block, now), now
    if walk.skipped:
        pytest.skip(f"the rest of the page was followed; not installed: {', '.join(sorted(set(walk.skipped)))}")


@pytest.mark.usefixtures("folder")
def test_a_page_that_fails_is_found() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    line = "tflq convert model.tflite out.tflite -q"
    walk = readme.Walk(f"```sh\n{line}\n{line}\n{line}  # exits with 2\n```\n\n```python\nx = 1 / 0\n```\n")
    walk.follow()
    assert [text.splitlines()[0] for text in walk.wrong] == [f"{line}: exit code 2", "x = 1 / 0"]


def test_pages_have_commands() -> None:
    assert {page.stem for page in readme.PAGES if readme.blocks(page.read_text(encoding="utf-8"))} >= {
        "README",
        "deploy",
    }


def test_it_can_be_read_as_text() -> None:
    assert [line for line in TEXT.splitlines() if len(line) > 120] == []


def test_what_may_differ() -> None:
    assert readme.same("in 0.39 s, ai-edge-litert 2.3.0,", "in 12 s, ai-edge-litert 2.1.6,")
    assert not readme.same("12.2 KiB", "12.3 KiB")


@pytest.mark.usefixtures("folder")
def test_the_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    example = TEXT.split("```python\n")[1].split("```")[0]
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    expected = re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == expected
