"""The target "tflm": which kernels stay, what replaces the others, and that TFLite Micro gives the same numbers."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op

import tflq
from tflq.base.errors import UnsupportedError
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32, ui8
from tflq.targets.load import load_target
from tflq.tools.coverage.table import samples_of

pytestmark = pytest.mark.usefixtures("forked")

MODELS: Final = Path(__file__).parents[4] / "models"
MICRO: Final = find_spec("tflite_micro") is not None and find_spec("ai_edge_litert") is not None
Q: Final = UniformQuantizedType.of(i8, 0.05, 3)
WEIGHTS: Final = UniformQuantizedType.of(i8, 0.01, 0)


def kernels_of(data: bytes) -> Counter[str]:
    return Counter(op.short_name for op in read(data).ops())


def assert_exact(model: bytes, **options: Any) -> bytes:
    """Converts; the result is exact in the interpreter, and in TFLite Micro if it is installed."""
    inputs = [batch for seed in (0, 1) for batch in edge_inputs(read(model).main.inputs, seed=seed)]
    data = bytes(convert_and_compare(model, inputs, target="tflm", **options).data)
    if MICRO:
        found = tflq.verify(model, data, runtime="tflm", seed=5)
        assert found.verdict == "equal", (found.failures, found.interface, found.outputs)
    return data


@pytest.mark.skipif(not MICRO, reason="needs TFLite Micro: pip install '.[tflm]'")
def test_tflite_micro_is_compared() -> None:
    """What the other tests skip without it."""
    source = MODELS / "cnn_int8.tflite"
    assert tflq.verify(source, tflq.convert(source, target="tflm").data, runtime="tflm", layers=True)


def test_all_kernels_stay_but_fully_connected() -> None:
    source = (MODELS / "cnn_int8.tflite").read_bytes()
    before, after = kernels_of(source), kernels_of(assert_exact(source))
    for name in before.keys() - {"fully_connected", "reshape"}:
        assert after[name] >= before[name], name
    rows = tflq.convert(source, target="tflm").report.rows
    assert {row.opcode for row in rows if row.path != "kept"} <= {"FULLY_CONNECTED"}


def test_uint8_goes_out_by_way_of_int8() -> None:
    data = assert_exact((MODELS / "cnn_uint8.tflite").read_bytes())
    last = read(data).main.ops[-2:]
    assert [op.short_name for op in last] == ["quantize", "quantize"]
    assert [op.result.type.storage for op in last] == [i8, ui8]


def dense(scale: float, bias: int = 0, *, weights: ElementType = WEIGHTS) -> bytes:
    """FULLY_CONNECTED whose sums are multiplied by a scale."""
    rng = np.random.default_rng(0)
    array = rng.integers(-127, 128, (5, 24)).astype(np.int8)
    result = UniformQuantizedType.of(i8, 0.0005 / scale, -9)
    offset = UniformQuantizedType.of(i32, 0.0005, 0)
    operands = [
        argument((2, 24), Q),
        const(array, weights, "w"),
        const(np.full(5, bias, np.int32), offset, "b"),
    ]
    attributes = {"fused_activation_function": "NONE", "keep_num_dims": False}
    return one_op("tfl.fully_connected", operands, [argument((2, 5), result, "y")], attributes)


@pytest.mark.parametrize(
    ("scale", "bias", "kept"),
    [
        (0.003, 0, False),  # two roundings differ at half of the steps
        (0.7, 0, True),  # there is one
        (0.003, 1 << 24, True),  # all sums are beyond the last step
        (3.0e-9, 0, True),  # none reaches the first
    ],
)
def test_fully_connected_stays_where_both_roundings_agree(scale: float, bias: int, kept: bool) -> None:
    assert (kernels_of(assert_exact(dense(scale, bias)))["fully_connected"] == 1) is kept


def test_scales_that_end_its_process_are_lowered() -> None:
    """SUB by a multiplier from 1 up."""
    wide, narrow = UniformQuantizedType.of(i8, 0.3, 3), UniformQuantizedType.of(i8, 7.8e-9, 0)
    x, y, z = argument((2, 8), wide, "x"), argument((2, 8), Q, "y"), argument((2, 8), narrow, "z")
    model = one_op("tfl.sub", [x, y], [z], {"fused_activation_function": "NONE"})
    assert "sub" not in {op.short_name for op in read(assert_exact(model)).ops() if op.result.type.quantized}


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_kernels_that_stay_are_not_lowered(name: str) -> None:
    """uint8 as int8, on quantized tensors."""
    element = UniformQuantizedType.of(ui8, 0.05, 131)
    x, y, z = (argument((4, 8), element, n) for n in "xyz")
    assert kernels_of(assert_exact(one_op(f"tfl.{name}", [x, y], [z], {})))[name] == 1


def test_recurrent_networks_keep_their_state_in_variables() -> None:
    model = next(m for name, m in samples_of("unidirectional_sequence_lstm") if name.endswith("integer"))
    data = assert_exact(model)
    assert "assign_variable" in kernels_of(data)
    assert "unidirectional_sequence_lstm" not in kernels_of(data)


def test_hybrid_operators_take_floats() -> None:
    """It has no hybrid kernels."""
    model = next(m for name, m in samples_of("fully_connected") if "f32 × i8: per axis" in name)
    data = tflq.convert(model, target="tflm").data
    assert not any(v.type.quantized for op in read(data).ops() for v in op.tensors)


def test_many_operands_are_joined_in_groups() -> None:
    values = [argument((2, 3), Q, f"x{i}") for i in range(23)]
    result = argument((2, 69), Q, "y")
    attributes = {"axis": 1, "fused_activation_function": "NONE"}
    data = assert_exact(one_op("tfl.concatenation", values, [result], attributes))
    assert max(len(op.operands) for op in read(data).ops()) == 10


def test_what_it_lacks_is_refused_by_name() -> None:
    model = dict(samples_of("topk_v2"))["topk_v2 i8: equal scales"]
    with pytest.raises(UnsupportedError, match=r"tfl\.topk_v2 on .* is not an operator of the target"):
        tflq.convert(model, target="tflm")


def test_a_kernel_less_is_lowered_to_the_same_numbers(tmp_path: Path) -> None:
    from tflq.base.files import resource

    text = Path(resource("rules/tflm.toml")).read_text()
    assert 'softmax = "qi8' in text
    path = tmp_path / "without.toml"
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("softmax = ")))
    source = (MODELS / "cnn_int8.tflite").read_bytes()
    inputs = edge_inputs(read(source).main.inputs)
    data = bytes(convert_and_compare(source, inputs, target=path).data)
    assert "softmax" not in kernels_of(data)


def test_channels_are_judged_one_by_one() -> None:
    scales = np.linspace(0.002, 0.03, 5).astype(np.float32)
    target = load_target("tflm")
    (op,) = read(dense(0.003, weights=UniformQuantizedPerAxisType.of(i8, 0, scales, 0))).main.ops
    op.operands[2] = None
    assert target.judge(op).reason.startswith("two roundings differ from one for some sums of 5 of 5 channels")


def test_its_metadata_and_names_are_those_of_the_source() -> None:
    x, y = Value(TensorType((2, 8), Q), "x"), Value(TensorType((2, 8), Q), "y")
    ops = [Op("tfl.relu", [x], [y], {})]
    model = bytes(write(Module([Function("main", [x], [y], ops)])))
    main = read(assert_exact(model)).main
    assert [v.name for v in (*main.inputs, *main.outputs)] == ["x", "y"]
