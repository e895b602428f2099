"""What a target keeps, and what it becomes: kernels as they are, exact rescales, everything else lowered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op

import tflq
from tflq.base.files import resource
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i1, i8, i32, ui8

MODELS = Path(__file__).resolve().parents[2] / "models"
NPU = str(resource("rules/npu_example.toml"))
Q, OTHER = UniformQuantizedType.of(i8, 0.5, 3), UniformQuantizedType.of(i8, 0.25, -7)
QU, QU_OTHER = UniformQuantizedType.of(ui8, 0.5, 131), UniformQuantizedType.of(ui8, 0.25, 120)
ADD = {"fused_activation_function": "NONE", "pot_scale_int16": False}


def chain(first: UniformQuantizedType, second: UniformQuantizedType) -> bytes:
    """(a + b) + b, then SOFTMAX."""
    a, b = argument((2, 3), first, "a"), argument((2, 3), second, "b")
    c, d = argument((2, 3), second, "c"), argument((2, 3), first, "d")
    probability = UniformQuantizedType.of(first.storage, 1 / 256, first.storage.minimum)
    e = argument((2, 3), probability, "e")
    ops = [Op("tfl.add", [a, b], [c], ADD), Op("tfl.add", [c, b], [d], ADD), Op("tfl.softmax", [d], [e], {"beta": 1.0})]
    return bytes(write(Module([Function("main", [a, b], [e], ops)])))


def batches(model: bytes) -> list[list[np.ndarray]]:
    return edge_inputs(tflq.read(model).main.inputs)


def names(conversion: tflq.Conversion) -> list[str]:
    return [op.name.removeprefix("tfl.") for op in conversion.module.ops()]


def test_a_network_that_is_wholly_kept_has_the_same_operators() -> None:
    conversion = tflq.convert(MODELS / "cnn_int8.tflite", target="kernels")
    assert names(conversion) == [op.name.removeprefix("tfl.") for op in tflq.read(MODELS / "cnn_int8.tflite").ops()]
    assert conversion.report.counts["kept"] == len(conversion.report.rows)


def test_kept_neighbours_share_their_tensors() -> None:
    model = chain(Q, OTHER)
    conversion = convert_and_compare(model, batches(model), target="kernels")
    assert names(conversion) == ["add", "add", "softmax"]


def test_what_the_target_lacks_is_lowered_behind_what_it_has() -> None:
    model = chain(Q, OTHER)
    conversion = convert_and_compare(model, batches(model), target=NPU)
    assert [row.path for row in conversion.report.rows] == ["kept", "kept", "integer"]
    assert "softmax" not in names(conversion)
    assert names(conversion)[:2] == ["add", "add"]


def test_uint8_comes_to_int8_kernels_by_an_exact_rescale() -> None:
    model = chain(QU, QU_OTHER)
    conversion = convert_and_compare(model, batches(model), target=NPU)
    assert [row.path for row in conversion.report.rows] == ["kept", "kept", "integer"]
    assert "uint8 as int8" in conversion.report.rows[0].reason
    added = [op for op in conversion.module.ops() if op.name == "tfl.add" and op.result.type.quantized]
    assert len(added) == 2
    assert added[1].operand(0) is added[0].result
    assert added[0].operand(0).type.element == UniformQuantizedType.of(i8, 0.5, 3)


def test_equal_scales_per_axis_are_one_scale(tmp_path: Path) -> None:
    x, y = argument((1, 4, 4, 2), UniformQuantizedType.of(i8, 0.5), "x"), argument((1, 4, 4, 3), Q, "y")
    weights = const(np.arange(6).reshape(3, 1, 1, 2), UniformQuantizedPerAxisType.of(i8, 0, [0.25] * 3), "w")
    bias = const(np.arange(3), UniformQuantizedPerAxisType.of(i32, 0, [0.125] * 3), "b")
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    model = one_op("tfl.conv_2d", [x, weights, bias], [y], {**options, "fused_activation_function": "NONE"}, 3)
    conversion = convert_and_compare(model, batches(model), target=NPU)
    assert "equal scales per axis as one" in conversion.report.rows[0].reason
    (conv,) = conversion.module.ops()
    assert conv.operand(1).type.element == UniformQuantizedType.of(i8, 0.25)


def test_other_scales_are_never_guessed(tmp_path: Path) -> None:
    target = tmp_path / "narrow.toml"
    target.write_text('[kernels]\nadd = "qi8 qi8 -> qi8; same_scale"')
    model = chain(Q, OTHER)
    conversion = convert_and_compare(model, batches(model), target=str(target))
    assert [row.path for row in conversion.report.rows] == ["integer"] * 3


def test_everything_that_would_be_refused_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.legalize.deciding.rules_of", lambda _: ())
    x = argument((1, 4, 4, 2), Q, "x")
    ops: list[Op] = []
    for name in "yz":
        y = argument((1, 4, 4, 2), Q, name)
        options = {"radius": 1, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
        ops.append(Op("tfl.local_response_normalization", [ops[-1].result if ops else x], [y], options))
    with pytest.raises(tflq.UnsupportedError) as caught:
        tflq.convert(bytes(write(Module([Function("main", [x], [ops[-1].result], ops)]))), target=NPU, fallback="error")
    assert len(caught.value.reasons) == 2
    assert all("the target 'npu' has no such kernel" in str(reason) for reason in caught.value.reasons)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("storage", [i8, ui8])
def test_a_comparison_at_a_scale_at_which_the_kernel_aborts_is_not_kept(name: str, storage: ScalarType) -> None:
    element = UniformQuantizedType.of(storage, 1.0, 3)
    operands = [argument((2, 3), element, "a"), argument((2, 3), element, "b")]
    model = one_op(f"tfl.{name}", operands, [argument((2, 3), i1, "c")], {})
    conversion = tflq.convert(model, target="kernels")
    assert conversion.report.counts["kept"] == 0
    a, b = np.array([[3, 4, 5], [3, 3, 3]], storage.dtype), np.array([[3, 3, 6], [4, 2, 3]], storage.dtype)
    assert np.array_equal(interpret(conversion.data, [[a, b]])[0][0], getattr(np, name)(a, b))


def test_a_kept_operator_states_no_newer_version_than_interpreters_have() -> None:
    """TensorFlow's converter states 2 for DEPTH_TO_SPACE on integers; what runs it knows 1."""
    x, y = argument((1, 2, 2, 4), Q, "x"), argument((1, 4, 4, 1), Q, "y")
    conversion = tflq.convert(one_op("tfl.depth_to_space", [x], [y], {"block_size": 2}, 2), target="kernels")
    assert [row.path for row in conversion.report.rows] == ["kept"]
    assert interpret(conversion.data, [[np.zeros((1, 2, 2, 4), np.int8)]])[0][0].shape == (1, 4, 4, 1)
