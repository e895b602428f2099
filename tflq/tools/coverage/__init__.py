"""Table of the operators that convert, by signature and outcome; `scripts/make_coverage.py` writes its rows.

`table` asks the engine, with one small model per row; `tflq ops` reads the shipped rows and imports no numpy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATHS: Final = ("kept", "integer", "table", "float", "refused", "none")
TARGETS: Final = ("integer", "kernels", "tosa")
"""The targets that the table has."""
SHIPPED: Final = Path(__file__).with_name("rows.json")


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """An operator on a signature: `operands` and `results` as the report writes types; `detail`: what else tells the
    row from others, scales and options; `key`: its sample's name; `needs`: profiles and extensions of TOSA."""

    operator: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    detail: str
    path: str
    reason: str
    warning: str
    needs: tuple[str, ...]
    key: str


def dump_rows(tables: Mapping[str, Sequence[CoverageRow]]) -> str:
    """The tables of all targets as JSON, a line per row: what a row is, then what becomes of it for each target; null
    where that is the same as for the target before."""
    lines = []
    for rows in zip(*(tables[name] for name in TARGETS), strict=True):
        outcomes = [[row.path, row.reason, row.warning, row.needs] for row in rows]
        new = [now if now != before else None for before, now in zip([None, *outcomes], outcomes, strict=False)]
        first = rows[0]
        line = [first.operator, first.operands, first.results, first.detail, first.key, *new]
        lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def shipped_rows(target: str, operator: str = "") -> Iterator[CoverageRow]:
    """The rows of one of `TARGETS`, of the operators whose name contains `operator`."""
    count = TARGETS.index(target) + 1
    for name, operands, results, detail, key, *new in json.loads(SHIPPED.read_text(encoding="utf-8")):
        if operator.lower() in name.lower():
            path, reason, warning, needs = next(outcome for outcome in reversed(new[:count]) if outcome)
            yield CoverageRow(name, tuple(operands), tuple(results), detail, path, reason, warning, tuple(needs), key)
