"""Names and docstrings of `tflq` in plain words: the numbers of faults only fall."""

from __future__ import annotations

from scripts.words import LIMITS, places


def test_faults_are_at_their_limit() -> None:
    counts = {kind: len(found) for kind, found in places().items()}
    assert counts == {kind: limit for kind, limit in LIMITS.items() if limit}, (
        "more than the limit: `python scripts/words.py --list` shows them; fewer: lower it in scripts/words.py"
    )
