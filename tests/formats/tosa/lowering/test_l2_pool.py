"""L2_POOL_2D on TOSA's operators, against its kernel."""

from __future__ import annotations

import pytest
from support.harness import argument, edge_inputs, one_op
from support.on_tosa import assert_near_kernel

import tflq
from tflq.ir.types import f32, i16


@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
@pytest.mark.parametrize(("padding", "out"), [("SAME", (1, 3, 5, 2)), ("VALID", (1, 2, 4, 2))])
def test_l2_pool(padding: str, out: tuple[int, ...], activation: str) -> None:
    options = {"stride_h": 2, "stride_w": 1, "filter_height": 3, "filter_width": 2, "padding": padding}
    x, y = argument((1, 5, 5, 2), f32), argument(out, f32, "y")
    model = one_op("tfl.l2_pool_2d", [x], [y], {**options, "fused_activation_function": activation})
    for arrays in edge_inputs([x]):
        assert_near_kernel(model, arrays, 1e-6)


def test_l2_pool_of_integers_is_refused() -> None:
    options = {"stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2, "padding": "VALID"}
    x, y = argument((1, 4, 4, 3), i16), argument((1, 3, 3, 3), i16, "y")
    model = one_op("tfl.l2_pool_2d", [x], [y], {**options, "fused_activation_function": "RELU"})
    with pytest.raises(tflq.UnsupportedError, match=r"L2_POOL_2D.*only floats have a square root"):
        tflq.convert(model, format="tosa")
