"""The site's page of tools downstream, and the table of them in README.md, from what downstream.py has measured.

The numbers are in git, in scripts/downstream.json: to measure them takes eight tools of a gigabyte or more, and
networks that are not in git. The page is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.downstream_forms import ORIGINAL, TOOLS, Row, Tool
from scripts.marked import replaced
from scripts.target_running import Difference, packages

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = ROOT / "scripts" / "downstream.json"
README: Final = ROOT / "README.md"
HEAD: Final = """# Downstream

What tools make of {count} quantized networks, and of the forms that tflq gives them. Measured by
`scripts/downstream.py` (`make downstream`), which installs each tool in an environment of its own; a test runs those
that are installed.

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


class Measurement(NamedTuple):
    """The names of networks, and the rows of all tools, of which one that was skipped has none."""

    networks: Sequence[str]
    rows: Sequence[Row]


def dump(measurement: Measurement) -> str:
    """A measurement as JSON, a line for each row."""
    rows = ",\n".join(json.dumps([row.tool.title, *row[1:]], ensure_ascii=False) for row in measurement.rows)
    return f'{{"networks": {json.dumps(measurement.networks)}, "rows": [\n{rows}\n]}}\n'


def load(text: str, tools: Iterable[Tool] = TOOLS) -> Measurement:
    """The measurement in a JSON text."""
    document, titles = json.loads(text), {tool.title: tool for tool in tools}
    return Measurement(document["networks"], [_row(titles[title], *cells) for title, *cells in document["rows"]])


def _row(tool: Tool, form: str, network: str, refused: str, difference: Any, seconds: float | None, size: int) -> Row:
    return Row(tool, form, network, refused, Difference(*difference) if difference else None, seconds, size)


def page() -> str:
    """The page of the measurement in git."""
    return page_of(load(DATA.read_text(encoding="utf-8")), TOOLS)


def write(measurement: Measurement) -> None:
    """Writes a measurement, and the table of README.md."""
    DATA.write_text(dump(measurement), encoding="utf-8")
    text = replaced(README.read_text(encoding="utf-8"), "downstream", advice(measurement, TOOLS))
    README.write_text(text, encoding="utf-8")


def page_of(measurement: Measurement, tools: Iterable[Tool]) -> str:
    """The page's text."""
    names, rows = measurement
    listed = ", ".join(f"`{name}`" for name in names)
    lines = [HEAD.format(count=len(names), networks=listed), ABOUT.format(count=len(names)), *_head(SUMMARY)]
    for tool in tools:
        of_tool = [row for row in rows if row.tool == tool]
        sums = [_line((tool.title, *_cells(each))) for each in summaries(tool, of_tool)]
        lines += sums if of_tool else [_line((tool.title, SKIPPED, *[""] * 5))]
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


class Summary(NamedTuple):
    """What a tool makes of a form of all networks. exact: None of a compiler, which runs nothing; time and size:
    multiples of the original's, 0 where there are none."""

    form: str
    accepted: int
    exact: int | None
    apart: float | None
    time: float
    size: float

    @property
    def right(self) -> int:
        return self.accepted if self.exact is None else self.exact

    def __str__(self) -> str:
        return f"{self.accepted} compiled" if self.exact is None else f"{self.exact} exact"


def summaries(tool: Tool, rows: Sequence[Row]) -> Iterator[Summary]:
    """The summary of each form that a tool is given, from its rows."""
    originals = {row.network: row for row in rows if row.form == ORIGINAL}
    for form in tool.forms:
        accepted = [row for row in rows if row.form == form and not row.refused]
        pairs = [(row, originals[row.network]) for row in accepted if row.network in originals]
        both = [(row, original) for row, original in pairs if not original.refused]
        time = _ratio((row.seconds or 0, original.seconds or 0) for row, original in both)
        size = _ratio((row.size, original.size) for row, original in both)
        exact = None if tool.compiles else sum(row.exact for row in accepted)
        apart = max((row.found.apart for row in accepted if row.found), default=None)
        yield Summary(form, len(accepted), exact, apart, time, size)


def _ratio(pairs: Iterable[tuple[float, float]]) -> float:
    ones, others = (sum(side) for side in zip(*pairs, strict=True)) if (pairs := list(pairs)) else (0, 0)
    return ones / others if others else 0


def _cells(each: Summary) -> tuple[str, ...]:
    exact = "" if each.exact is None else str(each.exact)
    apart = "" if each.apart is None else f"{each.apart:g}"
    ratios = (f"×{ratio:.2f}" if ratio else "" for ratio in (each.time, each.size))
    return each.form, str(each.accepted), exact, apart, *ratios


def _head(columns: Sequence[str]) -> list[str]:
    return [_line(columns), f"|{'---|' * len(columns)}"]


def _line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def advice(measurement: Measurement, tools: Iterable[Tool]) -> str:
    """The table of README.md: for each tool the form with most exact results, or of a compiler with most that it
    accepts, and of these the fastest."""
    lines = _head(("you have", "take", f"of {len(measurement.networks)} networks", "the originals there"))
    for tool in tools:
        rows = [row for row in measurement.rows if row.tool == tool]
        forms = list(summaries(tool, rows)) if rows else []
        original = next((each for each in forms if each.form == ORIGINAL), None)
        for best in sorted(forms, key=lambda each: (-each.right, round(each.time, 2) or 1))[:1]:
            lines.append(_line((tool.title, best.form, str(best), str(original or "not read"))))
    return "\n".join(lines) + "\n"
