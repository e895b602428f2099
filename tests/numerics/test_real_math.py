"""Real math on integers: each lowering on all pairs of 8 bits, against a formula in Python's integers, and within one
step of the exact rational."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.core_ops import evaluated

from tflq.formats.mlir.dialects.fxpmath import OPCODES
from tflq.formats.mlir.real_math import LowerRealMath
from tflq.ir.text.parser import parse_module
from tflq.ir.types import UniformQuantizedType
from tflq.ir.verifier import verify
from tflq.numerics.real_math import FUNCTIONS, NoFactor, Steps, combined, power_of_two, product_factors, sum_factors

CHUNKS, SCALES = 8, 25
BINARIES = ("add", "sub", "mul", "div")


def few(cases: Sequence[int]) -> list[Any]:
    """Two of the cases; the others are long."""
    return [case if place < 2 else pytest.param(case, marks=pytest.mark.long) for place, case in enumerate(cases)]


BINARIES = ("add", "sub", "mul", "div")


class Case:
    """A real op on all pairs of stored integers: [256, 1] by [1, 256]."""

    def __init__(self, op: str, types: list[str], attributes: str = "", shapes: tuple[str, ...] = ()) -> None:
        shapes = shapes or ("256x1", "1x256", "256x256")[-len(types) :]
        tensors = [f"tensor<{shape}x{type}>" for shape, type in zip(shapes, types, strict=True)]
        *operands, result = tensors
        names = [f"%{i}" for i in range(len(operands))]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, operands, strict=True))
        call = f'"fxpmath.{op}"({", ".join(names)}) {{{attributes}}} : ({", ".join(operands)}) -> {result}'
        self.text = f"func.func @f({arguments}) -> {result} {{\n  %r = {call}\n  return %r : {result}\n}}"
        self.module = parse_module(self.text)
        verify(self.module)
        function = self.module.functions[0]
        values = [v.type.element for v in (*function.inputs, *function.outputs)]
        self.elements = [e for e in values if isinstance(e, UniformQuantizedType)]
        self.shapes: list[tuple[int, ...]] = [tuple(d or 0 for d in v.type.shape or ()) for v in function.inputs]
        self.stored = [
            np.arange(e.storage.minimum, e.storage.maximum + 1).astype(e.storage.dtype)
            for e in self.elements[:-1]
            if e.storage.bits < 32
        ]

    def lowered(self, *arrays: np.ndarray) -> np.ndarray:
        """What the ops on integers give, as Python's integers."""
        arrays = arrays or tuple(q.reshape(shape) for q, shape in zip(self.stored, self.shapes, strict=True))
        before = evaluated(self.module, *arrays)[0].astype(object)
        module = LowerRealMath().run(self.module).module
        verify(module)
        left = [op.name for op in module.ops() if op.name.startswith("fxpmath.real")]
        assert not left
        made = evaluated(module, *arrays)[0]
        assert made.dtype == self.elements[-1].storage.dtype
        assert (abs(made.astype(object) - before) <= 1).all(), self.text  # the evaluator is the real op
        return made.astype(object)

    def centred(self) -> list[np.ndarray]:
        """Stored integers less the zero points, as Python's."""
        return [
            (q.astype(object) - e.zero_point).reshape(shape)
            for q, e, shape in zip(self.stored, self.elements, self.shapes, strict=False)
        ]


def half_away(numerator: np.ndarray, denominator: int) -> np.ndarray:
    sign = np.where(numerator < 0, -1, 1)
    return (2 * abs(numerator) + denominator) // (2 * denominator) * sign


