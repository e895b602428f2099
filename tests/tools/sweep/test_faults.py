"""Children that go wrong are results, and harm no other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tflq.base.processes import resident_bytes
from tflq.tools.sweep.server import LocalExecutor
from tflq.tools.sweep.store import read_results
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.sweep.task import Limits, Result

FOLDER = Path(__file__).parent
KINDS = ("abort", "allocate", "exit", "fine", "flaky", "hang", "raise", "realtime")


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Callable[..., LocalExecutor]:
    """Makes executors whose children do what their model's name says."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))

    def make(folder: Path, workers: int, _: str) -> LocalExecutor:
        return LocalExecutor(folder, workers, "jobs:fault")

    return make


@pytest.fixture
def results(tmp_path: Path, faulty: Callable[..., LocalExecutor]) -> dict[str, Result]:
    source = tmp_path / "models"
    source.mkdir()
    for kind in KINDS:
        (source / f"{kind}.tflite").write_bytes(b"")
    hanging = tmp_path / "hanging" / "models"
    hanging.mkdir(parents=True)
    (source / "hang.tflite").rename(hanging / "hang.tflite")
    # Time enough for those that end, also on a busy machine.
    for folder, seconds in ((source, 60.0), (hanging, 2.0)):
        sweep(Plan([folder], folder.parent / "out", limits=Limits(seconds, 600 << 20), workers=3), executor=faulty)
    found = [r for folder in (source, hanging) for r in read_results(folder.parent / "out")]
    return {r["id"].removeprefix("models/"): r for r in found}


@pytest.mark.slow
def test_every_fault_has_its_status(results: dict[str, Result]) -> None:
    assert {kind: r["status"] for kind, r in results.items()} == {
        "abort": "crash",
        "allocate": "out-of-memory",
        "exit": "crash",
        "fine": "ok",
        "flaky": "flaky",
        "hang": "timeout",
        "raise": "internal-error",
        "realtime": "crash",
    }
    assert "faulty: ended by SIGABRT" in results["abort"]["why"]
    assert "faulty: ended by signal 35" in results["realtime"]["why"]
    assert "exit code 7" in results["exit"]["why"]
    assert "of 600 MiB allowed" in results["allocate"]["why"]
    assert results["allocate"]["peak_bytes"] > 600 << 20
    assert "no answer in 2 s" in results["hang"]["why"]
    assert "RuntimeError: broken" in results["raise"]["why"]
    assert "Traceback" in results["raise"]["log"]
    assert results["abort"]["tries"] == ["crash", "crash"]
    assert results["flaky"]["tries"] == ["crash", "ok"]
    assert not results["flaky"]["expected"]


def test_nothing_is_left_of_a_group(tmp_path: Path, faulty: Callable[..., LocalExecutor]) -> None:
    """The child that hangs has a process of its own, which ends with it."""
    before = set(resident_bytes())
    source = tmp_path / "hang.tflite"
    source.write_bytes(b"")
    sweep(Plan([source], tmp_path / "out", limits=Limits(1.0)), executor=faulty)
    deadline = time.monotonic() + 5
    while (left := set(resident_bytes()) - before - {os.getpgrp()}) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [group for group in left if _is_sleeper(group)]


def _is_sleeper(group: int) -> bool:
    try:
        return b"time.sleep(600)" in Path(f"/proc/{group}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_server_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.tools.sweep.server import Ended
    from tflq.tools.sweep.task import Task

    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    executor = LocalExecutor(tmp_path / "work", 1, "jobs:fault")
    executor._server.kill()
    executor.submit(1, Task("fine", "integer", ""), Limits(30.0))
    ended: list[Ended] = []
    while not ended:
        ended = [event for event in executor.poll(30.0) if isinstance(event, Ended)]
    executor.close()
    assert ended[0].ending.how == "answer"
