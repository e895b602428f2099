"""The child's side of a try: a forked process that does one task, tells how far it is, and ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from tflq.plain_numbers import plain_numbers
from tflq.sweep.process_groups import die_with_parent

__all__ = ["LOG", "Job", "run_in_child"]

LOG = "log.txt"

Job = Callable[[dict[str, Any], Path, Callable[[str], None]], dict[str, Any]]
"""What a child does: the task as JSON, the folder for its files, and whom to tell the stage; its answer as JSON."""


def run_in_child(job: str, task: dict[str, Any], folder: Path, pipe: int) -> NoReturn:
    """Does a job, "module:function", in a process that was just forked, and ends it. Lines of JSON go to the pipe."""
    code = 1
    try:
        _settle(folder)
        with os.fdopen(pipe, "wb", buffering=0) as out:

            def tell(message: dict[str, Any]) -> None:
                data = memoryview(json.dumps(plain_numbers(message), allow_nan=False).encode() + b"\n")
                while data:
                    data = data[out.write(data) :]

            try:
                module, _, name = job.partition(":")
                function: Job = getattr(import_module(module), name)
                tell({"answer": function(task, folder, lambda stage: tell({"stage": stage}))})
                code = 0
            except MemoryError:
                tell({"memory": "an allocation failed"})
            except BaseException as error:  # noqa: BLE001 - whatever happens is a result
                traceback.print_exc()
                tell({"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _settle(folder: Path) -> None:
    """A process of its own: its group, its signals, its output; nothing of the server's."""
    die_with_parent()
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((null, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    os.close(log)
    os.close(null)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
