"""The coverage table: what becomes of each operator on each signature, asked of the engine itself.

A small model stands for each row: it is written, read and converted as any other, and the row says what came out
(`outcome`). An operator without a quantized signature has one row of path "none", with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflq.coverage.outcome import Outcome, outcome, refusal
from tflq.coverage.rows import CoverageRow
from tflq.coverage.samples import operators, samples_of, unquantized
from tflq.dialects.tfl import op_name
from tflq.errors import TflqError
from tflq.flatbuffer.reader import read
from tflq.ir.core import Module
from tflq.report import short_type
from tflq.targets import INTEGER, Target
from tflq.tosa.target import Target as TosaTarget

__all__ = ["converted", "coverage"]


def coverage(target: Target | TosaTarget = INTEGER, operator: str = "") -> Iterator[CoverageRow]:
    """A row per operator and signature, in the order of names, of the operators whose name contains `operator`."""
    for name in operators():
        if operator.lower() not in name:
            continue
        if name in unquantized():
            reason = f"no quantized signature: {unquantized()[name]}"
            yield CoverageRow(name.upper(), (), (), "", "none", reason, "", (), name)
        for key, model in samples_of(name):
            yield converted(key, model, target)[0]


def converted(key: str, model: bytes, target: Target | TosaTarget) -> tuple[CoverageRow, Module | None]:
    """The row of a sample, and what it was converted to, if it was."""
    name, detail = key.partition(" ")[0], key.partition(": ")[2]
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    try:
        module = read(model)
    except TflqError as error:
        found = Outcome("refused", refusal(error))
    else:
        op = next(op for op in module.ops() if op.name == op_name(name))
        operands = tuple("none" if v is None else short_type(v) for v in op.operands)
        results = tuple(short_type(v) for v in op.results)
        found = outcome(module, op, target)
    row = CoverageRow(
        name.upper(), operands, results, detail, found.path, found.reason, found.warning, found.needs, key
    )
    return row, found.module
