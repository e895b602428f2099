"""What the random models found: each was converted wrong, or refused, once."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op

from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, i1, i8, i16, i32, i64, ui8

FULL = {"fused_activation_function": "NONE", "keep_num_dims": False}


def per_layer(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, scale, zero_point)


def numbers(low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(2).integers(low, high, shape)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("activation", ["RELU_N1_TO_1", "RELU6"])
def test_activation_that_leaves_one_value(storage: ScalarType, activation: str) -> None:
    """The result's scale is so coarse, or its zero point so high, that the clamp allows a single number."""
    zero = 0 if storage is i16 else storage.maximum
    weights = const(
        numbers(-100, 100, (3, 4)) + (100 if storage is ui8 else 0), per_layer(ui8 if storage is ui8 else i8, 0.01), "w"
    )
    x, y = argument((2, 4), per_layer(storage, 0.5)), argument((2, 3), per_layer(storage, 40.0, zero), "y")
    options = {**FULL, "fused_activation_function": activation}
    convert_and_compare(one_op("tfl.fully_connected", [x, weights, None], [y], options), edge_inputs([x]))


def test_fully_connected_uint8_to_int16_scales_in_float64() -> None:
    x, y = argument((4, 30), per_layer(ui8, 0.01, 46)), argument((4, 9), per_layer(i16, 0.0007), "y")
    weights = const(numbers(0, 256, (9, 30)), per_layer(ui8, 0.02, 3), "w")
    bias = const(numbers(-9000, 9000, (9,)), per_layer(i32, 0.0002), "b")
    convert_and_compare(one_op("tfl.fully_connected", [x, weights, bias], [y], FULL), edge_inputs([x]))


@pytest.mark.parametrize("declared", ["FLOAT32", "INT32", "INT64"])
def test_fully_connected_int16_weights_read_the_bias_as_declared(declared: str) -> None:
    x, y = argument((2, 8), per_layer(i16, 1e-4)), argument((2, 3), per_layer(i16, 0.05), "y")
    weights = const(numbers(-32768, 32768, (3, 8)), per_layer(i16, 1e-4), "w")
    wide = declared != "INT32"
    bias = const(numbers(-800000, 800000, (3,)), per_layer(i64 if wide else i32, 1e-8), "b")
    options = {**FULL, "quantized_bias_type": declared}
    conversion = convert_and_compare(one_op("tfl.fully_connected", [x, weights, bias], [y], options), edge_inputs([x]))
    assert [row.path for row in conversion.report.rows] == ["integer"]
    assert bool(conversion.report.rows[0].warning) == (declared == "FLOAT32")


def test_fully_connected_bias_beyond_every_threshold() -> None:
    """Whatever the input, the result is saturated: the range of the sums holds no threshold."""
    x, y = argument((4, 2), per_layer(ui8, 0.03198, 128)), argument((4, 2), per_layer(ui8, 0.05727, 128), "y")
    weights = const(numbers(0, 256, (2, 2)), per_layer(ui8, 0.03125, 229), "w")
    for bias in ([593442860, 909331492], [-593442860, 909331492]):
        operands = [x, weights, const(np.asarray(bias), per_layer(i32, 0.0009993), "b")]
        convert_and_compare(one_op("tfl.fully_connected", operands, [y], FULL), edge_inputs([x]))


def test_fully_connected_scales_far_apart() -> None:
    """The sums of a channel with a tiny scale need more than 32 bits, but not for the result."""
    x, y = argument((2, 3), per_layer(i16, 0.6654)), argument((2, 2), per_layer(i16, 0.01047), "y")
    element = UniformQuantizedPerAxisType.of(i8, 0, [1e-12, 0.001166], 0)
    weights = const(numbers(-127, 128, (2, 3)), element, "w")
    scales = UniformQuantizedPerAxisType.of(i64, 0, np.float32(0.6654) * element.scales, 0)
    operands = [x, weights, const(np.asarray([1 << 32, -70000]), scales, "b")]
    conversion = convert_and_compare(one_op("tfl.fully_connected", operands, [y], FULL), edge_inputs([x]))
    assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize(("storage", "scale"), [(i8, 41.83), (ui8, 16.53), (ui8, 233.1)])
def test_hard_swish_of_results_far_coarser_than_the_operand(storage: ScalarType, scale: float) -> None:
    x, y = argument((64,), per_layer(storage, 0.01325, 9)), argument((64,), per_layer(storage, scale, 3), "y")
    convert_and_compare(one_op("tfl.hard_swish", [x], [y], {}), edge_inputs([x]))


def test_transpose_counts_dims_from_the_end() -> None:
    element = per_layer(i8, 0.1, 4)
    x, y = argument((2, 3, 4), element), argument((4, 2, 3), element, "y")
    model = one_op("tfl.transpose", [x, const(np.asarray([-1, 0, -2]), i32)], [y], {}, 2)
    convert_and_compare(model, edge_inputs([x]))


