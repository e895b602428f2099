"""lower-rounding: a `tosa.rescale` that says how it rounds becomes ops that round so, on int32 only.

    v * multiplier   in five limbs of 15 bits, the last one signed; v and the multiplier have three
    whole            the limbs from bit `shift` on, put together
    up               0 or 1, as the half bit and the bits below it say (`numerics/fixed_point.py`)

No step leaves int32, so TFLite's kernels and TOSA's operators compute the same. Where TOSA takes the operand, half_up
is RESCALE with one rounding.
"""

from __future__ import annotations

from functools import reduce
from typing import ClassVar, TypeGuard

import numpy as np

from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.builder import Builder
from tflq.dialects.tosa.elementwise import BitwiseOr
from tflq.dialects.tosa.movement import Rescale
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import replace_result, rewrite_ops
from tflq.ir.types import i32
from tflq.numerics.fixed_point import LIMB, limbs
from tflq.transforms.pass_manager import Pass, PassResult

_MASK = (1 << LIMB) - 1


class LowerRounding(Pass):
    """Lowers every tosa.rescale with a `rounding`. UnsupportedError for 48 bits, and for a result that leaves int32."""

    name: ClassVar[str] = "lower-rounding"
    runs_on: ClassVar[tuple[type, ...]] = (Rescale,)

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: rewrite_ops(function, _lowered))


def _lowered(op: Op) -> list[Op] | None:
    if not _has_rounding(op):
        return None
    b = Builder()
    b.location = op.location
    replace_result(_half_up(b, op) if _is_single(op) else _rounded(b, op), op.result)
    return b.ops


def _has_rounding(op: Op) -> TypeGuard[Rescale]:
    """Whether an op says how it rounds."""
    return isinstance(op, Rescale) and op.rounding is not None


def _is_single(op: Rescale) -> bool:
    """Whether RESCALE with one rounding computes it, and TOSA takes the operand: |v| at most 2^(shift - 1)."""
    within = _reach(op) < 1 << max(int(op.shift.min()) - 1, 0)
    return op.rounding == "half_up" and (within or op.input.type.storage.bits > 32)


def _half_up(b: Builder, op: Rescale) -> Value:
    attributes = {k: v for k, v in op.attributes.items() if k != "rounding"}
    return b.emit(Rescale, [op.input], op.output.type, **attributes | {"rounding_mode": "SINGLE_ROUND"})


def _rounded(b: Builder, op: Rescale) -> Value:
    to, x = op.output.type.storage, op.input
    multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
    if x.type.storage.bits > 32:
        what = f"RESCALE of 48 bits has no {op.rounding}, only half_up"
        raise UnsupportedError(Reason.at(op.location, what, value=op.rounding, remedy="use half_up"))
    v = b.cast(x, i32)
    if op.input_zp:
        v = b.sub(v, op.input_zp)
    low, high = to.minimum - op.output_zp, to.maximum - op.output_zp
    v = _limited(b, v, _reach(op), multiplier, shift, max(-low, high), op)
    whole, up = _parts(b, v, multiplier, shift, str(op.rounding))
    total = b.clamp(b.add(whole, up), low, high)
    if op.output_zp:
        total = b.add(total, op.output_zp)
    return b.cast(total, to) if to != i32 else b.identity(total)


def _reach(op: Rescale) -> int:
    """The largest magnitude of the operand less its zero point."""
    ends = op.input_range or op.input.type.storage.less(op.input_zp)
    return max(-int(ends[0]), int(ends[1]))


