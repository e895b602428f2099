"""What the commands print with: lines, tables, sizes, JSON, and progress on a terminal.

Colour and width are as rich finds them: the terminal's, or what NO_COLOR, FORCE_COLOR and COLUMNS say. A table wraps
its cells to fit; where nobody says a width, in a pipe, each row is one line, whole.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import talk
from tflq.plain_numbers import plain_numbers

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    *("Cell", "change", "field", "heading", "line", "print_json", "progress", "size", "table", "times", "warnings"),
    "width",
]

Cell = str | tuple[str, str]
"""A text, or a text and its style."""

GAP = "  "
NARROWEST = 12
"""Columns of text get no narrower than this."""
ALIGNED = 48
"""Without a width, what is longer than this does not push the next column to the right."""
_ASKED = ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE")
"""What makes rich print in colours or in a width even where no terminal is."""
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if n not in (9, 10)}


def print_json(document: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(plain_numbers(document), indent=2, allow_nan=False))


def line(*cells: Cell, err: bool = False) -> None:
    """One line of texts in a row; a terminal wraps it between words."""
    _print([cells], err=err)


def heading(text: str, *, err: bool = False) -> None:
    line((text, "bold"), err=err)


def field(name: str, value: object, *, err: bool = False) -> None:
    """A line `name    value`."""
    _columns([[(name, "dim"), str(value)]], [11, None], gap=" ", err=err)


def warnings(messages: Sequence[str], *, err: bool = False) -> None:
    """Each warning once; none with `-q`."""
    for message in () if talk.quiet() else dict.fromkeys(messages):
        line(("warning: ", "bold yellow"), message, err=err)


def size(count: int) -> str:
    """Bytes as people read them."""
    amount, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def change(before: int, after: int) -> str:
    """Bytes before and after, and the ratio: "3.5 → 4.6 MiB (×1.3)"."""
    first, last = size(before), size(after)
    amount, unit = first.split()
    told = f"{amount if last.endswith(f' {unit}') else first} → {last}"
    return f"{told} ({times(after / before)})" if before else told


def times(ratio: float) -> str:
    """A ratio, to as many digits as say something: "×1.3", "×8", "×0.04", "×38"."""
    return f"×{ratio:.0f}" if ratio >= 100 else f"×{round(ratio, 1):g}" if ratio >= 0.1 else f"×{ratio:.2g}"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    right: Sequence[int] = (),
    total: bool = False,
    err: bool = False,
) -> None:
    """Columns as wide as they need to be, those of `right` set right; where the width does not suffice, the widest
    columns of text wrap. Nothing is cut. `total`: the last row is set off."""
    cells: list[list[Cell]] = [[(text, "dim") for text in head], *map(list, rows)]
    if total:
        cells[-1] = [(_text(cell), f"bold {_style(cell)}".strip()) for cell in cells[-1]]
    _columns(cells, [None] * len(head), right, err=err)


def _columns(
    rows: Sequence[Sequence[Cell]],
    widths: Sequence[int | None],
    right: Sequence[int] = (),
    *,
    gap: str = GAP,
    err: bool = False,
) -> None:
    """Rows in columns of the widths given, or as wide as their longest cell."""
    most = width(err)
    longest = [max((len(_cell(row[i])) for row in rows), default=0) for i in range(len(widths))]
    found = [n if width is None else max(width, n) for width, n in zip(widths, longest, strict=True)]
    if most is None:
        found = [n if i in right else min(n, ALIGNED) for i, n in enumerate(found)]
    else:
        flexible = [i for i, width in enumerate(widths) if i not in right and width is None]
        _shrink(found, flexible, sum(found) + len(gap) * (len(found) - 1) - most)
    lines = []
    for row in rows:
        wrapped = [
            [_cell(cell)] if most is None or i in right else _wrap(_cell(cell), found[i]) for i, cell in enumerate(row)
        ]
        for number in range(max(map(len, wrapped))):
            parts: list[Cell] = []
            for i, pieces in enumerate(wrapped):
                text = pieces[number] if number < len(pieces) else ""
                text = text.rjust(found[i]) if i in right else text.ljust(found[i])
                parts += [(text, _style(row[i])), gap]
            lines.append(_stripped(parts))
    _print(lines, err=err)


def _shrink(widths: list[int], flexible: Sequence[int], excess: int) -> None:
    """Takes what is too much from the widest of the columns that can wrap, one place at a time."""
    while excess > 0 and flexible:
        widest = max(flexible, key=lambda i: widths[i])
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1
        excess -= 1


def _wrap(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, width, initial_indent="", subsequent_indent=indent, break_on_hyphens=False) or [""]


def _stripped(cells: list[Cell]) -> list[Cell]:
    """A line without the spaces at its end."""
    while cells and not _text(cells[-1]).strip():
        cells.pop()
    if cells:
        cells[-1] = (_text(cells[-1]).rstrip(), _style(cells[-1]))
    return cells


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _style(cell: Cell) -> str:
    return "" if isinstance(cell, str) else cell[1]


def _shown(cell: Cell) -> str:
    """A cell's text; control characters, which a model's names may hold, do not reach the terminal."""
    return _text(cell).translate(_CONTROLS)


def _cell(cell: Cell) -> str:
    """The text of a table's cell, in one line."""
    return _shown(cell).replace("\n", "\\x0a").replace("\t", "\\x09")


def width(err: bool = False) -> int | None:
    """Columns to print in; None where nobody says how many."""
    stream = sys.stderr if err else sys.stdout
    return _console(err).width if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else None


def _is_plain(err: bool) -> bool:
    """Whether there is neither colour nor width to ask rich for."""
    stream = sys.stderr if err else sys.stdout
    return not stream.isatty() and not any(os.environ.get(name) for name in _ASKED)


def _console(err: bool) -> Console:
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def _print(lines: Sequence[Sequence[Cell]], *, err: bool) -> None:
    if _is_plain(err):
        click.echo("\n".join("".join(map(_shown, cells)) for cells in lines), err=err)
        return
    from rich.text import Text

    whole = Text("\n").join(Text.assemble(*((_shown(c), _style(c)) for c in cells)) for cells in lines)
    _console(err).print(whole, soft_wrap=width(err) is None)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[None]:
    """Shows that work is going on, where someone can see it, and not with `--json`."""
    with talk.progress(what, silent=quiet):
        yield