@pytest.mark.parametrize("storage", [ui8, i16], ids=str)
def test_reverse_sequence(storage: ScalarType) -> None:
    element = per_layer(storage, 0.1)
    x, y = argument((2, 5, 3), element), argument((2, 5, 3), element, "y")
    options = {"seq_dim": 1, "batch_dim": 0}
    model = one_op("tfl.reverse_sequence", [x, const(np.asarray([4, 2]), i32)], [y], options)
    convert_and_compare(model, edge_inputs([x]))


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_dynamic_update_slice_and_topk_move_integers(storage: ScalarType) -> None:
    element = per_layer(storage, 0.1)
    x, update, y = argument((3, 5), element), argument((2, 2), element, "u"), argument((3, 5), element, "y")
    operands = [x, update, const(np.asarray([1, 4]), i32)]
    conversion = convert_and_compare(one_op("tfl.dynamic_update_slice", operands, [y], {}), edge_inputs([x, update]))
    assert [row.path for row in conversion.report.rows] == ["integer"]
    results = [argument((3, 2), element, "values"), argument((3, 2), i32, "indices")]
    model = one_op("tfl.topk_v2", [x, const(np.asarray(2), i32)], results, {}, 2)
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert [row.path for row in conversion.report.rows] == ["integer"]


def test_quantize_int32_of_every_size_to_a_range_below_zero() -> None:
    """Thresholds far below zero: the clamp before the division must not overflow for the largest operands."""
    x, y = argument((7,), per_layer(i32, 1.526e-05)), argument((7,), per_layer(i8, 51.63, 127), "y")
    values = [2**31 - 1, -(2**31), 2145000000, -861073900, -1691696, -3383396, 0]
    convert_and_compare(one_op("tfl.quantize", [x], [y], {}, 3), [[np.asarray(values, np.int32)]])


def test_select_of_constant_scalars() -> None:
    element = per_layer(i8, 0.1)
    scalars = [const(np.asarray(True), i1), const(np.asarray(3), element), const(np.asarray(-4), element)]
    convert_and_compare(one_op("tfl.select", scalars, [argument((), element, "y")], {}), [[]])


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("lead", [(None, None), (None, 2, None)], ids=str)
def test_fully_connected_keeps_several_open_dims(storage: ScalarType, lead: tuple[int | None, ...]) -> None:
    x, y = argument((*lead, 6), per_layer(storage, 0.02)), argument((*lead, 3), per_layer(storage, 0.1), "y")
    stored = ui8 if storage is ui8 else i8
    weights = const(numbers(stored.minimum, stored.maximum, (3, 6)), per_layer(stored, 0.01), "w")
    model = one_op("tfl.fully_connected", [x, weights, None], [y], {**FULL, "keep_num_dims": True})
    for sizes in ((1, 1), (4, 7)):
        shape = (sizes[0], *(d or sizes[1] for d in lead[1:]), 6)
        conversion = convert_and_compare(model, edge_inputs([argument(shape, x.type.element)]))
        assert [row.path for row in conversion.report.rows] == ["integer"]


def test_grouped_convolution_of_a_resized_batch() -> None:
    """The file states a batch of 1, without a signature that leaves it open."""
    x, y = argument((1, 4, 4, 6), per_layer(i8, 0.02, 5)), argument((1, 4, 4, 4), per_layer(i8, 0.5), "y")
    weights = const(numbers(-127, 128, (4, 1, 1, 3)), per_layer(i8, 0.01), "w")
    bias = const(numbers(-900, 900, (4,)), per_layer(i32, 0.0002), "b")
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    model = one_op("tfl.conv_2d", [x, weights, bias], [y], {**options, "fused_activation_function": "NONE"}, 3)
    convert_and_compare(model, edge_inputs([argument((3, 4, 4, 6), x.type.element)]))


def test_strided_slice_of_a_constant_whose_ellipsis_stands_for_no_dim() -> None:
    """The kernel lets it stand for one, and drops what comes after."""
    element = per_layer(i16, 0.1)
    bounds = [const(np.asarray(v), i32) for v in ([1, 2], [1, 5], [1, 1])]
    masks = {f"{name}_mask": 0 for name in ("begin", "end", "new_axis", "shrink_axis")} | {"ellipsis_mask": 1}
    for operand in (const(np.arange(7), element), argument((7,), element)):
        batches = [[]] if operand.is_constant else edge_inputs([operand])
        model = one_op("tfl.strided_slice", [operand, *bounds], [argument((7,), element, "y")], masks, 3)
        convert_and_compare(model, batches)


def test_fully_connected_product_that_float64_rounds_up_to_a_tie() -> None:
    x, y = argument((2, 8), per_layer(i16, 1.0)), argument((2, 2), per_layer(i16, 1.0), "y")
    element = UniformQuantizedPerAxisType.of(i8, 0, [0.02249162996923448, 1.8857062762367418], 0)
    weights = const(numbers(-8, 8, (2, 8)), element, "w")
    conversion = convert_and_compare(one_op("tfl.fully_connected", [x, weights, None], [y], FULL), edge_inputs([x]))
    assert [row.path for row in conversion.report.rows] == ["integer"]
