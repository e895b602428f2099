"""Helpers of the rules of elementwise operators: guards on quantization parameters, scaling as in the kernels, and
a probe of the distance of a rule's results from the real values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import Refused
from tflq.dialects.inference import broadcast
from tflq.dialects.tfl import fused_activation
from tflq.dialects.tfl.indexing import Gather
from tflq.ir.module import Function
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i1,
    i8,
    i16,
    i32,
    ui8,
)
from tflq.legalize.rule import NotApplicable, Rule, RuleBuilder, rewritten
from tflq.numerics.activation import BOUNDS
from tflq.numerics.fixed_point import Multiplier, left_shift, rescaled_table
from tflq.numerics.kernel_sets import REFERENCE
from tflq.numerics.reference import KernelSet, Slopes
from tflq.numerics.unary import REAL_FUNCTIONS, REAL_FUNCTIONS_OF_TWO


def kernel_name(op: Op) -> str:
    """TFLite's name of an operator: ADD for tfl.add."""
    return op.name.removeprefix("tfl.").upper()


def per_layer(op: Op, values: Iterable[Value] | None = None) -> list[UniformQuantizedType]:
    """The quantized types of tensors (default: operands, then results), all per layer. NotApplicable if one is not."""
    elements: list[UniformQuantizedType] = []
    for value in op.tensors if values is None else values:
        element = value.type.element
        if isinstance(element, UniformQuantizedType):
            elements.append(element)
        elif isinstance(element, UniformQuantizedPerAxisType):
            raise NotApplicable(f"tensor '{value.name}' is quantized per axis; {kernel_name(op)} has no per-axis form")
        else:
            raise NotApplicable(
                f"tensor '{value.name}' ({value.type.storage}) has no per-layer quantization parameters"
            )
    return elements


def symmetric(op: Op, *elements: UniformQuantizedType) -> None:
    """NotApplicable unless zero points are 0, which the int16 kernels demand."""
    for element in elements:
        if element.zero_point != 0:
            raise NotApplicable(f"{kernel_name(op)} on int16 has no zero point, here {element.zero_point}")


def centred(b: RuleBuilder, operand: Value, element: UniformQuantizedType) -> Value:
    """x - zero_point of an operand as i32."""
    wide = b.cast(b.value(operand), i32)
    return b.sub(wide, element.zero_point) if element.zero_point else wide


def requantized(b: RuleBuilder, x: Value, source: UniformQuantizedType, target: UniformQuantizedType) -> Value:
    """The nearest stored values of what x (plain, 8 or 16 bits) stands for, under other parameters."""
    if (source.scale, source.zero_point) == (target.scale, target.zero_point):
        return x
    parameters = (source.scale, source.zero_point, target.scale, target.zero_point)
    return b.table(x, rescaled_table(source.storage.dtype, *parameters))


def requantized_if_plain(b: RuleBuilder, x: Value, source: ElementType, target: ElementType) -> Value | None:
    """`requantized`, if both have one scale and one storage type: i8, ui8 or i16; else None."""
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        return None
    if source.storage != target.storage or source.storage not in (i8, ui8, i16):
        return None
    return requantized(b, x, source, target)


def scaled(
    b: RuleBuilder,
    x: Value,
    multiplier: Multiplier,
    to: ScalarType,
    bound: int,
    *,
    input_zp: int = 0,
    output_zp: int = 0,
    input_range: tuple[int, int] | None = None,
) -> Value:
    """saturate(MultiplyByQuantizedMultiplier(x - input_zp) + output_zp), for |x - input_zp| <= bound.

    The kernel shifts left, and adds the zero point, in int32, which wraps; RESCALE does not. Where it could, a
    multiplication by 2^shift and an addition do the same as the kernel. A shift of more than 31 is taken modulo 32. All
    of that is undefined in C++, and noted.
    """
    if multiplier.shift > 30 or bound << max(multiplier.shift, 0) >= 1 << 31:
        b.note_undefined(f"a left shift by {multiplier.shift} leaves int32")
    left, right = int(left_shift(multiplier.shift)), max(-multiplier.shift, 0)
    multiplier = Multiplier(multiplier.mantissa, left - right)
    shifts_exactly = bound << left < 1 << 31 or not (left or input_zp)
    if shifts_exactly and (bound << left >> right) + 1 + abs(output_zp) < 1 << 31:
        return b.rescale(x, multiplier, to, input_zp=input_zp, output_zp=output_zp, input_range=input_range)
    wide = b.cast(x, i32)
    if input_zp:
        wide = b.sub(wide, input_zp)
    if left:
        wide = b.mul(wide, np.asarray(1 << left, np.int64).astype(np.int32))
        multiplier = Multiplier(multiplier.mantissa, 0)
    wide = b.rescale(wide, multiplier, i32)
    if output_zp:
        wide = b.add(wide, output_zp)
    return b.cast(b.clamp(wide, to.minimum, to.maximum), to)


