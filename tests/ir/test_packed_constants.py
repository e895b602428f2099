"""Constants of fewer than 8 bits are packed in their buffer, as files have them."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, i2, i4, ui4


@pytest.mark.parametrize("storage", [i2, i4, ui4], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0, 4)], ids=str)
def test_packed_elements_are_read_back(storage: ScalarType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    array = rng.integers(storage.minimum, storage.maximum, shape, endpoint=True).astype(storage.dtype)
    made = constant(array, storage)
    assert made.buffer is not None
    assert made.buffer.data.size == -(-array.size * storage.bits // 8)
    np.testing.assert_array_equal(Value(made.type, buffer=made.buffer).array, array)
