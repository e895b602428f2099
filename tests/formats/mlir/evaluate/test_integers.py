"""Integer arithmetic of arith and math against Python's integers: all pairs of small widths, random ones of large."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.core_ops import one

from tflq.ir.types import named_scalar

WIDTHS = [1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 63, 64]


def signed(n: int, bits: int) -> int:
    return (n + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def unsigned(n: int, bits: int) -> int:
    return n % (1 << bits)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


Reference = Callable[[int, int, int], int]

WRAPPING: dict[str, Reference] = {
    "arith.addi": lambda a, b, _: a + b,
    "arith.subi": lambda a, b, _: a - b,
    "arith.muli": lambda a, b, _: a * b,
    "arith.andi": lambda a, b, _: a & b,
    "arith.ori": lambda a, b, _: a | b,
    "arith.xori": lambda a, b, _: a ^ b,
    "arith.maxsi": lambda a, b, _: max(a, b),
    "arith.minsi": lambda a, b, _: min(a, b),
    "arith.maxui": lambda a, b, n: max(unsigned(a, n), unsigned(b, n)),
    "arith.minui": lambda a, b, n: min(unsigned(a, n), unsigned(b, n)),
}
DIVIDING: dict[str, Reference] = {
    "arith.divsi": lambda a, b, _: truncated(a, b),
    "arith.divui": lambda a, b, n: unsigned(a, n) // unsigned(b, n),
    "arith.ceildivsi": lambda a, b, _: -(-a // b),
    "arith.ceildivui": lambda a, b, n: -(-unsigned(a, n) // unsigned(b, n)),
    "arith.floordivsi": lambda a, b, _: a // b,
    "arith.remsi": lambda a, b, _: a - truncated(a, b) * b,
    "arith.remui": lambda a, b, n: unsigned(a, n) % unsigned(b, n),
}
SHIFTING: dict[str, Reference] = {
    "arith.shli": lambda a, b, _: a << b,
    "arith.shrsi": lambda a, b, _: a >> b,
    "arith.shrui": lambda a, b, n: unsigned(a, n) >> b,
}
OF_ONE: dict[str, Callable[[int, int], int]] = {
    "math.absi": lambda a, _: abs(a),
    "math.ctpop": lambda a, n: unsigned(a, n).bit_count(),
    "math.ctlz": lambda a, n: n - unsigned(a, n).bit_length(),
    "math.cttz": lambda a, n: n if a == 0 else (a & -a).bit_length() - 1,
}


def pairs(bits: int) -> list[tuple[int, int]]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if bits <= 5:
        return [(a, b) for a in range(low, high + 1) for b in range(low, high + 1)]
    rng = np.random.default_rng(bits)
    some = [signed(int(n), bits) for n in rng.integers(-(1 << 63), (1 << 63) - 1, 40)]
    ends = [low, low + 1, -3, -2, -1, 0, 1, 2, 3, high - 1, high]
    return [(a, b) for a in (*some, *ends) for b in (*some, *ends)]


def held(numbers: list[int], bits: int) -> np.ndarray:
    scalar = named_scalar(f"i{bits}")
    assert scalar is not None
    return np.array([n % 2 == 1 for n in numbers]) if bits == 1 else np.array(numbers, scalar.dtype)


def stored(n: int, bits: int) -> int:
    """As Python sees what an array holds: i1 is 0 or 1."""
    return unsigned(n, 1) if bits == 1 else signed(n, bits)


def check(name: str, reference: Reference, given: list[tuple[int, int]], bits: int) -> None:
    kind = f"i{bits}"
    made = one(name, [held([p[0] for p in given], bits), held([p[1] for p in given], bits)], [kind, kind], [kind])
    assert made.astype(object).tolist() == [stored(reference(a, b, bits), bits) for a, b in given], name


@pytest.mark.parametrize("bits", WIDTHS)
def test_sums_products_and_bits_are_modulo_the_width(bits: int) -> None:
    for name, reference in WRAPPING.items():
        check(name, reference, pairs(bits), bits)


@pytest.mark.parametrize("bits", WIDTHS)
def test_quotients_and_remainders(bits: int) -> None:
    low = -(1 << (bits - 1))
    defined = [(a, b) for a, b in pairs(bits) if b and not (a == low and b == -1)]
    for name, reference in DIVIDING.items():
        check(name, reference, defined, bits)


@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts_by_less_than_the_width(bits: int) -> None:
    defined = [(a, b % bits) for a, b in pairs(bits)]
    defined = [(a, b) for a, b in defined if signed(b, bits) == b] or [(0, 0)]
    for name, reference in SHIFTING.items():
        check(name, reference, defined, bits)


@pytest.mark.parametrize("bits", WIDTHS)
def test_functions_of_one_integer(bits: int) -> None:
    numbers = sorted({a for a, _ in pairs(bits)})
    for name, reference in OF_ONE.items():
        made = one(name, [held(numbers, bits)], [f"i{bits}"], [f"i{bits}"])
        assert made.astype(object).tolist() == [stored(reference(a, bits), bits) for a in numbers], name


@pytest.mark.parametrize("bits", WIDTHS)
def test_results_of_twice_the_width(bits: int) -> None:
    kind, given = f"i{bits}", pairs(bits)
    arrays = [held([p[0] for p in given], bits), held([p[1] for p in given], bits)]
    total, overflow = one("arith.addui_extended", arrays, [kind, kind], [kind, "i1"])
    for (a, b), t, o in zip(given, total.tolist(), overflow.tolist(), strict=True):
        whole = unsigned(a, bits) + unsigned(b, bits)
        assert (t, o) == (stored(whole, bits), whole >= 1 << bits)
    for name, view in (("arith.mulsi_extended", signed), ("arith.mului_extended", unsigned)):
        low, high = one(name, arrays, [kind, kind], [kind, kind])
        wanted = [view(a, bits) * view(b, bits) for a, b in given]
        assert low.astype(object).tolist() == [stored(n, bits) for n in wanted], name
        assert high.astype(object).tolist() == [stored(n >> bits, bits) for n in wanted], name


def test_powers_wrap_and_negative_ones_are_truncated() -> None:
    given = [(3, 5), (-2, 7), (-2, 8), (1, -4), (-1, -3), (-1, -4), (5, -1), (0, 0)]
    made = one("math.ipowi", [held([a for a, _ in given], 8), held([b for _, b in given], 8)], ["i8", "i8"], ["i8"])
    assert made.tolist() == [signed(3**5, 8), -128, 0, 1, -1, 1, 0, 1]


@pytest.mark.parametrize("name", DIVIDING)
def test_a_divisor_of_0_is_an_error(name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        one(name, [held([1, 2], 8), held([1, 0], 8)], ["i8", "i8"], ["i8"])


@pytest.mark.parametrize("name", ["arith.divsi", "arith.floordivsi", "arith.ceildivsi"])
def test_a_quotient_that_overflows_is_an_error(name: str) -> None:
    with pytest.raises(OverflowError):
        one(name, [held([-8], 4), held([-1], 4)], ["i4", "i4"], ["i4"])
    assert one("arith.remsi", [held([-8], 4), held([-1], 4)], ["i4", "i4"], ["i4"]).tolist() == [0]


def test_comparisons_by_sign_and_without() -> None:
    from tflq.formats.mlir.dialects.arith import COMPARE_INTEGER

    for bits in (1, 3, 8, 64):
        given = pairs(bits)
        arrays = [held([p[0] for p in given], bits), held([p[1] for p in given], bits)]
        for predicate, word in enumerate(COMPARE_INTEGER):
            view = unsigned if word[0] == "u" else signed
            test = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[word[-2:]]
            made = one("arith.cmpi", arrays, [f"i{bits}"] * 2, ["i1"], predicate=predicate)
            wanted = [_compared(view(a, bits), view(b, bits), test) for a, b in given]
            assert made.tolist() == wanted, word


def _compared(a: int, b: int, test: str) -> bool:
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[test]
