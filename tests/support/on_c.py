"""Programs in C: written, compiled with every warning as an error, and run against the checksum of the evaluator."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tflq.base.files import Pieces
from tflq.formats.backend import Writing, backend
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value

COMPILER = os.environ.get("CC", "cc")
WARNINGS = (
    "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wcast-align -Werror".split()
)
need_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"NO C COMPILER: {COMPILER}")


def module_of(inputs: Sequence[Value], ops: Sequence[Op], outputs: Sequence[Value] | None = None) -> Module:
    """A module of one function in the tosa form; its outputs are the results of the last op."""
    return Module([Function("main", list(inputs), list(outputs or ops[-1].results), list(ops))])


def placed(files: Sequence[tuple[str, Pieces]], folder: Path, stem: str) -> Path:
    """Writes the files of a program; the path of its source."""
    for ending, pieces in files:
        (folder / f"{stem}{ending}").write_bytes(b"".join(pieces))
    return folder / f"{stem}.c"


def written(module: Module, folder: Path, **choices: Any) -> Path:
    """The source of a module in the tosa form."""
    return placed(backend("c").files(module, 0, None, Writing("net", "", choices)), folder, "net")


def compiled(source: Path, *flags: str) -> Path:
    """The program of a source with the self-test."""
    program = source.with_suffix("")
    extra = [str(path) for path in source.parent.glob(f"{source.stem}_data.c")]
    command = [
        COMPILER,
        *WARNINGS,
        *flags,
        f"-D{source.stem.upper()}_MAIN",
        "-o",
        str(program),
        str(source),
        *extra,
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[:2000]
    return program


def assert_passes(source: Path, *flags: str) -> None:
    """The self-test passes: outputs are those of the evaluator."""
    assert "int main(" in source.read_text()
    done = subprocess.run([compiled(source, *flags)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout == f"{source.stem}: pass\n"
