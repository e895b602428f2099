"""Constraints by the names of tensors: from a program, a file of annotations, a model's own ranges."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.region_graphs import KERNELS, A, B, rescales, shown, specs

from tflq.base.errors import FileError, OptionError
from tflq.dialects.regions import Region
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import CalibratedQuantizedType, TensorType, UniformQuantizedType, f32, i8, i16, i32
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.tensor_constraints import constrain


def chain(**infos: object) -> Module:
    """relu, tanh and relu6 of the tensors "in", "block/1", "block/2", "out"; `infos`: what a file says of "in"."""
    names = ("in", "block/1", "block/2", "out")
    values = [Value(TensorType((4,), f32), name, info=infos if name == "in" else {}) for name in names]
    kernels = zip(("tfl.relu", "tfl.tanh", "tfl.relu6"), values, values[1:], strict=False)
    ops = [Op(name, [given], [made], {}) for name, given, made in kernels]
    module = Module([Function("f", values[:1], values[-1:], ops)])
    KernelFusion().run(module)
    verify(module)
    return module


def run(module: Module, folder: Path, annotations: str | None = None, ranges: str = "none") -> Module:
    target = folder / "target.toml"
    target.write_text(KERNELS)
    options = f"target={target} ranges={ranges}"
    if annotations is not None:
        (folder / "tensors.toml").write_text(annotations)
        options += f" annotations={folder / 'tensors.toml'}"
    return parse_pipeline(f"quant-propagate{{{options}}}").run(module).module


def found(module: Module) -> list[list[str]]:
    return [specs(op) for op in module.main.ops if isinstance(op, Region)]


def test_a_file_gives_tensors_parameters_by_name(tmp_path: Path) -> None:
    made = run(chain(), tmp_path, f'[tensors]\n"in" = "{A}"\n"block/*" = "{B}"\n')
    assert found(made) == [[A, A], [B, B], [B, B]]
    assert rescales(made) == [(A, B)]


def test_the_first_pattern_that_fits_wins(tmp_path: Path) -> None:
    made = run(chain(), tmp_path, f'[tensors]\n"block/2" = "{A}"\n"*" = "{B}"\n"out" = "{A}"\n')
    assert found(made) == [[B, B], [B, A], [A, A]]


def test_a_tensor_can_be_kept_and_a_range_be_stated(tmp_path: Path) -> None:
    made = run(chain(), tmp_path, '[tensors]\n"block/?" = "none"\n"in" = "!quant.calibrated<f32<0.0:2.55>>"\n')
    assert found(made)[1] == ["!quant.none<f32>"] * 2
    fused = chain()
    assert constrain(fused, {"in": CalibratedQuantizedType.of(f32, 0.0, 2.55), "out": UniformQuantizedType.of(i8, 0.5)})
    assert found(fused)[0][0] == "!quant.calibrated<f32<0.0:2.55>>"
    assert not constrain(fused, {"in": CalibratedQuantizedType.of(f32, 0.0, 2.55)})


def test_what_a_file_says_takes_the_place_of_what_the_model_says(tmp_path: Path) -> None:
    once = run(chain(), tmp_path, f'[tensors]\n"*" = "{A}"\n')
    again = run(parse_module(print_module(once)), tmp_path, f'[tensors]\n"*" = "{B}"\n')
    assert found(again) == [[B, B]] * 3
    assert not rescales(again)


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ('[tensor]\n"in" = "none"', r"tensors.toml:1: 'tensor' is not a section; did you mean 'tensors'"),
        ('[tensors]\n"in" = 8', r"tensors.toml:2: \[tensors\] 'in' is not a string"),
        ('[tensors]\n\n"in" = "int8"', r"tensors.toml:3: \[tensors\] 'in': "),
        ('[tensors]\n"in" = "!quant.uniform<i8:f32, 0.5"', r"tensors.toml:2: \[tensors\] 'in': "),
        ('[tensors]\n"in" = "tensor<4xf32>"', r"'tensor<4xf32>' is not a constraint; known are !quant.uniform"),
        ('[tensors]\n"blok/1" = "none"', r"tensors.toml:2: 'blok/1': no tensor .* near are 'block/1'"),
        ('[tensors]\n"out" = "!quant.uniform<i8:f16, 0.5>"', r"tensor 'out' is of f32, which .* does not express"),
        ('[tensors]\n"out" = "!quant.uniform<i8:f32:1, {0.5, 1.0}>"', r"tensor 'out': the tensor's rank \(1\)"),
        ('[tensors]\n"in" = "none"\n"in" = "none"', r"tensors.toml:3: 'tensors.in' is said in line 2 already"),
    ],
)
def test_faults_of_a_file_are_told_with_their_line(annotations: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=words):
        run(chain(), tmp_path, annotations)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        parse_pipeline(f"quant-propagate{{target={tmp_path} annotations=none.toml}}").run(chain())


def test_integers_have_no_constraints() -> None:
    module = parse_module(
        """func.func @f(%a: tensor<4xf32>) -> tensor<2x2xf32> {
  %s = "tfl.pseudo_const"() {value = dense<2> : tensor<2xi32>, tflq.tensors = [{name = "shape"}]} : () -> tensor<2xi32>
  %r = "tfl.reshape"(%a, %s) : (tensor<4xf32>, tensor<2xi32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}"""
    )
    module.main.inputs[0].name = "in"
    KernelFusion().run(module)
    with pytest.raises(OptionError, match="tensor 'shape' is of i32, and only reals have constraints"):
        constrain(module, {"shape": UniformQuantizedType.of(i8, 0.5)})
    assert constrain(module, {"*": UniformQuantizedType.of(i8, 0.5)})
    assert found(module) == [["!quant.uniform<i8:f32, 0.5>", "i32", "f32"]]


def test_ranges_of_a_file_are_taken_where_nothing_is_said(tmp_path: Path) -> None:
    said = {"quantization": {"min": (0.0,), "max": (2.55,), "scale": (), "zero_point": ()}}
    made = run(chain(**said), tmp_path, ranges="missing")
    assert found(made)[0] == ["!quant.uniform<i8:f32, 0.01:-128>"] * 2
    assert found(run(chain(**said), tmp_path))[0] == ["f32"] * 2
    several = {"quantization": {"min": (0.0, 0.0), "max": (2.55, 1.0)}}
    assert found(run(chain(**several), tmp_path, ranges="missing"))[0] == ["f32"] * 2


def test_ranges_can_take_the_place_of_parameters(tmp_path: Path) -> None:
    ui8 = UniformQuantizedType.of(i8, 1.0)
    info = {"min": np.array([-1.0], np.float32), "max": np.array([1.0], np.float32)}
    given, made = Value(TensorType((4,), ui8), "in", info=info), Value(TensorType((4,), ui8), "out", info=info)
    module = Module([Function("f", [given], [made], [Op("tfl.tanh", [given], [made], {})])])
    KernelFusion().run(module)
    target = tmp_path / "wide.toml"
    target.write_text('[target]\nname = "wide"\n[kernels]\ntanh = "qi16:0 -> qi16:0"\n')
    wide = parse_pipeline(f"quant-propagate{{target={target} ranges=all}}").run(module).module
    assert found(wide) == [[shown(UniformQuantizedType.of(i16, 1 / 32767))] * 2]


WIDE = """
[target]
name = "wide"
[kernels]
fully_connected = "qi16:0 qi8:0 qi64:0 -> qi16:0; multiplier_accumulator_scale"
"""


def test_a_network_of_int8_becomes_one_of_int16_by_its_ranges(tmp_path: Path) -> None:
    def tensor(shape: tuple[int, ...], scale: float, name: str) -> Value:
        info = {"min": (-128 * scale,), "max": (127 * scale,)}
        return Value(TensorType(shape, UniformQuantizedType.of(i8, scale)), name, info=info)

    def fixed(array: list[object], kind: UniformQuantizedType, **info: tuple[float]) -> Value:
        made = constant(np.array(array, kind.storage.dtype))
        made.type, made.info = made.type.with_element(kind), info
        return made

    x, h, y = (tensor((1, 2), scale, name) for scale, name in ((0.5, "x"), (0.25, "h"), (1.0, "y")))
    weights = fixed([[127, -64], [3, 5]], UniformQuantizedType.of(i8, 0.125), min=(-15.875,), max=(15.875,))
    biases = [fixed([100, -7], UniformQuantizedType.of(i32, scale)) for scale in (0.0625, 0.03125)]
    ops = [Op("tfl.fully_connected", [a, weights, b], [c], {}) for a, b, c in zip((x, h), biases, (h, y), strict=True)]
    module = Module([Function("f", [x], [y], ops)])
    (tmp_path / "wide.toml").write_text(WIDE)
    passes = (
        f"kernel-fusion,quant-propagate{{target={tmp_path}/wide.toml ranges=all}},quant-materialize,canonicalize,dce"
    )
    made = parse_pipeline(passes).run(module).module
    verify(made)
    first, second = (op for op in made.main.ops if op.name == "tfl.fully_connected")
    assert first.result is second.operand(0)
    assert shown(first.result.type.element) == shown(UniformQuantizedType.of(i16, 32 / 32767))
    assert first.operand(1).array.tolist() == weights.array.tolist()
    assert second.operand(2).type.storage.name == "i64"
    real = biases[1].array * 0.03125
    scale = second.operand(2).type.element.scale  # type: ignore[union-attr]
    np.testing.assert_array_equal(second.operand(2).array, np.round(real / scale))


def test_tensors_between_kernels_keep_their_names(tmp_path: Path) -> None:
    kind = UniformQuantizedType.of(i8, 1.0)
    values = [Value(TensorType((4,), kind), name) for name in ("in", "mid", "out")]
    ops = [Op("tfl.relu", [a], [b], {}) for a, b in pairwise(values)]
    module = Module([Function("f", values[:1], values[-1:], ops)])
    KernelFusion().run(module)
    made = run(module, tmp_path, f'[tensors]\n"*" = "{A}"\n')
    assert found(made) == [[A, A], [A, A]]
    assert [v.name for op in made.main.ops if isinstance(op, Region) for v in op.results] == ["mid", ""]
