"""quant-instrument: points stand where ports lack parameters, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.region_graphs import A, B

from tflq.analysis.statistics import PointStatistics, Statistics
from tflq.dialects.regions import Region, StatsRef
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value, constant
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import TensorType, f32
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.instrument import apply_statistics
from tflq.tools.quantize.regions.lookup import is_fully_quantized


def chain(*kernels: str, names: Sequence[str] = "abcdef") -> Module:
    """Operators of one operand, one after the other, on named tensors."""
    values = [Value(TensorType((4,), f32), name) for name in names[: len(kernels) + 1]]
    ops = [Op(f"tfl.{k}", [x], [y], {}) for k, x, y in zip(kernels, values, values[1:], strict=False)]
    signature = Signature("serve", 0, [("x", values[0])], [("y", values[-1])])
    return Module([Function("f", values[:1], values[-1:], ops)], [signature])


def instrumented(module: Module, target: Path | None = None, annotations: Path | None = None) -> list[str]:
    """The keys of the points that are put in, in order."""
    options = " ".join(f"{k}={v}" for k, v in (("target", target), ("annotations", annotations)) if v)
    result = parse_pipeline(f"quant-instrument{{{options}}}" if options else "quant-instrument").run(module)
    verify(result.module)
    return [op.stats_key for op in module.main.ops if isinstance(op, StatsRef)]


def test_each_value_without_parameters_is_observed_once(target: Path) -> None:
    assert instrumented(chain("relu", "tanh", "relu6"), target) == ["a", "b", "c", "d"]


def test_the_computation_stays(target: Path) -> None:
    module = chain("relu", "tanh")
    output = module.main.outputs[0]
    instrumented(module, target)
    (signature,) = module.signatures or []
    assert signature.inputs == [("x", module.main.inputs[0])]
    assert signature.outputs == [("y", module.main.outputs[0])]
    module.main.replace({op.result: op.arg for op in module.main.ops if isinstance(op, StatsRef)})
    ops = [op for op in module.main.ops if not isinstance(op, StatsRef)]
    assert [op.short_name for op in ops] == ["relu", "tanh"]
    assert ops[1].operand(0) is ops[0].result
    assert module.main.outputs == [output]


def test_a_second_time_adds_nothing(target: Path) -> None:
    module = chain("relu", "tanh")
    assert instrumented(module, target) == instrumented(module, target) == ["a", "b", "c"]
    assert not parse_pipeline(f"quant-instrument{{target={target}}}").run(module).modified


def test_what_a_kernel_fixes_need_not_be_measured(target: Path) -> None:
    assert instrumented(chain("tanh", "softmax"), target) == ["a", "b"]


def test_what_follows_from_a_neighbour_need_not_be_measured(target: Path) -> None:
    module = parse_module(f"""
func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{
  %q = "quant.qcast"(%a) : (tensor<4xf32>) -> tensor<4x{A}>
  %c = "quant.dcast"(%q) : (tensor<4x{A}>) -> tensor<4xf32>
  %d = "tfl.relu"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  %e = "tfl.add"(%d, %b) {{fused_activation_function = "NONE"}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}}""")
    assert instrumented(module, target) == ["f/input_1", "f/add_3"]


def test_what_an_annotation_says_need_not_be_measured(target: Path, tmp_path: Path) -> None:
    annotations = tmp_path / "tensors.toml"
    annotations.write_text(f'[tensors]\n"b" = "{B}"\n"d" = "none"\n')
    # relu has one scale, so b gives a its own
    assert instrumented(chain("relu", "tanh", "tanh"), target, annotations) == ["c"]


def test_operators_that_the_target_does_not_list_are_left_alone(target: Path) -> None:
    assert instrumented(chain("exp", "tanh"), target) == ["b", "c"]
    assert instrumented(chain("exp", "cos"), target) == []


def test_constants_and_biases_need_no_points(target: Path) -> None:
    x, y = (Value(TensorType((1, 4), f32), name) for name in "xy")
    operands: list[Value | None] = [
        x,
        constant(np.eye(4, dtype=np.float32), name="w"),
        constant(np.zeros(4, np.float32), name="b"),
    ]
    attributes = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    module = Module([Function("f", [x], [y], [Op("tfl.fully_connected", operands, [y], attributes)])])
    assert instrumented(module, target) == ["x", "y"]


def test_keys_are_unique_where_names_are_not(target: Path) -> None:
    module = chain("tanh", "tanh", "tanh", names=["a", "a", "", "a"])
    assert instrumented(module, target) == ["a", "a#1", "f/tanh_1", "a#2"]


@pytest.mark.parametrize("kernels", [("relu", "tanh"), ("tanh", "softmax", "relu6"), ("tanh", "tanh", "logistic")])
def test_with_statistics_of_all_points_all_kernels_are_quantized(target: Path, kernels: tuple[str, ...]) -> None:
    module = chain(*kernels)
    keys = instrumented(module, target)
    points = {key: PointStatistics(4, -1.0, 1.0 + place) for place, key in enumerate(keys)}
    apply_statistics(module, Statistics(points))
    passes = f"kernel-fusion{{target={target}}},quant-propagate{{target={target}}}"
    quantized = parse_pipeline(passes).run(module).module
    assert is_fully_quantized(quantized), print_module(quantized)
    assert len([op for op in quantized.main.ops if isinstance(op, Region)]) == len(kernels)