def by_multiplier(v: np.ndarray, real: float) -> np.ndarray:
    """v times a real number as gemmlowp's fixed point has it, in Python's integers."""
    if power_of_two(real) is not None and power_of_two(real) >= -31:  # type: ignore[operator]
        ratio = Fraction(real)
        return half_away(v * ratio.numerator, ratio.denominator)
    fraction, exponent = math.frexp(real)
    mantissa = math.floor(fraction * 2**31 + 0.5)
    if mantissa == 1 << 31:
        mantissa, exponent = 1 << 30, exponent + 1
    if not mantissa or exponent < -31:
        return v * 0
    high = ((v << max(exponent, 0)) * mantissa + (1 << 30)) >> 31
    down = max(-exponent, 0)
    return (high + (1 << down >> 1) - np.where((high < 0) & (down > 0), 1, 0)) >> down


def ends(element: UniformQuantizedType, clamp: tuple[float, float] | None) -> tuple[int, int]:
    """The range of a result: its storage range, clamped."""
    low, high = element.storage_min, element.storage_max
    if clamp is None:
        return low, high
    least, greatest = (
        int(half_away(np.asarray(Fraction(bound) / Fraction(element.scale), object) * 2, 2)) + element.zero_point
        for bound in clamp
    )
    return min(max(least, low), high), min(max(greatest, low), high)


def near(out: np.ndarray, numerator: np.ndarray, denominator: np.ndarray | int, low: int, high: int) -> bool:
    """Whether results, less their zero point, are within one step of numerator / denominator, clamped."""
    within = abs(out * denominator - numerator) <= denominator
    above = (out == high) & (numerator >= high * denominator)
    below = (out == low) & (numerator <= low * denominator)
    return bool((within | above | below).all())


def drawn(rng: np.random.Generator, op: str) -> tuple[list[str], str, tuple[float, float] | None]:
    """Types of operands and result that fit each other, and sometimes a clamp."""
    first, second = 2.0 ** rng.uniform(-12, 4, 2)
    size = {"add": max(first, second), "sub": max(first, second), "mul": first * second * 64, "div": first / second}[op]
    extreme = (-14, 12) if op in ("add", "sub") else (-20, 12)
    scales = [first, second, size * 2.0 ** rng.uniform(*(extreme if rng.random() < 0.15 else (-4, 3)))]
    if rng.random() < 0.2:  # equal ones, powers of two
        scales = [scales[0]] * 3 if rng.random() < 0.5 else [2.0 ** round(math.log2(s)) for s in scales]
    types = []
    for scale in scales:
        storage = "u8" if rng.random() < 0.3 else "i8"
        low, high = (0, 255) if storage == "u8" else (-128, 127)
        narrow = "<-127:127>" if storage == "i8" and rng.random() < 0.2 else ""
        types.append(f"!quant.uniform<{storage}{narrow}:f32, {scale:.12e}:{rng.integers(low + 1, high + 1)}>")
    if rng.random() < 0.6:
        return types, "", None
    clamp = float(-scales[2] * rng.integers(0, 40)), float(np.float32(scales[2] * rng.uniform(0, 90)))
    return types, f"clamp_min = {clamp[0]!r} : f64, clamp_max = {clamp[1]!r} : f64", clamp


def general_sum(x: np.ndarray, y: np.ndarray, scales: list[float]) -> np.ndarray:
    first, second, result = scales
    exponents = [power_of_two(s / result) for s in (first, second)]
    if None not in exponents:
        ratios = [Fraction(first / result), Fraction(second / result)]
        common = math.lcm(ratios[0].denominator, ratios[1].denominator)
        return half_away(x * int(ratios[0] * common) + y * int(ratios[1] * common), common)
    most = 2 * max(first, second)
    one, other = (high_multiplied(v << 20, s / most) for v, s in ((x, first), (y, second)))
    return high_multiplied(one + other, most / ((1 << 20) * result))


def high_multiplied(v: np.ndarray, real: float) -> np.ndarray:
    """The same also for powers of two: inside of a sum they are multiplied like others."""
    fraction, exponent = math.frexp(real)
    mantissa = math.floor(fraction * 2**31 + 0.5)
    if mantissa == 1 << 31:
        mantissa, exponent = 1 << 30, exponent + 1
    high = (v * mantissa + (1 << 30)) >> 31
    return (high + (1 << -exponent >> 1) - np.where((high < 0) & (exponent < 0), 1, 0)) >> -exponent


