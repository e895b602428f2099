"""Tasks on a Dask cluster.

The driver says which worker runs what: one of those with most threads free, if possible one that has the model. A file
goes to a worker once, named by its content, and stays on its disk while it is among the last that were used. The tasks
of a worker that dies go to another; dask's nanny replaces it.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from typing import Any, Final
from uuid import uuid4

from tflq.base.errors import OptionError, Reason, TflqError
from tflq.base.version import __version__
from tflq.tools.sweep.measure import JOB
from tflq.tools.sweep.server import Ended, Event, LocalExecutor, Staged
from tflq.tools.sweep.task import Ending, Limits, Task

# What runs in the workers: models kept by content, and tasks in processes of their own. Each thread of a worker has a
# warm server, whose children have the same limits as on this machine.


POLL: Final = 0.5  # seconds between looks at whether a task was called off


@dataclass(frozen=True, slots=True)
class Order:
    """A task for a worker: what a request to a warm server says, and where stages are told."""

    number: int
    job: str
    task: Mapping[str, Any]
    limits: Limits
    topic: str
    version: str = __version__


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
    if order.version != __version__:
        raise TflqError(f"this worker has tflq {__version__}, the sweep {order.version}")
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
        task_state = worker.state.tasks.get(key)
        if task_state is None or task_state.state == "cancelled":
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


# What runs in the driver.


LOOK: Final = 1.0  # seconds between looks at the cluster
DEATHS: Final = 5
"""Number of workers that may die on a task before it counts as failed."""
MOST_FILES: Final = 64  # files on a worker
PATIENCE: Final = 60.0  # seconds without any worker


@dataclass(slots=True)
class _Flight:
    """A task under way: where, and how often its worker died."""

    task: Task
    limits: Limits
    worker: str = ""
    future: Any = None
    files: tuple[str, ...] = ()
    deaths: int = 0


@dataclass(slots=True)
class _Worker:
    """A worker, to the driver. files: its stored files, each with the future that stores it, last used last."""

    threads: int
    files: OrderedDict[str, Any] = field(default_factory=OrderedDict)


def connected(scheduler: str) -> Any:
    """A client of the Dask scheduler at an address. OptionError if none answers there."""
    from distributed import Client

    try:
        return Client(scheduler, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:
        what = f"no Dask scheduler answers at {scheduler}: {error}"
        raise OptionError(
            Reason(what, value=scheduler, remedy="start one with `dask scheduler`, or leave --scheduler out")
        ) from error


class ClusterExecutor:
    """Tasks on the workers of a Dask scheduler, as many at once as these have threads."""

    def __init__(self, scheduler: str, folder: Path, workers: int = 0, job: str = JOB) -> None:
        """scheduler: its address, such as tcp://host:8786. folder: for what tasks leave; it is emptied.

        workers: at most so many tasks at once; 0 for one per thread of the cluster. OptionError if there is no such
        scheduler.
        """
        self._client = connected(scheduler)
        self._most = workers
        self._folder = folder
        self._job = job
        self._flights: dict[int, _Flight] = {}
        self._workers: dict[str, _Worker] = {}
        self._over: list[Event] = []
        self._events: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._topic = f"tflq-{uuid4().hex}"
        self._client.subscribe_topic(self._topic, lambda event: self._events.put((event[1]["number"], event[1])))
        self._looked = self._seen = time.monotonic()
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._look()

    @property
    def slots(self) -> int:
        threads = max(1, sum(worker.threads for worker in self._workers.values()))
        return min(self._most, threads) if self._most else threads

    def submit(self, number: int, task: Task, limits: Limits) -> None:
        self._flights[number] = _Flight(task, limits)
        self._start(number)

    def poll(self, seconds: float) -> list[Event]:
        if time.monotonic() > self._looked + LOOK:
            self._look()
        if self._over:
            over, self._over = self._over, []
            return over
        try:
            number, what = self._events.get(timeout=seconds)
        except queue.Empty:
            return []
        flight = self._flights.get(number)
        if flight is None:
            return []
        if isinstance(what, dict):
            return [Staged(number, what["stage"])]
        return self._done(number, flight) if what is flight.future else []

    def close(self) -> None:
        """Calls off what still runs."""
        self._client.cancel([flight.future for flight in self._flights.values() if flight.future is not None])
        self._flights.clear()
        self._workers.clear()
        self._client.close()
        rmtree(self._folder, ignore_errors=True)

    def _look(self) -> None:
        """Who is there; what ran on workers that are gone starts elsewhere."""
        self._looked = time.monotonic()
        there: dict[str, int] = self._client.nthreads()
        for address in [address for address in self._workers if address not in there]:
            del self._workers[address]
        for address, threads in there.items():
            self._workers.setdefault(address, _Worker(threads)).threads = threads
        if there:
            self._seen = self._looked
        elif self._looked > self._seen + PATIENCE:
            raise TflqError(f"the Dask cluster has had no worker for {PATIENCE:g} s")
        for number, flight in list(self._flights.items()):
            if flight.worker not in self._workers:
                self._move(number, flight)

    def _move(self, number: int, flight: _Flight) -> None:
        """Starts a task elsewhere, its worker gone."""
        future, flight.future = flight.future, None
        if future is not None:
            self._client.cancel([future])
            flight.deaths += 1
        if flight.deaths < DEATHS:
            self._start(number)
            return
        del self._flights[number]
        what = f"the worker that ran it died, {DEATHS} times"
        self._over.append(Ended(number, Ending("exit", what=what, folder=str(self._place(number)))))

    def _start(self, number: int) -> None:
        """On the worker that has most threads free; without any, `_look` tries again."""
        flight = self._flights[number]
        names = flight.task.files
        flight.files = tuple(_content_name(name, *_stamp(name)) for name in names)
        busy = Counter(other.worker for other in self._flights.values() if other.future is not None)
        free = {a: (w.threads - busy[a], flight.files[0] in w.files) for a, w in self._workers.items()}
        if not free:
            flight.worker = ""
            return
        flight.worker = max(free, key=lambda address: free[address])
        try:
            stored = [self._stored(flight.worker, *file) for file in zip(flight.files, names, strict=True)]
        except (OSError, KeyError, ValueError):  # it went while it was sent a file
            del self._workers[flight.worker]
            flight.worker = ""
            return
        order = Order(number, self._job, flight.task.to_json(), flight.limits, self._topic)
        flight.future = self._submit(flight.worker, "run", run_order, order, *stored)
        flight.future.add_done_callback(lambda future: self._events.put((number, future)))

    def _submit(self, address: str, name: str, what: Callable[..., object], *arguments: Any) -> Any:
        """The future of a call on a worker. name: of the kind of call, for dask's pages."""
        key = f"tflq-{name}-{uuid4().hex}"
        where = {"workers": [address], "allow_other_workers": False}
        return self._client.submit(what, *arguments, key=key, pure=False, **where)

    def _stored(self, address: str, content: str, path: str) -> Any:
        """The future of a file on a worker, which is sent if it is not there."""
        files = self._workers[address].files
        if content not in files:
            data = self._client.scatter(Path(path).read_bytes(), workers=[address], hash=False)
            files[content] = self._submit(address, "file", store_file, content, data)
            self._forget(address, files)
        files.move_to_end(content)
        return files[content]

    def _forget(self, address: str, files: OrderedDict[str, Any]) -> None:
        """Removes the files that a worker has not used for longest, unless a task there needs them."""
        from distributed import fire_and_forget

        needed = {name for flight in self._flights.values() if flight.worker == address for name in flight.files}
        for name in [name for name in files if name not in needed][: max(0, len(files) - MOST_FILES)]:
            fire_and_forget(self._submit(address, "forget", forget_file, files.pop(name)))

    def _done(self, number: int, flight: _Flight) -> list[Event]:
        future = flight.future
        if future.status != "finished":
            self._failed(flight)
            return []
        ending, files = future.result()
        del self._flights[number]
        place = self._place(number)
        for name, data in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
        return [Ended(number, Ending(**ending, folder=str(place)))]

    def _failed(self, flight: _Flight) -> None:
        """Starts a task again that dask gave up because its worker is gone. TflqError for any other error."""
        from distributed.scheduler import KilledWorker, NoValidWorkerError

        if flight.future.status == "error":
            error = flight.future.exception()
            if not isinstance(error, (KilledWorker, NoValidWorkerError)):
                raise TflqError(f"worker {flight.worker}: {type(error).__name__}: {error}") from error
        self._workers.pop(flight.worker, None)  # what it had is lost, too, as far as can be known
        flight.worker = ""
        self._look()

    def _place(self, number: int) -> Path:
        place = self._folder / str(number)
        place.mkdir(exist_ok=True)
        return place


def _stamp(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(256)
def _content_name(path: str, _size: int, _changed: int) -> str:
    """A file's name by its content. Its size and time of change tell the cache that the content is another."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() + Path(path).suffix
