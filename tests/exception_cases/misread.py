"""Models of the coverage table on types that kernels misread, and run."""

from __future__ import annotations

from collections.abc import Iterator

import tflq
from scripts.pages.coverage import table_of
from tflq.conversion.report import Report
from tflq.tools.coverage.table import samples_of


def models() -> Iterator[tuple[str, bytes]]:
    """The operator and the file of each that a conversion warns of as broken, by operator. The interpreter refuses some
    of them. The table is that of the page of coverage: whoever needs it first computes it."""
    warned = [(row.operator.lower(), row.key) for row in table_of("integer") if row.warning]
    for name in sorted({name for name, _ in warned}):
        for key, model in samples_of(name):
            if (name, key) in warned and _is_broken(tflq.convert(model).report, name.upper()):
                yield name, model


def _is_broken(report: Report, opcode: str) -> bool:
    return any(row.exception == "broken" for row in report.rows if row.opcode == opcode)
