"""Numbers in JSON documents: finite ones as they are, with all their digits; JSON has no others, these are strings."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["plain_numbers"]


def plain_numbers(document: Any) -> Any:
    """A document whose floats are all finite: "NaN", "Infinity" and "-Infinity", which `float()` reads, stand for the
    others; tuples become lists."""
    if isinstance(document, dict):
        return {key: plain_numbers(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [plain_numbers(value) for value in document]
    if isinstance(document, float) and not math.isfinite(document):
        return "NaN" if math.isnan(document) else "Infinity" if document > 0 else "-Infinity"
    return document
