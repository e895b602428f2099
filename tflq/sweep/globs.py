"""Files by pattern."""

from __future__ import annotations

import glob
import re
from pathlib import Path

__all__ = ["expanded", "is_pattern"]


def is_pattern(text: str) -> bool:
    """Whether a path is a pattern, and no file of just that name."""
    return glob.has_magic(text) and not Path(text).exists()


def expanded(pattern: str) -> list[tuple[str, Path]]:
    """The files that match a pattern, sorted, each with its path below the folder that the pattern starts from."""
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts) - 1)
    root = Path(*parts[:fixed])
    found = sorted(Path(p) for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    return [(path.relative_to(root).as_posix(), path) for path in found]
