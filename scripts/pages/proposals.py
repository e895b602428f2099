"""docs/proposals.md, with what its commands print now.

Each `$ tflq ...` line in a console block runs with the examples of `examples/proposals`, by the machinery of
`pages/readme.py`; the lines below it are what it printed, without locations.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from scripts.pages.readme import blocks, printed

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "proposals.md"
EXAMPLES = Path("examples", "proposals")
_LOCATION = re.compile(r" loc\(.*\)$", re.MULTILINE)


def page() -> str:
    """The page's text, with what its commands print in a folder of their own."""
    text, before = PAGE.read_text(encoding="utf-8"), Path.cwd()
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
