"""Tables on TOSA."""

from __future__ import annotations

import numpy as np
import pytest
from support.tosa_integers import check

from tflq.dialects.builder import Builder
from tflq.ir.ops import Value, constant
from tflq.ir.types import SCALARS, ScalarType, i8, i16, ui8


def every(storage: ScalarType) -> np.ndarray:
    return np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)


def entries(count: int, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(1).integers(info.min, info.max, count, endpoint=True).astype(dtype)


@pytest.mark.parametrize("source", [i8, ui8])
@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "int32"])
def test_8_bits(source: ScalarType, to: str) -> None:
    x = every(source).reshape(2, 128)
    table = entries(256, to)
    check([(x.shape, source)], lambda b, v: b.table(v, table), [x])


@pytest.mark.parametrize("steep", [False, True])
def test_interpolated(steep: bool) -> None:
    """A step that int16 does not hold is none of TABLE's."""
    x = every(i16)
    table = entries(513, "int16") if steep else (entries(513, "int16") >> 1).astype(np.int16)
    check([(x.shape, i16)], lambda b, v: b.table(v, table), [x])


@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "int32"])
def test_16_bits(to: str) -> None:
    x = every(i16).reshape(-1, 64)
    table = entries(1 << 16, to)
    check([(x.shape, i16)], lambda b, v: b.table(v, table), [x])


@pytest.mark.parametrize("first", [i8, ui8])
@pytest.mark.parametrize("second", [i8, ui8])
@pytest.mark.parametrize("to", ["i8", "ui8"])
def test_of_two(first: ScalarType, second: ScalarType, to: str) -> None:
    x, y = every(first).reshape(256, 1), every(second)
    table = constant(entries(1 << 16, SCALARS[to].numpy))

    def body(b: Builder, v: Value, w: Value) -> Value:
        return b.emit("ext.table_2d", [v, w, table], table.type.__class__((256, 256), SCALARS[to]))

    check([(x.shape, first), (y.shape, second)], body, [x, y])
