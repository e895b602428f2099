"""README.md and the pages of the guide, followed, with what their commands print now.

All blocks of a page run from top to bottom in one folder, with the project's models, rules and examples, and with files
of the names that the pages use for the reader's own:

    console  each `$ tflq ...` line runs; the lines below it are what it printed; `$ echo $?` shows its exit code
    sh       each line runs, and exits with 0, or with N where it ends in `# exits with N`
    python   runs, with what the page's blocks before it defined
    toml     is the file that its title names

Times, and versions of other packages, differ from machine to machine: `same` compares two texts without these. Commands
of tools that are not installed are skipped, and listed.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")))
_FENCED = re.compile(r"^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^(?:import|from) (\w+)|, (\w+) as \w+", re.MULTILINE)
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
    """Gives a folder what the pages need: the project's files, and those that readers have of their own."""
    for name in ("models", "rules", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    for name, model in (("model", "cnn_int8"), ("float", "residual_float"), ("lstm", "lstm_float")):
        shutil.copy(ROOT / "models" / f"{model}.tflite", folder / f"{name}.tflite")
    from tflq import inspect

    (image,) = inspect(folder / "float.tflite").summary.functions[0].inputs
    rng = np.random.default_rng(0)
    for name in ("samples", "others"):
        shape = (8, *(dim or 1 for dim in (image.shape or ())[1:]))
        np.savez(folder / f"{name}.npz", **{image.name: rng.standard_normal(shape).astype(np.float32)})


@dataclass
class Walk:
    """A walk through the blocks of one page. wrong: commands that exit otherwise than the page says, and blocks that
    raise. skipped: what needs a tool that is not installed. shown: console blocks, and what they print now."""

    text: str
    wrong: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def follow(self) -> None:
        """Runs all blocks in the current folder."""
        for kind, title, block in _FENCED.findall(self.text):
            if kind == "console":
                self.shown.append((block, printed(block)))
            elif kind == "sh":
                for line in block.splitlines():
                    self._command(line)
            elif kind == "python":
                self._python(block)
            elif title:
                Path(title).write_text(block, encoding="utf-8")

    def _command(self, line: str) -> None:
        command, _, comment = line.partition("  #")
        expected = re.search(r"exits with (\d+)", comment)
        words = shlex.split(command)
        if words[:1] == ["tflq"]:
            code, text = _run(command)
        elif not words or shutil.which(words[0]) is None or words[:2] == ["pip", "install"]:
            self.skipped += words[:1]
            return
        else:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            code, text = done.returncode, done.stdout + done.stderr
        if code != int(expected[1] if expected else 0):
            self.wrong.append(f"{command}: exit code {code}\n{text}")

    def _python(self, block: str) -> None:
        packages = {name for pair in _IMPORT.findall(block) for name in pair if name}
        if missing := [name for name in sorted(packages) if find_spec(name) is None]:
            self.skipped += missing
            return
        try:
            with redirect_stdout(io.StringIO()):
                exec(compile(block, "page", "exec"), self.names)  # noqa: S102
        except Exception as error:  # noqa: BLE001  which the page does not speak of
            self.wrong.append(f"{block}{type(error).__name__}: {error}")


def followed(page: Path) -> str:
    """The text of a page, with what its commands print now. What is wrong in it goes to standard error."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        os.chdir(folder)
        walk = Walk(text)
        walk.follow()
        os.chdir(ROOT)
    for block, now in walk.shown:
        if not same(block, now):
            text = text.replace(block, now)
    print("\n".join(walk.wrong), end="", file=sys.stderr)
    return text
