"""The interpreter that is loaded is recognised by what it computes, and a file is compared on the kernels it names."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import numpy as np
import pytest
from support.reference import evaluated

import tflq
from tflq.formats.tflite.reader import read
from tflq.ir.types import ui8
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.numerics.kernel_sets import NAMES, Exactness, kernel_set
from tflq.tools.verify import kernels
from tflq.tools.verify.kernels import RESULTS, Recognition, mismatch, probe, recognition, recognize

MODELS = Path(__file__).resolve().parents[3] / "models"
pytestmark = pytest.mark.usefixtures("forked")


def probe_results(name: str) -> list[np.ndarray]:
    """The probe's results under a set."""
    module = read(probe())
    inputs = [np.arange(256).reshape(v.type.sizes).astype(np.uint8) for v in module.main.inputs]
    stored = [
        x if v.type.storage is ui8 else (x.astype(np.int16) - 128).astype(np.int8)
        for v, x in zip(module.main.inputs, inputs, strict=True)
    ]
    form = legalize(module, Policy(fallback=False, kernel_set=kernel_set(name)))[0]
    return evaluated(form, [stored])[0]


@pytest.mark.parametrize("name", NAMES)
def test_each_set_is_told_from_the_others(name: str) -> None:
    results = probe_results(name)
    assert RESULTS[name] == tuple(zlib.crc32(result.tobytes()) for result in results)
    assert recognition(results, arm64="arm64" in name).sets == (name,)


def test_results_that_no_set_gives() -> None:
    results = probe_results("xnnpack-2.3")
    results[2][5] ^= 1
    assert recognition(results, arm64=False) == ((), "xnnpack-2.3", ("BATCH_MATMUL",))


def test_a_delegate_that_takes_no_mean_is_no_set() -> None:
    """As that of 1.0."""
    results = probe_results("xnnpack-2.3")
    results[3] = probe_results("reference-2.3")[3]
    assert recognition(results, arm64=False).apart == ("MEAN",)


@pytest.mark.parametrize("format", ["tflite", "tosa", "onnx", "c"])
def test_a_file_of_any_format_names_its_kernels(format: str, tmp_path: Path) -> None:
    if format == "onnx":
        pytest.importorskip("onnx")
    path = tmp_path / f"net.{format}"
    exactness = tflq.convert(MODELS / "cnn_uint8.tflite", path, kernel_set="xnnpack-2.3").report.exactness
    assert exactness is not None
    assert len(exactness.differing) > 3
    assert kernels.exactness_of(str(path)) == exactness


def test_the_interpreter_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, default = recognize("reference"), recognize("default")
    assert reference.sets[0].startswith("reference-")
    assert default.sets[0].startswith("xnnpack-")
    monkeypatch.setattr(kernels, "_results", None)  # nothing runs again in a process
    assert recognize("reference") is reference


def test_an_interpreter_of_another_set_compares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = "models/cnn_int8.tflite"
    converted = tflq.convert(model, kernel_set="reference-1.0").data
    result = tflq.verify(model, converted, seeds=1)
    assert result.verdict == "nothing comparable"
    assert "reproduces reference-1.0" in result.reason
    assert "--kernel-set reference-2.3" in result.reason
    other = tflq.convert(probe(), kernel_set="reference-1.0").data
    assert tflq.verify(probe(), other, seeds=1, resolver="reference").verdict == "differs"
    unknown = Recognition((), "reference-2.3", ("RELU", "MEAN"))
    monkeypatch.setattr(kernels, "recognize", lambda *_, **__: unknown)
    why = mismatch(Exactness("reference-2.3", {}), "reference", 1)
    assert (
        "none of the kernel sets that are known (in a probe it differs from reference-2.3, the nearest, in RELU, MEAN)"
        in why
    )


def test_a_set_for_which_the_file_is_exact_will_do() -> None:
    model = "models/cnn_int8.tflite"
    converted = tflq.convert(model, kernel_set="reference-2.4-dev").data
    assert tflq.verify(model, converted, seeds=1)  # none of its operators differs under 2.3


def test_a_stream_is_compared_on_the_kernels_that_it_names() -> None:
    model = "models/cnn_int8.tflite"
    converted = io.BytesIO(tflq.convert(model, kernel_set="xnnpack-2.3").data)
    result = tflq.verify(model, converted, seeds=1)
    assert (result.resolver, result.verdict) == ("default", "equal")