def rounding_shift(b: RuleBuilder, x: Value, exponent: int | Value) -> Value:
    """x / 2^exponent of an i32, rounded half away from zero: a negative half is pushed below by its sign. An exponent
    may be a tensor that broadcasts, of 0..31."""
    if isinstance(exponent, int):
        if not exponent:
            return x
        rounds = None
    else:
        rounds = b.minimum(exponent, 1)
    sign = b.arithmetic_right_shift(x, 31)
    if rounds is not None:
        sign = b.mul(sign, rounds)
    return b.arithmetic_right_shift(b.add(x, sign), exponent, round=True)


def sloped(b: RuleBuilder, x: Value, slopes: Slopes, to: UniformQuantizedType) -> Value:
    """An i32 less its zero point by one of two slopes, rounded half up, as stored."""
    product = b.mul(x, slopes.above)
    if slopes.below != slopes.above:
        product = b.select(b.greater_equal(x, 0), product, b.mul(x, slopes.below))
    return stored(b, b.arithmetic_right_shift(product, slopes.shift, round=True), to)


def gather_along(b: RuleBuilder, x: Value, index: Value | np.ndarray, axis: int = 0) -> Value:
    """The elements at an index, of i32, along an axis of x."""
    place = index if isinstance(index, Value) else b.constant(index)
    return b.emit(Gather, [x, place], axis=axis, batch_dims=0)


def stored(b: RuleBuilder, x: Value, element: UniformQuantizedType, *bounds: int) -> Value:
    """An i32 plus the zero point, saturated to its storage type or clamped to two bounds, as stored."""
    total = b.add(x, element.zero_point) if element.zero_point else x
    low, high = bounds or (element.storage.minimum, element.storage.maximum)
    return b.cast(b.clamp(total, low, high), element.storage)


def zero_point_of(value: Value) -> int | None:
    """The one zero point of a tensor that is quantized per layer; None of others."""
    element = value.type.element
    return element.zero_point if isinstance(element, UniformQuantizedType) else None


# How far a rule's results are from the real values.


_Real: TypeAlias = Callable[..., np.ndarray]

_OF_TWO: dict[str, _Real] = {
    **REAL_FUNCTIONS_OF_TWO,
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": lambda x, y: x / y,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "PRELU": lambda x, y: np.where(x >= 0, x, x * y),
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}
_OF_ROWS: dict[str, _Real] = {
    "MEAN": lambda x: x.mean(1),
    "SUM": lambda x: x.sum(1),
    "REDUCE_PROD": lambda x: x.prod(1),
}
_FUSED: dict[str, _Real] = {
    **{name: lambda x, low=low, high=high: np.clip(x, low, high) for name, (low, high) in BOUNDS.items()},
    "TANH": np.tanh,
    "SIGN_BIT": lambda x: np.where(np.signbit(x), 1.0, 0.0),
}
_SAMPLES = 256
_ELEMENTS = 1 << 20


class Distance:
    """Largest difference of results from the real ones: in counts of the result; for truth values, the share of
    wrong ones (else 0)."""

    __slots__ = ("counts", "share")

    def __init__(self, counts: int, share: float = 0.0) -> None:
        self.counts: Final = counts
        self.share: Final = share

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distance) and (self.counts, self.share) == (other.counts, other.share)

    def __hash__(self) -> int:
        return hash((self.counts, self.share))

    @property
    def shows(self) -> bool:
        """Whether it is more than a rounding."""
        return self.counts > 1 or self.share > 0

    def __str__(self) -> str:
        if self.share:
            return f"{max(self.share, 0.0001):.2%} of all pairs of values are compared wrongly"
        return f"up to {self.counts} count(s) from the real value"


def distance(rule: Rule, op: Op, kernel_set: KernelSet = REFERENCE) -> Distance | None:
    """Largest difference of a rule's results from the real values. None if the real function is not known, or the
    operator is neither elementwise nor a reduction.

    A copy of the operator on other shapes goes through the same rule, and its ops through the evaluator. Operands of 8
    bits take every value, those of 16 bits every one (one operand) or many (two), constants theirs. The real function
    is computed in double.
    """
    name = kernel_name(op)
    function = _function(op, name)
    types = [v.type.element for v in op.tensors if v.type.quantized]
    if function is None or not all(isinstance(element, UniformQuantizedType) for element in types):
        return None
    if not op.result.type.quantized and op.result.type.storage is not i1:  # a plain result has no scale to count in
        return None
    probe = _rows(op) if name in _OF_ROWS else _elements(op)
    if probe is None:
        return None
    twin, arrays = probe
    b = RuleBuilder([], {}, probing=True, kernel_set=kernel_set)
    try:
        results = rewritten(rule(twin, b)).results
    except Refused:
        return None
    with np.errstate(all="ignore"):
        inputs = dict(zip(twin.operands, arrays, strict=False))
        env = evaluate_function(Function("probe", list(inputs), [], b.ops), inputs)  # type: ignore[arg-type]
        got = results[0].array if results[0].is_constant else env[results[0]]
        real = function(*(_real(v, a) for v, a in zip(twin.operands, arrays, strict=False)))  # type: ignore[arg-type]
        return _compared(op.result, got, real)


