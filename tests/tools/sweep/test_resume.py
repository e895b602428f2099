"""A sweep that is killed goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.sweeps import stable

from tflq.base.errors import OptionError
from tflq.cli.main import run
from tflq.tools.sweep.store import Store, read_results
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.sweep.task import Limits, Settings, key_of

ROOT = Path(__file__).parents[3]


def start(models: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tflq", "sweep", str(models), "-o", str(out), "--workers", "2", "--no-cache"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*command, *more], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines(out: Path) -> int:
    try:
        return (out / "results.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def until(out: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while lines(out) < count and process.poll() is None:
        time.sleep(0.02)


@pytest.mark.slow
def test_killed_twice_and_resumed_it_gives_the_same(models: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert start(models, whole).wait() == 0
    for count in (3, 7):
        process = start(models, parts, *(["--resume"] if parts.exists() else []))
        until(parts, count, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with (parts / "results.jsonl").open("ab") as file:
            file.write(b'{"format": "tflq.sweep-res')
    kept = list(read_results(parts))
    assert len(kept) >= 7
    assert start(models, parts, "--resume").wait() == 0
    results = list(read_results(parts))
    assert results[: len(kept)] == kept
    assert len({key_of(r) for r in results}) == len(results)
    want = {key_of(r): stable(r) for r in read_results(whole)}
    assert {key_of(r): stable(r) for r in results} == want


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop_it_does_and_leaves_what_is_done(
    models: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(models, tmp_path)
    until(tmp_path, 1, process)
    process.send_signal(number)
    assert process.wait(30) == code
    assert not (tmp_path / "work").exists()
    done = list(read_results(tmp_path))
    assert 0 < len(done) < 12


def test_resume_wants_the_same_settings(models: Path, tmp_path: Path) -> None:
    source = str(models / "pad.tflite")
    assert run(["sweep", source, "-o", str(tmp_path), "--no-cache"]) == 0
    with pytest.raises(OptionError, match=r"started with --target integer \(now --target kernels\); give the same"):
        sweep(Plan([source], tmp_path, ["kernels"], resume=True))
    settings, limits = Settings(xnnpack=False, convert={"mac": "float32"}), Limits(bytes=2000 << 20)
    with pytest.raises(OptionError) as raised:
        sweep(Plan([source], tmp_path, settings=settings, limits=limits, resume=True))
    for said in (
        "--memory 4096 (now --memory 2000)",
        "--xnnpack (now --no-xnnpack)",
        "without --mac (now --mac float32)",
    ):
        assert said in str(raised.value)


def test_resumed_it_says_how_much_is_done(models: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", *(str(models / f"{name}.tflite") for name in ("pad", "split")), "-o", str(tmp_path)]
    assert run([*command, "--no-cache"]) == 0
    assert "done" not in capfd.readouterr().err
    results = tmp_path / "results.jsonl"
    results.write_text(results.read_text().splitlines(keepends=True)[0])
    assert run([*command, "--no-cache", "--resume"]) == 0
    assert "1 of 2 done" in capfd.readouterr().err
    assert run([*command, "--no-cache", "--resume", "-q"]) == 0
    assert not capfd.readouterr().err


def test_one_driver_at_a_time(models: Path, tmp_path: Path) -> None:
    with closing(Store(tmp_path)), pytest.raises(OptionError, match=f"process {os.getpid()}"):
        Store(tmp_path)


def test_a_line_that_is_whole_but_no_json_is_an_error(tmp_path: Path, models: Path) -> None:
    sweep(Plan([models / "pad.tflite"], tmp_path))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write(json.dumps({"format": "tflq.sweep-result", "version": 99}) + "\n")
    with pytest.raises(OptionError, match=r"results.jsonl:2: version: 99 is not 1"):
        list(read_results(tmp_path))
