"""A target binds: what is kept on quantized tensors is what it lists, whatever it lists."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op
from support.recurrent import svdf_model

import tflq
from tflq.base.errors import UnsupportedError
from tflq.base.files import resource
from tflq.formats.tflite.lowering.engine import check
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op
from tflq.ir.types import ElementType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.targets.load import RUNTIMES, load_target
from tflq.tools.coverage.table import samples_of
from tflq.transforms.pass_manager import Decision

MODELS = Path(__file__).resolve().parents[2] / "models"
TARGETS = {
    "nothing": "",
    "int16 alone": '[kernels]\nconv_2d = "qi16 q any? -> qi16"\nadd = "qi16 qi16 -> qi16"\nsoftmax = "qi16 -> qi16"',
    "int8 alone": '[kernels]\nconv_2d = "qi8 qi8/any any? -> qi8"\nadd = "qi8 qi8 -> qi8"\nsoftmax = "qi8 -> qi8"',
    "uint8 alone": '[kernels]\nadd = "qui8 qui8 -> qui8"\nfully_connected = "qui8 qui8 any? -> qui8"\n'
    'max_pool_2d = "qui8 -> qui8; same_scale"\nsoftmax = "qui8 -> qui8; fixed_scale 0.00390625 0"',
    "per layer": '[kernels]\nconv_2d = "qi8 qi8:0 any? -> qi8"\ndepthwise_conv_2d = "qi8 qi8:0 any? -> qi8"',
    "powers of two": '[kernels]\nadd = "q q -> q; power_of_two_scale"\nconv_2d = "...; power_of_two_scale"',
    "all but some": '[target]\nbase = "kernels"\n[kernels]\nconv_2d = []\nsoftmax = "...; lowered"',
}
ADD = {"fused_activation_function": "NONE", "pot_scale_int16": False}


def written(text: str, folder: Path) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def quantized(conversion: tflq.Conversion) -> list[Op]:
    """The kernels on quantized tensors for operators that the report lists as kept."""
    kept = {row.operator for row in conversion.report.rows if row.path == "kept"}
    ops = [op for op in conversion.module.main.ops if op.location is not None and op.location.operator in kept]
    return [op for op in ops if any(v.type.quantized for v in op.tensors) and op.name not in ("tfl.cast", "tfl.gather")]


@pytest.mark.parametrize("model", ["cnn_int8", "cnn_uint8"])
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_kept_is_listed(model: str, name: str, tmp_path: Path) -> None:
    path = written(TARGETS[name], tmp_path)
    source = (MODELS / f"{model}.tflite").read_bytes()
    conversion = convert_and_compare(source, edge_inputs(tflq.read(source).main.inputs), target=path)
    target = load_target(path)
    assert [op.name for op in quantized(conversion) if not target.judge(op).runs] == []
    if name in ("nothing", "int16 alone"):
        assert conversion.report.counts["kept"] == 0


def test_int8_comes_to_uint8_kernels_by_an_exact_rescale(tmp_path: Path) -> None:
    q, other = UniformQuantizedType.of(i8, 0.5, 3), UniformQuantizedType.of(i8, 0.25, -7)
    a, b, c, d = (argument((2, 3), e, n) for e, n in ((q, "a"), (other, "b"), (other, "c"), (q, "d")))
    ops = [Op("tfl.add", [a, b], [c], ADD), Op("tfl.add", [c, b], [d], ADD)]
    model = bytes(write(Module([Function("main", [a, b], [d], ops)])))
    conversion = convert_and_compare(
        model, edge_inputs([a, b]), target=written('[kernels]\nadd = "qui8 qui8 -> qui8"', tmp_path)
    )
    assert all("int8 as uint8" in row.reason for row in conversion.report.rows)
    first, second = (op for op in conversion.module.ops() if op.name == "tfl.add" and op.result.type.quantized)
    assert second.operand(0) is first.result
    assert first.operand(0).type.element == UniformQuantizedType.of(ui8, 0.5, 131)


def test_constants_come_to_uint8_kernels_converted(tmp_path: Path) -> None:
    x = argument((2, 4), UniformQuantizedType.of(i8, 0.5, 3), "x")
    y = argument((2, 3), UniformQuantizedType.of(i8, 0.25, -7), "y")
    weights = const(np.arange(-6, 6).reshape(3, 4), UniformQuantizedType.of(i8, 0.25), "w")
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    model = one_op("tfl.fully_connected", [x, weights, None], [y], options, 4)
    target = written('[kernels]\nfully_connected = "qui8 qui8:128 any? -> qui8"', tmp_path)
    conversion = convert_and_compare(model, edge_inputs([x]), target=target)
    (op,) = (op for op in conversion.module.ops() if op.name == "tfl.fully_connected")
    np.testing.assert_array_equal(op.operand(1).array, np.arange(122, 134, dtype=np.uint8).reshape(3, 4))


def test_a_line_of_hybrid_types_binds(tmp_path: Path) -> None:
    x, y = argument((2, 4), f32, "x"), argument((2, 3), f32, "y")
    weights = const(np.arange(-6, 6).reshape(3, 4), UniformQuantizedType.of(i8, 0.25), "w")
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    model = one_op("tfl.fully_connected", [x, weights, None], [y], options, 4)
    kept = tflq.convert(model, target=written('[kernels]\nfully_connected = "f32 qi8 any? -> f32"', tmp_path))
    assert kept.report.rows[0].path == "kept"
    lowered = tflq.convert(model, target=written('[kernels]\nfully_connected = "f32 q any? -> f32; lowered"', tmp_path))
    (row,) = lowered.report.rows
    assert row.path == "float"
    assert "lowered, as target 'mine' says" in row.reason
    assert not any(v.type.quantized for op in lowered.module.ops() for v in op.tensors)
    values = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    real = values @ (np.arange(-6, 6).reshape(3, 4).T * np.float32(0.25))
    np.testing.assert_allclose(interpret(lowered.data, [[values]])[0][0], real, rtol=1e-6)


@pytest.mark.parametrize(
    ("element", "path", "listed"),
    [
        (UniformQuantizedType.of(i8, 0.5), "kept", False),
        (UniformQuantizedType.of(i16, 0.5), "kept", True),
        (i8, "kept", True),
        (UniformQuantizedType.of(i8, 0.5), "integer", True),
    ],
)
def test_the_verifier_lists_what_a_target_has_not(
    element: ElementType, path: str, listed: bool, tmp_path: Path
) -> None:
    """All of it at once. What is lowered may read and write a function's own tensors."""
    target = load_target(written('[target]\nname = "mine"\n[kernels]\nreshape = "qi16 any? -> qi16"', tmp_path))
    x, middle, y = (argument((6,), element, name) for name in ("x", "middle", "y"))
    shape = const(np.array([6]), i32, "shape")
    ops = [
        Op("tfl.reshape", [a, shape], [b], {}, Location("m", 0, place, "RESHAPE", b.name))
        for place, (a, b) in enumerate(((x, middle), (middle, y)))
    ]
    module = Module([Function("main", [x], [y], ops)])
    decisions = [Decision(op, "kept") for op in ops]
    if path == "integer":
        ops.pop()
        module.main.outputs = [middle]
        decisions = [Decision(ops[0], path)]
    if listed:
        check(module, decisions, target=target)
        return
    with pytest.raises(UnsupportedError, match="kept on quantized tensors: the target 'mine' has no") as caught:
        check(module, decisions, target=target)
    assert len(caught.value.reasons) == 2


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize(
    ("operator", "sample", "named"),
    [
        ("local_response_normalization", "i16: equal scales", "tfl.local_response_normalization on (f32) → f32"),
        ("conv_3d", "f32 × i8: per layer", "tfl.conv_3d on (f32, f32, f32) → f32"),
        ("unidirectional_sequence_lstm", "f32 × i8: hybrid", "tfl.unidirectional_sequence_lstm on (f32, f32"),
        ("stablehlo_composite", "i8: ", "tfl.stablehlo_composite"),
    ],
)
def test_a_target_that_restricts_builtins_binds_what_stays_float_or_calls(
    name: str, operator: str, sample: str, named: str
) -> None:
    """By name. Float operators, hybrid ones, those with a state, and those that call functions."""
    model = dict(samples_of(operator))[f"{operator} {sample}"]
    tflq.convert(model)
    with pytest.raises(UnsupportedError, match=re.escape(named)):
        tflq.convert(model, target=name)


