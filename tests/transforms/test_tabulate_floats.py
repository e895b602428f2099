"""Float functions between casts of integers, as tables: all numbers, against the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, interpret

import tflq
from tflq.base.errors import UnsupportedError
from tflq.dialects.tfl.activation import HardSwish, Tanh
from tflq.dialects.tfl.arithmetic import Neg
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.ir.module import Function, Module
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i16, ui8

FORMS = {i8: (0.05, -3), ui8: (0.05, 120), i16: (0.00031, 0)}


def model(storage: ScalarType, *functions: type) -> tuple[bytes, np.ndarray]:
    """Functions of floats on every number of a type."""
    numbers = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype).reshape(1, -1)
    scale, zero = FORMS[storage]
    x = argument(numbers.shape, UniformQuantizedType.of(storage, scale, zero), "x")
    k = KernelBuilder()
    y = k.emit(Dequantize, [x], f32)
    for function in functions:
        y = k.emit(function, [y])
    y = k.emit(Quantize, [y], TensorType(x.type.shape, UniformQuantizedType.of(storage, 0.7 * scale, zero)))
    y.name = "y"
    return bytes(tflq.write(Module([Function("main", [x], [y], k.ops)]))), numbers


@pytest.mark.parametrize("storage", FORMS, ids=str)
@pytest.mark.parametrize("functions", [(HardSwish,), (Neg, HardSwish)], ids=["hard_swish", "two"])
def test_every_number(storage: ScalarType, functions: tuple[type, ...]) -> None:
    source, numbers = model(storage, *functions)
    lowered = tflq.convert(source, format="tosa", target="ethos-u85")
    (want,), (got,) = (interpret(m, [[numbers]])[0] for m in (source, bytes(tflq.convert(lowered.data).data)))
    assert len(np.unique(want)) > 100
    np.testing.assert_array_equal(got, want)


def test_what_libraries_round_in_their_own_way_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="TANH in float needs the profile pro_fp"):
        tflq.convert(model(i8, Tanh)[0], format="tosa", target="ethos-u85")


def test_floats_stay_where_the_target_has_them() -> None:
    module = tflq.read(tflq.convert(model(i8, HardSwish)[0], format="tosa").data)
    assert any(v.type.storage.is_float for op in module.ops() for v in op.results)
