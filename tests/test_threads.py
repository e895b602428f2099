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
from support.import_graph import circle, imports_at_once, reached, waits

import tflq
from scripts.threads import answer, differences, jobs
from tflq.dialects.tfl.arithmetic import Add
from tflq.ir.registry import dialect, dialects, family
from tflq.registering import Registry

SMALL = ("add_per_axis", "cnn_int8", "split")
REGISTRIES = {
    "tflq.evaluate.registry": ("evaluator", "running"),
    "tflq.legalize.core.registry": ("form", "of_tensors"),
    "tflq.select.lowering": ("lowering",),
    "tflq.tosa.laws.registry": ("law",),
    "tflq.tosa.lowering.registry": ("lowering",),
}


@pytest.fixture
def small(models: Path) -> list[str]:
    return [str(models / f"{name}.tflite") for name in SMALL]


# --- processes


def test_twenty_fresh_processes_give_what_one_thread_gives(small: list[str]) -> None:
    """`make threads` runs 200, with more models."""
    assert not differences(sys.executable, small, 20, count=2, at_once=os.cpu_count() or 1)


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


def test_no_import_waits_for_one_that_waits_for_it() -> None:
    """Python gives one of two such threads an error, or half a module. A package whose `__init__` imports its modules
    is entered by its own name; one whose modules are imported from elsewhere imports none of them."""
    assert circle(waits()) == []


def test_what_waits_in_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize(("home", "name"), [(home, name) for home, names in REGISTRIES.items() for name in names])
def test_a_lookup_finds_the_same_whatever_else_is_imported(home: str, name: str) -> None:
    """The function of each op is of a module that its family's modules import."""
    graph = imports_at_once()
    registry = getattr(import_module(home), name)
    for module in graph:  # all that could register another one
        if module.startswith(f"{registry.package}."):
            import_module(module)
    for op in (each for prefix in dialects() for each in dialect(prefix).classes()):  # type: ignore[union-attr]
        found = registry.get(op)
        if found is not None:
            own = [f"{registry.package}.{module}" for module in registry.modules_of(op.op_name)]
            assert found.__module__ in reached(graph, *(module for module in own if module in graph)), op


@pytest.fixture
def slow_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[object]]:
    """A package whose module for arithmetic takes a while before it registers ADD."""
    folder = tmp_path / "slow_stage"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "generic.py").write_text(
        "from slow_stage.registry import stage\n"
        "from tflq.dialects.traits.types import Broadcasts\n"
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
    (folder / "registry.py").write_text("from tflq.registering import Registry\nstage = Registry('slow_stage')\n")
    monkeypatch.syspath_prepend(tmp_path)
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


def test_each_op_has_its_modules() -> None:
    registry = import_module("tflq.select.lowering").lowering
    assert registry.modules_of("tosa.conv2d") == ("convolution.conv2d",)
    assert registry.modules_of("tosa.add") == (family("tosa.add"), "generic")
