"""STABLEHLO operators; tests/matrix/stablehlo.py has random models of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, edge_inputs, interpret, one_op

import tflq
from tflq.base.errors import UnsupportedError
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16

ELEMENT = UniformQuantizedType.of(i8, 0.5, 3)


def test_a_kernel_takes_stored_integers_and_real_semantics_do_not() -> None:
    operands = [argument((4,), ELEMENT), argument((4,), ELEMENT, "z")]
    model = one_op("tfl.stablehlo_add", operands, [argument((4,), ELEMENT, "y")], {})
    conversion = convert_and_compare(model, edge_inputs(operands), fallback="error")
    assert "takes the stored integers" in conversion.report.rows[0].warning
    real = tflq.convert(model, semantics="real", fallback="error")
    ten = np.full(4, 10, np.int8)
    assert interpret(real.data, [[ten, ten]])[0][0].tolist() == [17] * 4


def test_what_has_no_kernel_becomes_its_builtin() -> None:
    axis = UniformQuantizedPerAxisType.of(i8, 0, [0.5, 1.0])
    model = one_op("tfl.stablehlo_abs", [argument((2,), axis)], [argument((2,), axis, "y")], {})
    assert interpret(tflq.convert(model).data, [[np.asarray([-4, 5], np.int8)]])[0][0].tolist() == [4, 5]


def test_the_fallback_computes_the_builtin_that_is_the_same() -> None:
    element = UniformQuantizedType.of(i16, 0.5)
    operands = [argument((2,), element), argument((2,), element, "z")]
    model = one_op("tfl.stablehlo_power", operands, [argument((2,), element, "y")], {})
    arrays = [np.asarray([6, 4], np.int16), np.asarray([4, 6], np.int16)]
    assert interpret(tflq.convert(model).data, [arrays])[0][0].tolist() == [18, 16]


def test_what_has_no_form_is_refused_by_name() -> None:
    element = UniformQuantizedType.of(i16, 0.5)
    operands = [argument((2,), element), argument((2,), element, "z")]
    model = one_op("tfl.stablehlo_remainder", operands, [argument((2,), element, "y")], {})
    with pytest.raises(UnsupportedError, match="STABLEHLO_REMAINDER on quantized tensors has no form"):
        tflq.convert(model)
