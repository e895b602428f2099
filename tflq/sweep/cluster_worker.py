"""What runs in the workers of a Dask cluster: models kept by content, and tasks in processes of their own, as locally.

Each thread of a worker has a warm server; its children have the limits that those of this machine have.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import tflq
from tflq.errors import TflqError
from tflq.sweep.executor import Ended, LocalExecutor, Staged
from tflq.sweep.task import Limits, Task

__all__ = ["Order", "forget_file", "run_order", "store_file"]

POLL: Final = 0.5  # seconds between looks at whether a task was called off


@dataclass(frozen=True, slots=True)
class Order:
    """A task for a worker: what a request to a warm server says, and where stages are told."""

    number: int
    job: str
    task: Mapping[str, Any]
    limits: Limits
    topic: str
    version: str = tflq.__version__


def store_file(name: str, data: bytes) -> str:
    """Keeps a file, named by its content, on this worker's disk. Returns its path."""
    path = _folder() / "files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def forget_file(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def run_order(order: Order, *files: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A task run on this worker: its ending, and the files that it left if it did not end with the status ok.

    files: those of the task, as `store_file` returned them.
    """
    if order.version != tflq.__version__:
        raise TflqError(f"this worker has tflq {tflq.__version__}, the sweep {order.version}")
    cache = str(_folder()) if order.task["cache"] else ""
    task = Task.of_json({**order.task, "cache": cache}).moved(files)
    ending = asdict(_run(order, task))
    folder = Path(ending.pop("folder"))
    answer = ending["answer"]
    wanted = answer is None or answer["status"] != "ok"
    left = sorted(path for path in folder.rglob("*") if path.is_file()) if wanted else []
    return ending, {str(path.relative_to(folder)): path.read_bytes() for path in left}


def _run(order: Order, task: Task) -> Any:
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    executor = _executor(order.job)
    executor.submit(order.number, task, order.limits)
    while True:
        for event in executor.poll(POLL):
            if isinstance(event, Ended):
                return event.ending
            if isinstance(event, Staged):
                worker.log_event(order.topic, {"number": order.number, "stage": event.stage})
        held = worker.state.tasks.get(key)
        if held is None or held.state == "cancelled":
            _local.__dict__.pop("executor")[1].close()
            raise TflqError("called off")


_local = threading.local()


def _executor(job: str) -> LocalExecutor:
    """The warm server of this thread; it ends with the worker, whose end of its pipe closes."""
    have = getattr(_local, "executor", None)
    if have is not None and have[0] == job:
        return have[1]
    if have is not None:
        have[1].close()
    _local.executor = (job, LocalExecutor(_folder() / f"thread-{threading.get_ident()}", 1, job))
    return _local.executor[1]


def _folder() -> Path:
    from distributed import get_worker

    return Path(get_worker().local_directory) / "tflq"
