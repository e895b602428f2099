"""Write tests/golden: what an operator of each family becomes. Read the diff to see what changed.

python scripts/make_golden.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.golden import FOLDER, texts_of  # noqa: E402


def main() -> None:
    """Writes all files, and removes those of families that are gone."""
    FOLDER.mkdir(exist_ok=True)
    written = dict(texts_of())
    for path in FOLDER.glob("*.mlir"):
        if path not in written:
            path.unlink()
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
