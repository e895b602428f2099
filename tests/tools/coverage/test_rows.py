"""Every row of the coverage table is held to its claim: its model is converted and run.

kept, integer, table    what the interpreter makes of the original, bit for bit; where no kernel runs the original,
                        what its operators make of real values, within one count
float                   the latter
refused                 an error that names the operator and says why
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.coverage_inputs import inputs_of
from support.harness import interpret
from support.real_twin import float_twin, largest_difference, real_values
from support.reference import resolver_of
from support.stablehlo_real import REAL, Real

import tflq
from tflq.conversion.report import short_type
from tflq.dialects.tfl import op_name
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.targets.load import load_target
from tflq.tools.coverage import PATHS, CoverageRow
from tflq.tools.coverage.table import converted, operators, samples_of, unquantized

OTHER = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
"""The resolver for SUM, whose reference kernel gives a constant."""
UNSTEADY = ("bidirectional_sequence_lstm ", "depthwise_conv_2d i16 × i4")
"""Samples whose own kernels give something else each time."""
OF_BITS = {"BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_AND", "STABLEHLO_OR", "STABLEHLO_SHIFT_LEFT"}
"""Operators on stored bits: where no kernel runs them on such types, there is nothing to compare with."""
NO_KERNEL = "no kernel computes it"
"""What rows say that give real results, whatever an interpreter makes of types that its kernels do not look at."""
TARGETS = ("integer", "kernels")
ROOT = Path(__file__).resolve().parents[3]
_DISTANCE = r"(, |: )(up to \d+ count\(s\) from the real value|[\d.]+% of all pairs of values are compared wrongly)"
Arrays = list[list[np.ndarray]]


NAMES = [name for name in operators() if name not in unquantized()]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES[::2], *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[1::2])])
def test_rows_are_what_they_claim(name: str) -> None:
    for key, model in samples_of(name):
        held: set[bytes] = set()
        real = False
        for target in TARGETS:
            row, result = converted(key, model, Options(kernels=load_target(target)))
            assert not row.warning or (row.operator, _words(row.warning)) in listed(), "docs/exceptions.md lists it"
            real |= row.reason.startswith(NO_KERNEL)
            _hold(row, model, result, held, real=real)
            if result is None:
                with pytest.raises(tflq.TflqError, match=row.operator):
                    tflq.convert(model, target=target)


@cache
def listed() -> set[tuple[str, str]]:
    """Operators and warnings of docs/exceptions.md."""
    lines = (ROOT / "docs" / "exceptions.md").read_text(encoding="utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {(row[0].split()[0], _words(row[2 if len(row) == 3 else 1])) for row in cells}


def _words(warning: str) -> str:
    """A warning without names and types of tensors, and without how far off results are."""
    for pattern in (_DISTANCE, r"'[\w.]+'", r"\b(u?i\d+)\b"):
        warning = re.sub(pattern, "", warning)
    return warning


def _hold(row: CoverageRow, model: bytes, result: Module | None, held: set[bytes], *, real: bool) -> None:
    """Fails if the row claims what is not so; `held`: results that have been looked at; `real`: real results count."""
    assert row.path in PATHS
    assert (row.path == "refused") == (result is None)
    assert row.reason or row.path not in ("float", "refused")
    data = bytes(write(result)) if result is not None else b""
    if not data or data in held or row.key.startswith(UNSTEADY):
        return
    held.add(data)
    module = tflq.read(model)
    batches = inputs_of(module, row.operator.lower())
    resolver = OTHER if row.operator == "SUM" else resolver_of(row.operator.lower())
    wanted = _original(model, batches, resolver)
    if wanted is None and row.path == "kept":
        return  # what is kept runs where the original does
    got = interpret(data, batches, resolver)
    if wanted is not None and any(w.dtype != g.dtype for w, g in zip(wanted[0], got[0], strict=True)):
        wanted = None  # the kernel takes a result for one of another type
    if row.operator in OF_BITS and wanted is None:
        return
    if wanted is not None and row.path != "float" and not real:
        for ws, gs in zip(wanted, got, strict=True):
            for w, g in zip(ws, gs, strict=True):
                np.testing.assert_array_equal(g, w, err_msg=row.key)
    else:
        assert _from_real(model, module, batches, got, resolver) <= 1, row.key


def _original(model: bytes, batches: Arrays, resolver: str) -> Arrays | None:
    try:
        return interpret(model, batches, resolver)
    except RuntimeError:  # no interpreter has such a kernel
        return None


def _from_real(model: bytes, module: Module, batches: Arrays, got: Arrays, resolver: str) -> float:
    """The largest difference of results from real ones, in counts."""
    inputs, outputs = module.main.inputs, module.main.outputs
    floats = [[real_values(v, array) for v, array in zip(inputs, batch, strict=True)] for batch in batches]
    name = module.main.ops[0].name.removeprefix("tfl.")
    if name in REAL:
        real = [[_of_reals(module.main.ops[0], dict(zip(inputs, batch, strict=True)), REAL[name])] for batch in floats]
    else:
        real = interpret(float_twin(model), floats, resolver)
    return max(largest_difference(outputs, rs, gs) for rs, gs in zip(real, got, strict=True))


def _of_reals(op: Op, given: dict[Value, np.ndarray], function: Real) -> np.ndarray:
    arrays = [real_values(v, v.array) if v.is_constant else given[v] for v in op.operands if v is not None]
    with np.errstate(all="ignore"):
        return function(arrays, op.attributes)


def test_every_builtin_has_rows() -> None:
    """An operator has samples, or no quantized signature, as `samples_of_layers.py` and traits say."""
    assert [name for name in operators() if (name in unquantized()) == any(samples_of(name))] == []


@pytest.mark.slow
def test_rows_are_told_apart() -> None:
    """By operator, types and detail."""
    counts = Counter(_shown(*sample) for name in operators() for sample in samples_of(name))
    assert [row for row, count in counts.items() if count > 1] == []


def _shown(key: str, model: bytes) -> tuple[str, ...]:
    """The cells of a sample's row that tell it from others: those of one that cannot be read have no types."""
    name, detail = key.partition(" ")[0], key.partition(": ")[2]
    try:
        op = next(op for op in tflq.read(model).ops() if op.name == op_name(name))
    except tflq.TflqError:
        return name, detail
    sides = (", ".join("none" if v is None else short_type(v) for v in side) for side in (op.operands, op.results))
    return name, *sides, detail
