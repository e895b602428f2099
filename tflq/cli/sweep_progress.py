"""What runs now, how far the sweep is, and how long it will take: on a terminal live, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import click

if TYPE_CHECKING:
    from tflq.sweep.result import Key

__all__ = ["Display"]

EVERY: Final = 30.0  # seconds between lines where there is no terminal


class Display:
    """An observer that shows on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._bar: Any = None
        self._running: dict[tuple[str, str], tuple[str, float]] = {}
        self._counts: Counter[str] = Counter()
        self._prefix = ""
        self._total = self._done = self._before = 0
        self._start = self._said = time.monotonic()

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            left = TextColumn("{task.fields[left]}")
            self._bar = Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), left)
            self._task = self._bar.add_task("", total=None, left="")
            self._live = Live(get_renderable=self._render, console=Console(stderr=True), transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, jobs: Sequence[Key], done: int) -> None:
        from tflq.sweep.result import shared_prefix

        self._prefix = shared_prefix(id for id, _ in jobs)
        self._total, self._done, self._before = len(jobs), done, done
        if done and not self._quiet:
            self._print(f"{done} of {len(jobs)} done")
        self._start = self._said = time.monotonic()

    def started(self, id: str, target: str) -> None:
        self._running[id, target] = "start", time.monotonic()

    def staged(self, id: str, target: str, stage: str) -> None:
        self._running[id, target] = stage, self._running.get((id, target), ("", time.monotonic()))[1]

    def finished(self, result: dict[str, Any]) -> None:
        self._running.pop((result["id"], result["target"]), None)
        self._done += 1
        self._counts[result["status"]] += 1
        if self._quiet:
            return
        if not result["expected"]:
            line = f"{result['status']:<15} {self._shown(result['id'])} [{result['target']}] {result['why']}"
            self._print(line[:300])
        if self._live is None and time.monotonic() - self._said > EVERY:
            self._said = time.monotonic()
            self._print(f"{self._done} of {self._total} {self._left()}")

    def _shown(self, id: str) -> str:
        return id.removeprefix(self._prefix)

    def _print(self, line: str) -> None:
        if self._live is None:
            click.echo(line, err=True)
        else:
            self._live.console.print(line, markup=False, highlight=False)

    def _left(self) -> str:
        """How long the rest takes if it goes on like this."""
        done = self._done - self._before
        if not done or self._done >= self._total:
            return ""
        seconds = (time.monotonic() - self._start) / done * (self._total - self._done)
        return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"

    def _render(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        self._bar.update(self._task, total=self._total or None, completed=self._done, left=self._left())
        now = time.monotonic()
        counts = ", ".join(f"{count} {status}" for status, count in self._counts.most_common())
        lines = [
            f"  {stage:<9} {now - since:5.0f} s  {self._shown(id)} [{target}]"
            for (id, target), (stage, since) in self._running.items()
        ]
        return Group(self._bar, Text(counts), *map(Text, lines))
