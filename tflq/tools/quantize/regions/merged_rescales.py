"""Rescales pushed through sums and merged: integers as they are stored, multiplied by constants, and one rescale at
the output.

    rescale(rescale(a) ± rescale(b))   →   rescale(a · A ± b · B + C)
    rescale(rescale(a))                →   rescale(a)

A, B and C are integers, and the sum is exact, so it is rounded once. That can differ from the kernel, which also rounds
each operand. The operands have 8 bits: all their values are tried, and the merged form is taken if it is equal for all;
on request, also if it differs by at most one step of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.builder import Emitter
from tflq.dialects.tosa.elementwise import Add, Mul, Sub
from tflq.dialects.tosa.movement import Cast, Rescale
from tflq.ir.module import Function
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, i32

_BITS: Final = (21, 20, 22)
"""Of the larger of A and B: two products of 9 bits by 22, and their sum, fit 32 bits."""
_SHIFTS: Final = range(2, 63)
"""The shifts of tosa.rescale."""


class _Leaf(NamedTuple):
    """A stored value, and the ops that compute (value - zero) · factor from it, with roundings; the last op first."""

    value: Value
    zero: int
    factor: Fraction
    ops: tuple[Rescale, ...]


class _Sum(NamedTuple):
    """The input of a rescale: one value, or a sum or difference of two, and the ops between, the first one first."""

    leaves: tuple[_Leaf, ...]
    ops: tuple[Op, ...]
    sign: int


class _Form(NamedTuple):
    """(Σ value · weight + offset) · multiplier / 2^shift, rounded once."""

    weights: tuple[int, ...]
    offset: int
    multiplier: int
    shift: int
    mode: str


def merge_rescales(function: Function, *, step: bool) -> bool:
    """Merges the rescales of a function. Returns whether any were. `step`: also if a result differs by one step."""
    users = function.users()
    returned = frozenset(function.outputs)
    gone: set[Op] = set()
    merged: dict[Op, Callable[[Emitter], None]] = {}
    for op in reversed(function.ops):
        if op in gone or not isinstance(op, Rescale) or not _is_plain(op):
            continue
        for inputs in _sums(op, users, returned):
            if (form := _merged(op, inputs, step=step)) is not None:
                merged[op] = partial(_emit, op, inputs, form)
                gone.update(inputs.ops)
                break
    if merged:
        b = Emitter()
        for op in function.ops:
            if op in merged:
                merged[op](b)
            elif op not in gone:
                b.ops.append(op)
        function.ops = b.ops
    return bool(merged)


def _is_plain(op: Rescale) -> bool:
    """Whether a rescale is of one multiplier and the usual rounding, between integers."""
    types = (op.input.type.element, op.output.type.element)
    return (
        all(isinstance(element, ScalarType) for element in types)
        and not op.per_channel
        and op.scale32
        and op.rounding is None
        and op.multiplier.size == 1
    )


def _factor(op: Rescale) -> Fraction:
    return Fraction(int(op.multiplier.reshape(-1)[0]), 1 << int(op.shift.reshape(-1)[0]))


def _sums(op: Rescale, users: Mapping[Value, Sequence[Op]], returned: frozenset[Value]) -> Iterator[_Sum]:
    """The possible inputs of a rescale that nothing else reads: from the farthest values, then from the nearest."""

    def alone(value: Value) -> bool:
        return len(users.get(value, ())) == 1 and value not in returned

    producer = op.input.producer
    if producer is None or not alone(op.input):
        return
    if isinstance(producer, Rescale):
        yield from (_Sum((leaf,), tuple(reversed(leaf.ops)), 1) for leaf in _leaves(op.input, op.input_zp, alone))
    elif isinstance(producer, (Add, Sub)) and not op.input_zp and op.input.type.element == i32:
        sign = -1 if isinstance(producer, Sub) else 1
        sides = [_leaves(value, 0, alone) for value in (producer.input1, producer.input2)]
        for one, other in dict.fromkeys(zip(*(side and (side[0], side[-1]) for side in sides), strict=False)):
            yield _Sum((one, other), (*reversed(one.ops), *reversed(other.ops), producer), sign)


def _leaves(value: Value, zero: int, alone: Callable[[Value], bool]) -> list[_Leaf]:
    """The stored values of 8 bits from which rescales, read only by each other, compute a value; the farthest first."""
    leaves: list[_Leaf] = []
    factor = Fraction(1)
    ops: tuple[Rescale, ...] = ()
    while isinstance(op := value.producer, Rescale) and _is_plain(op) and op.output_zp == zero and alone(value):
        ops = (*ops, op)
        factor *= _factor(op)
        value, zero = op.input, op.input_zp
        element = value.type.element
        if isinstance(element, ScalarType) and element.bits == 8 and value.type.rank is not None:
            leaves.insert(0, _Leaf(value, zero, factor, ops))
    return leaves


def _merged(op: Rescale, inputs: _Sum, *, step: bool) -> _Form | None:
    """The first merged form that computes the same as the ops, for all values of the operands. With `step`, else the
    first that is at most one off."""
    arrays = _all_values(inputs.leaves)
    wanted = _computed(op, inputs, arrays)
    near: _Form | None = None
    for form in _forms(op, inputs):
        total = np.asarray(form.offset, np.int64)
        for array, weight in zip(arrays, form.weights, strict=True):
            total = total + array.astype(np.int64) * weight
        if np.abs(total).max() > i32.maximum:
            continue
        apart = int(np.abs(_rescaled(op, form, total.astype(np.int32)).astype(np.int64) - wanted).max())
        if apart == 0:
            return form
        if apart == 1 and near is None:
            near = form
    return near if step else None


def _all_values(leaves: Sequence[_Leaf]) -> list[np.ndarray]:
    """All combinations of the values of the leaves, one dim for each."""
    arrays = []
    for index, leaf in enumerate(leaves):
        storage = leaf.value.type.storage
        shape = [1] * len(leaves)
        shape[index] = -1
        arrays.append(np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype).reshape(shape))
    return arrays


def _computed(op: Rescale, inputs: _Sum, arrays: Sequence[np.ndarray]) -> np.ndarray:
    known = {leaf.value: array for leaf, array in zip(inputs.leaves, arrays, strict=True)}
    for step in (*inputs.ops, op):
        known[step.result] = _evaluated(step, [known[value] for value in step.present_operands])
    return known[op.result].astype(np.int64)


def _evaluated(op: Op, arrays: Sequence[np.ndarray]) -> np.ndarray:
    results = evaluate_op(op, list(arrays))
    assert results is not None
    return results[0]


def _rescaled(op: Rescale, form: _Form, total: np.ndarray) -> np.ndarray:
    source = Value(op.input.type.with_element(i32))
    rescale = Op(Rescale.op_name, [source], [Value(op.output.type)], _attributes(op, form, 0))
    return _evaluated(rescale, [total])


def _forms(op: Rescale, inputs: _Sum) -> Iterator[_Form]:
    """Merged forms: with ratios of the factors that are more or less exact, with small and with large integers, and
    with both ways to round. Double rounding is half away from zero only if the integers are large."""
    factors = [leaf.factor * _factor(op) for leaf in inputs.leaves]
    largest = max(factors)
    if not largest or min(factors) < 0:
        return
    for bits in _BITS if len(factors) > 1 else (0,):
        weights = [round(factor / largest * (1 << bits)) for factor in factors]
        common = min((weight & -weight).bit_length() - 1 for weight in weights if weight)
        for less in dict.fromkeys((common, 0)):
            signed = [(weight >> less) * sign for weight, sign in zip(weights, (1, inputs.sign), strict=False)]
            offset = -sum(leaf.zero * weight for leaf, weight in zip(inputs.leaves, signed, strict=True))
            multiplier, shift = _multiplier(largest / (1 << (bits - less)))
            if shift in _SHIFTS:
                for mode in dict.fromkeys((op.rounding_mode, "SINGLE_ROUND", "DOUBLE_ROUND")):
                    yield _Form(tuple(signed), offset, multiplier, shift, mode)


def _multiplier(factor: Fraction) -> tuple[int, int]:
    """A factor as an integer of 31 bits over a power of two."""
    shift = 30 - (factor.numerator.bit_length() - factor.denominator.bit_length())
    multiplier = round(factor * Fraction(2) ** shift)
    while multiplier >= 1 << 31:
        shift -= 1
        multiplier = round(factor * Fraction(2) ** shift)
    return multiplier, shift


def _attributes(op: Rescale, form: _Form, zero: int) -> dict[str, object]:
    others = {key: value for key, value in op.attributes.items() if key != "input_range"}
    return {
        **others,
        "multiplier": np.asarray([form.multiplier], np.int32),
        "shift": np.asarray([form.shift], np.int8),
        "input_zp": zero,
        "rounding_mode": form.mode,
    }


def _emit(op: Rescale, inputs: _Sum, form: _Form, b: Emitter) -> None:
    """The merged form, with the rescale's result."""
    b.location = op.location
    if len(inputs.leaves) == 1:
        (leaf,) = inputs.leaves
        b.ops.append(Op(op.name, [leaf.value], op.results, _attributes(op, form, leaf.zero), op.location))
        return
    shape = [1] * (op.output.type.rank or 0)

    def number(value: int) -> Value:
        return constant(np.full(shape, value, np.int32))

    terms = []
    for leaf, weight in zip(inputs.leaves, form.weights, strict=True):
        term = b.emit(Cast, [leaf.value], leaf.value.type.with_element(i32))
        terms.append(term if weight == 1 else b.emit(Mul, [term, number(weight)], term.type, shift=0))
    total = b.emit(Add, terms, op.input.type)
    if form.offset:
        total = b.emit(Add, [total, number(form.offset)], total.type)
    b.ops.append(Op(op.name, [total], op.results, _attributes(op, form, 0), op.location))
