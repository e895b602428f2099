"""PAD, PADV2, and movement that kernels refuse; tests/matrix/other_parameters.py has random models of them."""

from __future__ import annotations

import numpy as np
from support.harness import argument, const, convert_and_compare, edge_inputs, interpret, one_op

import tflq
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32

X, Y = UniformQuantizedType.of(i8, 0.5, 3), UniformQuantizedType.of(i8, 1.0, -7)
AROUND = const(np.asarray([[1, 0]]), i32)


def test_pad_copies_the_integers_and_writes_the_zero_point_of_the_result() -> None:
    x = argument((3,), X)
    conversion = convert_and_compare(one_op("tfl.pad", [x, AROUND], [argument((4,), Y, "y")], {}), edge_inputs([x]))
    assert "copies the stored integers" in conversion.report.rows[0].warning
    real = tflq.convert(one_op("tfl.pad", [x, AROUND], [argument((4,), Y, "y")], {}), semantics="real")
    assert interpret(real.data, [[np.asarray([3, 5, 127], np.int8)]])[0][0].tolist() == [-7, -7, -6, 55]


def test_mirror_pad_which_refuses_other_parameters_requantizes() -> None:
    model = one_op("tfl.mirror_pad", [argument((3,), X), AROUND], [argument((4,), Y, "y")], {"mode": "REFLECT"})
    conversion = tflq.convert(model, fallback="error")
    assert interpret(conversion.data, [[np.asarray([3, 5, 127], np.int8)]])[0][0].tolist() == [-6, -7, -6, 55]


def test_scales_per_axis_move_with_their_elements_or_a_warning_says_not() -> None:
    scales = [0.5, 0.25, 2.0]
    columns, rows = (UniformQuantizedPerAxisType.of(i8, axis, scales) for axis in (1, 0))
    x = argument((3, 3), columns)
    for element, warns in ((rows, False), (columns, True)):
        model = one_op("tfl.transpose", [x, const(np.asarray([1, 0]), i32)], [argument((3, 3), element, "y")], {})
        conversion = convert_and_compare(model, edge_inputs([x]), fallback="error")
        assert bool(conversion.report.rows[0].warning) == warns
