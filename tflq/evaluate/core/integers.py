"""Integer arithmetic of `arith` and `math`, modulo the width of the type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.arith.extended import AddUIExtended, MulSIExtended, MulUIExtended
from tflq.dialects.arith.integers import (
    AddI,
    AndI,
    CeilDivSI,
    CeilDivUI,
    DivSI,
    DivUI,
    FloorDivSI,
    MaxSI,
    MaxUI,
    MinSI,
    MinUI,
    MulI,
    OrI,
    RemSI,
    RemUI,
    ShLI,
    ShRSI,
    ShRUI,
    SubI,
    XOrI,
)
from tflq.dialects.math.integers import AbsI, CtLz, CtPop, CtTz, IPowI
from tflq.evaluate.core.numbers import held_integers, integers, width
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op
from tflq.numerics import signless

__all__: list[str] = []

_Function: TypeAlias = Callable[..., Any]


def _ceil_signed(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    quotient, rest = signless.divided_signed(a, b, bits)
    return quotient + ((rest != 0) & ((rest < 0) == (b < 0)))


def _floor_signed(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    quotient, rest = signless.divided_signed(a, b, bits)
    return quotient - ((rest != 0) & ((rest < 0) != (b < 0)))


def _ceil_unsigned(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    quotient, rest = signless.divided_unsigned(a, b, bits)
    return quotient + (rest != 0)


def _remainder_signed(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """Of the least integer by -1 it is 0, though the quotient overflows."""
    return signless.divided_signed(np.where(b == -1, 0, a), b, bits)[1]


def _of_unsigned(a: np.ndarray, b: np.ndarray, bits: int, *, greater: bool) -> np.ndarray:
    above = signless.unsigned(a, bits) > signless.unsigned(b, bits)
    return np.where(above == greater, a, b)


_FUNCTIONS: Final[dict[type[Op], _Function]] = {
    AddI: np.add,
    SubI: np.subtract,
    MulI: np.multiply,
    AndI: np.bitwise_and,
    OrI: np.bitwise_or,
    XOrI: np.bitwise_xor,
    MaxSI: np.maximum,
    MinSI: np.minimum,
}
"""Of which the low bits do not depend on the width."""

_OF_WIDTH: Final[dict[type[Op], _Function]] = {
    DivSI: lambda a, b, bits: signless.divided_signed(a, b, bits)[0],
    DivUI: lambda a, b, bits: signless.divided_unsigned(a, b, bits)[0],
    CeilDivSI: _ceil_signed,
    CeilDivUI: _ceil_unsigned,
    FloorDivSI: _floor_signed,
    RemSI: _remainder_signed,
    RemUI: lambda a, b, bits: signless.divided_unsigned(a, b, bits)[1],
    ShLI: signless.shifted_left,
    ShRSI: partial(signless.shifted_right, signed=True),
    ShRUI: partial(signless.shifted_right, signed=False),
    MaxUI: partial(_of_unsigned, greater=True),
    MinUI: partial(_of_unsigned, greater=False),
    AbsI: signless.absolute,
    CtLz: signless.leading_zeros,
    CtPop: lambda a, bits: signless.count_ones(signless.unsigned(a, bits)),
    CtTz: signless.trailing_zeros,
    IPowI: signless.powers,
}


@evaluator(*_FUNCTIONS)
def _mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(over="ignore"):
        return held_integers(kind, _FUNCTIONS[type(op)](*(integers(kind, array) for array in arrays)))


@evaluator(*_OF_WIDTH)
def _of_width(op: Op, *arrays: np.ndarray) -> np.ndarray:
    kind = op.result.type
    with np.errstate(over="ignore"):
        return held_integers(kind, _OF_WIDTH[type(op)](*(integers(kind, array) for array in arrays), width(kind)))


@evaluator(AddUIExtended)
def _with_carry(op: AddUIExtended, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    kind = op.sum.type
    with np.errstate(over="ignore"):
        total, overflow = signless.added_unsigned(integers(kind, a), integers(kind, b), width(kind))
    return [held_integers(kind, total), overflow]


@evaluator(MulSIExtended, MulUIExtended)
def _in_two_parts(op: MulSIExtended | MulUIExtended, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    kind = op.low.type
    product = signless.product_signed if isinstance(op, MulSIExtended) else signless.product_unsigned
    with np.errstate(over="ignore"):
        parts = product(integers(kind, a), integers(kind, b), width(kind))
    return [held_integers(kind, part) for part in parts]
