"""docs/exceptions.md is what the interpreter gives today, and lists all that conversions warn of."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import pytest

from tflq.legalize.caveats import EXCEPTIONS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "exceptions.md"
MEASURED_WITH = re.compile(r"ai-edge-litert \d+\.\d+\.\d+, the reference")


@pytest.fixture(scope="module")
def made() -> Any:
    """The module of the page."""
    pytest.importorskip("ai_edge_litert", reason="docs/exceptions.md is not checked: pip install '.[verify]'")
    from scripts.pages import exceptions

    return exceptions


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="docs/exceptions.md was measured on x86-64")
def test_the_page_is_current(made: Any) -> None:
    current, kept = (MEASURED_WITH.sub("", text) for text in (made.page(), PAGE.read_text(encoding="utf-8")))
    assert kept == current, "make it anew: scripts/make_docs.py exceptions"


def test_each_exception_has_a_section_with_cases() -> None:
    sections = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
    assert list(sections) == list(EXCEPTIONS)
    for name, section in sections.items():
        assert f"Its remedy: {EXCEPTIONS[name].remedy}." in section
        lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
        kernel, apart = ([cells[place] for cells in lines[1:] if len(cells) == 5] for place in (2, 3))
        assert apart, name
        assert "does not run" not in apart, "what is converted runs"
        assert "does not run" not in kernel, "what is said of a kernel is measured with one that runs"
        if EXCEPTIONS[name].reproduced and name != "state":
            assert set(apart) <= {"0", "not known"}, "what is reproduced equals the interpreter's"
