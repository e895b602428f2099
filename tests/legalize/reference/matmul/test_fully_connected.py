"""FULLY_CONNECTED on weights of the other sign, which its kernels read as if they were of the input's."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op

import tflq
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, i64, ui8

OPTIONS = {
    "fused_activation_function": "NONE",
    "weights_format": "DEFAULT",
    "keep_num_dims": False,
    "asymmetric_quantize_inputs": False,
}


@pytest.mark.parametrize("zero", [0, 128, 255, -128])
@pytest.mark.parametrize(("x", "w"), [(i8, ui8), (i16, ui8), (ui8, i8)], ids=str)
def test_weights_of_the_other_sign(x: ScalarType, w: ScalarType, zero: int) -> None:
    rng = np.random.default_rng(0)
    if not w.minimum <= zero <= w.maximum:
        zero = 3
    weights = const(rng.integers(w.minimum, w.maximum, (4, 7)), UniformQuantizedType.of(w, 0.01, zero), "weights")
    bias = const(rng.integers(-900, 900, 4), UniformQuantizedType.of(i64, 0.001, 0), "bias") if x == i16 else None
    source, target = (UniformQuantizedType.of(x, s, 0 if x == i16 else 5) for s in (0.1, 0.4))
    operands = [argument((3, 7), source), weights, bias]
    model = one_op("tfl.fully_connected", operands, [argument((3, 4), target, "y")], OPTIONS, 9)
    batches = edge_inputs(tflq.read(model).main.inputs)
    (row,) = convert_and_compare(model, batches).report.rows
    read = f"the kernel reads the bytes of 'weights', which is {w}, as {ui8 if x == ui8 else i8}"
    assert (row.path, row.warning) == ("integer", read)
    (row,) = tflq.convert(model, semantics="real").report.rows
    assert not row.warning


@pytest.mark.parametrize("scale", [0.0012, 0.0025, 0.2])
@pytest.mark.parametrize("bias", [-(2**31), 2**31 - 1, 2**31 - 400_000])
def test_sums_that_leave_int32_by_weights_that_are_computed(bias: int, scale: float) -> None:
    x, w = UniformQuantizedType.of(i8, 0.0625, 2), UniformQuantizedType.of(i8, 0.03125, -128)
    offset = const(np.full(5, bias), UniformQuantizedType.of(i32, 0.0625 * 0.03125), "bias")
    operands = [argument((2, 64), x, "x"), argument((5, 64), w, "w"), offset]
    y = argument((2, 5), UniformQuantizedType.of(i8, scale, 2), "y")
    options = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    model = one_op("tfl.fully_connected", operands, [y], options, 4)
    convert_and_compare(model, edge_inputs([argument((2, 64), x), argument((5, 64), w)]))
