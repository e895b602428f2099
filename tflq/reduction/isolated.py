"""A call in a process of its own, forked where the system can, so that a crash or a hang is a result."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Died", "call"]


class Died(Exception):  # noqa: N818 named as what happened
    """The process ended without an answer; the message says how: "SIGSEGV", "exit code 3", "no answer in 60 s"."""


def call(function: Callable[..., Any], *arguments: Any, timeout: float) -> Any:
    """What function(*arguments) returns, or raises, in a child that has `timeout` seconds. Both must be pickled.

    Where the system cannot fork it runs in this process.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return function(*arguments)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(theirs, function, arguments), daemon=True)
    with warnings.catch_warnings():  # of forking beside threads: ours hold no locks that the child takes
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    theirs.close()
    try:
        if not ours.poll(timeout):
            raise Died(f"no answer in {timeout:g} s")
        returned, value = ours.recv()
    except EOFError:
        child.join()
        code = child.exitcode or 0
        raise Died(signal.Signals(-code).name if code < 0 else f"exit code {code}") from None
    finally:
        child.kill()
        child.join()
        ours.close()
    if not returned:
        raise value
    return value


def _answer(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = True, function(*arguments)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        answer = False, error
    try:
        pipe.send(answer)
    except (AttributeError, TypeError, ValueError) as error:  # it cannot be pickled
        pipe.send((False, RuntimeError(f"{type(answer[1]).__name__}: {answer[1]} ({error})")))
