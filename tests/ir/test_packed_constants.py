"""Constants of fewer than 8 bits are packed in their buffer, as files have them."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.ir.ops import Buffer, Value, constant
from tflq.ir.types import ScalarType, TensorType, bf16, i2, i4, string, ui4


@pytest.mark.parametrize("storage", [i2, i4, ui4], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0, 4)], ids=str)
def test_packed_elements_are_read_back(storage: ScalarType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    array = rng.integers(storage.minimum, storage.maximum, shape, endpoint=True).astype(storage.dtype)
    made = constant(array, storage)
    assert made.buffer is not None
    assert made.buffer.data.size == -(-array.size * storage.bits // 8)
    np.testing.assert_array_equal(Value(made.type, buffer=made.buffer).array, array)


@pytest.mark.parametrize("element", [string, bf16], ids=str)
@pytest.mark.parametrize("info", [{}, {"sparsity": {}}], ids=["dense", "sparse"])
def test_elements_that_numpy_lacks(element: ScalarType, info: dict[str, object]) -> None:
    """Strings have no width."""
    text = Value(TensorType((1,), element), "x", buffer=Buffer(np.ones(8, np.uint8)), info=info)
    with pytest.raises(TypeError, match="no numpy element type"):
        _ = text.array
