"""Each command starts and does its work, in a process of its own, under the interpreter's flags.

`pytest -m smoke` is what `make oldest` runs with the oldest dependencies.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.commands import CASES, fill

FLAGS: Final[tuple[tuple[str, ...], ...]] = ((), ("-OO",))
"""Flags of the interpreter that all commands run under, one set after the other."""

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("smoke")
    fill(place)
    return place


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: "".join(flags) or "plain")
@pytest.mark.parametrize("name", CASES)
def test_the_command_starts(name: str, flags: tuple[str, ...], filled: Path, tmp_path: Path) -> None:
    case = CASES[name]
    for package in case.needs:
        pytest.importorskip(package, reason=f"needs {package}")
    place = tmp_path / "folder"
    shutil.copytree(filled, place)
    said = ""
    for line in case.lines:
        command = [sys.executable, *flags, "-m", "tflq", *shlex.split(line)]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == (case.code if line is case.lines[-1] else 0), said
    assert case.prints in said
