"""The corpus of models: a folder that TFLQ_CORPUS names, or `shared` beside the checkout. Without it, tests skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("TFLQ_CORPUS") or Path(__file__).resolve().parents[3] / "shared")

needs_corpus = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason=f"NO CORPUS at {CORPUS}: set TFLQ_CORPUS to the folder of models"),
]


def models(folder: str) -> list[Path]:
    """The models of one of its folders, in order; none where there is no corpus."""
    return sorted((CORPUS / folder).rglob("*.tflite"))
