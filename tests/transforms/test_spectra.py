"""Parts of spectra in float operators: near what RFFT2D and its readers compute; other spectra are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, complex64, f32, i32
from tflq.transforms.floats import Spectra, fourier


def spectrum(length: int, reader: str, rows: int = 1) -> Module:
    """A part of the spectrum of [2, 3, rows, 8], each of `length`, reshaped."""
    x = argument((2, 3, rows, 8), f32, "x")
    bins = length // 2 + 1
    found = Value(TensorType((2, 3, rows, bins), complex64), "spectrum")
    flat = Value(TensorType((6 * rows, bins), complex64), "flat")
    part = argument((6 * rows, bins), f32, "part")
    shape, size = (const(np.asarray(v), i32) for v in ((rows, length), (6 * rows, bins)))
    ops = [
        Op("tfl.rfft2d", [x, shape], [found]),
        Op("tfl.reshape", [found, size], [flat], {"new_shape": None}),
        Op(f"tfl.{reader}", [flat], [part]),
    ]
    return Module([Function("main", [x], [part], ops)])


@pytest.mark.parametrize("reader", ["complex_abs", "real", "imag"])
@pytest.mark.parametrize("length", [4, 8, 16])
def test_a_part_of_the_spectrum_of_rows(reader: str, length: int) -> None:
    """Rows that are cut, read whole, and continued by zeros."""
    model = bytes(write(spectrum(length, reader)))
    batches = [[np.random.default_rng(length).normal(size=(2, 3, 1, 8)).astype(np.float32)]]
    result = Spectra().run(tflq.read(model))
    assert result.modified
    assert not {op.name for op in result.module.ops()} & {"tfl.rfft2d", f"tfl.{reader}"}
    ((want,),), ((got,),) = interpret(model, batches), interpret(bytes(write(result.module)), batches)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_spectrum_of_planes_is_left_alone() -> None:
    module = spectrum(8, "complex_abs", rows=2)
    assert not Spectra().run(module).modified
    assert [op.name for op in module.ops()] == ["tfl.rfft2d", "tfl.reshape", "tfl.complex_abs"]


def test_a_spectrum_has_a_form_in_tosa() -> None:
    conversion = tflq.convert(bytes(write(spectrum(8, "complex_abs"))), format="tosa")
    assert {"tosa.conv2d", "tosa.mul"} <= {op.name for op in conversion.module.ops()}


@pytest.mark.parametrize("length", [2, 8, 64])
def test_the_matrix_is_that_of_numpy(length: int) -> None:
    x = np.random.default_rng(0).normal(size=(3, length))
    cosines, sines = fourier(length, length)
    np.testing.assert_allclose(x @ cosines.T + 1j * (x @ sines.T), np.fft.rfft(x), rtol=0, atol=1e-5)
