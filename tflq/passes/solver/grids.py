"""Grids: how reals become the stored integers of a quantized type, and back, and what is the same after both."""

from __future__ import annotations

import numpy as np

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.tfl.arithmetic import Quantize
from tflq.dialects.traits import Surrounded
from tflq.evaluate.registry import evaluate_op
from tflq.ir.core import Op, Value
from tflq.ir.types import ElementType, ScalarType, TensorType, UniformQuantizedType
from tflq.light import dataclass


@dataclass(frozen=True, slots=True)
class Rounding:
    """How reals become stored integers: the cast, its grid and its attributes."""

    kind: type[Operator]
    grid: ElementType
    rounding: str | None = None
    sum_rounding: str | None = None

    @property
    def usual(self) -> bool:
        """Whether it rounds to the nearest, so that what is on the grid stays as it is."""
        return self.sum_rounding is None and self.rounding != "toward_zero"

    def attributes(self) -> dict[str, object]:
        both = {"rounding": self.rounding, "sum_rounding": self.sum_rounding}
        return {key: value for key, value in both.items() if value is not None}

    def of(self, array: np.ndarray, type: TensorType) -> np.ndarray:
        """Stored integers of reals, as the cast computes them."""
        attributes = {"rounding": "half_away"} if self.kind is Quantize else self.attributes()
        op = Op(Qcast.op_name, [Value(type)], [Value(type.with_element(self.grid))], attributes)
        (stored,) = evaluate_op(op, [array]) or [array]
        return stored


def reals_of(array: np.ndarray, type: TensorType, expressed: ScalarType) -> np.ndarray:
    """The reals that stored integers of a quantized type stand for."""
    op = Op(Dcast.op_name, [Value(type)], [Value(type.with_element(expressed))])
    (reals,) = evaluate_op(op, [array]) or [array]
    return reals


def on_grid(array: np.ndarray, grid: UniformQuantizedType) -> np.ndarray:
    """Reals, rounded to a grid."""
    type = TensorType(array.shape, grid.expressed)
    return reals_of(Rounding(Qcast, grid).of(array, type), type.with_element(grid), grid.expressed)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b) and np.array_equal(np.signbit(a), np.signbit(b)))


def surrounds(op: Op, grid: ElementType | None, rounding: Rounding | None = None) -> bool:
    """Whether the op can put around stored integers what stands around the reals: on a grid, or rounded to it."""
    trait = trait_of(op, Surrounded)
    if trait is None or not isinstance(grid, UniformQuantizedType):
        return True
    if trait.attribute is not None:
        if not grid.expressed.numpy or not grid.storage.signed:
            return False
        real = np.asarray(trait.attribute.__get__(op, type(op)), grid.expressed.dtype)
        return rounding is not None or same_bits(on_grid(real, grid), real)
    return grid.zero_point == 0 or (trait.zero_point and grid.storage_min <= grid.zero_point <= grid.storage_max)
