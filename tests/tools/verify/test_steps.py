"""Results within a program in C: faults that no output shows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_c import need_compiler
from support.recurrent import lstm_model

import tflq
from tflq.ir.types import UniformQuantizedType, i8, i32
from tflq.tools.verify.outcome import Verification

pytestmark = pytest.mark.usefixtures("forked")
MODELS = Path(__file__).parents[3] / "models"


def _lstm(folder: Path) -> tuple[Path, Path]:
    model, source = folder / "lstm.tflite", folder / "net.c"
    model.write_bytes(lstm_model(np.random.default_rng(8), batch=1, steps=9, cells=8))
    tflq.convert(model, source)
    return model, source


def _verified(model: Path, source: Path) -> Verification:
    return tflq.verify(model, source, seeds=1, interface=False, cc="cc -O0")


@need_compiler
def test_gates_of_an_lstm_are_compared(tmp_path: Path) -> None:
    """A multiplier of a gate that is off by 2^-15 of itself shows in the gate alone."""
    model, source = _lstm(tmp_path)
    equal = _verified(model, source)
    assert equal
    assert equal.layers is not None
    assert equal.layers.steps
    text = source.read_text()
    array = re.search(r"net_c(\d+)\[4\] NET_DATA = {\n(\d+)", text)  # multipliers of four gates
    assert array is not None
    source.write_text(text[: array.start(2)] + str(int(array[2]) + (1 << 17)) + text[array.end(2) :])
    differs = _verified(model, source)
    assert differs.layers is not None
    assert {each.opcode for each in differs.layers.diverging} == {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
    assert not differs


@need_compiler
def test_sums_of_a_channel_that_is_clamped_are_compared(tmp_path: Path) -> None:
    """A bias that clamps a channel hides its weights from results, not from sums."""
    source = tmp_path / "net.c"
    tflq.convert(MODELS / "cnn_int8.tflite", source)
    text = source.read_text()
    weights = re.search(r"net_c0\[\d+\] NET_DATA = {\n(-?\d+)", text)
    assert weights is not None
    source.write_text(text[: weights.start(1)] + str(int(weights[1]) - 1) + text[weights.end(1) :])
    result = _verified(MODELS / "cnn_int8.tflite", source)
    assert result.layers is not None
    assert any("conv2d" in each.tensor for each in result.layers.diverging)


@need_compiler
@pytest.mark.parametrize("change", ["SHA-256 of the source: 0", "kernels: none-0", "calls"])
def test_what_was_written_otherwise_is_not_compared_within(tmp_path: Path, change: str) -> None:
    """A source of another model, of unknown kernels, or with a function that tflq has not written."""
    source = tmp_path / "net.c"
    tflq.convert(MODELS / "cnn_int8.tflite", source)
    text = source.read_text()
    if change == "calls":
        text = text.replace("net_0_conv_2d", "net_0_own")
    else:
        word = change.rpartition(" ")[0]
        text = re.sub(rf"{word} \S+", change, text)
    source.write_text(text)
    result = _verified(MODELS / "cnn_int8.tflite", source)
    assert result
    assert result.layers is not None
    assert not result.layers.steps


@need_compiler
def test_an_open_batch_is_that_of_the_source(tmp_path: Path) -> None:
    quantized = UniformQuantizedType.of(i8, 0.02, 3)
    x, y = argument((None, 4), quantized), argument((None, 3), UniformQuantizedType.of(i8, 0.3, 0), "y")
    w = const(np.arange(-6, 6).reshape(3, 4), UniformQuantizedType.of(i8, 0.05, 0))
    model = tmp_path / "m.tflite"
    options = {"fused_activation_function": "NONE", "keep_num_dims": False, "asymmetric_quantize_inputs": False}
    model.write_bytes(one_op("tfl.fully_connected", [x, w, None], [y], options | {"weights_format": "DEFAULT"}))
    tflq.convert(model, tmp_path / "net.c", batch=3)
    result = _verified(model, tmp_path / "net.c")
    assert result
    assert result.layers is not None
    assert result.layers.steps


@need_compiler
def test_hooks_are_clean_where_a_result_has_no_sums(tmp_path: Path) -> None:
    model, source = MODELS / "l2_normalization.tflite", tmp_path / "net.c"
    tflq.convert(model, source)
    cc = "cc -O0 -fsanitize=address,undefined -fno-sanitize-recover=all"
    assert tflq.verify(model, source, seeds=1, interface=False, cc=cc).equal


@need_compiler
def test_sums_that_are_stored_themselves_are_read_by_what_follows(tmp_path: Path) -> None:
    """Each group of a convolution stores its sums, and a concatenation reads them."""
    x, y = (argument((1, 2, 2, 4), UniformQuantizedType.of(i8, scale, 3), "y") for scale in (0.02, 0.3))
    w = const(np.arange(-4, 4).reshape(4, 1, 1, 2), UniformQuantizedType.of(i8, 0.05, 0))
    bias = const(np.arange(4), UniformQuantizedType.of(i32, 0.001, 0))
    model = tmp_path / "m.tflite"
    options = {"fused_activation_function": "NONE", "padding": "VALID", "stride_w": 1, "stride_h": 1}
    model.write_bytes(one_op("tfl.conv_2d", [x, w, bias], [y], options, 3))
    tflq.convert(model, tmp_path / "net.c")
    result = _verified(model, tmp_path / "net.c")
    assert result
    assert result.layers is not None
    assert result.layers.steps
