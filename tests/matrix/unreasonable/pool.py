"""Runs draws in child processes: one that dies or hangs is replaced, and what it was at is what the draw shows."""

from __future__ import annotations

import json
import os
import resource
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

SECONDS = 90
"""Without a word from a child, after which it is ended."""
ADDRESS_SPACE = 6 << 30
TOSA_EVERY = 10
"""Of so many draws, one goes to TOSA, too."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Draws `start` to `stop` of an operator and seed; for TOSA, one of so many, or all, or none."""

    operator: str
    start: int
    stop: int
    seed: int = 0
    tosa_every: int = TOSA_EVERY


def run(jobs: list[Job], workers: int, script: str, done: Callable[[Record], None]) -> None:
    """Runs jobs, each in a child of its own after another, `workers` at once; `script` called with --worker JSON is the
    child. `done` is given a record per draw and target: operator, number, target, kind, detail, text."""

    def one(job: Job) -> None:
        for record in _followed(job, script):
            done(record)

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(one, jobs))


def _followed(job: Job, script: str) -> Iterator[Record]:
    """The records of a job. A draw in which a child ends is tried again without running its original, which may have
    written over what the conversion's run needs, or be what ended the child."""
    start, dead, first = job.start, -1, ""
    while start < job.stop:
        at: Record = {"number": start, "phase": "drawing"}
        found: list[Record] = []
        ended = "died"
        command = [sys.executable, script, "--worker", json.dumps({**job.__dict__, "start": start, "dead": dead})]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            for message in _lines(child):
                if message is None:
                    ended = "no answer"
                    child.kill()
                    break
                if message["number"] != at["number"]:
                    yield from found
                    found = []
                if "phase" in message:
                    at = message
                else:
                    found.append({"operator": job.operator, **message})
            code = child.wait()
        if code == 0:
            yield from found
            return
        start = at["number"]
        if dead != start and at["phase"] != "drawing":
            dead, first = start, at["phase"]
            continue
        yield from found
        kind = "both" if dead == start and first == "original" else ended
        detail = f"{at['phase']}: the process ended with {code}"
        yield {"operator": job.operator, **at, "target": at["phase"], "kind": kind, "detail": detail}
        start += 1


def _lines(child: subprocess.Popen[bytes]) -> Iterator[Record | None]:
    """Messages of a child to its end; None after too long a silence."""
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(SECONDS):
                yield None
                return
            data = os.read(child.stdout.fileno(), 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)


def work(given: Record) -> None:
    """The child: tells what it is at, and the verdicts, in lines of JSON on standard output, which it takes for itself:
    the reference model and the interpreter write there."""
    from matrix.unreasonable.judge import judged
    from matrix.unreasonable.sources import subject

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def put(message: Record) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    for number in range(given["start"], given["stop"]):
        put({"number": number, "phase": "drawing", "text": ""})
        drawn = subject(given["operator"], number, given["seed"])
        every = given["tosa_every"]
        targets = ("integer", "kernels", *(("tosa",) if every and number % every == 0 else ()))
        dead = given["dead"] == number

        def say(phase: str, number: int = number, text: str = drawn.text) -> None:
            put({"number": number, "phase": phase, "text": text})

        for verdict in judged(drawn, targets, say, dead):
            put({"number": number, "text": drawn.text, **verdict.__dict__})
