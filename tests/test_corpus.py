"""The corpus: single operators against recorded reference results, and real networks against the interpreter.

Each operator model comes with inputs `sK_inJ` and the reference kernels' outputs `sK_refJ` (`sK_optJ` where there is no
reference kernel); those that the interpreter cannot run, with the float results `sK_idealJ` of the dequantized inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import models, needs_corpus, networks
from support.harness import interpret

import tflq
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType

pytestmark = [*needs_corpus, pytest.mark.usefixtures("forked")]

PER_AXIS = [path for path in models("ops_unsupported") if "peraxis" in path.stem]


def recorded(path: Path) -> tuple[Any, list[str], list[list[np.ndarray]]]:
    """The record beside a model: its arrays, its seeds and the inputs of each."""
    data = np.load(path.with_suffix(".npz"))
    seeds = sorted({key.split("_")[0] for key in data.files})
    counts = [sum(key.startswith(f"{seed}_in") for key in data.files) for seed in seeds]
    return data, seeds, [[data[f"{s}_in{j}"] for j in range(n)] for s, n in zip(seeds, counts, strict=True)]


@pytest.mark.parametrize("path", models("ops"), ids=lambda path: path.stem)
def test_operator_equals_its_reference(path: Path) -> None:
    """Bit for bit, and in integers: each of these operators has an integer form."""
    data, seeds, inputs = recorded(path)
    conversion = tflq.convert(path)
    assert not [f"{row.place}: {row.reason}" for row in conversion.report.rows if row.path == "float"]
    for seed, arrays in zip(seeds, inputs, strict=True):
        for j, got in enumerate(interpret(conversion.data, [arrays])[0]):
            want = data[f"{seed}_ref{j}"] if f"{seed}_ref{j}" in data.files else data[f"{seed}_opt{j}"]
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("path", PER_AXIS, ids=lambda path: path.stem)
def test_per_axis_operator_is_computed(path: Path) -> None:
    """Within one count of the real result, rounded."""
    data, seeds, inputs = recorded(path)
    elements = [value.type.element for value in tflq.read(path).main.outputs]
    for seed, outputs in zip(seeds, interpret(tflq.convert(path).data, inputs), strict=True):
        for j, (got, element) in enumerate(zip(outputs, elements, strict=True)):
            want = quantized(data[f"{seed}_ideal{j}"], element)
            assert np.abs(got.astype(np.int64) - want).max(initial=0) <= 1


def quantized(real: np.ndarray, element: object) -> np.ndarray:
    """clamp(round half away(real / scale) + zero point)."""
    if isinstance(element, UniformQuantizedPerAxisType):
        axis = [-1 if i == element.axis else 1 for i in range(real.ndim)]
        scale, zero = element.scales.astype(np.float64).reshape(axis), element.zero_points.reshape(axis)
    else:
        assert isinstance(element, UniformQuantizedType)
        scale, zero = np.asarray(element.scale), np.asarray(element.zero_point)
    q = real.astype(np.float64) / scale
    q = np.nan_to_num(np.copysign(np.floor(np.abs(q) + 0.5), q) + zero, nan=0)
    return np.clip(q, element.storage_min, element.storage_max).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("path", networks())
def test_network_stays_equal(path: Path) -> None:
    """Every output and every layer, 0 LSB; a model that the interpreter cannot run still has to convert."""
    conversion = tflq.convert(path)
    if conversion.report.counts["float"]:
        return
    result = tflq.verify(path, conversion.data, seeds=1, layers=True, timeout=120)
    if result.verdict == "nothing comparable":
        pytest.skip("the interpreter cannot run the original")
    assert result.equal, [result.failures, result.interface, result.layers and str(result.layers.first)]
