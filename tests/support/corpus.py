"""The corpus of models: a folder that TFLQ_CORPUS names, or `shared` beside the checkout. Without it, tests skip."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(os.environ.get("TFLQ_CORPUS") or Path(__file__).resolve().parents[3] / "shared")

needs_corpus = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason=f"NO CORPUS at {CORPUS}: set TFLQ_CORPUS to the folder of models"),
]


_USUAL = range(4_000, 700_000)
"""Bytes of a network whose comparison is not long: smaller files have an operator or two, and are many."""


def networks() -> list[Any]:
    """The models of the zoo as parameters of a test, small and large ones marked as long."""
    paths = models("zoo")
    names = [f"{path.parent.name}-{path.stem}" for path in paths]
    marks = [[pytest.mark.long] if path.stat().st_size not in _USUAL else [] for path in paths]
    rows = zip(paths, names, marks, strict=True)
    return [pytest.param(path, id=name, marks=mark) for path, name, mark in rows]


def models(folder: str) -> list[Path]:
    """The models of one of its folders, in order; none where there is no corpus."""
    return sorted((CORPUS / folder).rglob("*.tflite"))
