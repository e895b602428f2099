"""The warm server: a process that has imported all that a task needs, and forks a child for each.

Requests come on standard input, one line of JSON each; answers go to standard output likewise.

    {"number": N, "job": "module:function", "task": {...}, "folder": PATH, "seconds": S, "bytes": B}
    → {"number": N, "group": PID}  {"number": N, "stage": "convert"}*  {"number": N, "ending": {...}} as `task.Ending`

It has one thread, so that forking is safe; it watches time and memory of its children's process groups. When its input
ends, because the driver did, it ends all of them and itself.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tflq.sweep.child import LOG, run_in_child
from tflq.sweep.process_groups import kill_group, kills_by_system, resident_bytes

__all__ = ["main"]

POLL: Final = 0.1  # seconds between looks at the memory of the children
LAST_WORDS: Final = 4000  # bytes of a log


class Try:
    """One child under way."""

    def __init__(self, request: dict[str, Any], group: int, pipe: int) -> None:
        self.number: int = request["number"]
        self.group = group
        self.pipe = pipe
        self.folder: str = request["folder"]
        self.start = time.monotonic()
        self.deadline = self.start + request["seconds"]
        self.limit: int = request["bytes"]
        self.seconds: float = request["seconds"]
        self.peak = 0
        self.stage = "start"
        self.ending: dict[str, Any] = {}
        self._rest = b""
        self._killed_by_system = kills_by_system()

    def messages(self, data: bytes) -> Iterator[dict[str, Any]]:
        """What a child said, line by line."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def hear(self, message: dict[str, Any]) -> bool:
        """Takes note of what a child said; whether it is a new stage."""
        if "stage" in message:
            self.stage = message["stage"]
            return True
        if "answer" in message:
            self._end("answer", answer=message["answer"])
        elif "memory" in message:
            self._end("memory", what=message["memory"])
        else:
            self._end("error", what=message["error"], log=message["trace"])
        return False

    def overdue(self, now: float, used: int) -> bool:
        """Whether it has to end, for time or memory."""
        self.peak = max(self.peak, used)
        if used > self.limit:
            self._end("memory", what=f"{used >> 20} MiB, of {self.limit >> 20} MiB allowed")
        elif now > self.deadline:
            self._end("timeout", what=f"no answer in {self.seconds:g} s")
        else:
            return False
        return True

    def close(self, status: int, usage: Any) -> dict[str, Any]:
        """The ending, of a process that was waited for."""
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            if name == "SIGKILL" and kills_by_system() > self._killed_by_system:
                self._end("memory", what="killed by the system for want of memory")
            self._end("signal", what=f"ended by {name}")
        self._end("exit", what=f"ended with exit code {os.waitstatus_to_exitcode(status)} and no answer")
        unit = 1 if sys.platform == "darwin" else 1024
        return {
            "log": _tail(Path(self.folder, LOG)) if self.ending["how"] != "answer" else "",
            **self.ending,
            "stage": self.stage,
            "seconds": round(time.monotonic() - self.start, 4),
            "cpu": round(usage.ru_utime + usage.ru_stime, 4),
            "peak": max(self.peak, usage.ru_maxrss * unit),
            "folder": self.folder,
        }

    def _end(self, how: str, **more: Any) -> None:
        """The first thing that ends it is how it ended."""
        if not self.ending:
            self.ending = {"how": how, **more}


class Server:
    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._tries: dict[int, Try] = {}
        self._rest = b""
        self._next_look = 0.0

    def serve(self) -> None:
        """Until the input ends."""
        try:
            while self._turn():
                pass
        finally:
            for one in self._tries.values():
                kill_group(one.group)

    def _turn(self) -> bool:
        for key, _ in self._selector.select(POLL if self._tries else None):
            if key.fd != self._requests:
                self._hear(self._tries[key.fd])
            elif not self._take():
                return False
        self._look()
        return True

    def _take(self) -> bool:
        data = os.read(self._requests, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._start(json.loads(line))
        return bool(data)

    def _start(self, request: dict[str, Any]) -> None:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            os.close(self._answers)
            for one in self._tries.values():
                os.close(one.pipe)
            self._selector.close()
            run_in_child(request["job"], request["task"], Path(request["folder"]), theirs)
        os.close(theirs)
        with suppress(PermissionError, ProcessLookupError):  # it was faster, or is gone
            os.setpgid(child, child)
        self._tries[ours] = Try(request, child, ours)
        self._say({"number": request["number"], "group": child})
        self._selector.register(ours, selectors.EVENT_READ)

    def _hear(self, one: Try) -> None:
        data = os.read(one.pipe, 1 << 20)
        for message in one.messages(data):
            if one.hear(message):
                self._say({"number": one.number, "stage": one.stage})
        if not data or one.ending:
            self._close(one)

    def _look(self) -> None:
        """Memory and time of all children, now and then."""
        now = time.monotonic()
        if not self._tries or now < self._next_look:
            return
        used = resident_bytes()
        self._next_look = now + POLL
        for one in list(self._tries.values()):
            if one.overdue(now, used[one.group]):
                self._close(one)

    def _close(self, one: Try) -> None:
        """Ends what is left of a try, and says how it ended."""
        kill_group(one.group)  # a process that is ending already keeps its status
        _, status, usage = os.wait4(one.group, 0)
        self._selector.unregister(one.pipe)
        os.close(one.pipe)
        del self._tries[one.pipe]
        self._say({"number": one.number, "ending": one.close(status, usage)})

    def _say(self, message: dict[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._answers, data) :]


def _tail(path: Path) -> str:
    """The last of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LAST_WORDS))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    answers = os.dup(1)
    os.dup2(2, 1)  # what imports print is not an answer
    for number in (signal.SIGINT, signal.SIGTERM):  # the driver's business, which closes our input
        signal.signal(number, signal.SIG_IGN)
    from tflq.sweep.warming import warm

    warm()
    gc.collect()
    gc.freeze()
    with suppress(BrokenPipeError):  # the driver is gone
        Server(0, answers).serve()


if __name__ == "__main__":
    main()
