"""Rows for TOSA that are integer are exact: the TOSA reference model gives what the TFLite conversion gives.

That the latter is right is for `test_rows`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.coverage_inputs import inputs_of
from support.harness import interpret
from support.running import reference

import tflq
from tflq.formats.options import Options, options_from_arguments
from tflq.formats.tflite.writer import write
from tflq.ir.types import i64
from tflq.tools.coverage.table import converted, operators, samples_of, unquantized

EXACT = ("integer", "table")


@pytest.mark.parametrize("name", [name for name in operators() if name not in unquantized()])
def test_integer_rows_are_exact(name: str) -> None:
    options = options_from_arguments("tosa", None)
    for key, model in samples_of(name):
        row, result = converted(key, model, options)
        if result is None or row.path not in EXACT:
            continue
        same, kernels = converted(key, model, Options())
        if kernels is None or same.path not in EXACT:
            continue
        module = tflq.read(model)
        if any(v.type.storage == i64 for v in module.main.inputs):
            continue  # the reference model has no such inputs
        batch = inputs_of(module, name)[0]
        (wanted,) = interpret(bytes(write(kernels)), [batch], "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
        for w, g in zip(wanted, reference(result, batch), strict=True):
            np.testing.assert_array_equal(g, w, err_msg=key)
