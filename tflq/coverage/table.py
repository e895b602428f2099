"""The coverage table: what becomes of each operator on each signature, asked of the engine itself.

A small model stands for each row: it is written, read and converted as any other, and the row says what came out
(`outcome`). An operator without a quantized signature has one row of path "none", with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tflq.coverage.rows import CoverageRow
from tflq.coverage.samples import operators, samples_of, unquantized
from tflq.dialects.tfl import builtin_of, op_name
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.movement import Table
from tflq.errors import TflqError
from tflq.flatbuffer.reader import read
from tflq.ir.core import Module, Op
from tflq.options import Options
from tflq.pipelines import lower
from tflq.report import short_type
from tflq.tosa.check import Requirements


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the engine makes of one operator's model. `needs`: the profiles and extensions of TOSA for its `module`.

    Paths:
        kept: The target's own kernel.
        integer: Plain integers, equal to the reference kernel bit for bit.
        table: The same, as a table of all values of an 8-bit operand.
        float: In float between casts, within one count of the real result.
        refused: Not converted; `reason` says why.
    """

    path: str
    reason: str = ""
    warning: str = ""
    needs: tuple[str, ...] = ()
    module: Module | None = None


def outcome(module: Module, op: Op, options: Options) -> Outcome:
    """What becomes of an operator of a module."""
    try:
        lowered, report = lower(module, options)
    except TflqError as error:
        return Outcome("refused", refusal(error))
    row = next(row for row in report.rows if row.opcode == builtin_of(op.name))
    path = "table" if row.path == "integer" and any(map(_is_table, lowered.ops())) else row.path
    needed = report.requirements if isinstance(report.requirements, Requirements) else None
    needs = () if needed is None else (*needed.profiles, *needed.extensions)
    return Outcome(path, row.reason or row.note, row.warning, needs, lowered)


def _is_table(op: Op) -> bool:
    return isinstance(op, Table) or (isinstance(op, Gather) and op.input.is_constant)


def refusal(error: TflqError) -> str:
    """An error's reasons without the places, which the rows name."""
    return "; ".join(dict.fromkeys(part for reason in error.reasons for part in (reason.what, reason.remedy) if part))


def coverage(options: Options | None = None, operator: str = "") -> Iterator[CoverageRow]:
    """A row per operator and signature, in the order of names, of the operators whose name contains `operator`, in a
    conversion with these options."""
    for name in operators():
        if operator.lower() not in name:
            continue
        if name in unquantized():
            reason = f"no quantized signature: {unquantized()[name]}"
            yield CoverageRow(name.upper(), (), (), "", "none", reason, "", (), name)
        for key, model in samples_of(name):
            yield converted(key, model, options or Options())[0]


def converted(key: str, model: bytes, options: Options) -> tuple[CoverageRow, Module | None]:
    """The row of a sample, and what it was converted to, if it was."""
    name, detail = key.partition(" ")[0], key.partition(": ")[2]
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    try:
        module = read(model)
    except TflqError as error:
        result = Outcome("refused", refusal(error))
    else:
        op = next(op for op in module.ops() if op.name == op_name(name))
        operands = tuple("none" if v is None else short_type(v) for v in op.operands)
        results = tuple(short_type(v) for v in op.results)
        result = outcome(module, op, options)
    said = result.path, result.reason, result.warning, result.needs
    return CoverageRow(name.upper(), operands, results, detail, *said, key), result.module
