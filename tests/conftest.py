"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import forking

from tflq.base import processes
from tflq.tools.verify import runner

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # how fast a machine is decides no test

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background: processes of tests would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait at work, and small matrices need none

ENVIRONMENT = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
MODELS = Path(__file__).resolve().parents[1] / "models"


def pytest_configure() -> None:
    """Collects the tests without the collector of garbage, which would walk through all of them again and again."""
    gc.disable()


@pytest.hookimpl(trylast=True)  # what is left out has gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no process is alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print as in a pipe, whatever runs the tests says of a terminal."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that run models start in milliseconds: for tests of the results, not of the processes."""
    for module in (processes, runner):
        monkeypatch.setattr(module, "python_process", forking.process)


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of the project's own models."""
    return MODELS
