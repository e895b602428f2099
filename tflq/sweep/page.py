"""The page of a sweep: one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from tflq.files import replace_file
from tflq.sweep.result import Result

__all__ = ["write"]

PAGE: Final = Template(
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<style>:root{color-scheme:light dark}
body{font:15px system-ui;margin:2rem}td,th{text-align:left;padding:.2rem .8rem}</style>
</head><body><h1>$title</h1><table>
<thead><tr><th>model<th>target<th>status<th>expected<th>why<th>bytes<th>converted<th>CPU s</tr></thead><tbody>
"""
)


def write(results: Iterable[Result], path: Path) -> None:
    """Writes the page of some results, whole or not at all. FileError if it cannot be written."""
    replace_file(path, _pieces(results))


def _pieces(results: Iterable[Result]) -> Iterator[bytes]:
    yield PAGE.substitute(title="Sweep").encode()
    for r in results:
        converted = r.get("converted", {}).get("bytes", "")
        before = r["model"].get("bytes", "")
        expected = "yes" if r["expected"] else "no"
        cells = (
            r["id"],
            r["target"],
            r["status"],
            expected,
            r["why"],
            before,
            converted,
            r.get("cpu", {}).get("total", ""),
        )
        yield ("<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in cells) + "</tr>\n").encode()
    yield b"</tbody></table></body></html>\n"
