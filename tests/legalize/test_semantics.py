"""Where reference kernels disregard quantization parameters: reproduced with one warning, or computed as the parameters
say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, f32, i1, i8, i16, i32, ui8
from tflq.numerics.floor_division import floor_quotients, floor_remainders

Real = Callable[..., Sequence[np.ndarray]]


@dataclass
class Case:
    """A model of one operator, and what it computes of real values."""

    operands: Sequence[Value]
    results: Sequence[Value]
    real: Real
    attributes: dict[str, Any]
    version: int = 2

    def model(self, name: str) -> bytes:
        return one_op(f"tfl.{name}", self.operands, self.results, self.attributes, self.version)

    @property
    def inputs(self) -> list[Value]:
        return [v for v in self.operands if v.buffer is None]


def _q(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    zero_point += 128 if storage is ui8 else 0
    return UniformQuantizedType.of(storage, float(np.float32(scale)), 0 if storage is i16 else zero_point)


def _two(storage: ScalarType, real: Callable[..., np.ndarray], **attributes: Any) -> Case:
    """Two operands and a result, each with parameters of its own."""
    operands = [argument((3, 40), _q(storage, 0.05, 3), "x"), argument((3, 40), _q(storage, 0.03, -7), "y")]
    return Case(operands, [argument((3, 40), _q(storage, 0.061, 11), "z")], lambda x, y: [real(x, y)], attributes)


def _one(
    storage: ScalarType,
    real: Callable[..., np.ndarray],
    shape: tuple[int, ...] = (2, 6, 6, 4),
    version: int = 2,
    **attributes: Any,
) -> Case:
    out = real(np.zeros(shape)).shape
    x, y = argument(shape, _q(storage, 0.05, 3), "x"), argument(out, _q(storage, 0.071, -9), "y")
    return Case([x], [y], lambda x: [real(x)], attributes, version)


def _select(storage: ScalarType) -> Case:
    case = _two(storage, np.maximum)
    case.operands = [argument((3, 40), i1, "c"), *case.operands]
    case.real, case.version = lambda c, x, y: [np.where(c, x, y)], 1
    return case


def _split(storage: ScalarType) -> Case:
    parts = [argument((3, 20), _q(storage, s, z), n) for n, s, z in (("a", 0.061, 11), ("b", 0.05, 3), ("c", 0.04, 0))]
    axis = const(np.asarray(1), i32, "axis")
    return Case(
        [axis, argument((3, 60), _q(storage, 0.05, 3), "x")],
        parts,
        lambda x: np.split(x, 3, 1),
        {"num_splits": 3},
    )


def _concatenation() -> Case:
    operands = [argument((3, 20), _q(i16, s), n) for n, s in (("a", 0.0061), ("b", 0.005))]
    return Case(
        operands,
        [argument((3, 40), _q(i16, 0.007), "y")],
        lambda *xs: [np.concatenate(xs, 1)],
        {"axis": 1, "fused_activation_function": "NONE"},
    )


def _transpose(storage: ScalarType) -> Case:
    case = _one(storage, lambda x: x.transpose(0, 2, 1), (2, 5, 4))
    case.operands = [*case.operands, const(np.asarray([0, 2, 1]), i32, "perm")]
    return case


_POOL: dict[str, Any] = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}


def _pool(storage: ScalarType, kind: Callable[..., np.ndarray]) -> Case:
    def real(x: np.ndarray) -> np.ndarray:
        n, h, w, c = x.shape
        return kind(x.reshape(n, h // 2, 2, w // 2, 2, c), (2, 4))

    return _one(storage, real, **_POOL, fused_activation_function="NONE")


def _resize() -> Case:
    case = _one(i8, lambda x: x.repeat(2, 1).repeat(2, 2))
    case.operands = [*case.operands, const(np.asarray([12, 12]), i32, "size")]
    case.attributes = {"align_corners": False, "half_pixel_centers": False}
    return case


def _cast(source: Any, target: Any, real: Callable[..., np.ndarray]) -> Case:
    return Case([argument((3, 80), source, "x")], [argument((3, 80), target, "y")], lambda x: [real(x)], {}, 1)


CASES: dict[str, Case] = {
    **{f"maximum {s}": _two(s, np.maximum) for s in (i8, ui8, i16)},
    **{f"minimum {s}": _two(s, np.minimum) for s in (i8, ui8, i16)},
    **{f"{name} {s}": _select(s) for s in (i8, ui8, i16) for name in ("select", "select_v2")},
    **{f"split {s}": _split(s) for s in (i8, ui8, i16)},
    "concatenation i16": _concatenation(),
    **{f"transpose {s}": _transpose(s) for s in (i8, ui8, i16)},
    **{f"neg {s}": _one(s, np.negative, version=1) for s in (i8, i16)},
    **{f"average_pool_2d {s}": _pool(s, np.mean) for s in (i8, ui8, i16)},
    **{f"max_pool_2d {s}": _pool(s, np.max) for s in (i8, ui8, i16)},
    "resize_nearest_neighbor i8": _resize(),
    "cast i8 to f32": _cast(_q(i8, 0.05, 3), f32, lambda x: x),
    "cast i16 to i32": _cast(_q(i16, 0.05, 3), i32, np.trunc),
    "cast f32 to i8": _cast(f32, _q(i8, 0.05, 3), lambda x: x),
    "cast i8 to i16": _cast(_q(i8, 0.05, 3), _q(i16, 0.0003), lambda x: x),
}


def _inputs(values: Sequence[Value]) -> list[list[np.ndarray]]:
    """`edge_inputs`, and random conditions."""
    others = iter(zip(*edge_inputs([v for v in values if v.type.storage is not i1]), strict=True))
    rng = np.random.default_rng(0)
    conditions = [rng.random((5, *(d or 1 for d in v.type.shape or ()))) < 0.5 for v in values if v.type.storage is i1]
    flags = iter(conditions)
    return [
        list(arrays) for arrays in zip(*(next(flags if v.type.storage is i1 else others) for v in values), strict=True)
    ]


def _values(value: Value, stored: np.ndarray) -> np.ndarray:
    """What stored integers stand for."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        return stored
    return (stored.astype(np.float64) - element.zero_point) * element.scale


