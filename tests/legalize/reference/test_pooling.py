"""AVERAGE_POOL_2D and MAX_POOL_2D: converted and original agree for any window, activation, parameters and batch."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, edge_inputs, interpret, one_op
from support.reference import assert_equals_kernel, quantized

import tflq
from tflq.ir.types import ScalarType, i8, i16, ui8

POOLS = ["tfl.average_pool_2d", "tfl.max_pool_2d"]
TYPES = [i8, ui8, i16]


def options(
    kernel: tuple[int, int], stride: tuple[int, int], padding: str, activation: str = "NONE"
) -> dict[str, object]:
    return {
        "padding": padding,
        "stride_w": stride[1],
        "stride_h": stride[0],
        "filter_width": kernel[1],
        "filter_height": kernel[0],
        "fused_activation_function": activation,
    }


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "RELU_N1_TO_1", "TANH"])
def test_activations(name: str, storage: ScalarType, activation: str) -> None:
    element = quantized(storage)
    x, y = argument((1, 5, 6, 3), element), argument((1, 3, 3, 3), element, "y")
    conversion = convert_and_compare(
        one_op(name, [x], [y], options((3, 2), (2, 2), "SAME", activation)), edge_inputs([x])
    )
    assert [row.path for row in conversion.report.rows] == ["integer"]


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "out"),
    [
        ((2, 2), (2, 2), "VALID", (3, 4)),
        ((3, 3), (2, 3), "VALID", (3, 3)),
        ((3, 3), (1, 1), "SAME", (7, 9)),
        ((1, 1), (2, 2), "SAME", (4, 5)),
        ((5, 2), (3, 4), "SAME", (3, 3)),
        ((7, 9), (1, 1), "VALID", (1, 1)),
        ((2, 1), (5, 4), "SAME", (2, 3)),
    ],
)
def test_windows(
    name: str, storage: ScalarType, kernel: tuple[int, int], stride: tuple[int, int], padding: str, out: tuple[int, int]
) -> None:
    """Padding is not counted, and an average's halves go away from zero, at any zero point."""
    element = quantized(storage, 0.7, -100 if storage is i8 else 200)
    x, y = argument((2, 7, 9, 3), element), argument((2, *out, 3), element, "y")
    model = one_op(name, [x], [y], options(kernel, stride, padding))
    assert_equals_kernel(model, edge_inputs([x]))
    convert_and_compare(model, edge_inputs([x]))


@pytest.mark.parametrize("name", POOLS)
def test_parameters_of_the_result_are_ignored_with_a_warning(name: str) -> None:
    x, y = argument((1, 4, 4, 2), quantized(i8)), argument((1, 2, 2, 2), quantized(i8, 0.2, -7), "y")
    model = one_op(name, [x], [y], options((2, 2), (2, 2), "VALID", "RELU6"))
    conversion = convert_and_compare(model, edge_inputs([x]))
    assert "different quantization parameters" in conversion.report.rows[0].warning


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("shape", [(None, 6, 6, 2), (None, None, None, 2)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_sizes_known_when_the_model_runs(name: str, shape: tuple[int | None, ...], padding: str) -> None:
    element = quantized(i8)
    out = tuple(3 if d == 6 else d for d in shape)
    x, y = argument(shape, element), argument(out, element, "y")
    model = one_op(name, [x], [y], options((2, 2), (2, 2), padding))
    size = 6 if shape[1] else 5
    batch = np.random.default_rng(1).integers(-128, 128, (3, size, size, 2), np.int8)
    convert_and_compare(model, [[batch]])


@pytest.mark.parametrize("name", POOLS)
def test_other_kernels_agree(name: str) -> None:
    element = quantized(ui8)
    x, y = argument((1, 8, 8, 5), element), argument((1, 4, 4, 5), element, "y")
    model = one_op(name, [x], [y], options((3, 3), (2, 2), "SAME", "RELU6"))
    converted, inputs = tflq.convert(model).data, edge_inputs([x])
    want = interpret(model, inputs)
    for resolver in ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"):
        np.testing.assert_equal(interpret(converted, inputs, resolver), want)


@pytest.mark.parametrize("storage", TYPES, ids=str)
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize(
    ("size", "stride", "out"),
    [((4, 8), 1, (0, 3)), ((8, 4), 1, (0, 0)), ((8, 4), 3, (1, 0)), ((4, 4), 4, (0, 0))],
    ids=str,
)
def test_a_window_larger_than_its_input(
    name: str, storage: ScalarType, size: tuple[int, int], stride: int, out: tuple[int, int]
) -> None:
    """LiteRT gives a result without elements, and none of the other forms fails otherwise than by a refusal."""
    element = quantized(storage)
    x, y = argument((1, *size, 2), element), argument((1, *out, 2), element, "y")
    model = one_op(name, [x], [y], options((6, 6), (stride, stride), "VALID"))
    assert_equals_kernel(model, edge_inputs([x]))
    for target in ("integer", "kernels"):
        ((found,), *_) = interpret(tflq.convert(model, target=target).data, edge_inputs([x]))
        assert found.shape == (1, *out, 2)
    assert tflq.convert(model, format="onnx").data
    with pytest.raises(tflq.UnsupportedError, match="no elements"):
        tflq.convert(model, format="tosa")