def _limited(
    b: Builder, v: Value, reach: int, multiplier: np.ndarray, shift: np.ndarray, bound: int, op: Rescale
) -> Value:
    """v, limited to the first values whose product is beyond `bound`, so that the quotient fits int32."""
    beyond = [((bound + 2) << int(s)) // max(abs(int(m)), 1) + 1 for m, s in zip(multiplier, shift, strict=True)]
    limit = np.asarray([min(n, 1 << 31) for n in beyond], np.int64)
    largest = max(min(reach, n) * abs(int(m)) >> int(s) for n, m, s in zip(beyond, multiplier, shift, strict=True))
    if largest >= (1 << 31) - 1:
        what = f"RESCALE that rounds {op.rounding} leaves int32"
        raise UnsupportedError(Reason.at(op.location, what, value=op.rounding, remedy="use half_up"))
    if (limit < reach).any():
        v = b.minimum(b.maximum(v, _row(b, -limit)), _row(b, np.minimum(limit, (1 << 31) - 1)))
    return v


def _parts(b: Builder, v: Value, multiplier: np.ndarray, shift: np.ndarray, rounding: str) -> tuple[Value, Value]:
    """The product's quotient, rounded down, and what must be added to it."""
    product = _product(b, v, multiplier)
    place = [LIMB * i - shift for i in range(len(product))]  # of each limb in the quotient
    fields = [_placed(b, limb, at) for limb, at in zip(product, place, strict=True)]
    whole = _joined(b, [f for f in fields if f is not None])
    half = below = b.constant(0)
    for limb, at in zip(product, place, strict=True):
        first = -at - 1  # so many bits of the limb are below the half bit, which is in the limb if that is 0 to 14
        holds = (first >= 0) & (first < LIMB)
        if holds.any():
            bit = b.bitwise_and(_shifted(b, limb, np.clip(first, 0, 31)), 1)
            half = b.add(half, bit if holds.all() else b.mul(bit, _row(b, holds.astype(np.int64))))
        if (first > 0).any():
            masks = (np.int64(1) << np.clip(first, 0, LIMB)) - 1
            below = b.add(below, b.bitwise_and(limb, _row(b, masks)))
    some = b.cast(b.greater(below, 0), i32)
    sign = b.cast(b.greater(0, product[-1]), i32)
    if rounding == "half_up":
        return whole, half
    if rounding == "half_away":
        return whole, b.mul(half, b.maximum(some, b.sub(1, sign)))
    if rounding == "half_even":
        odd = b.bitwise_and(whole, 1)
        return whole, b.mul(half, b.maximum(some, odd))
    return whole, b.mul(sign, b.maximum(half, some))


def _product(b: Builder, v: Value, multiplier: np.ndarray) -> list[Value]:
    """Five limbs of v * multiplier."""
    low, middle, high = limbs(multiplier)
    parts = [b.bitwise_and(v, _MASK), b.bitwise_and(_shifted(b, v, LIMB), _MASK), _shifted(b, v, 2 * LIMB)]
    factors = [_row(b, n) for n in (low, middle, high)]
    result: list[Value] = []
    carry: Value | None = None
    for i in range(5):
        terms = [b.mul(parts[j], factors[i - j]) for j in range(3) if 0 <= i - j < 3]
        total = reduce(b.add, terms if carry is None else [*terms, carry])
        if i == 4:
            return [*result, total]
        result.append(b.bitwise_and(total, _MASK))
        carry = _shifted(b, total, LIMB)
    raise AssertionError


def _placed(b: Builder, limb: Value, at: np.ndarray) -> Value | None:
    """A limb at its place in the quotient, in the channels where it reaches into the 32 bits; None if in no channel."""
    within = (at > -32) & (at < 32)
    if not within.any():
        return None
    if (at < 0).any():
        limb = _shifted(b, limb, np.clip(-at, 0, 31))
    if (at > 0).any():
        limb = b.logical_left_shift(limb, _row(b, np.clip(at, 0, 31)))
    return limb if within.all() else b.mul(limb, _row(b, within.astype(np.int64)))


def _joined(b: Builder, fields: list[Value]) -> Value:
    """Fields of bits that do not overlap, as one."""
    return reduce(lambda x, y: b.emit(BitwiseOr, [x, y]), fields)


def _shifted(b: Builder, x: Value, amount: int | np.ndarray) -> Value:
    return b.arithmetic_right_shift(x, _row(b, np.atleast_1d(np.asarray(amount))))


def _row(b: Builder, values: np.ndarray) -> Value:
    """A constant int32 per index of the last dim; a scalar if all are the same."""
    return b.constant(values[0] if (values == values[0]).all() else values)
