"""A sweep on a Dask cluster gives what one on this machine gives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.sweeps import stable

from tflq.base.errors import OptionError
from tflq.tools.sweep.store import read_results
from tflq.tools.sweep.sweeping import Plan, sweep
from tflq.tools.sweep.task import Key, Limits, Settings, key_of

pytest.importorskip("distributed", reason="THE CLUSTER IS NOT TESTED: pip install 'dask[distributed]'")

from tflq.tools.sweep.cluster import ClusterExecutor
from tflq.tools.sweep.server import Ended
from tflq.tools.sweep.task import Task

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three workers, each a process with one thread and a nanny that replaces it."""
    import dask

    folder = tmp_path_factory.mktemp("dask")
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.worker.memory.terminate": False}),
        _cluster(patch, str(folder)) as one,
    ):
        yield one


def _cluster(patch: pytest.MonkeyPatch, folder: str) -> Any:
    from distributed import LocalCluster

    patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(__file__).parent)]))
    return LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", local_directory=folder
    )


def results_of(folder: Path) -> list[dict[str, Any]]:
    return sorted(map(stable, read_results(folder)), key=key_of)


@pytest.mark.slow
def test_results_are_those_of_this_machine(cluster: Any, models: Path, tmp_path: Path) -> None:
    source = tmp_path / "models"
    source.mkdir()
    for name in ("cnn_int8", "pad", "add_per_axis"):
        (source / f"{name}.tflite").write_bytes((models / f"{name}.tflite").read_bytes())
    (source / "broken.tflite").write_bytes(b"no model")
    plan = partial(Plan, [source], targets=["integer", "kernels"], settings=Settings(1, xnnpack=False))
    sweep(plan(tmp_path / "local", workers=1))
    sweep(plan(tmp_path / "cluster", scheduler=cluster.scheduler_address))
    assert results_of(tmp_path / "cluster") == results_of(tmp_path / "local")
    names = [sorted(p.name for p in (tmp_path / d).rglob("artifacts/**/*")) for d in ("local", "cluster")]
    assert names[0] == names[1]


def test_a_model_goes_to_a_worker_once(cluster: Any, models: Path, tmp_path: Path) -> None:
    """Same content under several names and targets."""
    for name in "abcdef":
        (tmp_path / f"{name}.tflite").write_bytes((models / "pad.tflite").read_bytes())
    executor = ClusterExecutor(cluster.scheduler_address, tmp_path / "work", 0, "jobs:fine")
    sent: list[str] = []
    scatter = executor._client.scatter

    def counted(data: bytes, *, workers: list[str], **options: Any) -> Any:
        sent.extend(workers)
        return scatter(data, workers=workers, **options)

    executor._client.scatter = counted
    try:
        assert executor.slots == 3
        for number, name in enumerate("abcdef"):
            executor.submit(number, Task(name, "integer", str(tmp_path / f"{name}.tflite")), Limits())
        ended: set[int] = set()
        deadline = time.monotonic() + 60
        while len(ended) < 6 and time.monotonic() < deadline:
            ended |= {event.number for event in executor.poll(0.5) if isinstance(event, Ended)}
    finally:
        executor.close()
    assert ended == set(range(6))
    assert len(sent) == len(set(sent)) <= 3


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_models_tried_again(cluster: Any, tmp_path: Path) -> None:
    source = tmp_path / "models"
    source.mkdir()
    for i in range(12):
        (source / f"{i:02}.tflite").write_bytes(bytes(i + 1))
    executor = partial(ClusterExecutor, cluster.scheduler_address)
    killed: list[int] = []

    def make(folder: Path, workers: int, _: str) -> ClusterExecutor:
        return executor(folder, workers, "jobs:nap")

    class Killer:
        """Kills a worker when three models are through."""

        done = 0

        def begin(self, jobs: Sequence[Key], done: int) -> None: ...

        def started(self, id: str, target: str) -> None: ...

        def staged(self, id: str, target: str, stage: str) -> None: ...

        def finished(self, _: dict[str, Any]) -> None:
            self.done += 1
            if self.done == 3:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

    sweep(Plan([source], tmp_path / "out"), executor=make, observer=Killer())
    results = results_of(tmp_path / "out")
    assert killed
    assert [(r["id"], r["status"], r["model"]["bytes"]) for r in results] == [
        (f"models/{i:02}", "ok", i + 1) for i in range(12)
    ]
    deadline = time.monotonic() + 30
    while len(cluster.scheduler.workers) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(cluster.scheduler.workers) == 3


def test_a_task_whose_workers_all_die_ends(cluster: Any, models: Path, tmp_path: Path) -> None:
    """As if dask gave each of its futures up."""
    executor = ClusterExecutor(cluster.scheduler_address, tmp_path / "work", 0, "jobs:nap")
    try:
        executor.submit(1, Task("pad", "integer", str(models / "pad.tflite")), Limits())
        flight = executor._flights[1]
        for _ in range(10):
            if executor._flights:
                flight.worker = "tcp://gone"
                executor._look()
        (event,) = executor.poll(0)
    finally:
        executor.close()
    assert isinstance(event, Ended)
    assert event.ending.how == "exit"
    assert "the worker that ran it died, 5 times" in event.ending.what


def test_a_worker_keeps_the_files_that_were_used_last(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tflq.tools.sweep.cluster.MOST_FILES", 2)
    source = tmp_path / "models"
    source.mkdir()
    for i in range(9):
        (source / f"{i}.tflite").write_bytes(bytes([i]))
    executor = ClusterExecutor(cluster.scheduler_address, tmp_path / "work", 0, "jobs:fine")
    try:
        for i in range(9):
            executor.submit(i, Task(str(i), "integer", str(source / f"{i}.tflite")), Limits())
            while not any(isinstance(event, Ended) for event in executor.poll(0.5)):
                pass
        kept = [len(worker.files) for worker in executor._workers.values()]
    finally:
        executor.close()
    assert max(kept) <= 2


def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="no Dask scheduler answers at nowhere://1"):
        ClusterExecutor("nowhere://1", tmp_path / "work")
