"""Each command starts and does its work, as the script `tflq`, under the interpreter's flags, in a folder of traps:
files named like all modules that could be imported. None is imported, by whatever process the command starts.

`make oldest` runs the commands plainly with the oldest dependencies; CI, with the newest, without docstrings.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest
from support.commands import CASES, fill

from tflq.cli.main import COMMANDS

FLAGS: Final = (pytest.param((), id="plain", marks=pytest.mark.long), pytest.param(("-OO",), id="-OO"))
"""Flags of the interpreter that all commands run under, one set after the other."""
PROGRAM: Final = "import sys\nfrom tflq.cli.main import main\nsys.exit(main())\n"
"""`tflq` as an installer writes it. Python puts the folder of the program on its path, not the current one."""
TRAP: Final = "open({mark!r}, 'a').write(__name__ + ' ')\nraise ImportError('a trap')\n"

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, the mark that a trap leaves, and a folder to run in."""
    root = tmp_path_factory.mktemp("smoke")
    (root / "tflq").write_text(PROGRAM)
    place = root / "folder"
    place.mkdir()
    fill(place)
    for name in {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "tflq"}:
        (place / f"{name}.py").write_text(TRAP.format(mark=str(root / "mark")))
    return root


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("name", CASES)
def test_the_command_starts(name: str, flags: tuple[str, ...], filled: Path, tmp_path: Path) -> None:
    case = CASES[name]
    for package in case.needs:
        pytest.importorskip(package, reason=f"needs {package}")
    place = tmp_path / "folder"
    shutil.copytree(filled / "folder", place, copy_function=os.link)
    said = ""
    for line in case.lines:
        command = [sys.executable, *flags, str(filled / "tflq"), *shlex.split(line)]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        trapped = filled / "mark"
        assert not trapped.exists(), f"{line}: {trapped.read_text()}"
        assert done.returncode == (case.code if line is case.lines[-1] else 0), said
    assert case.prints in said


def test_all_commands_are_started() -> None:
    assert {line.split()[0] for case in CASES.values() for line in case.lines} >= set(COMMANDS)
