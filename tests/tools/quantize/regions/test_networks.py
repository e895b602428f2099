"""Float networks of the corpus, quantized by shipped schemes from statistics."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.corpus import CORPUS, needs_corpus

import tflq
from tflq.dialects.regions import Stats
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, f32
from tflq.ir.verifier import verify
from tflq.targets.load import load_kernels
from tflq.tools.opt import named_passes, parse_pipeline
from tflq.tools.quantize.regions.lookup import is_fully_quantized, regions_of, report

pytestmark = needs_corpus

NETWORKS = ("pretrainedResnet_large_float.tflite", "vww_96_float.tflite", "conv_fc_mnist.tflite")
WEIGHTS = {"conv_2d": 0, "depthwise_conv_2d": 3, "fully_connected": 0}
"""Kernels with weights, their second operand, and its dim of output channels."""


def network(name: str) -> Module:
    found = sorted(CORPUS.rglob(name))
    if not found:
        pytest.skip(f"the corpus has no {name}")
    return tflq.read(found[0])


def observed(value: Value, low: np.ndarray, high: np.ndarray, axis: int | None = None) -> Op:
    """Statistics of a value; `low` and `high` of each index of an axis, if one is given."""
    ends = np.array([low.min(), high.max()], np.float32)
    along = {} if axis is None else {"axisStats": np.stack([low, high], 1).astype(np.float32), "axis": axis}
    return Op(Stats.op_name, [value], [Value(value.type)], {"layerStats": ends, **along})


def observe_weights(module: Module) -> None:
    """Puts statistics of each channel before weights."""
    ops: list[Op] = []
    for op in module.main.ops:
        if op.short_name in WEIGHTS:
            axis, array = WEIGHTS[op.short_name], op.operand(1).array
            others = tuple(i for i in range(array.ndim) if i != axis)
            ops.append(observed(op.operand(1), array.min(others), array.max(others), axis))
            op.operands = [op.operands[0], ops[-1].result, *op.operands[2:]]
        ops.append(op)
    module.main.ops = ops


def observe_activations(module: Module) -> None:
    """Puts statistics, drawn, behind inputs and results of reals."""
    generator = np.random.default_rng(1)
    seen: dict[Value, Value] = {}

    def behind(values: list[Value]) -> list[Op]:
        made = []
        for value in values:
            if value.type.element == f32:
                made.append(observed(value, -generator.uniform(0, 1, 1), generator.uniform(1, 9, 1)))
                seen[value] = made[-1].result
        return made

    ops = behind(module.main.inputs)
    for op in module.main.ops:
        op.operands = [value and seen.get(value, value) for value in op.operands]
        ops += [op, *behind(op.results)]
    module.main.ops = ops
    module.main.outputs = [seen.get(value, value) for value in module.main.outputs]
    module.signatures = module.signatures and [signature.with_outputs(seen) for signature in module.signatures]


def run(module: Module, passes: str) -> Module:
    verify(module)
    return parse_pipeline(passes, named_passes()).run(module).module


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("stated", [True, False], ids=["statistics", "elements"])
@pytest.mark.parametrize("name", NETWORKS)
def test_weights_have_plain_parameters_per_channel(name: str, stated: bool, scheme: str) -> None:
    module = network(name)
    if stated:
        observe_weights(module)
    module = run(module, f"kernel-fusion{{target={scheme}}},quant-propagate{{target={scheme}}}")
    weighted = [region for region in regions_of(module.main.ops) if region.kernel in WEIGHTS]
    assert weighted
    for region in weighted:
        axis, kind, array = WEIGHTS[region.kernel], region.input_specs[1], region.operand(1).array
        reach = np.abs(array).max(tuple(i for i in range(array.ndim) if i != axis)).astype(np.float64)
        assert isinstance(kind, UniformQuantizedPerAxisType)
        assert kind.axis == axis
        assert not kind.zero_points.any()
        assert reach.max() > 5e-7
        np.testing.assert_array_equal(kind.scales, (np.maximum(reach, 5e-7) / 127).astype(np.float32))


@pytest.mark.parametrize("scheme", ["int8", "int16x8", "uint8"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_quantized_with_one_cast_at_either_end(name: str, scheme: str) -> None:
    module = network(name)
    before = Counter(op.name for op in module.main.ops)
    observe_activations(module)
    module = run(module, f"kernel-fusion{{target={scheme}}},quant-propagate{{target={scheme}}}")
    assert is_fully_quantized(module)
    assert not [row for row in report(module, load_kernels(scheme)) if row.lacks]
    module = run(module, f"quant-materialize{{target={scheme} casts=tfl}},canonicalize,dce")
    assert Counter(op.name for op in module.main.ops) == before + Counter({"tfl.quantize": 1, "tfl.dequantize": 1})
    kernels = [op for op in module.main.ops if op.name not in ("tfl.quantize", "tfl.dequantize")]
    assert all(op.results[0].type.quantized for op in kernels)
