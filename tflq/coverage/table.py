"""The coverage table: what becomes of each operator on each signature, asked of the engine itself.

A small model stands for each row: it is written, read and converted as any other, and the row says what came out.

    kept      the target's own kernel
    integer   builtins on plain integers, equal to the reference kernel
    table     likewise, as a table of all values of an 8-bit operand
    float     in float between casts, within one count of the real result
    refused   not converted: `reason`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tflq.coverage.samples import samples
from tflq.errors import TflqError
from tflq.flatbuffer.reader import read
from tflq.ir.core import Module
from tflq.pipelines import to_tflite
from tflq.report import Report, short_type
from tflq.targets import INTEGER, Target

__all__ = ["CoverageRow", "coverage"]


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """An operator on a signature: `operands` and `results` as the report writes types."""

    operator: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    path: str
    reason: str
    warning: str
    key: str


def coverage(target: Target = INTEGER) -> Iterator[CoverageRow]:
    """A row per operator and signature, in the order of the operators' names."""
    for key, model in samples():
        yield _row(key, model, target)


def _row(key: str, model: bytes, target: Target) -> CoverageRow:
    module = read(model)
    op = next(op for op in module.ops())
    operands = tuple("none" if v is None else short_type(v) for v in op.operands)
    results = tuple(short_type(v) for v in op.results)
    name = op.name.removeprefix("tfl.").upper()
    try:
        converted, report = to_tflite(module, mac="integer", fallback=True, real_semantics=False, kernels=target)
    except TflqError as error:
        stated = getattr(error, "reasons", None) or [str(error)]
        reasons = "; ".join(reason.partition("': ")[2] or reason for reason in stated)
        return CoverageRow(name, operands, results, "refused", reasons, "", key)
    path, row = _path(converted, report), report.rows[0]
    return CoverageRow(name, operands, results, path, row.reason or row.note, row.warning, key)


def _path(converted: Module, report: Report) -> str:
    path = report.rows[0].path
    tables = (op for op in converted.ops() if op.name == "tfl.gather" and op.operand(0).is_constant)
    return "table" if path == "integer" and any(True for _ in tables) else path
