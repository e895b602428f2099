"""`verify` with runtime "tflm": TFLite Micro beside the interpreter, with inner tensors, state and signatures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.streaming import streaming

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i32
from tflq.tools.verify.model_file import ModelFile
from tflq.tools.verify.runtimes import arena

pytestmark = pytest.mark.usefixtures("forked")

MODELS = Path(__file__).resolve().parents[3] / "models"
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


@pytest.mark.usefixtures("micro")
def test_operators_that_it_has_not_are_a_failure() -> None:
    assert tflq.verify(CNN, tflq.convert(CNN).data, runtime="tflm").verdict == "failed"


@pytest.mark.usefixtures("micro")
def test_state_is_kept_from_run_to_run_and_starts_anew() -> None:
    source = streaming()
    result = tflq.verify(source, source, runtime="tflm")
    assert [run.inputs for run in result.runs].count("10 in a row") == 10
    assert result.verdict == "equal", result.failures


@pytest.mark.usefixtures("micro")
def test_a_process_that_ends_is_a_failure() -> None:
    """TFLite Micro dies of a subgraph that nothing runs."""
    module = tflq.read(MODELS / "two_signatures.tflite")
    module.signatures = None
    model = bytes(write(module))
    result = tflq.verify(model, model, runtime="tflm")
    assert result.verdict == "failed"
    assert "TFLite Micro's process aborted" in " ".join(result.failures)


def test_signatures_of_further_subgraphs_are_named() -> None:
    """Each is converted alone."""
    source = MODELS / "two_signatures.tflite"
    result = tflq.verify(source, source, runtime="tflm")
    assert result.verdict == "failed"
    assert "convert signature 'embed' alone (--signature KEY)" in " ".join(result.failures)
    with pytest.raises(tflq.UnsupportedError, match=r"'tflm' runs the first subgraph .*, not signature 'embed'"):
        tflq.convert(source, target="tflm")
    for key in ("classify", "embed"):
        assert len(tflq.convert(source, target="tflm", signature=key).module.functions) == 1


@pytest.mark.usefixtures("micro")
@pytest.mark.parametrize("key", ["classify", "embed"])
def test_a_signature_alone_is_exact(key: str) -> None:
    source = MODELS / "two_signatures.tflite"
    result = tflq.verify(source, tflq.convert(source, target="tflm", signature=key).data, runtime="tflm")
    outputs = [output for run in result.runs if run.entry == key for _, output in run.outputs]
    assert outputs
    assert not any(output.differing for output in outputs)


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
