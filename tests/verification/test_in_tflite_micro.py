"""`verify` with runtime "tflm": TFLite Micro beside the interpreter, with inner tensors, state and signatures."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.streaming import streaming

import tflq
from tflq.flatbuffer.writer import write
from tflq.ir.core import Buffer, Function, Module, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i32
from tflq.verification.micro_runner import arena
from tflq.verification.model_file import ModelFile

MODELS = Path(__file__).resolve().parents[2] / "models"
CNN = MODELS / "cnn_int8.tflite"
NEEDED = "needs TFLite Micro: pip install '.[tflm]'"


@pytest.fixture
def micro() -> None:
    pytest.importorskip("tflite_micro", reason=NEEDED)


@pytest.mark.usefixtures("micro")
def test_a_network_is_compared_to_its_inner_tensors() -> None:
    result = tflq.verify(CNN, tflq.convert(CNN, target="tflm").data, runtime="tflm", layers=True)
    assert result.verdict == "equal", (result.failures, result.interface)
    assert result.interpreter.startswith("ai-edge-litert")
    assert " and tflite-micro " in result.interpreter
    assert result.layers is not None
    assert result.layers.compared == result.layers.results


def moved(data: bytes, by: int) -> bytes:
    """The model with another bias of the last layer before SOFTMAX."""
    module = tflq.read(data)
    ops = module.main.ops
    last = max(i for i, op in enumerate(ops) if len(op.operands) == 3 and op.operands[2] is not None)
    bias = ops[last].operands[2]
    assert bias is not None
    array = bias.array.copy()
    array[:] += by
    ops[last].operands[2] = Value(bias.type, bias.name, buffer=Buffer.of(array))
    return bytes(write(module))


@pytest.mark.usefixtures("micro")
@pytest.mark.parametrize("target", ["tflm", "portable", "integer"])
def test_a_change_that_softmax_hides_is_found_by_layers(target: str) -> None:
    """All classes more by as much: SOFTMAX gives the same."""
    data = bytes(tflq.convert(CNN, target=target).data)
    if target == "integer":
        assert tflq.verify(CNN, data, runtime="tflm").verdict == "failed"  # it has no such operators
        return
    changed = tflq.verify(CNN, moved(data, 4096 if target == "portable" else 300), runtime="tflm", layers=True)
    assert changed.layers is not None
    assert changed.layers.diverging
    assert changed.verdict == "differs"


@pytest.mark.usefixtures("micro")
def test_state_is_kept_from_run_to_run_and_starts_anew() -> None:
    source = streaming()
    result = tflq.verify(source, source, runtime="tflm")
    assert [run.inputs for run in result.runs].count("10 in a row") == 10
    assert result.verdict == "equal", result.failures


@pytest.mark.usefixtures("micro")
def test_a_process_that_ends_is_a_failure() -> None:
    """TFLite Micro dies of subgraphs that nothing runs."""
    source = MODELS / "two_signatures.tflite"
    result = tflq.verify(source, source, runtime="tflm")
    assert result.verdict == "failed"
    assert "TFLite Micro's process aborted" in " ".join(result.failures)


@pytest.mark.usefixtures("micro")
def test_what_it_refuses_is_said_in_its_words() -> None:
    source = MODELS / "cnn_uint8.tflite"
    result = tflq.verify(source, source, runtime="tflm")
    assert result.verdict == "failed"
    assert "CONV_2D" in " ".join(result.failures)


@pytest.mark.usefixtures("micro")
def test_shapes_are_those_of_the_file() -> None:
    """Open dims are 1, and times are not measured."""
    element = UniformQuantizedType.of(i8, 0.5, 3)
    model = one_op("tfl.relu", [argument((None, 8), element, "x")], [argument((None, 8), element, "y")], {})
    result = tflq.verify(model, model, runtime="tflm", time=True)
    assert result.verdict == "equal", result.failures
    assert {run.shapes for run in result.runs} == {(("x", (1, 8)),)}
    assert result.time is not None
    assert "TFLite interpreter" in result.time[0].problem


def test_without_the_package_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    (tmp_path / "tflite_micro.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(tflq.TflqError, match="tflite-micro is not installed; pip install --pre tflite-micro"):
        tflq.verify(CNN, CNN, runtime="tflm")


def test_it_is_for_tflite_files(tmp_path: Path) -> None:
    data = tflq.convert(CNN, format="tosa").data
    with pytest.raises(tflq.OptionError, match=r"runtime 'tflm' runs \.tflite files"):
        tflq.verify(CNN, data, runtime="tflm")


def test_the_arena_has_room_for_all_tensors(tmp_path: Path) -> None:
    x, y = argument((3, 1000), i32, "x"), argument((3, 1000), i32, "y")
    added = const(np.ones(1000, np.int32), i32)
    ops = [Op("tfl.add", [x, added], [y], {"fused_activation_function": "NONE"})]
    path = tmp_path / "model.tflite"
    path.write_bytes(bytes(write(Module([Function("main", [x], [y], ops)]))))
    assert TensorType((3, 1000), i32) == x.type
    assert arena(ModelFile(str(path))) > 2 * 3 * 1000 * 4
