"""Processes that each do one job at a time. One that dies takes its job with it, and nothing else."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

__all__ = ["Died", "in_processes"]

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class Died(Exception):  # noqa: N818 an answer, not an error of ours
    """The process of a job ended before it answered: `code` as `Process.exitcode` gives it."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        by = f" by {signal.Signals(-self.code).name}" if self.code is not None and self.code < 0 else ""
        return f"its process was ended{by}, perhaps for want of memory"


class _Worker(Generic[Job, Answer]):
    """A process, and the number of the job that it does."""

    def __init__(self, work: Callable[[Job], Answer]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads of a progress display
        self.pipe, end = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(work, end), daemon=True)
        self.process.start()
        end.close()
        self.number = -1

    def give(self, number: int, job: Job) -> None:
        self.number = number
        with suppress(OSError):  # it has died: `answer` says so
            self.pipe.send(job)

    def answer(self) -> Answer | Died:
        try:
            found: Answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return Died(self.process.exitcode)
        return found

    def stop(self) -> None:
        """Has it end at once, its own temporary files removed."""
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """The process: answers each job, until the pipe is closed or it is told to end."""
    from tflq.cli.failures import Stopped
    from tflq.cli.main import stop_by_exception

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and tells
    stop_by_exception()
    with suppress(EOFError, OSError, Stopped):
        while True:
            pipe.send(work(pipe.recv()))


def in_processes(work: Callable[[Job], Answer], jobs: Sequence[Job], count: int) -> Iterator[tuple[int, Answer | Died]]:
    """The number and the answer of each job as it is done, by `count` processes; `work` is a function of a module."""
    workers: dict[Connection, _Worker[Job, Answer]] = {}
    waiting = iter(enumerate(jobs))

    def start() -> None:
        if (following := next(waiting, None)) is not None:
            worker: _Worker[Job, Answer] = _Worker(work)
            workers[worker.pipe] = worker
            worker.give(*following)

    try:
        for _ in range(min(count, len(jobs))):
            start()
        while workers:
            for pipe in wait(list(workers)):
                assert isinstance(pipe, Connection)
                worker = workers[pipe]
                answer = worker.answer()
                yield worker.number, answer
                following = None if isinstance(answer, Died) else next(waiting, None)
                if following is None:
                    workers.pop(pipe).stop()
                    if isinstance(answer, Died):
                        start()
                else:
                    worker.give(*following)
    finally:
        for worker in workers.values():
            worker.stop()
