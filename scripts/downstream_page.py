"""docs/downstream.md as text, and what README.md says of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from scripts.downstream_forms import ORIGINAL, Row, Tool
from scripts.target_running import packages

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "downstream.md"
README: Final = ROOT / "README.md"
HEAD: Final = """# Downstream

What tools make of {count} quantized networks, and of the forms that tflq gives them. Made by `scripts/downstream.py`
(`make downstream`), which installs each tool in an environment of its own; a test runs those that are installed.

- **accepted**: the tool runs the file, or compiles it; Vela, if the file that it writes has one operator, the NPU's
- **exact**: no element differs from what TFLite's reference kernels make of the original, on 6 random inputs, all
  minimum, all maximum and all zero point; inputs follow each other, so that state counts. Vela runs nothing
- **largest difference**: in steps of the output's type
- **time**: milliseconds of the processor for a run on one thread, the fastest of ten, on x86-64
- **file**: its size in thousands of bytes

The networks: {networks}.

`out.onnx` says in its metadata which runtimes compute it exactly as it is: with state, or with numbers beyond 32 bits,
ONNX Runtime alone. OpenVINO is given the state as inputs, as by `tflq verify --runtime openvino`; `--state inputs`
writes files in which it is ([ONNX](guide/onnx.md)). What reads .tflite files gets `the original` as it is, ONNX Runtime
by way of tf2onnx.
"""
SUMMARY: Final = ("tool", "form", "accepted", "exact", "largest difference", "time", "file")
COLUMNS: Final = ("network", "form", "accepted", "exact", "largest difference", "time", "file")
ABOUT: Final = """## Summary

Of the {count} networks; largest difference of any. Time and file are multiples of the original's, summed over the
networks whose original and form the tool accepts (for a tool that does not read TFLite: of the file alone).
"""
SKIPPED: Final = "not measured: the tool could not be installed"


def page(rows: Sequence[Row], names: Sequence[str], tools: Iterable[Tool]) -> str:
    """The page's text."""
    listed = ", ".join(f"`{name}`" for name in names)
    lines = [HEAD.format(count=len(names), networks=listed), ABOUT.format(count=len(names)), *_head(SUMMARY)]
    for tool in tools:
        of_tool = [row for row in rows if row.tool == tool]
        lines += _summary(tool, of_tool) if of_tool else [_line((tool.title, SKIPPED, *[""] * 5))]
    for tool in tools:
        lines += ["", f"## {tool.title}", "", f"{', '.join(packages(tool.environment))}", "", *_head(COLUMNS)]
        lines += [_line(cells(row)) for name in names for row in rows if row.tool == tool and row.network == name]
    return "\n".join(lines) + "\n"


def cells(row: Row) -> tuple[str, ...]:
    """A row of a tool's table."""
    size = f"{row.size / 1e3:.1f}" if row.size else ""
    if row.refused:
        return row.network, row.form, f"no: {row.refused.replace('|', '/')}", "", "", "", size
    if row.found is None:
        return row.network, row.form, "yes", "", "", "", size
    exact = "yes" if row.exact else f"{row.found.wrong} of {row.found.elements} differ"
    time = "" if row.seconds is None else f"{row.seconds * 1e3:.2f}"
    return row.network, row.form, "yes", exact, f"{row.found.apart:g}", time, size


def _summary(tool: Tool, rows: Sequence[Row]) -> Iterator[str]:
    originals = {row.network: row for row in rows if row.form == ORIGINAL}
    for form in tool.forms:
        of_form = [row for row in rows if row.form == form]
        taken = [row for row in of_form if not row.refused]
        run = [row.found for row in taken if row.found]
        pairs = [(row, originals[row.network]) for row in taken if row.network in originals]
        both = [(row, original) for row, original in pairs if not original.refused]
        times = _ratio((row.seconds or 0, original.seconds or 0) for row, original in both)
        sizes = _ratio((row.size, original.size) for row, original in both)
        exact = "" if tool.compiles else str(sum(row.exact for row in taken))
        apart = f"{max(found.apart for found in run):g}" if run else ""
        yield _line((tool.title, form, str(len(taken)), exact, apart, times, sizes))


def _ratio(pairs: Iterable[tuple[float, float]]) -> str:
    own, others = (sum(side) for side in zip(*pairs, strict=True)) if (pairs := list(pairs)) else (0, 0)
    return f"×{own / others:.2f}" if own and others else ""


def _head(columns: Sequence[str]) -> list[str]:
    return [_line(columns), f"|{'---|' * len(columns)}"]


def _line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


class _Seen(NamedTuple):
    """A line of the summary."""

    form: str
    accepted: int
    exact: int | None
    time: float


def advice(text: str) -> str:
    """The table of README.md, from the page's summary: for each tool the form with most exact results, or of a compiler
    with most that it takes, and of these the fastest."""
    count = int(re.findall(r"of (\d+) quantized networks", text)[0])
    found: dict[str, list[_Seen]] = {}
    for tool, form, accepted, exact, _, time, _ in _rows(text):
        if form != SKIPPED:
            seen = _Seen(form, int(accepted), int(exact) if exact else None, float(time.strip("×") or 1))
            found.setdefault(tool, []).append(seen)
    lines = _head(("you have", "take", f"of {count} networks", "the originals there"))
    for tool, forms in found.items():
        best = max(forms, key=lambda seen: (_right(seen), -seen.time))
        original = next((seen for seen in forms if seen.form == ORIGINAL), None)
        lines.append(_line((tool, best.form, _said(best), _said(original) if original else "not read")))
    return "\n".join(lines) + "\n"


def _rows(text: str) -> Iterator[list[str]]:
    section = text.partition("## Summary")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return (line[2:-2].split(" | ") for line in lines[2:])


def _right(seen: _Seen) -> int:
    return seen.accepted if seen.exact is None else seen.exact


def _said(seen: _Seen) -> str:
    return f"{seen.accepted} compiled" if seen.exact is None else f"{seen.exact} exact"
