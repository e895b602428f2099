"""Runs a case through TOSA: the file on the reference model, and back in the interpreter, beside the original."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.harness import edge_inputs, interpret
from support.running import invalid

import tflq
from matrix.draw import Case
from matrix.run import Outcome, alone, results_of
from tflq.conversion.convert import Conversion
from tflq.dialects.effects import entry_functions
from tflq.ir.ops import Value
from tflq.legalize.deciding import Semantics

INTEGER = '[target]\nprofiles = ["pro_int"]\nextensions = ["int16", "controlflow", "variable"]\n'
"""A device without floats and without double rounding."""

FLOAT_ERROR = 2e-6
"""Of the largest magnitude: what float operators written out in others may be off."""


@dataclass(frozen=True)
class _Options:
    target: Path | None
    strict: bool
    back: bool
    semantics: Semantics
    kernels: bool  # what is wanted is what kernels compute


def run_tosa(case: Case, *, target: Path | None = None, strict: bool = False, back: bool = False) -> Outcome:
    """Converts to TOSA and compares on the reference model; `target`: for that one; `strict`: tosa-opt must find the
    text valid; `back`: the file must give the same as a TFLite model again.
    """
    options = _Options(target, strict, back, case.conversion.get("semantics", "interpreter"), case.exact is None)
    module = tflq.read(case.model)
    runs = [(0, batches) for batches in (case.batches, *case.more)]
    runs += [(i, edge_inputs(module.functions[i].inputs)) for i in entry_functions(module)[1:]]
    for index, batches in runs:
        original = alone(case.model, index)
        try:
            if case.twin or case.exact:
                wanted = first = results_of(case, batches)
            else:
                wanted = first = interpret(original, batches, case.reference)
            if case.stateful:
                alike = results_of if case.twin else lambda _, one: interpret(original, one, case.reference)  # noqa: B023
                first = [alike(case, [arrays])[0] for arrays in batches]
        except RuntimeError as error:
            return Outcome("skipped", str(error))
        try:
            shapes = open_shapes(module.functions[index].inputs, batches[0])
            outcome = _compared(original, shapes, batches, (first, wanted), case.tolerance, options)
        except tflq.UnsupportedError as error:
            return Outcome("refused", str(error))
        except Exception as error:  # noqa: BLE001 what it is for
            place = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome(f"raised {type(error).__name__}", f"{error!r} at {place.filename}:{place.lineno}")
        if outcome.kind != "ok":
            return outcome
    return Outcome("ok")


def open_shapes(inputs: Sequence[Value], arrays: Sequence[np.ndarray]) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs whose dims are open."""
    pairs = zip(inputs, arrays, strict=True)
    return {value.name: array.shape for value, array in pairs if not value.type.is_static}


def _compared(
    original: bytes,
    shapes: dict[str, tuple[int, ...]],
    batches: list[list[np.ndarray]],
    wanted: tuple[list[list[np.ndarray]], list[list[np.ndarray]]],
    tolerance: int,
    options: _Options,
) -> Outcome:
    """`wanted`: what each run gives that is the first one, and what they give one after the other."""
    first, following = wanted
    target = None if options.target is None else str(options.target)
    conversion = tflq.convert(original, format="tosa", shapes=shapes, target=target, semantics=options.semantics)
    if options.kernels and any("rounds the activations" in row.warning for row in conversion.report.rows):
        return Outcome("skipped", "a hybrid kernel quantizes the activations, TOSA computes in float")
    if conversion.report.counts["float"]:
        tolerance = max(tolerance, 1)
    if options.strict and (problem := invalid(tflq.convert(conversion.data, format="mlir", target=target).data)):
        return Outcome("not valid", problem)
    narrow = [[np.asarray(a, np.int32 if a.dtype == np.int64 else a.dtype) for a in arrays] for arrays in batches]
    problem, results = on_reference_model(conversion, narrow, first)
    if problem:
        return Outcome("does not run on the reference model", problem)
    if problem := differs_from(first, results, tolerance):
        return Outcome("differs on the reference model", problem)
    if options.back:
        try:
            results = _back(conversion.data, narrow, following)
        except RuntimeError as error:
            return Outcome("back: does not run", str(error))
        if problem := differs_from(following, results, tolerance):
            return Outcome("back: differs", problem)
    return Outcome("ok")


def _back(file: bytes, batches: list[list[np.ndarray]], wanted: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """Outputs of the file as a TFLite model. It is not told from int8 what uint8 passes through it untouched."""
    again = tflq.convert(file)
    types = [v.type.storage.dtype for v in again.module.main.inputs]
    results = interpret(again.data, [[a.view(t) for a, t in zip(arrays, types, strict=True)] for arrays in batches])
    return [_as_wanted(outputs, want) for outputs, want in zip(results, wanted, strict=True)]


def _as_wanted(outputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The bytes as the types they are wanted in, where these are as wide."""
    pairs = zip(outputs, wanted, strict=True)
    return [o.view(w.dtype) if o.dtype.itemsize == w.itemsize else o for o, w in pairs]


def on_reference_model(
    conversion: Conversion, batches: list[list[np.ndarray]], wanted: list[list[np.ndarray]]
) -> tuple[str, list[list[np.ndarray]]]:
    """What is wrong, and the outputs; of the originals' types where these are as wide."""
    tool = pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'")
    results = []
    for arrays, want in zip(batches, wanted, strict=True):
        outputs, status = tool.run(conversion.data, arrays, tosa_level="EIGHTK")
        if status.name != "TOSA_VALID" or len(outputs) != len(want):
            return f"{status.name}, {len(outputs)} outputs of {len(want)}", []
        results.append(_as_wanted(outputs, want))
    return "", results


def differs_from(wanted: list[list[np.ndarray]], got: list[list[np.ndarray]], tolerance: int) -> str:
    for batch, (ws, gs) in enumerate(zip(wanted, got, strict=True)):
        for index, (w, g) in enumerate(zip(ws, gs, strict=True)):
            if w.shape != g.shape or (w.dtype != g.dtype and w.dtype != np.int64):
                return f"output {index}: {w.dtype}{w.shape} became {g.dtype}{g.shape}"
            with np.errstate(all="ignore"):
                wide, found = w.astype(np.float64), g.astype(np.float64)
                gap = np.where((w == g) | ((w != w) & (g != g)), 0, np.abs(wide - found))
                allowed = (
                    FLOAT_ERROR * np.abs(wide[np.isfinite(wide)]).max(initial=0) if w.dtype.kind == "f" else tolerance
                )
            wrong = ~(gap <= allowed)
            if wrong.any():
                at = np.unravel_index(int(np.argmax(wrong)), w.shape) if w.shape else ()
                place = f"output {index}, batch {batch}, at {tuple(map(int, at))}: {w[at]} became {g[at]}"
                return f"{place}; {wrong.sum()} of {w.size} differ, by up to {gap[wrong].max():g}"
    return ""
