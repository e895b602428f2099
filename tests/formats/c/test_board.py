"""Self-tests on other machines: the example project for a board in qemu, and the script that counts what passes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.on_c import need_compiler

ROOT: Final = Path(__file__).parents[3]
TOOLS: Final = ("make", "arm-none-eabi-gcc", "qemu-system-arm")
missing: Final = [tool for tool in TOOLS if shutil.which(tool) is None]
need_board = pytest.mark.skipif(bool(missing), reason=f"NO TOOLS OF A BOARD: {', '.join(missing)}")


def _make(build: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "-C", str(ROOT / "examples" / "board"), f"BUILD={build}", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@need_board
def test_the_example_of_a_board_passes_and_shows_a_fault(tmp_path: Path) -> None:
    done = _make(tmp_path, "run")
    assert done.returncode == 0, done.stderr
    assert "net: pass\n" in done.stdout
    source = tmp_path / "net.c"
    source.write_text(source.read_text().replace("* 524288", "* 262144"))
    failed = _make(tmp_path, "run")
    assert "net: fail" in failed.stdout
    assert failed.returncode != 0


@need_compiler
def test_the_script_counts_what_passes_on_a_machine() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "c_machines.py"), str(ROOT / "models" / "cnn_int8.tflite")]
    done = subprocess.run([*command, "--levels", "1", "--only", "native"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| native | 1 of 1 |" in done.stdout
