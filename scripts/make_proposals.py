"""Write what the commands in docs/proposals.md print, as they print it now.

python scripts/make_proposals.py

Each `$ tflq ...` line in a console block runs with the examples of `examples/proposals`, by the machinery of
`make_readme`; the lines below it are what it printed, without locations.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.make_readme import blocks, printed  # noqa: E402

PAGE = ROOT / "docs" / "proposals.md"
EXAMPLES = Path("examples", "proposals")
_LOCATION = re.compile(r" loc\(.*\)$", re.MULTILINE)


def page(text: str) -> str:
    """The page's text with what its commands print in a folder of their own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / EXAMPLES, folder / EXAMPLES)
        os.chdir(folder)
        try:
            for block in blocks(text):
                text = text.replace(f"```console\n{block}```", f"```console\n{_LOCATION.sub('', printed(block))}```")
        finally:
            os.chdir(before)
    return text


def commands(text: str) -> list[str]:
    """The commands of a page."""
    return [line[2:] for block in blocks(text) for line in block.splitlines() if line.startswith("$ tflq ")]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
