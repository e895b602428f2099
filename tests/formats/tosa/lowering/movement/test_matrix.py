"""Data movement of random shapes and options: TFLite's kernels and the operators of TOSA give the same."""

from __future__ import annotations

import zlib

import pytest
from matrix import movement
from matrix.draw import GENERATORS, Case, Draw
from support.harness import interpret
from support.lowered_tosa import assert_gives

from tflq.formats.tflite.reader import read
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.module import Function
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.transforms.canonicalize import Canonicalize, DeadCodeElimination, Fold
from tflq.transforms.pass_manager import Pipeline

_NAMES = sorted(name for name, made in GENERATORS.items() if made.__module__ == movement.__name__)
_CASES = 25


@pytest.mark.parametrize("name", _NAMES)
def test_random_options(name: str) -> None:
    for seed in range(_CASES):
        case = GENERATORS[name](Draw([seed, zlib.crc32(name.encode())]))
        function = _lowered(case)
        if function is None:
            continue
        for batches in (case.batches, *case.more):
            try:
                results = interpret(case.model, batches, case.reference)
            except RuntimeError:
                continue  # the kernels do not take it
            for arrays, wanted in zip(batches, results, strict=True):
                try:
                    assert_gives(function, arrays, wanted)
                except (AssertionError, ValueError) as error:
                    raise AssertionError(f"seed {seed}: {case.text}") from error


def _lowered(case: Case) -> Function | None:
    """The case's function in TOSA; None if it has results without elements, which TOSA lacks."""
    module = read(case.model)
    if any(0 in (v.type.shape or ()) for v in module.main.outputs):
        return None
    module, _ = legalize(module, Policy())
    module = Pipeline((Canonicalize(), Fold(), DeadCodeElimination()), "integer").run(module).module
    return lower(module, Target())[0].main
