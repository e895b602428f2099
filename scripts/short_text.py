"""The text of the IR as a page or a test shows it: without locations, notes on the file and long constants."""

from __future__ import annotations

import hashlib
import re

__all__ = ["shortened", "with_sums"]

RESOURCES = re.compile(r"\{-#.*#-\}\s*", re.DOTALL)
LEFT_OUT = (
    (re.compile(r" loc\(.*\)$", re.MULTILINE), ""),
    (re.compile(r"tflq\.\w+ = (?:\[\{[^\]]*\]|\{[^}]*\}|\[[^\]]*\]|\d+)(?:, )?"), ""),
    (re.compile(r", \}"), "}"),
    (re.compile(r" \{\}| attributes \{\}"), ""),
)
BLOB = re.compile(r'\s*(\w+): "0x([0-9A-Fa-f]*)",?\s*$', re.MULTILINE)


def shortened(text: str) -> str:
    """The text without locations, notes on the file and the bytes of long constants."""
    text = RESOURCES.sub("", text)
    for pattern, by in LEFT_OUT:
        text = pattern.sub(by, text)
    return text.strip()


def with_sums(text: str) -> str:
    """The text as `shortened`, but long constants are named by a sum of their bytes: other bytes, other text."""
    sums = {name: hashlib.sha256(blob.encode()).hexdigest()[:8] for name, blob in BLOB.findall(text)}
    text = shortened(text)
    return re.sub(r"dense_resource<(\w+)>", lambda found: f"dense_resource<{sums[found[1]]}>", text)
