"""Jobs that go wrong, for children of a sweep's server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tflq.numerics import reference
from tflq.tools.sweep.measure import measure

NAME = "double_scales"
Stage = Callable[[str], None]
REALTIME = 35  # `signal.Signals` has no name for it


def fine(task: dict[str, Any], folder: Path, stage: Stage) -> dict[str, Any]:
    stage("fine")
    return {"status": "ok", "cpu": {}, "model": {}}


def fault(task: dict[str, Any], folder: Path, stage: Stage) -> dict[str, Any]:
    """What the model's name says."""
    stage("faulty")
    kind = task["id"].rpartition("/")[2]
    if kind == "hang":
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"], check=True)
    if kind == "allocate":
        blocks = []
        while True:
            blocks.append(os.urandom(1) * (8 << 20))
            time.sleep(0.002)  # no faster than the server looks
    if kind == "abort":
        os.abort()
    if kind == "exit":
        os._exit(7)
    if kind == "realtime":
        signal.raise_signal(REALTIME)
    if kind == "raise":
        raise RuntimeError("broken")
    if kind == "flaky" and not Path(task["path"]).with_suffix(".seen").exists():
        Path(task["path"]).with_suffix(".seen").touch()
        os.abort()
    return fine(task, folder, stage)


def nap(task: dict[str, Any], folder: Path, stage: Stage) -> dict[str, Any]:
    """Takes a while, and notes that it ran."""
    stage("nap")
    time.sleep(0.5)
    return {**fine(task, folder, stage), "model": {"bytes": len(Path(task["path"]).read_bytes())}}


def broken_rule(task: dict[str, Any], folder: Path, stage: Stage) -> dict[str, Any]:
    """The job itself, by a compiler whose rule of convolutions has a wrong multiplier."""
    right = getattr(reference, NAME)
    setattr(reference, NAME, lambda *arguments: right(*arguments) * 1.05)
    return measure(task, folder, stage)
