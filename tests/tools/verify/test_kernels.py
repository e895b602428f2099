"""The interpreter that is loaded is recognised by what it computes, and a file is compared on the kernels it names."""

from __future__ import annotations

import io
import time

import pytest

import tflq
from tflq.numerics.kernel_sets import NAMES, Exactness, kernel_set
from tflq.tools.verify import kernels
from tflq.tools.verify.kernels import mismatch, probe_results, sets_of_interpreter, sets_that_give


@pytest.mark.parametrize("name", NAMES)
def test_each_set_is_told_from_the_others(name: str) -> None:
    results = probe_results(kernel_set(name))
    assert sets_that_give(results, arm64="arm64" in name) == (name,)


def test_results_that_no_set_gives() -> None:
    results = probe_results(kernel_set("xnnpack-2.3"))
    results[0][3, 4] += 1
    assert sets_that_give(results, arm64=False) == ()


def test_the_interpreter_of_the_tests() -> None:
    reference, default = sets_of_interpreter("reference"), sets_of_interpreter("default")
    assert reference[0].startswith("reference-")
    assert default[0].startswith("xnnpack-")
    start = time.perf_counter()
    assert sets_of_interpreter("reference") is reference  # kept for the process
    assert time.perf_counter() - start < 0.1


def test_an_interpreter_of_another_set_compares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = "models/cnn_int8.tflite"
    converted = tflq.convert(model, kernel_set="reference-1.0").data
    result = tflq.verify(model, converted, seeds=1)
    assert result.verdict == "nothing comparable"
    assert "reproduces reference-1.0" in result.reason
    assert "--kernel-set reference-2.3" in result.reason
    assert tflq.verify(model, converted, seeds=1, resolver="reference").verdict == "differs"
    monkeypatch.setattr(kernels, "sets_of_interpreter", lambda *_, **__: ())
    assert "none of the kernel sets that are known" in mismatch(Exactness("reference-2.3", {}), "reference", 1)


def test_a_set_for_which_the_file_is_exact_will_do() -> None:
    model = "models/cnn_int8.tflite"
    converted = tflq.convert(model, kernel_set="reference-2.4-dev").data
    assert tflq.verify(model, converted, seeds=1)  # none of its operators differs under 2.3


def test_a_stream_is_compared_on_the_kernels_that_it_names() -> None:
    model = "models/cnn_int8.tflite"
    converted = io.BytesIO(tflq.convert(model, kernel_set="xnnpack-2.3").data)
    result = tflq.verify(model, converted, seeds=1)
    assert (result.resolver, result.verdict) == ("default", "equal")
