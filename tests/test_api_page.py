"""docs/api.md says what `import tflq` offers."""

from __future__ import annotations

from pathlib import Path

import tflq
from scripts.make_api_docs import page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make it anew: scripts/make_api_docs.py"


def test_every_public_name_is_there() -> None:
    text = page()
    assert not [name for name in tflq.__all__ if name not in text]
