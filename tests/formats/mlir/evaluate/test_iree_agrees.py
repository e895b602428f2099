"""IREE runs the text that the evaluator computes, with the same results: random functions of arith, math, tensor and
linalg on ranked tensors, of values that are defined."""

from __future__ import annotations

import os

import numpy as np
from support.core_ops import of_text
from support.iree_oracle import needs_iree, run
from support.random_core import random_function, random_inputs

COUNT = int(os.environ.get("TFLQ_IREE_COUNT", "24"))


@needs_iree
def test_random_functions() -> None:
    written = [random_function(f"f{seed}", seed) for seed in range(COUNT)]
    inputs = [random_inputs(arguments, seed) for seed, (_, arguments) in enumerate(written)]
    text = "module {\n" + "\n".join(function for function, _ in written) + "\n}\n"
    theirs = run(text, [(f"f{seed}", arrays) for seed, arrays in enumerate(inputs)])
    for (function, _), arrays, found in zip(written, inputs, theirs, strict=True):
        for place, (ours, other) in enumerate(zip(of_text(function, *arrays), found, strict=True)):
            assert ours.dtype == other.dtype
            assert np.array_equal(ours, other, equal_nan=ours.dtype.kind == "f"), (function, place, ours, other)


def test_random_functions_are_valid_and_evaluated() -> None:
    """Without IREE, too: they are text that is read, and nothing in them is undefined."""
    for seed in range(60):
        function, arguments = random_function("f", seed)
        assert len(of_text(function, *random_inputs(arguments, seed))) == 4
