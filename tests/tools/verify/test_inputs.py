"""The inputs that two models are compared on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflq.tools.verify.inputs import generated_inputs


def tensor(
    dtype: str, shape: tuple[int, ...] = (2, 3), *, scale: float = 0.0, zero: int = 0, batch: bool = False
) -> dict[str, Any]:
    signature = [-1, *shape[1:]] if batch else list(shape)
    quantization = {"scales": [scale], "zero_points": [zero]} if scale else {"scales": [], "zero_points": []}
    return {"name": "x", "shape": list(shape), "shape_signature": signature, "dtype": dtype, "axis": 0, **quantization}


def test_sets_and_their_names() -> None:
    names = [name for name, _ in generated_inputs([("x", tensor("int8", scale=0.1))], 2, [(2, 3)])]
    assert names == ["random 0", "random 1", "minimum", "maximum", "zero point"]


@pytest.mark.parametrize(
    ("dtype", "low", "high", "zero"), [("int8", -128, 127, 3), ("uint8", 0, 255, 131), ("int16", -32768, 32767, 0)]
)
def test_edges_of_quantized_inputs(dtype: str, low: int, high: int, zero: int) -> None:
    side = [("x", tensor(dtype, (64, 64), scale=0.1, zero=zero))]
    values = {name: arrays[0] for name, arrays in generated_inputs(side, 1, [(64, 64)])}
    assert {name: a.dtype.name for name, a in values.items()} == dict.fromkeys(values, dtype)
    assert [int(values[name].min()) for name in ("minimum", "maximum", "zero point")] == [low, high, zero]
    assert [int(values[name].max()) for name in ("minimum", "maximum", "zero point")] == [low, high, zero]
    assert np.unique(values["random 0"]).size > 200


def test_floats_indices_and_strings() -> None:
    side = [("f", tensor("float32")), ("i", tensor("int32")), ("b", tensor("bool")), ("s", tensor("bytes_"))]
    for _, (floats, indices, flags, texts) in generated_inputs(side, 2, [(2, 3)] * 4):
        assert np.abs(floats).max() <= 1
        assert set(np.unique(indices)) <= {0, 1}
        assert flags.dtype.name + texts.dtype.kind == "boolS"


def test_the_same_every_time_and_others_with_another_seed() -> None:
    side = [("x", tensor("int8", scale=0.1))]
    one, other, third = (next(generated_inputs(side, 3, [(2, 3)], seed))[1][0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, other)
    assert (one != third).any()
