"""What the commands print with: tables, sizes, JSON, and progress on a terminal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["field", "heading", "print_json", "progress", "size", "table", "warnings"]


def print_json(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def heading(text: str) -> None:
    click.secho(text, bold=True)


def field(name: str, value: object) -> None:
    """A line `name    value`."""
    click.echo(f"{click.style(f'{name:<11}', dim=True)} {value}")


def warnings(messages: Sequence[str]) -> None:
    for message in messages:
        click.echo(click.style("warning: ", fg="yellow", bold=True) + message)


def size(count: int) -> str:
    """Bytes as people read them."""
    amount, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), total: bool = False
) -> None:
    """Columns as wide as they need to be, those of `right` set right. On a terminal the widest text column shrinks to
    fit.

    `total`: the last row is set off.
    """
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    if sys.stdout.isatty():
        excess = sum(widths) + 2 * (len(widths) - 1) - shutil.get_terminal_size().columns
        text = [i for i in range(len(head)) if i not in right]
        widest = max(text, key=lambda i: widths[i])
        widths[widest] = max(12, widths[widest] - max(excess, 0))
    for number, row in enumerate(cells):
        shown = [_fit(cell, widths[i], right=i in right) for i, cell in enumerate(row)]
        line = "  ".join(shown).rstrip()
        click.secho(line, dim=number == 0 or None, bold=(total and number == len(cells) - 1) or None)


def _fit(cell: str, width: int, *, right: bool) -> str:
    if len(cell) > width:
        cell = cell[: (width - 1) // 2] + "…" + cell[len(cell) - width // 2 :]
    return cell.rjust(width) if right else cell.ljust(width)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[None]:
    """Shows that work is going on, and for how long, where someone can see it: on a terminal, and not with `--json`."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        display.add_task(what, total=None)
        yield
