"""What the engine makes of one operator's model, for TFLite and for TOSA.

kept      the target's own kernel
integer   plain integers, equal to the reference kernel bit for bit
table     likewise, as a table of all values of an 8-bit operand
float     in float between casts, within one count of the real result
refused   not converted: `reason`
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.backends import backend
from tflq.dialects.tfl import builtin_of
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.indexing import Table
from tflq.errors import TflqError
from tflq.ir.core import Module, Op
from tflq.options import Options
from tflq.pipelines import lower
from tflq.report import Report, Row
from tflq.targets import Target
from tflq.tosa.target import Target as TosaTarget

__all__ = ["Outcome", "outcome", "refusal"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`needs`: the profiles and extensions of TOSA that the result, `module`, takes."""

    path: str
    reason: str = ""
    warning: str = ""
    needs: tuple[str, ...] = ()
    module: Module | None = None


def outcome(module: Module, op: Op, target: Target | TosaTarget) -> Outcome:
    """What becomes of an operator of a module."""
    try:
        if isinstance(target, TosaTarget):
            return _for_tosa(module, op, target)
        return _for_tflite(module, op, target)
    except TflqError as error:
        return Outcome("refused", refusal(error))


def refusal(error: TflqError) -> str:
    """An error's reasons without the places, which the rows name."""
    stated = [part for reason in error.reasons for part in (reason.what, reason.remedy) if part]
    return "; ".join(dict.fromkeys(stated))


def _for_tflite(module: Module, op: Op, target: Target) -> Outcome:
    converted, report = lower(module, Options(kernels=target))
    row = _row(report, op)
    table = row.path == "integer" and any(
        isinstance(made, Gather) and made.input.is_constant for made in converted.ops()
    )
    return Outcome("table" if table else row.path, row.reason or row.note, row.warning, module=converted)


def _for_tosa(module: Module, op: Op, target: TosaTarget) -> Outcome:
    converted, report = lower(module, Options(backend("tosa"), target=target))
    needed = report.requirements
    assert needed is not None
    row = _row(report, op)
    table = row.path == "integer" and any(isinstance(made, Table) for made in converted.ops())
    path = "table" if table else row.path
    return Outcome(path, row.reason or row.note, row.warning, (*needed.profiles, *needed.extensions), converted)


def _row(report: Report, op: Op) -> Row:
    return next(row for row in report.rows if row.opcode == builtin_of(op.name))
