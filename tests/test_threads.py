"""Calls in threads: fresh processes give what one thread gives, no import waits in a circle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier

import pytest
from support.import_graph import circle, waits

import tflq
from scripts.make_index import import_everything
from scripts.threads import THREADS, answer, differences, jobs
from tflq.dialects.registry import REGISTRIES, Registry, modules_of
from tflq.dialects.tfl.arithmetic import Add
from tflq.ir.index import ROOMS
from tflq.ir.ops import dialect, dialects

SMALL = ("add_per_axis", "cnn_int8", "split")


@pytest.fixture
def small(models: Path) -> list[str]:
    return [str(models / f"{name}.tflite") for name in SMALL]


# --- processes


@pytest.mark.slow
def test_fresh_processes_give_what_one_thread_gives(small: list[str]) -> None:
    """One of each number of threads, which change as usual or often. `make threads` runs 200, with more models."""
    assert not differences(sys.executable, small, 2 * len(THREADS), count=2, at_once=os.cpu_count() or 1)


def test_without_the_interpreters_lock(small: list[str]) -> None:
    python = os.environ.get("TFLQ_FREE_THREADED", "")
    if not python:
        pytest.skip("NOT TESTED without the interpreter's lock: TFLQ_FREE_THREADED names no free-threaded Python")
    assert answer(python, jobs(small[:1], verified=False), 4)["locked"] is False
    assert not differences(python, small, 4, verified=False)


# --- shared objects


def test_a_module_and_a_conversion_are_read_by_many_threads(models: Path) -> None:
    path = models / "cnn_int8.tflite"
    alone = tflq.convert(path)
    module, shared, ready = tflq.read(path), tflq.convert(path), Barrier(8, timeout=60)

    def seen(_: int) -> tuple[bytes, bytes, str]:
        ready.wait()
        return tflq.write(module), shared.files[""], str(shared.report.to_json())

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(seen, range(8)))
    assert found == {(tflq.write(tflq.read(path)), alone.files[""], str(alone.report.to_json()))}


# --- imports


@pytest.mark.slow
def test_no_import_waits_for_one_that_waits_for_it() -> None:
    """Python gives one of two such threads an error, or half a module. A package whose `__init__` imports its modules
    is entered by its own name; one whose modules are imported from elsewhere imports none of them."""
    assert circle(waits()) == []


def test_what_waits_in_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize("stage", ROOMS)
def test_a_lookup_finds_the_same_whatever_else_is_imported(stage: str) -> None:
    """The function of an op is in the modules that the index names for it, so what others import changes nothing."""
    import_everything()
    for registry in (each for each in REGISTRIES if each.package == stage):
        for op in (each for prefix in dialects() for each in dialect(prefix).classes()):  # type: ignore[union-attr]
            if registry.get(op) is not None:
                own = modules_of(stage, op.op_name)
                assert registry.place(op) in own, op


@pytest.fixture
def slow_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[object]]:
    """A package whose module for arithmetic takes a while before it registers ADD."""
    folder = tmp_path / "slow_stage"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "generic.py").write_text(
        "from slow_stage.registry import stage\n"
        "from tflq.dialects.traits import Broadcasts\n"
        "stage(Broadcasts)('of the trait')\n"
    )
    (folder / "arithmetic.py").write_text(
        "import time\n"
        "import slow_stage.generic\n"
        "from slow_stage.registry import stage\n"
        "from tflq.dialects.tfl.arithmetic import Add\n"
        "time.sleep(0.2)\n"
        "stage(Add)('its own')\n"
    )
    (folder / "registry.py").write_text("from tflq.dialects.registry import Registry\nstage = Registry('slow_stage')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(ROOMS, "slow_stage", {"tfl": {"slow_stage.arithmetic": "add", "slow_stage.generic": "add sub"}})
    yield import_module("slow_stage.registry").stage
    for module in [name for name in sys.modules if name.partition(".")[0] == "slow_stage"]:
        del sys.modules[module]


def test_a_lookup_waits_for_another_threads_import(slow_package: Registry[object]) -> None:
    ready = Barrier(4, timeout=60)

    def found(_: int) -> object:
        ready.wait()
        return slow_package.get(Add)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(found, range(4))) == {"its own"}
    assert slow_package.get(Add) == "its own"
