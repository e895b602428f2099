"""Pages for developers: links lead somewhere, and paths in backquotes exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")),
    *(ROOT / "docs" / f"{name}.md" for name in ("internals", "new-operator", "numerics", "glossary")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PATH = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.(?:py|toml|md))?)`")
ELSEWHERE = ("kernels/", "tools/", "tflite/")
"""Folders of LiteRT."""
PLACES = ("", "tflq", "docs", "tflq/legalize", "tests")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not broken
    paths = [path for path in PATH.findall(text) if not path.startswith(ELSEWHERE) and "foo" not in path]
    gone = [path for path in paths if not any((ROOT / place / path).exists() for place in PLACES)]
    assert not gone
