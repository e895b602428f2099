"""Float arithmetic of arith and math against exact fractions, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from support.core_ops import one

from tflq.formats.mlir.dialects.arith import COMPARE_FLOAT
from tflq.numerics.signless import bfloat16_bits, bfloat16_values

DIGITS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}
LARGEST = {
    "f16": 65504.0,
    "bf16": float(bfloat16_values(np.asarray(0x7F7F, np.uint16))),
    "f32": float(np.finfo("f4").max),
}
TYPES = list(DIGITS)
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def rounded(x: Fraction, kind: str) -> float:
    """To nearest, ties to even; infinite beyond."""
    digits, least = DIGITS[kind]
    if x == 0:
        return 0.0
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length() - digits
    while abs(x) >= Fraction(2) ** (exponent + digits):
        exponent += 1
    while abs(x) < Fraction(2) ** (exponent + digits - 1):
        exponent -= 1
    step = Fraction(2) ** max(exponent, least)
    made = round(x / step) * step
    largest = LARGEST.get(kind, float(np.finfo("f8").max))
    return float(made) if abs(made) <= Fraction(largest) else (float("inf") if x > 0 else -float("inf"))


def held(numbers: np.ndarray, kind: str) -> np.ndarray:
    return bfloat16_bits(numbers) if kind == "bf16" else np.asarray(numbers).astype(DTYPES[kind])


def seen(array: np.ndarray, kind: str) -> np.ndarray:
    return (bfloat16_values(array) if kind == "bf16" else array).astype(np.float64)


def some(kind: str, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    wide = rng.normal(size=count) * 2.0 ** rng.integers(-6, 7, count)
    whole = rng.integers(-9, 9, count) / 2
    return held(np.where(rng.random(count) < 0.3, whole, wide), kind)


EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.remf": lambda a, b: a - b * int(a / b),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", EXACT)
def test_arithmetic_is_rounded_once(name: str, kind: str) -> None:
    a, b = some(kind, 400, 0), some(kind, 400, 1)
    keep = seen(b, kind) != 0
    a, b = a[keep], b[keep]
    with np.errstate(all="raise"):
        made = seen(one(name, [a, b], [kind, kind], [kind]), kind)
    for x, y, found in zip(seen(a, kind), seen(b, kind), made, strict=True):
        assert found == rounded(EXACT[name](Fraction(x), Fraction(y)), kind)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_fma_is_rounded_once(kind: str) -> None:
    a, b, c = (some(kind, 600, seed) for seed in (2, 3, 4))
    near = held(-seen(a, kind) * seen(b, kind) * (1 + 2.0**-20), kind)  # sums that cancel
    c = np.where(np.arange(600) % 2 == 0, c, near)
    made = seen(one("math.fma", [a, b, c], [kind] * 3, [kind]), kind)
    for x, y, z, found in zip(seen(a, kind), seen(b, kind), seen(c, kind), made, strict=True):
        assert found == rounded(Fraction(x) * Fraction(y) + Fraction(z), kind)


def test_fma_at_ties_that_what_is_lost_decides() -> None:
    one_ulp = np.float32(2.0**-23)
    a, b = np.array([1 + one_ulp], np.float32), np.array([1 + one_ulp / 2 + one_ulp / 2], np.float32)
    for c in (2.0**-24, 2.0**-24 + 2.0**-47, -(2.0**-24), 2.0**-80, -(2.0**-80)):
        made = one("math.fma", [a, b, np.array([c], np.float32)], ["f32"] * 3, ["f32"])
        wanted = rounded(Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(np.float32(c))), "f32")
        assert float(made[0]) == wanted


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]


def special() -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    return a.astype(np.float32).reshape(-1), b.astype(np.float32).reshape(-1)


def test_maximum_and_minimum_of_zeros_and_nan() -> None:
    a, b = special()
    for name, pick in (("arith.maximumf", max), ("arith.minimumf", min)):
        made = one(name, [a, b], ["f32", "f32"], ["f32"])
        for x, y, found in zip(a.tolist(), b.tolist(), made.tolist(), strict=True):
            if np.isnan(x) or np.isnan(y):
                assert np.isnan(found)
            else:
                wanted = pick((x, np.copysign(1, x)), (y, np.copysign(1, y)))
                assert (found, np.copysign(1, found)) == wanted
    for name, pick in (("arith.maxnumf", max), ("arith.minnumf", min)):
        made = one(name, [a, b], ["f32", "f32"], ["f32"])
        for x, y, found in zip(a.tolist(), b.tolist(), made.tolist(), strict=True):
            numbers = [v for v in (x, y) if not np.isnan(v)]
            assert found == pick(numbers) if numbers else np.isnan(found)


def test_remainders_of_what_is_not_finite() -> None:
    made = one(
        "arith.remf",
        [np.array([1, np.inf, 5, -4], np.float32), np.array([0, 1, np.inf, 2], np.float32)],
        ["f32", "f32"],
        ["f32"],
    )
    assert np.isnan(made[:2]).all()
    assert made[2] == 5
    assert made[3] == 0
    assert np.signbit(made[3])


def test_every_comparison_of_special_numbers() -> None:
    a, b = special()
    tests: dict[str, Callable[[float, float], bool]] = {
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
    }
    for predicate, word in enumerate(COMPARE_FLOAT):
        made = one("arith.cmpf", [a, b], ["f32", "f32"], ["i1"], predicate=predicate)
        for x, y, found in zip(a.tolist(), b.tolist(), made.tolist(), strict=True):
            nan = bool(np.isnan(x) or np.isnan(y))
            if word in ("true", "false"):
                wanted = word == "true"
            elif word in ("ord", "uno"):
                wanted = nan == (word == "uno")
            else:
                wanted = (word[0] == "u") if nan else tests[word[1:]](x, y)
            assert found is wanted, (word, x, y)


ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "math.floor": lambda x: x.__floor__(),
    "math.ceil": lambda x: x.__ceil__(),
    "math.trunc": int,
    "math.roundeven": round,
    "math.round": lambda x: int(x + Fraction(1, 2)) if x >= 0 else -int(-x + Fraction(1, 2)),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings_to_whole_numbers_keep_the_sign(name: str, kind: str) -> None:
    x = np.concatenate([held(np.arange(-10, 11) / 4, kind), some(kind, 200, 5)])
    made = seen(one(name, [x], [kind], [kind]), kind)
    for given, found in zip(seen(x, kind), made, strict=True):
        assert found == ROUNDINGS[name](Fraction(given))
        assert np.signbit(found) == np.signbit(given)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("bits", [1, 5, 8, 32, 64])
def test_conversions_between_integers_and_floats(bits: int, kind: str) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    rng = np.random.default_rng(bits)
    numbers = [
        *range(max(low, -16), min(high, 15) + 1),
        low,
        high,
        *rng.integers(low, high, 60, endpoint=True).tolist(),
    ]
    numbers += [n for n in (2**60 + 2**52, 2**60 + 2**52 + 1, 2**55 + 2**47 + 1) if n <= high]
    dtype = next(f"int{held}" for held in (8, 16, 32, 64) if bits <= held)
    array = np.array([n != 0 for n in numbers]) if bits == 1 else np.array(numbers, dtype)
    for name, shift in (("arith.sitofp", 0), ("arith.uitofp", 1 << bits)):
        made = seen(one(name, [array], [f"i{bits}"], [kind]), kind)
        wanted = [rounded(Fraction(n + shift if n < 0 else n), kind) for n in numbers]
        assert made.tolist() == wanted, name
    halves = held(np.array([-2.5, -1.0, -0.5, 0.5, 1.5, 7.75]), kind)
    whole = [int(np.trunc(v)) for v in seen(halves, kind)]
    signed = one("arith.fptosi", [halves], [kind], [f"i{bits}"]).astype(int).tolist()
    unsigned = one("arith.fptoui", [halves], [kind], [f"i{bits}"]).astype(np.int64).tolist()
    clipped = [min(max(n, low), high) for n in whole]
    assert signed == [n % 2 for n in clipped] if bits == 1 else signed == clipped
    inside = [min(max(n, 0), (1 << bits) - 1) for n in whole]
    assert [n % (1 << bits) for n in unsigned] == inside


def test_what_no_integer_holds_saturates_and_nan_is_0() -> None:
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    assert one("arith.fptosi", [x], ["f32"], ["i64"]).tolist() == [2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 0]
    assert one("arith.fptoui", [x], ["f32"], ["i8"]).view(np.uint8).tolist() == [255, 0, 255, 0, 0]


def test_conversions_between_floats_round_once() -> None:
    x = np.array([1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8, 65520.0, 1e-8])
    for kind in ("bf16", "f16", "f32"):
        made = seen(one("arith.truncf", [x], ["f64"], [kind]), kind)
        assert made.tolist() == [rounded(Fraction(v), kind) for v in x.tolist()]
        x = x[np.abs(x) < 6e4]
        back = one("arith.extf", [held(x, kind)], [kind], ["f64"])
        assert back.tolist() == seen(held(x, kind), kind).tolist()


def test_bits_as_another_type() -> None:
    assert one("arith.bitcast", [np.array([1.0], np.float32)], ["f32"], ["i32"]).tolist() == [0x3F800000]
    assert one("arith.bitcast", [np.array([0x3F80], np.int16)], ["i16"], ["bf16"]).tolist() == [0x3F80]


@pytest.mark.parametrize("kind", TYPES)
def test_functions_are_within_half_a_step(kind: str) -> None:
    """Of float64's own, which is exact enough for all but its own type."""
    x = np.abs(some(kind, 100, 7)) if kind != "bf16" else some(kind, 100, 7) & np.uint16(0x7FFF)
    wide = seen(x, kind)
    for name, function in (("exp", np.exp), ("tanh", np.tanh), ("sqrt", np.sqrt), ("log1p", np.log1p)):
        made = one(f"math.{name}", [x], [kind], [kind])
        with np.errstate(over="ignore"):
            assert np.array_equal(seen(made, kind), seen(held(function(wide), kind), kind))
    assert seen(one("math.isnan", [x], [kind], ["i1"]), "f64").sum() == 0


def test_normal_numbers_of_each_type() -> None:
    for kind, tiny in (("f16", 2.0**-14), ("bf16", 2.0**-126), ("f32", 2.0**-126)):
        x = held(np.array([tiny, tiny / 2, 0.0, np.inf, np.nan, -1.0]), kind)
        made = one("math.isnormal", [x], [kind], ["i1"])
        assert made.tolist() == [True, False, False, False, False, True]
