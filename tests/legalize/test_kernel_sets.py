"""Rules scale by what the kernel set says: another set is a class, and no rule knows it."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.reference import evaluated

from tflq.base.errors import UnsupportedError
from tflq.dialects.quant import RescaleF64
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tflite.reader import read
from tflq.ir.module import Module
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.numerics.fixed_point import Multiplier, multiply, quantize_multiplier
from tflq.numerics.kernel_sets import REFERENCE, kernel_set
from tflq.numerics.reference import KernelSet, Parameters
from tflq.numerics.requantize.scaling import Factor, Float64, QuantizedMultiplier


class Halved(KernelSet):
    """Kernels that give half of what they should, and round sums of products once."""

    def relu(self, x: Parameters, y: Parameters) -> Multiplier:
        mantissa, shift = super().relu(x, y)
        return Multiplier(mantissa, shift - 1)

    def convolution(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        factor = super().convolution(x, weights, y)
        assert isinstance(factor, QuantizedMultiplier)
        return Float64(factor.scale / 2)


class Strange(Factor):
    """A factor that nothing here has operations for."""

    key = None


class Unknown(KernelSet):
    """Kernels that scale convolutions as nothing here does."""

    def convolution(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:  # noqa: ARG002
        return Strange()


def integer_form(model: bytes, kernel_set: KernelSet) -> Module:
    return legalize(read(model), Policy(fallback=False, kernel_set=kernel_set))[0]


def relu() -> bytes:
    x, y = (argument((1, 256), UniformQuantizedType.of(i8, 0.5, 0), name) for name in "xy")
    return one_op("tfl.relu", [x], [y], {})


def convolution() -> bytes:
    element = UniformQuantizedType.of(i8, 0.5, 0)
    weights, bias = const(np.ones((3, 1, 1, 2)), element, "w"), const(np.zeros(3), i32, "b")
    x, y = argument((1, 4, 4, 2), element), argument((1, 4, 4, 3), element, "y")
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
    return one_op("tfl.conv_2d", [x, weights, bias], [y], {**options, "dilation_h_factor": 1, "dilation_w_factor": 1})


@pytest.mark.parametrize("per_channel", [False, True])
def test_the_first_release_rounds_connected_layers_twice(per_channel: bool) -> None:
    """Checked against ai-edge-litert 1.0.1, whose results these formulas give."""
    rng = np.random.default_rng(0)
    scales = np.full(7, 0.3, np.float32) if not per_channel else rng.uniform(0.01, 0.2, 7).astype(np.float32)
    of_weights = UniformQuantizedPerAxisType.of(i8, 0, scales, 0)
    weights = const(rng.integers(-9, 9, (7, 5)), of_weights if per_channel else UniformQuantizedType.of(i8, 0.3), "w")
    x, y = argument((64, 5), UniformQuantizedType.of(i8, 0.5, 3)), UniformQuantizedType.of(i8, 0.37, -2)
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    model = one_op("tfl.fully_connected", [x, weights, None], [argument((64, 7), y, "y")], options, 4)
    stored = rng.integers(-128, 128, (64, 5)).astype(np.int8)
    sums = (stored.astype(np.int32) - 3) @ weights.array.astype(np.int32).T
    real = [0.5 * float(s) / float(np.float32(0.37)) for s in scales]
    rounded = np.stack([multiply(sums[:, c], *quantize_multiplier(r)) for c, r in enumerate(real)], 1)
    got = evaluated(integer_form(model, kernel_set("reference-1.0")), [[stored]])[0][0]
    np.testing.assert_array_equal(got, np.clip(rounded - 2, -128, 127))


def test_a_rule_scales_by_the_factor_of_the_set() -> None:
    x = np.arange(-128, 128, dtype=np.int8)[None]
    whole, half = (evaluated(integer_form(relu(), s), [[x]])[0][0] for s in (REFERENCE, Halved()))
    np.testing.assert_array_equal(whole, np.maximum(x, 0))
    np.testing.assert_array_equal(half, (np.maximum(x, 0).astype(int) + 1) // 2)


def test_the_factor_says_how_sums_are_rounded() -> None:
    kinds = [{type(op) for op in integer_form(convolution(), s).main.ops} for s in (REFERENCE, Halved())]
    assert Rescale in kinds[0]
    assert RescaleF64 not in kinds[0]
    assert RescaleF64 in kinds[1]
    assert Rescale not in kinds[1]


def test_a_factor_that_no_rule_has_operations_for_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="sums are not scaled by Strange"):
        integer_form(convolution(), Unknown())
