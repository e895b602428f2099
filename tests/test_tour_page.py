"""docs/tour.md shows what the passes do now."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.pages.tour import page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tour.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make it anew: scripts/make_docs.py tour"


def test_every_pass_keeps_the_numbers() -> None:
    results = re.findall(r"evaluated (\[.*?\])", PAGE.read_text(encoding="utf-8"))
    assert len(results) >= 6
    assert len(set(results)) == 1
