"""Batch normalization, folded into the product before it by kernel-fusion."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import interpret

from tflq.dialects.regions import Region
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

GENERATOR = np.random.default_rng(5)
PRODUCTS = {
    "conv_2d": ((3, 2, 2, 4), {"padding": "SAME", "stride_h": 1, "stride_w": 1}),
    "depthwise_conv_2d": (
        (1, 2, 2, 4),
        {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1},
    ),
    "fully_connected": ((3, 64), {}),
}


def numbers(*shape: int) -> Value:
    return constant(GENERATOR.uniform(-1, 1, shape).astype(np.float32))


def network(
    product: str, scale: Value, shift: Value | None, *, bias: bool = True, relu: bool = True, fused: str = "NONE"
) -> Module:
    """A product, · scale, + shift, relu."""
    shape, attributes = PRODUCTS[product]
    channels = shape[3] if product == "depthwise_conv_2d" else shape[0]
    out = (1, channels) if product == "fully_connected" else (1, 4, 4, channels)
    x = Value(TensorType((1, 4, 4, 4), f32), "x")
    values = [Value(TensorType(out, f32), f"v{i}") for i in range(4)]
    weights = [numbers(*shape), *([numbers(channels)] if bias else [])]
    ops = [Op(f"tfl.{product}", [x, *weights], [values[0]], {**attributes, "fused_activation_function": fused})]
    last = values[0]
    for name, other, made in (("mul", scale, values[1]), ("add", shift, values[2])):
        if other is not None:
            ops.append(Op(f"tfl.{name}", [last, other], [made], {"fused_activation_function": "NONE"}))
            last = made
    if relu:
        ops.append(Op("tfl.relu", [last], [values[3]], {}))
        last = values[3]
    return Module([Function("main", [x], [last], ops)])


def inside(module: Module) -> list[list[str]]:
    return [[op.short_name for op in op.regions[0].block.ops[:-1]] for op in module.main.ops if isinstance(op, Region)]


def fused(module: Module) -> Module:
    made = parse_pipeline("kernel-fusion").run(module).module
    verify(made)
    return made


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("added", [True, False])
def test_a_normalization_goes_into_weights_and_bias(product: str, bias: bool, relu: bool, added: bool) -> None:
    channels = 4 if product == "depthwise_conv_2d" else 3
    module = network(product, numbers(channels), numbers(1, channels) if added else None, bias=bias, relu=relu)
    before = bytes(write(module))
    (region,) = fused(module).main.ops
    assert isinstance(region, Region)
    assert region.kernel == product
    assert inside(module) == [[product, "relu"] if relu else [product]]
    assert len(region.inputs) == 2 + (bias or added)
    if product == "conv_2d" and not bias:
        return  # the interpreter has no kernel without one
    x = GENERATOR.uniform(-1, 1, (1, 4, 4, 4)).astype(np.float32)
    after = bytes(write(parse_pipeline("inline-regions").run(module).module))
    (wanted,), (found,) = (interpret(model, [[x]])[0] for model in (before, after))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


def test_each_step_is_rounded_to_float32() -> None:
    module = network("conv_2d", numbers(3), numbers(3))
    _, weights, bias = module.main.ops[0].operands
    scale, shift = module.main.ops[1].operand(1), module.main.ops[2].operand(1)
    assert weights is not None
    assert bias is not None
    (region,) = fused(module).main.ops
    np.testing.assert_array_equal(region.operand(1).array, weights.array * scale.array.reshape(3, 1, 1, 1))
    np.testing.assert_array_equal(region.operand(2).array, bias.array * scale.array + shift.array)


def test_the_activation_of_the_addition_is_kept() -> None:
    module = network("conv_2d", numbers(3), numbers(3), relu=False)
    module.main.ops[2].attributes = {"fused_activation_function": "RELU6"}
    (region,) = fused(module).main.ops
    assert region.regions[0].block.ops[0].attributes["fused_activation_function"] == "RELU6"


@pytest.mark.parametrize(
    ("scale", "options"),
    [
        (numbers(1, 4, 4, 3), {}),  # a number for each element
        (numbers(4, 1), {}),  # along another dim
        (Value(TensorType((3,), f32), "scale"), {}),  # no constant
        (numbers(3), {"fused": "RELU"}),  # behind an activation
    ],
)
def test_what_is_no_number_per_channel_stays(scale: Value, options: dict[str, str]) -> None:
    module = network("conv_2d", scale, numbers(3), **options)  # type: ignore[arg-type]
    if not scale.is_constant:
        module.main.inputs.append(scale)
    assert inside(fused(module))[0] == ["conv_2d"]


def test_a_value_that_another_op_reads_stays() -> None:
    module = network("conv_2d", numbers(3), numbers(3))
    module.main.outputs.append(module.main.ops[0].result)
    assert inside(fused(module)) == [["conv_2d"], ["mul", "add"], ["relu"]]