def _distance(value: Value, real: np.ndarray, got: np.ndarray) -> float:
    """The largest distance of stored values from the real ones, rounded, in counts."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        return float(np.abs(got - real).max())
    wanted = np.round(real / element.scale) + element.zero_point
    return float(np.abs(got - np.clip(wanted, element.storage_min, element.storage_max)).max())


@pytest.mark.parametrize("text", CASES)
def test_interpreter_semantics_reproduce_the_kernel_and_warn_once(text: str) -> None:
    case = CASES[text]
    model = case.model(text.split()[0])
    batches = _inputs(case.inputs)
    conversion = tflq.convert(model)
    assert len(conversion.report.warnings) == 1
    for want, got in zip(interpret(model, batches), interpret(conversion.data, batches), strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("text", CASES)
def test_real_semantics_honour_the_parameters(text: str) -> None:
    case = CASES[text]
    conversion = tflq.convert(case.model(text.split()[0]), semantics="real")
    assert conversion.report.warnings == []
    batches = _inputs(case.inputs)
    for arrays, got in zip(batches, interpret(conversion.data, batches), strict=True):
        wanted = case.real(*(_values(v, a) for v, a in zip(case.inputs, arrays, strict=True)))
        for result, want, g in zip(case.results, wanted, got, strict=True):
            assert _distance(result, want, g) <= 1


@pytest.mark.parametrize("storage", [i8, i16])
@pytest.mark.parametrize(("name", "sign"), [("floor_div", 1), ("floor_mod", -1)])
def test_floor_division_of_real_values(storage: ScalarType, name: str, sign: int) -> None:
    case = _two(storage, np.floor_divide if name == "floor_div" else np.mod)
    model = case.model(name)
    assert len(tflq.convert(model).report.warnings) == 1
    conversion = tflq.convert(model, semantics="real")
    assert conversion.report.warnings == []
    stored = _inputs(case.inputs)[0]
    stored[1][stored[1] == case.inputs[1].type.element.zero_point] += 1  # type: ignore[union-attr]
    x, y = (_values(v, a).astype(np.float32) for v, a in zip(case.inputs, stored, strict=True))
    wanted = np.floor(x / y) if name == "floor_div" else np.mod(x, y)
    (got,) = interpret(conversion.data, [stored])[0]
    assert _distance(case.results[0], wanted, got) <= 1


def test_floor_division_by_zero_saturates() -> None:
    dtype, one = np.dtype(np.int8), (1.0, 0)
    quotients, remainders = floor_quotients(dtype, one, one, one), floor_remainders(dtype, one, one, one)
    assert quotients[128 + 5, 128] == 127
    assert quotients[128 - 5, 128] == -128
    assert quotients[128, 128] == 0
    assert (remainders[:, 128] == 0).all()
    assert quotients[128 - 7, 128 + 2] == -4
    assert remainders[128 - 7, 128 + 2] == 1


@pytest.mark.parametrize("storage", [i8, i16])
def test_sum_is_what_the_parameters_say(storage: ScalarType) -> None:
    x, y = argument((4, 9), _q(storage, 0.05, 3), "x"), argument((4,), _q(storage, 0.3, -9), "y")
    model = one_op("tfl.sum", [x, const(np.asarray([1]), i32, "axis")], [y], {"keep_dims": False}, 2)
    assert len(tflq.convert(model).report.warnings) == 1
    conversion = tflq.convert(model, semantics="real")
    assert conversion.report.warnings == []
    for arrays in _inputs([x]):
        (got,) = interpret(conversion.data, [arrays])[0]
        assert _distance(y, _values(x, arrays[0]).sum(1), got) <= 1
