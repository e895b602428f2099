"""What the tests beside other converters share: quantized types, and a conversion held to the reference kernels both
ways, as TFLite in the interpreter and as TOSA on the reference model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matrix.draw import Case
from matrix.run import run
from matrix.run_tosa import run_tosa

import tflq
from support.harness import argument, const, edge_inputs, interpret
from tflq.ir.ops import Value
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedType, i8, i16, ui8

STORAGES = (i8, ui8, i16)


def q(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    """Per-layer parameters; `zero_point` is that of int8, to which the ones of uint8 are relative; int16 has none."""
    shifted = {"i8": zero_point, "ui8": zero_point + 128}.get(storage.name, 0)
    return UniformQuantizedType.of(storage, float(np.float32(scale)), shifted)


def image(element: ElementType, shape: tuple[int, ...] = (1, 6, 7, 3), name: str = "x") -> Value:
    return argument(shape, element, name)


def weights(element: ElementType, shape: tuple[int, ...], low: int = -127, high: int = 127, seed: int = 1) -> Value:
    """Constant random integers."""
    return const(np.random.default_rng(seed).integers(low, high, shape, endpoint=True), element, "w")


def assert_exact(
    model: bytes,
    batches: Sequence[Sequence[np.ndarray]] | None = None,
    *,
    tosa: bool = True,
    integer: bool = True,
    kernels: str = "BUILTIN_REF",
) -> None:
    """Both forms give the integers of the reference kernels (or of others), every operator by its integer rule."""
    given = edge_inputs(tflq.read(model).main.inputs) if batches is None else [list(b) for b in batches]
    case = Case(model, given, "", integer=integer, reference=kernels)
    outcome = run(case)
    assert outcome.kind == "ok", outcome
    if tosa:
        outcome = run_tosa(case)
        assert outcome.kind == "ok", outcome


def assert_real(
    model: bytes, result: Value, batches: Sequence[Sequence[np.ndarray]], reals: Sequence[np.ndarray]
) -> tflq.Conversion:
    """The conversion is within one count of the real results, rounded and saturated; TFLite has no kernel that is."""
    element = result.type.element
    assert isinstance(element, UniformQuantizedType)
    conversion = tflq.convert(model)
    got = interpret(conversion.data, [list(b) for b in batches])
    for (stored,), real in zip(got, reals, strict=True):
        wanted = np.clip(np.round(real / element.scale) + element.zero_point, element.storage_min, element.storage_max)
        assert np.abs(stored - wanted).max() <= 1
    return conversion


def parameters(value: Value) -> tuple[float, int]:
    """Scale and zero point of a tensor."""
    element = value.type.element
    assert isinstance(element, UniformQuantizedType)
    return element.scale, element.zero_point
