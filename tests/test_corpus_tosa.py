"""The corpus as TOSA: single operators on the reference model against recorded results, and networks there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import models, needs_corpus, networks
from support.running import reference
from test_corpus import recorded

import tflq

pytestmark = [*needs_corpus, pytest.mark.usefixtures("forked")]


def as_tosa(path: Path, **options: Any) -> tflq.Conversion:
    """The conversion of a model's first entry, an open batch bound to 1. Skips what TOSA has no form of."""
    module = tflq.read(path)
    keys = [s.key for s in module.signatures or () if s.key]
    is_open = any(None in (v.type.shape or ()) for v in module.main.inputs)
    try:
        return tflq.convert(
            path,
            format="tosa",
            batch=1 if is_open else None,
            signature=keys[0] if len(keys) > 1 else None,
            **options,
        )
    except tflq.UnsupportedError as error:
        pytest.skip(f"refused: {(error.reasons or [str(error)])[0]}")


@pytest.mark.parametrize("path", models("ops"), ids=lambda path: path.stem)
def test_operator_equals_its_reference(path: Path) -> None:
    """Bit for bit where the integer profile is enough; else within one count of what is quantized."""
    data, seeds, inputs = recorded(path)
    conversion = as_tosa(path)
    assert conversion.report.requirements is not None
    exact = "pro_fp" not in conversion.report.requirements.profiles
    for seed, arrays in zip(seeds, inputs, strict=True):
        narrow = [a.astype(np.int32) if a.dtype == np.int64 else a for a in arrays]
        for j, got in enumerate(reference(conversion.module, narrow)):
            want = data[f"{seed}_ref{j}"] if f"{seed}_ref{j}" in data.files else data[f"{seed}_opt{j}"]
            if exact:
                np.testing.assert_array_equal(got, want)
            elif want.dtype.kind in "iu":
                assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("path", networks())
def test_network_stays_equal(path: Path) -> None:
    """Integer networks: every output and every layer on the reference model, and the outputs of what comes back, in the
    interpreter."""
    conversion = as_tosa(path)
    assert conversion.report.requirements is not None
    if "pro_fp" in conversion.report.requirements.profiles:
        return
    result = tflq.verify(path, conversion.data, seeds=1, layers=True, timeout=300)
    if result.verdict == "nothing comparable":
        pytest.skip("the interpreter cannot run the original")
    assert result.equal, [result.failures, result.interface, result.layers and str(result.layers.first)]
    if any(op.name == "tosa.variable" for op in conversion.module.ops()):
        return  # the interpreter keeps variables from one set of inputs to the next, the reference model does not
    back = tflq.verify(path, tflq.convert(conversion.data).data, seeds=1, interface=False, timeout=300)
    assert back.equal, [back.failures, back.interface, back.outputs]
