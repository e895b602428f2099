"""Pages for developers: links lead somewhere, paths in backquotes exist, and ARCHITECTURE.md draws what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")),
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("core", "glossary", "internals", "new-backend", "new-operator", "new-pass", "numerics")
    ),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PATH = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.(?:py|toml|md))?)`")
ELSEWHERE = ("kernels/", "tools/", "tflite/")
"""Folders of LiteRT."""
PLACES = ("", "tflq", "docs", "tests")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not broken
    paths = [path for path in PATH.findall(text) if not path.startswith(ELSEWHERE) and "foo" not in path]
    gone = [path for path in paths if not any((ROOT / place / path).exists() for place in PLACES)]
    assert not gone


def rows(title: str) -> list[list[str]]:
    """The rows of the first table of a section of ARCHITECTURE.md."""
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    table = section.partition("\n| ")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_floors_are_those_of_the_import_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["tflq"])
    drawn = [set(re.findall(r"`(\w+)`", row[1])) for row in rows("Floors")]
    assert drawn == [set(re.findall(r"\w+", layer)) for layer in layers]


def test_rooms_have_the_files_that_are_named() -> None:
    named = {row[0].strip("`"): re.findall(r"`([a-z_]+\.py)`", row[1]) for row in rows("Rooms")}
    gone = [
        f"{room}/{name}"
        for room, names in named.items()
        for name in names
        if not (ROOT / "tflq" / room / name).exists()
    ]
    assert not gone


def test_rooms_are_the_folders_with_code() -> None:
    """A room has a row, or stands among the files of the room around it."""
    named = [row[0].strip("`") for row in rows("Rooms")]
    named += [path.rstrip("/") for row in rows("Rooms") for path in re.findall(r"`((?:[a-z_]+/)+)`", row[1])]
    folders = {path.parent.relative_to(ROOT / "tflq").as_posix() for path in (ROOT / "tflq").rglob("*.py")} - {"."}
    assert set(named) == folders


def test_pages_that_people_write_have_40_000_words_at_most() -> None:
    """Numbers and the bars of tables are not words."""
    generated = {ROOT / "docs" / f"{name}.md" for name in ("cli", "exceptions", "proposals", "tour")}
    pages = {*PAGES, ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - generated
    words = (word for page in pages for word in page.read_text(encoding="utf-8").split())
    assert sum(any(map(str.isalpha, word)) for word in words) <= 40_000