def quotient(x: np.ndarray, y: np.ndarray, real: float) -> np.ndarray:
    safe = np.where(y == 0, 1, y)
    reciprocal = np.where(y < 0, -1, 1) * ((1 << 30) // abs(safe))
    made = by_multiplier(((x << 22) * reciprocal + (1 << 30)) >> 31, real / (1 << 21))
    return np.where(y == 0, np.where(x < 0, -10_000, np.where(x > 0, 10_000, 0)), made)


def expected(op: str, case: Case) -> np.ndarray:
    """The result in steps, before the zero point and the clamp."""
    x, y = case.centred()
    first, second, result = (e.scale for e in case.elements)
    span = case.elements[2].storage_max - case.elements[2].storage_min
    if op == "mul":
        return by_multiplier(x * y, min(first * second / result, 2.0 * span))
    if op == "div":
        return quotient(x, y, min(first / second / result, 2.0 * span * (1 << 21)))
    return general_sum(x, y if op == "add" else -y, [first, second, result])


def exact(op: str, case: Case) -> tuple[np.ndarray, np.ndarray | int]:
    """The same as numerators and denominators."""
    x, y = case.centred()
    first, second, result = (Fraction(e.scale) for e in case.elements)
    if op in ("add", "sub"):
        common = math.lcm((first / result).denominator, (second / result).denominator)
        sign = 1 if op == "add" else -1
        return x * int(first / result * common) + sign * y * int(second / result * common), common
    if op == "mul":
        ratio = first * second / result
        return x * y * ratio.numerator, ratio.denominator
    ratio = first / second / result
    turned = np.where(y < 0, -x, x) * ratio.numerator
    return np.where(y == 0, x * 10**9, turned), np.where(y == 0, 1, abs(y) * ratio.denominator)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", few(range(CHUNKS)))
@pytest.mark.parametrize("op", BINARIES)
def test_all_pairs_of_random_scales(op: str, chunk: int) -> None:
    rng = np.random.default_rng([BINARIES.index(op), chunk])
    for _ in range(SCALES):
        types, attributes, clamp = drawn(rng, op)
        case = Case(f"real_{op}_ew", types, attributes)
        zero, (low, high) = case.elements[2].zero_point, ends(case.elements[2], clamp)
        wanted = expected(op, case)
        made = case.lowered()
        np.testing.assert_array_equal(made, np.clip(wanted + zero, low, high), err_msg=case.text)
        assert near(made - zero, *exact(op, case), low - zero, high - zero), case.text


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("exponent", range(32))
def test_power_of_two_sums_stay_in_eight_bits(exponent: int, swapped: bool) -> None:
    """Every pair and every exponent that fits."""
    coarse, fine = "!quant.uniform<i8:f32, 0.5>", f"!quant.uniform<i8:f32, {0.5 ** (exponent + 1)!r}>"
    case = Case("real_add_ew", [fine, coarse, coarse] if swapped else [coarse, fine, coarse])
    x, y = case.centred()
    divided = half_away(x if swapped else y, 1 << exponent)
    made = case.lowered()
    np.testing.assert_array_equal(made, np.clip(divided + (y if swapped else x), -128, 127))
    assert near(made, *exact("add", case), -128, 127)
    names = [op.name for op in case.module.ops()]
    division = ["fxpmath.rounding_divide_by_pot"] * (exponent > 0)
    assert names == ["quant.scast", "quant.scast", *division, "fxpmath.saturating_add", "quant.scast"]


@pytest.mark.slow
@pytest.mark.parametrize("second", few([-9, 3, -23, -1, 0, 14]))
def test_power_of_two_sums_with_zero_points_are_rounded_once(second: int) -> None:
    rounded_once = 0
    for first in range(-23, 15):
        types = [f"!quant.uniform<i8:f32, {2.0**e:.12e}:{z}>" for e, z in ((first, -128), (second, 127), (0, 5))]
        case = Case("real_add_ew", types)
        numerator, denominator = exact("add", case)
        wanted = np.clip(half_away(numerator, int(denominator)) + 5, -128, 127)
        steps = [Steps(e.scale, e.zero_point, e.storage_min, e.storage_max) for e in case.elements]
        by_shifts = all(factor.mantissa is None for factor in sum_factors(*steps))
        made = case.lowered()
        rounded_once += by_shifts
        if by_shifts:
            np.testing.assert_array_equal(made, wanted, err_msg=case.text)
        assert near(made - 5, numerator, denominator, -133, 122), case.text
    assert rounded_once >= 15


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("chunk", few(range(CHUNKS // 2)))
def test_matrix_products(bias: bool, chunk: int) -> None:
    """All pairs, as sums of one product; then sums of many."""
    rng = np.random.default_rng([9, bias, chunk])
    for _ in range(SCALES * 2):
        types, attributes, clamp = drawn(rng, "mul")
        shapes = ("256x1", "1x256", "256", "256x256"), ("20x140", "140x20", "20", "20x20")
        if bias:
            step = np.float32(np.prod([e.scale for e in Case("real_mul_ew", types).elements[:2]]))
            types[2:2] = [f"!quant.uniform<i32:f32, {float(step):.12e}>"]
        else:
            shapes = tuple((*each[:2], each[3]) for each in shapes)  # type: ignore[assignment]
        for each in shapes:
            case = Case("real_matmul_bias" if bias else "real_matmul", types, attributes, each)
            arrays = [
                np.asarray(rng.integers(e.storage.minimum, e.storage.maximum + 1, shape)).astype(e.storage.dtype)
                for e, shape in zip(case.elements, case.shapes, strict=False)
            ]
            if each is shapes[0]:
                arrays[:2] = [q.reshape(shape) for q, shape in zip(case.stored, case.shapes, strict=False)]
            if bias:
                arrays[2] >>= 12
            check_product(case, arrays, clamp)


def check_product(case: Case, arrays: list[np.ndarray], clamp: tuple[float, float] | None) -> None:
    """A matrix product of stored integers, and a bias if there are three arrays."""
    x, y, *bias = (a.astype(object) - e.zero_point for a, e in zip(arrays, case.elements, strict=False))
    sums = x.dot(y) + sum(bias)
    first, second, result = (case.elements[place] for place in (0, 1, -1))
    zero, (low, high) = result.zero_point, ends(result, clamp)
    span = result.storage_max - result.storage_min
    wanted = by_multiplier(sums, min(first.scale * second.scale / result.scale, 2.0 * span))
    made = case.lowered(*arrays)
    np.testing.assert_array_equal(made, np.clip(wanted + zero, low, high), err_msg=case.text)
    ratio = Fraction(first.scale) * Fraction(second.scale) / Fraction(result.scale)
    assert near(made - zero, sums * ratio.numerator, ratio.denominator, low - zero, high - zero), case.text


def test_sums_that_a_shift_would_take_out_of_int32_saturate() -> None:
    types = ["!quant.uniform<u8:f32, 1.0>", "!quant.uniform<i8:f32, 1.0>", "!quant.uniform<i8:f32, 0.001:3>"]
    case = Case("real_matmul", types, "", ("2x140", "140x2", "2x2"))
    y = np.stack([np.full(140, 127), np.full(140, -128)], 1).astype(np.int8)
    made = case.lowered(np.full((2, 140), 255, np.uint8), y)
    np.testing.assert_array_equal(made, [[127, -128]] * 2)


REAL: dict[str, Callable[[float], float]] = {
    "IDENTITY": lambda x: x,
    "TANH": math.tanh,
    "SIGMOID": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
    "EXP": lambda x: math.exp(x) if x < 700 else math.inf,
    "LOG": lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "NEG": lambda x: -x,
    "RSQRT": lambda x: 1 / math.sqrt(x) if x > 0 else math.inf if x == 0 else math.nan,
    "SIN": math.sin,
    "SQUARE": lambda x: x * x,
    "SQRT": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "CMPZ": lambda x: float(x == 0),
    "CMPNZ": lambda x: float(x != 0),
    "CMPLZ": lambda x: float(x < 0),
    "CMPGZ": lambda x: float(x > 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("opcode", OPCODES)
def test_functions_are_tables(opcode: str) -> None:
    assert set(FUNCTIONS) == set(OPCODES) == set(REAL)
    rng = np.random.default_rng(OPCODES.index(opcode))
    for _ in range(CHUNKS * SCALES):
        (source, _, result), attributes, clamp = drawn(rng, "mul")
        case = Case("real_unary", [source, result], f'opcode = "{opcode}", {attributes}'.rstrip(", "), ("256", "256"))
        low, high = ends(case.elements[1], clamp)
        scale, zero = case.elements[1].scale, case.elements[1].zero_point
        made = case.lowered()
        assert [op.name for op in case.module.ops()] == ["quant.scast", "tosa.table", "quant.scast"]
        for x, out in zip((v * case.elements[0].scale for v in case.centred()[0]), made, strict=True):
            counts = REAL[opcode](x) / scale
            whole = 0 if math.isnan(counts) else math.copysign(math.floor(min(abs(counts), 1e6) + 0.5), counts)
            wanted = min(max(int(whole) + zero, low), high)
            tie = abs(counts) < 1e6 and abs(abs(counts) % 1 - 0.5) < 1e-9
            assert out == wanted or (tie and abs(out - wanted) <= 1), (case.text, x)


@pytest.mark.slow
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_sixteen_bits_are_within_one_step(op: str) -> None:
    rng = np.random.default_rng(16)
    done = 0
    for _ in range(40):
        first, second = 2.0 ** rng.uniform(-18, -8, 2)
        size = first * second * 2.0**15 if op == "mul" else max(first, second)
        zeros = rng.integers(-32768, 32768, 3) if rng.random() < 0.5 else [0, 0, 0]
        scales = (first, second, size * 2.0 ** rng.uniform(-1, 2))
        types = [f"!quant.uniform<i16:f32, {s:.12e}:{z}>" for s, z in zip(scales, zeros, strict=True)]
        case = Case(f"real_{op}_ew", types, "", ("250x1", "1x250", "250x250"))
        case.stored = [
            np.concatenate([[-32768, -32767, 32767, 0, z], rng.integers(-32768, 32768, 245)]).astype(np.int16)
            for z in zeros[:2]
        ]
        made = case.lowered()
        zero = int(zeros[2])
        assert near(made - zero, *exact(op, case), -32768 - zero, 32767 - zero), case.text
        done += 1
    assert done == 40


def test_numbers_that_have_no_form_are_refused() -> None:
    small, large, wide = Steps(1e-6, 0, -128, 127), Steps(1.0, 0, -128, 127), Steps(1.0, 0, -32768, 32767)
    with pytest.raises(NoFactor, match="more than 65536"):
        sum_factors(large, small, small)
    with pytest.raises(NoFactor, match="rounded to 2"):
        product_factors(wide, wide, wide)
    with pytest.raises(NoFactor, match="the result's scale is 0"):
        product_factors(large, large, Steps(0.0, 0, -128, 127))


def clamped(x: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    return np.minimum(np.maximum(x, -math.inf if low is None else low), math.inf if high is None else high)


def test_clamps_one_after_the_other_are_one() -> None:
    x = np.linspace(-10, 10, 41)
    for bounds in ((None, None), (0.0, None), (None, 3.0), (-2.0, 2.0)):
        for low, high in ((0.0, None), (None, -4.0), (0.0, 6.0), (5.0, 7.0)):
            twice = clamped(clamped(x, *bounds), low, high)
            np.testing.assert_array_equal(clamped(x, *combined(bounds, low, high)), twice)
