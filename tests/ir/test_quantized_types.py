"""Quantized types are values: equal by their fields, hashable, and copied with other fields."""

from __future__ import annotations

import copy

import pytest

from tflq.ir.types import (
    QuantizedType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i8,
    i16,
)

TYPES: list[QuantizedType] = [
    UniformQuantizedType.of(i8, 0.5, 3),
    UniformQuantizedPerAxisType.of(i8, 1, [0.5, 2.0], [3, 4]),
    UniformQuantizedSubChannelType.of(i8, (0, 1), (2, 1), [[0.5], [2.0]], 3),
]
each = pytest.mark.parametrize("element", TYPES, ids=lambda element: type(element).__name__)


@each
def test_equal_types_are_one_key(element: QuantizedType) -> None:
    for other in (element.replace(), copy.deepcopy(element)):
        assert other == element
        assert len({other, element}) == 1
        assert repr(other) == repr(element)
    assert [known == element for known in TYPES].count(True) == 1


@each
def test_a_copy_differs_in_the_fields_that_are_named(element: QuantizedType) -> None:
    wide = element.replace(storage=i16, storage_min=-7)
    assert (wide.storage, wide.storage_min, wide.storage_max) == (i16, -7, 127)
    assert wide != element
    assert wide.replace(storage=i8, storage_min=-128) == element
    with pytest.raises(TypeError, match="bits"):
        element.replace(bits=8)


def test_fields_are_shown_in_the_order_of_the_arguments() -> None:
    assert repr(TYPES[0]).startswith("UniformQuantizedType(storage=ScalarType(name='i8', ")
    assert repr(TYPES[0]).endswith(", scale=0.5, zero_point=3, storage_min=-128, storage_max=127)")
    assert ", axis=1, scales=array([0.5, 2. ], dtype=float32), " in repr(TYPES[1])