@pytest.mark.parametrize("name", RUNTIMES)
def test_an_operator_without_quantized_tensors_is_bound(name: str) -> None:
    x, y = argument((2, 4), f32, "x"), argument((2, 4), f32, "y")
    with pytest.raises(UnsupportedError, match=re.escape("tfl.round on (f32) → f32 is not an operator")):
        tflq.convert(one_op("tfl.round", [x], [y], {}), target=name)
    assert load_target(name).floats >= {"logistic", "softmax"}  # near the reference kernels, not exact
    assert tflq.convert(one_op("tfl.logistic", [x], [y], {}), target=name).report.counts["kept"] == 1


def test_operators_that_stay_float_are_those_that_a_file_lists(tmp_path: Path) -> None:
    x, y = argument((2, 4), f32, "x"), argument((2, 4), f32, "y")
    model, builtins = one_op("tfl.logistic", [x], [y], {}), '[builtins]\nabs = "f32 -> f32"\n'
    with pytest.raises(UnsupportedError, match=r"tfl\.logistic on"):
        tflq.convert(model, target=written(builtins, tmp_path))
    assert tflq.convert(model, target=written(builtins + '[floats]\nrun = ["logistic"]', tmp_path)).data


@pytest.mark.parametrize("name", RUNTIMES)
def test_hybrid_operators_take_float_constants_where_builtins_are_restricted(name: str) -> None:
    model = dict(samples_of("fully_connected"))["fully_connected f32 × i8: per layer"]
    conversion = tflq.convert(model, target=name)
    assert conversion.report.rows[0].path == "float"
    assert not any(v.type.quantized for op in conversion.module.ops() for v in op.tensors)


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_state_is_kept_only_where_the_target_lists_its_operator(name: str, tmp_path: Path) -> None:
    model = svdf_model(np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match=f"tfl.svdf is kept .*the target '{name}' has no such kernel"):
        tflq.convert(model, target=name, state="kept")
    lines = Path(str(resource(f"rules/{name}.toml"))).read_text().replace("[target]", '[target]\nbase = "kernels"')
    assert tflq.convert(model, target=written(lines, tmp_path), state="kept").report.counts["kept"] == 1
