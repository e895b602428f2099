"""Names and docstrings of `tflq` in plain words: the numbers of faults only fall."""

from __future__ import annotations

import pytest

from scripts.words import LIMITS, places

PLACES = places()


@pytest.mark.parametrize("kind", LIMITS)
def test_faults_are_at_their_limit(kind: str) -> None:
    count, limit = len(PLACES[kind]), LIMITS[kind]
    assert count <= limit, f"{count} of {limit}: `python scripts/words.py --list` shows them"
    assert count == limit, f"fewer than before: lower the limit of '{kind}' in scripts/words.py to {count}"
