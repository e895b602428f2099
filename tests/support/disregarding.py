"""Operators whose reference kernels disregard quantization parameters: models of one with parameters that matter, and
what it computes of real values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.harness import argument, const, edge_inputs, one_op
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, f32, i1, i8, i16, i32, ui8

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


def parameters(storage: ScalarType, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    zero_point += 128 if storage is ui8 else 0
    return UniformQuantizedType.of(storage, float(np.float32(scale)), 0 if storage is i16 else zero_point)


def two(storage: ScalarType, real: Callable[..., np.ndarray], **attributes: Any) -> Case:
    """Two operands and a result, each with parameters of its own."""
    operands = [
        argument((3, 40), parameters(storage, 0.05, 3), "x"),
        argument((3, 40), parameters(storage, 0.03, -7), "y"),
    ]
    return Case(
        operands, [argument((3, 40), parameters(storage, 0.061, 11), "z")], lambda x, y: [real(x, y)], attributes
    )


def _one(
    storage: ScalarType,
    real: Callable[..., np.ndarray],
    shape: tuple[int, ...] = (2, 6, 6, 4),
    version: int = 2,
    **attributes: Any,
) -> Case:
    out = real(np.zeros(shape)).shape
    x, y = argument(shape, parameters(storage, 0.05, 3), "x"), argument(out, parameters(storage, 0.071, -9), "y")
    return Case([x], [y], lambda x: [real(x)], attributes, version)


def _select(storage: ScalarType) -> Case:
    case = two(storage, np.maximum)
    case.operands = [argument((3, 40), i1, "c"), *case.operands]
    case.real, case.version = lambda c, x, y: [np.where(c, x, y)], 1
    return case


def _split(storage: ScalarType) -> Case:
    parts = [
        argument((3, 20), parameters(storage, s, z), n)
        for n, s, z in (("a", 0.061, 11), ("b", 0.05, 3), ("c", 0.04, 0))
    ]
    axis = const(np.asarray(1), i32, "axis")
    return Case(
        [axis, argument((3, 60), parameters(storage, 0.05, 3), "x")],
        parts,
        lambda x: np.split(x, 3, 1),
        {"num_splits": 3},
    )


def _concatenation() -> Case:
    operands = [argument((3, 20), parameters(i16, s), n) for n, s in (("a", 0.0061), ("b", 0.005))]
    return Case(
        operands,
        [argument((3, 40), parameters(i16, 0.007), "y")],
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
    **{f"maximum {s}": two(s, np.maximum) for s in (i8, ui8, i16)},
    **{f"minimum {s}": two(s, np.minimum) for s in (i8, ui8, i16)},
    **{f"{name} {s}": _select(s) for s in (i8, ui8, i16) for name in ("select", "select_v2")},
    **{f"split {s}": _split(s) for s in (i8, ui8, i16)},
    "concatenation i16": _concatenation(),
    **{f"transpose {s}": _transpose(s) for s in (i8, ui8, i16)},
    **{f"neg {s}": _one(s, np.negative, version=1) for s in (i8, i16)},
    **{f"average_pool_2d {s}": _pool(s, np.mean) for s in (i8, ui8, i16)},
    **{f"max_pool_2d {s}": _pool(s, np.max) for s in (i8, ui8, i16)},
    "resize_nearest_neighbor i8": _resize(),
    "cast i8 to f32": _cast(parameters(i8, 0.05, 3), f32, lambda x: x),
    "cast i16 to i32": _cast(parameters(i16, 0.05, 3), i32, np.trunc),
    "cast f32 to i8": _cast(f32, parameters(i8, 0.05, 3), lambda x: x),
    "cast i8 to i16": _cast(parameters(i8, 0.05, 3), parameters(i16, 0.0003), lambda x: x),
}


def inputs_of(values: Sequence[Value]) -> list[list[np.ndarray]]:
    """`edge_inputs`, and random conditions."""
    others = iter(zip(*edge_inputs([v for v in values if v.type.storage is not i1]), strict=True))
    rng = np.random.default_rng(0)
    conditions = [rng.random((5, *(d or 1 for d in v.type.shape or ()))) < 0.5 for v in values if v.type.storage is i1]
    flags = iter(conditions)
    return [
        list(arrays) for arrays in zip(*(next(flags if v.type.storage is i1 else others) for v in values), strict=True)
    ]


def values_of(value: Value, stored: np.ndarray) -> np.ndarray:
    """What stored integers stand for."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        return stored
    return (stored.astype(np.float64) - element.zero_point) * element.scale


def distance(value: Value, real: np.ndarray, got: np.ndarray) -> float:
    """The largest distance of stored values from the real ones, rounded, in counts."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        return float(np.abs(got - real).max())
    wanted = np.round(real / element.scale) + element.zero_point
    return float(np.abs(got - np.clip(wanted, element.storage_min, element.storage_max)).max())
