"""Data movement of random shapes and options: the integer form and what it is lowered to give the same."""

from __future__ import annotations

import zlib

import pytest
from lowered_tosa import assert_same
from matrix import movement
from matrix.draw import GENERATORS, Draw

from tflq.flatbuffer.reader import read
from tflq.legalize import legalize
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.contract import Pipeline
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.fold import Fold
from tflq.tosa.engine import lower
from tflq.tosa.target import Target

_NAMES = sorted(name for name, made in GENERATORS.items() if made.__module__ == movement.__name__)
_CASES = 40


@pytest.mark.parametrize("name", _NAMES)
def test_random_options(name: str) -> None:
    for seed in range(_CASES):
        case = GENERATORS[name](Draw([seed, zlib.crc32(name.encode())]))
        module, _ = legalize(read(case.model))
        module = Pipeline((Canonicalize(), Fold(), DeadCodeElimination()), "integer").run(module).module
        lowered, _ = lower(module, Target())
        try:
            for batches in (case.batches, *case.more):
                assert_same(module.main, lowered.main, batches)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"seed {seed}: {case.text}") from error
