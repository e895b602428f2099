"""Conversions of `arith`. A float that an integer type does not hold (poison: it may be anything) saturates, and NaN is
0, as what `lower-quant-ops` asks of a cast with a rounding."""

from __future__ import annotations

import numpy as np

from tflq.dialects.arith.casts import (
    Bitcast,
    ExtF,
    ExtSI,
    ExtUI,
    FPToSI,
    FPToUI,
    IndexCast,
    IndexCastUI,
    SIToFP,
    TruncF,
    TruncI,
    UIToFP,
)
from tflq.evaluate.core.numbers import floats, held_floats, held_integers, integers, rounded_to_odd, width
from tflq.evaluate.held import held_dtype
from tflq.evaluate.registry import evaluator
from tflq.ir.types import f32, f64
from tflq.numerics.rounding import saturated
from tflq.numerics.signless import unsigned

__all__: list[str] = []


@evaluator(ExtSI, TruncI, IndexCast)
def _by_sign(op: ExtSI | TruncI | IndexCast, x: np.ndarray) -> np.ndarray:
    return held_integers(op.output.type, integers(op.input.type, x))


@evaluator(ExtUI, IndexCastUI)
def _by_zeros(op: ExtUI | IndexCastUI, x: np.ndarray) -> np.ndarray:
    source = op.input.type
    return held_integers(op.output.type, unsigned(integers(source, x), width(source)))


@evaluator(ExtF, TruncF)
def _between_floats(op: ExtF | TruncF, x: np.ndarray) -> np.ndarray:
    if isinstance(op, TruncF) and op.rounding not in (None, 0):
        raise NotImplementedError("arith.truncf is evaluated to nearest, ties to even")
    return held_floats(op.output.type, floats(op.input.type, x))


@evaluator(SIToFP, UIToFP)
def _to_float(op: SIToFP | UIToFP, x: np.ndarray) -> np.ndarray:
    numbers = integers(op.input.type, x)
    if isinstance(op, UIToFP):
        numbers = unsigned(numbers, width(op.input.type))
    if op.output.type.element in (f32, f64):  # which numpy converts to at once
        return numbers.astype(op.output.type.storage.dtype)
    return held_floats(op.output.type, rounded_to_odd(numbers))


@evaluator(FPToSI, FPToUI)
def _to_integer(op: FPToSI | FPToUI, x: np.ndarray) -> np.ndarray:
    kind, bits = op.output.type, width(op.output.type)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if isinstance(op, FPToSI) else (0, (1 << bits) - 1)
    return held_integers(kind, saturated(floats(op.input.type, x), low, high))


@evaluator(Bitcast)
def _bits(op: Bitcast, x: np.ndarray) -> np.ndarray:
    source, target = held_dtype(op.input.type), held_dtype(op.output.type)
    return np.ascontiguousarray(np.asarray(x, source)).view(target).reshape(np.shape(x))
