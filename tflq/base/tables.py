"""Lines and tables of text, for a terminal and for `str`.

A table wraps its cells to fit a width; without one each row is one line, whole.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final, TypeAlias

Cell: TypeAlias = str | tuple[str, str]
"""A text, or a text and its style."""

GAP = "  "
NARROWEST = 12
"""Columns of text get no narrower than this."""
ALIGNED = 48
"""Without a width, what is longer than this does not push the next column to the right."""
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if n not in (9, 10)}


class Table:
    """Columns as wide as they need to be, those of `right` aligned right. `total`: the last row is bold."""

    __slots__ = ("head", "right", "rows", "total")

    def __init__(
        self, head: Sequence[str], rows: Sequence[Sequence[Cell]], right: Sequence[int] = (), total: bool = False
    ) -> None:
        self.head: Final = head
        self.rows: Final = rows
        self.right: Final = right
        self.total: Final = total

    def lines(self, most: int | None = None) -> list[list[Cell]]:
        """The lines within a width. Where that is too narrow the widest columns of text wrap. Nothing is cut off."""
        cells: list[list[Cell]] = [[(text, "dim") for text in self.head], *map(list, self.rows)]
        if self.total:
            cells[-1] = [(text_of(cell), f"bold {style_of(cell)}".strip()) for cell in cells[-1]]
        return columns(cells, [None] * len(self.head), self.right, most=most)


Line: TypeAlias = Sequence[Cell]
"""Texts in a row."""
Blocks: TypeAlias = Sequence[Line | Table]


def warning_line(text: str) -> Line:
    return ("warning: ", "bold yellow"), text


def plain(blocks: Blocks) -> str:
    """The text of lines and tables, without styles."""
    lines = [line for block in blocks for line in (block.lines() if isinstance(block, Table) else [block])]
    return "\n".join("".join(map(shown, cells)) for cells in lines)


def columns(
    rows: Sequence[Sequence[Cell]],
    widths: Sequence[int | None],
    right: Sequence[int] = (),
    *,
    gap: str = GAP,
    most: int | None = None,
) -> list[list[Cell]]:
    """Lines of rows in columns of the widths given, or as wide as their longest cell. Columns wrap where all are wider
    than `most`; without it each row is one line."""
    longest = [max((len(cell_text(row[i])) for row in rows), default=0) for i in range(len(widths))]
    fitted = [n if width is None else max(width, n) for width, n in zip(widths, longest, strict=True)]
    if most is None:
        fitted = [n if i in right else min(n, ALIGNED) for i, n in enumerate(fitted)]
    else:
        flexible = [i for i, width in enumerate(widths) if i not in right and width is None]
        _shrink(fitted, flexible, sum(fitted) + len(gap) * (len(fitted) - 1) - most)
    lines = []
    for row in rows:
        wrapped = [
            [cell_text(cell)] if most is None or i in right else _wrap(cell_text(cell), fitted[i])
            for i, cell in enumerate(row)
        ]
        for number in range(max(map(len, wrapped))):
            parts: list[Cell] = []
            for i, pieces in enumerate(wrapped):
                text = pieces[number] if number < len(pieces) else ""
                text = text.rjust(fitted[i]) if i in right else text.ljust(fitted[i])
                parts += [(text, style_of(row[i])), gap]
            lines.append(_stripped(parts))
    return lines


_BREAK = "\v"
"""Where a line may end; a space to `textwrap`. No text that is printed has it."""


def _shrink(widths: list[int], flexible: Sequence[int], excess: int) -> None:
    """Narrows the widest of the columns that can wrap, one character at a time, until nothing is too much."""
    while excess > 0 and flexible:
        widest = max(flexible, key=lambda i: widths[i])
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1
        excess -= 1


def _wrap(text: str, width: int) -> list[str]:
    """Lines of a cell, which end between words or behind a `/`, as names of tensors have them."""
    if len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()))
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=indent, break_on_hyphens=False, expand_tabs=False, replace_whitespace=False
    )
    return [line.replace(_BREAK, "") for line in wrapper.wrap(text.replace("/", f"/{_BREAK}"))] or [""]


def _stripped(cells: list[Cell]) -> list[Cell]:
    """A line without the spaces at its end."""
    while cells and not text_of(cells[-1]).strip():
        cells.pop()
    if cells:
        cells[-1] = (text_of(cells[-1]).rstrip(), style_of(cells[-1]))
    return cells


def text_of(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def style_of(cell: Cell) -> str:
    return "" if isinstance(cell, str) else cell[1]


def shown(cell: Cell) -> str:
    """A cell's text; control characters, which a model's names may hold, do not reach the terminal."""
    return text_of(cell).translate(_CONTROLS)


def cell_text(cell: Cell) -> str:
    """The text of a table's cell, in one line."""
    return shown(cell).replace("\n", "\\x0a").replace("\t", "\\x09")
