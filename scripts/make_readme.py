"""Write what the commands in README.md and in the guide print, as they print it now.

python scripts/make_readme.py

Each `$ tflq ...` line in a console block runs in a folder with the project's models and rules; the lines below it are
what it printed. `$ echo $?` shows the exit code of the command before it. Times, and versions of other packages, differ
from machine to machine: `same` compares two texts without these.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")))
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_VARIES = re.compile(r"[\d.]+ m?s\b|(?<=ai-edge-litert )[\d.]+|(?<=reference model )[\d.]+")


def blocks(text: str) -> list[str]:
    """The console blocks of a text."""
    return _BLOCK.findall(text)


def printed(block: str) -> str:
    """A block with what its commands print in the current folder."""
    lines, code = [], 0
    for command in commands(block):
        if command == "echo $?":
            lines.append(f"$ {command}\n{code}\n")
            continue
        code, text = _run(command)
        lines.append(f"$ {command}\n{text}")
    return "".join(lines)


def commands(block: str) -> Iterator[str]:
    return (line[2:] for line in block.splitlines() if line.startswith("$ "))


def same(one: str, other: str) -> bool:
    """Whether two texts are alike but for times and versions of other packages."""
    return _VARIES.sub("#", one).split() == _VARIES.sub("#", other).split()


def _run(command: str) -> tuple[int, str]:
    from tflq.cli import main

    name, *arguments = shlex.split(command)
    if name != "tflq":
        raise ValueError(f"a page runs {name!r}: only tflq and 'echo $?' can be checked")
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        code = main.run(arguments)
    return code, text.getvalue()


def prepare(folder: Path) -> None:
    """Gives a folder what the commands need."""
    for name in ("models", "rules"):
        shutil.copytree(ROOT / name, folder / name)


def _make(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        os.chdir(folder)
        for block in blocks(text):
            made = printed(block)
            if not same(block, made):
                text = text.replace(block, made)
        os.chdir(ROOT)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for _page in PAGES:
        _make(_page)