def _function(op: Any, name: str) -> _Real | None:
    unary = {
        **REAL_FUNCTIONS,
        **{key: _FUSED[key] for key in BOUNDS},
        "LEAKY_RELU": lambda x: np.where(x >= 0, x, x * op.alpha),
        "QUANTIZE": lambda x: x,
    }
    inner = _OF_TWO.get(name) or _OF_ROWS.get(name) or unary.get(name)
    fused = _FUSED.get(fused_activation(op))
    if inner is None or fused is None:
        return inner
    return lambda *operands: fused(inner(*operands))


def _rows(op: Op) -> tuple[Op, list[np.ndarray]] | None:
    """Rows of one value each, and of random ones."""
    x, axes, *_ = op.tensors
    if not x.type.shape or not axes.is_constant:
        return None
    sizes = [x.type.shape[a] for a in {int(a) % len(x.type.shape) for a in axes.array.reshape(-1)}]
    count = math.prod(d or 0 for d in sizes)
    if not 0 < count <= _ELEMENTS:
        return None
    values = _values(x, _SAMPLES)
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.broadcast_to(values[:, None], (values.size, count)), rng.choice(values, (64, count))])
    rows = rng.permutation(rows)[: max(_ELEMENTS // count, 1)]
    operand = Value(TensorType(rows.shape, x.type.element))
    attributes = {**op.attributes, "keep_dims": False}
    result = Value(TensorType(rows.shape[:1], op.result.type.element))
    return Op(op.name, [operand, constant(np.asarray([1]), i32)], [result], attributes, info=op.info), [rows]


def _elements(op: Op) -> tuple[Op, list[np.ndarray]] | None:
    """All values of one operand, or all pairs of two, which broadcast if the operands do."""
    operands = op.present_operands
    if not 1 <= len(operands) <= 2 or not all(v.type.quantized for v in operands):
        return None
    if len(operands) == 1:
        arrays = [_values(operands[0], 1 << 16)]
    else:
        x, y = (_values(v, _SAMPLES) for v in operands)
        if broadcast(*(v.type.shape for v in operands)) is None or _differ(*operands):
            arrays = [x[:, None], y[None]]
        else:
            arrays = [a.reshape(-1) for a in np.meshgrid(x, y, indexing="ij")]
    twins = [Value(TensorType(a.shape, v.type.element)) for a, v in zip(arrays, operands, strict=True)]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    result = Value(TensorType(shape, op.result.type.element))
    return Op(op.name, list(twins), [result], op.attributes, info=op.info), arrays


def _differ(x: Value, y: Value) -> bool:
    """Whether shapes differ in more than leading ones."""

    def core(value: Value) -> Sequence[int | None] | None:
        shape = value.type.shape
        return None if shape is None else shape[next((i for i, d in enumerate(shape) if d != 1), len(shape)) :]

    return core(x) != core(y)


def _values(value: Value, most: int) -> np.ndarray:
    """Stored values that a tensor can have, in multiples of four."""
    storage, element = value.type.storage, value.type.element
    assert isinstance(element, UniformQuantizedType)
    if value.is_constant and value.array.size:
        values = np.unique(value.array)
    else:
        values = np.arange(storage.minimum, storage.maximum + 1) if storage.bits <= 16 else _spread(element, 1 << 32)
    if values.size > most:
        near = _spread(element, most)
        chosen = values[np.linspace(0, values.size - 1, most // 2).astype(np.int64)]
        values = np.unique(np.concatenate([chosen, near[np.isin(near, values)]]))
    return np.resize(values, -(-values.size // 4) * 4).astype(storage.dtype)


def _spread(element: UniformQuantizedType, most: int) -> np.ndarray:
    """Values about the zero point, and powers of two away from it, with their neighbours."""
    storage = element.storage
    powers = 1 << np.arange(storage.bits)
    steps = np.concatenate([powers - 1, powers, powers + 1, powers * 3 // 2])
    values = np.unique(np.concatenate([-steps, steps])) + element.zero_point
    return values[(values >= storage.minimum) & (values <= storage.maximum)][:most]


def _real(value: Value, stored: np.ndarray) -> np.ndarray:
    """The real values of stored ones; 0 times an infinite scale is 0."""
    element = value.type.element
    assert isinstance(element, UniformQuantizedType)
    steps = stored.astype(np.float64) - element.zero_point
    return np.where(steps == 0, 0.0, steps * element.scale)


def _compared(result: Value, got: np.ndarray, real: np.ndarray) -> Distance:
    """The distance of results. One that has no real value, or whose stored values all stand for 0, is not wrong."""
    element = result.type.element
    if result.type.storage is i1:
        return Distance(0, float((got != real).mean()))
    assert isinstance(element, UniformQuantizedType)
    counts = real / element.scale
    known = ~np.isnan(counts) & (element.scale > 0)
    bounded = np.clip(np.where(known, counts, 0), -(2.0**33), 2.0**33)
    rounded = np.sign(bounded) * np.floor(np.abs(bounded) + 0.5) + element.zero_point
    wanted = np.clip(rounded, element.storage_min, element.storage_max)
    return Distance(int(np.where(known, np.abs(got - wanted), 0).max(initial=0)))
