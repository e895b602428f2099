"""QUANTIZE, DEQUANTIZE and CAST: from one type to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from tflq.coverage.samples.entry import SCALE, file_of, per_layer
from tflq.ir.core import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    bf16,
    f16,
    f32,
    i1,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
    ui16,
)

__all__ = ["SAMPLES"]

_SHAPE = (2, 4)
_STORED = (i8, ui8, i16)
_FLOATS = (f32, f16, bf16)


def _samples(name: str) -> Iterator[tuple[str, bytes]]:
    """Each signature's sample: its name, and the file."""
    for source, target, words in _pairs(name):
        names = " → ".join(str(getattr(e, "storage", e)) for e in (source, target))
        x, y = Value(TensorType(_SHAPE, source), "in0"), Value(TensorType(_SHAPE, target), "out0")
        yield f"{name} {names}: {words}", file_of(name, [x], [y], {})


def _pairs(name: str) -> Iterator[tuple[ElementType, ElementType, str]]:
    if name == "dequantize":
        for source in (*_STORED, i4, i32):
            yield per_layer(source), f32, ""
        yield from ((per_layer(i8), real, "") for real in (f16, bf16))
        yield from ((_per_axis(source), f32, "per axis") for source in (*_STORED, i4))
        return
    if name == "quantize":
        for target in (*_STORED, i4, i32, ui16):
            yield f32, per_layer(target), ""
        yield from ((real, per_layer(i8), "") for real in (f16, bf16))
        yield from ((f32, _per_axis(target), "per axis") for target in _STORED)
        yield per_layer(i32), per_layer(i8), ""
        yield per_layer(i16), per_layer(i32), ""
        yield _per_axis(i8), per_layer(i8), "per axis, operand"
    else:
        for plain in (f32, i32, i64, i1):
            yield from ((per_layer(source), plain, "") for source in _STORED)
            yield from ((plain, per_layer(target), "") for target in _STORED)
        yield per_layer(i4), f32, ""
        yield _per_axis(i8), f32, "per axis"
    for a in _STORED:
        for b in _STORED:
            yield per_layer(a), per_layer(b, SCALE * 1.5), "other scales"
    yield per_layer(i8), per_layer(i8), "equal scales"


def _per_axis(storage: ScalarType) -> ElementType:
    return UniformQuantizedPerAxisType.of(storage, 1, SCALE / (np.arange(_SHAPE[1]) + 1), 0)


SAMPLES: Mapping[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    name: partial(_samples, name) for name in ("cast", "dequantize", "quantize")
}
