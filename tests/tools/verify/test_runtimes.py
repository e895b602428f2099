"""`verify` in each runtime: a change that moves a layer's result by one count is found; one that is not installed is
named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.on_onnx import need_onnx

import tflq
from tflq.cli.main import run
from tflq.formats.tflite.writer import write
from tflq.ir.ops import Buffer, Value
from tflq.ir.types import parameters
from tflq.tools.verify.runtimes import extend

MODELS = Path(__file__).resolve().parents[3] / "models"
RUNTIMES: dict[str, tuple[str, dict[str, Any]]] = {
    "onnxruntime": ("onnxruntime", {"format": "onnx"}),
    "openvino": ("openvino", {"format": "onnx"}),
    "tflm": ("tflite_micro", {"target": "tflm"}),
}
"""By runtime: the module that has it, and a form that is exact in it."""


def with_moved_layer(path: Path) -> bytes:
    """The model with all results of the layer before SOFTMAX one count higher, by its bias."""
    module = tflq.read(path)
    op = module.main.ops[-2]
    assert module.main.ops[-1].name == "tfl.softmax"
    bias = op.operands[2]
    assert bias is not None
    count, unit = (np.float64(parameters(value.type)[0].reshape(-1)) for value in (op.result, bias))
    op.operands[2] = Value(bias.type, bias.name, buffer=Buffer.of(bias.array + np.rint(count / unit).astype(np.int32)))
    return bytes(write(module))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_one_count_that_softmax_hides_is_found_by_layers(runtime: str, tmp_path: Path) -> None:
    package, form = RUNTIMES[runtime]
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip(package)
    source = MODELS / "cnn_int8.tflite"
    verdicts = []
    for model in (source.read_bytes(), with_moved_layer(source)):
        (data,) = tflq.convert(model, **form).files.values()
        (path := tmp_path / f"model.{form.get('format', 'tflite')}").write_bytes(data)
        result = tflq.verify(source, path, runtime=runtime, layers=True)  # type: ignore[arg-type]
        assert result.layers is not None
        verdicts.append((result.verdict, [layer.opcode for layer in result.layers.diverging]))
    assert verdicts == [("equal", []), ("differs", ["FULLY_CONNECTED"])]


@pytest.mark.parametrize(
    ("runtime", "named"),
    [
        ("onnxruntime", "onnxruntime is not installed; pip install onnxruntime"),
        ("openvino", "openvino is not installed; pip install openvino"),
        ("tflm", "tflite-micro is not installed; pip install --pre tflite-micro"),
    ],
)
def test_without_the_package_it_is_said_what_to_install(
    runtime: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, with exit code 2."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    if runtime != "tflm":
        need_onnx()
    package, form = RUNTIMES[runtime]
    source = MODELS / "cnn_int8.tflite"
    path = tmp_path / f"model.{form.get('format', 'tflite')}"
    tflq.convert(source, path, **form)
    (tmp_path / f"{package}.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert run(["verify", str(source), str(path), "--runtime", runtime]) == 2
    assert capsys.readouterr().err == f"tflq: {named}\n"


def test_a_value_that_a_branch_reads_is_given_there_too(tmp_path: Path) -> None:
    need_onnx()
    import onnx
    import onnxruntime

    text = """<ir_version: 8, opset_import: ["" : 17]>
    main (float[2] x, bool take) => (float[2] y) {
      inner = Neg (x)
      y = If (take) <
        then_branch = then () => (float[2] a) { a = Identity (inner) },
        else_branch = other () => (float[2] b) { b = Neg (inner) }
      >
    }"""
    onnx.save(onnx.parser.parse_model(text), str(tmp_path / "m.onnx"))
    count, dtypes = extend(str(tmp_path / "m.onnx"), tmp_path / "extended.onnx", ["inner"], ["inner"])
    assert (count, dtypes) == (1, [np.dtype(np.float32)])
    session = onnxruntime.InferenceSession(str(tmp_path / "extended.onnx"), providers=["CPUExecutionProvider"])
    x, fed = np.asarray([1, 2], np.float32), np.asarray([5, 7], np.float32)
    for take, sign in ((True, 1), (False, -1)):
        y, inner = session.run(None, {"x": x, "take": np.asarray(take), "inner/fed": fed})
        np.testing.assert_array_equal(y, sign * fed)
        np.testing.assert_array_equal(inner, -x, "what the file computes itself")
