"""How much of the outputs' error each operator makes, and what to do about it.

Each operator's own error is added to the float network, alone, where its result is: what the outputs then are off is
the error that it makes. The powers of these errors are added up, as if they were independent. Where there are many
operators, only the outputs and the worst are taken alone; the error of the others is added together, and divided by
their own errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tflq.debugging.outcome import Advice, DebugRow
from tflq.debugging.pairing import Pair, Side, copied
from tflq.dialects.effects import callees, is_pure
from tflq.dialects.tfl.arithmetic import Add
from tflq.ir.core import Function, Module, Op, Value

ALONE: Final = 32
"""Operators whose error is added alone."""
_WORTH: Final = 0.1
"""Gains below so many decibels are not advised."""
_NEARLY: Final = 0.9
"""16 bits are advised where they gain so much of what floats gain."""
_MOST: Final = 60.0
"""Decibels: no larger gain is predicted."""


def grouped(noise: Sequence[float], outputs: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Which pairs' errors are added together: each of the outputs and of the worst alone, then the others. noise: of
    each pair's own error, relative to its signal; those of which it is 0 are left out."""
    worst = [int(place) for place in np.argsort(noise, kind="stable")[::-1]]
    order = [place for place in dict.fromkeys((*outputs, *worst)) if noise[place] > 0]
    rest = tuple(sorted(order[ALONE:]))
    return [(place,) for place in order[:ALONE]] + ([rest] if rest else [])


def can_inject(side: Side) -> bool:
    """Whether a network can run several times in one graph."""
    return all(is_pure(op) and not callees(op) and not op.regions for op in side.function.ops)


def injected(side: Side, pairs: Sequence[Pair], groups: Sequence[Sequence[int]]) -> Module:
    """A float network, and a copy of it for each group, in which an input is added to the float value of each of its
    pairs. Inputs: those of the network, then those that are added, in the order of the groups. Outputs: the network's,
    then those of each copy."""
    inputs, outputs, ops = list(side.inputs), list(side.outputs), list(side.function.ops)
    for number, group in enumerate(groups):
        errors: dict[Value, list[Value]] = {}
        for place in group:
            real = pairs[place].real
            errors.setdefault(real, []).append(Value(real.type, f"{number}/error{place}"))
            inputs.append(errors[real][-1])
        made: dict[Value, Value] = {}
        for value in side.inputs:
            _add(value, errors.get(value, ()), made, ops)
        for op in side.function.ops:
            if any(value in made for value in op.reads):
                ops.append(copied(op, made, f"{number}/"))
            for value in op.results:
                _add(value, errors.get(value, ()), made, ops)
        outputs += [made.get(value, value) for value in side.outputs]
    return Module([Function("main", inputs, outputs, ops)])


def _add(value: Value, errors: Sequence[Value], made: dict[Value, Value], ops: list[Op]) -> None:
    """Adds errors to a value of a copy."""
    for error in errors:
        total = Value(value.type, f"{error.name}/sum")
        ops.append(Op(Add.op_name, [made.get(value, value), error], [total], {"fused_activation_function": "NONE"}))
        made[value] = total


def shares(groups: Sequence[Sequence[int]], powers: np.ndarray, noise: Sequence[float]) -> list[float]:
    """The share of the outputs' error that each pair makes. powers: of the outputs' error by each group."""
    made = [0.0] * len(noise)
    total = float(powers.sum())
    for group, power in zip(groups, powers, strict=True):
        own = sum(noise[place] for place in group)
        for place in group if total else ():
            made[place] = float(power) / total * noise[place] / own
    return made


def advised(rows: Sequence[DebugRow]) -> list[Advice]:
    """What to do with operators from which something is gained, the largest gain first."""
    advice = []
    for row in rows:
        share = row.share or 0.0
        gain, narrow = _gain(share), _gain(share * _rounding(row))
        wide = narrow >= _NEARLY * gain or not row.stands_for
        each = Advice(row.operator, row.partner, "16 bits" if wide else "float", narrow if wide else gain)
        if each.gain_db >= _WORTH:
            advice.append(each)
    return sorted(advice, key=lambda each: -each.gain_db)


def _gain(share: float) -> float:
    """By how many decibels an error falls if a share of it goes."""
    return min(_MOST, -10 * math.log10(max(1 - share, 1e-9)))


def _rounding(row: DebugRow) -> float:
    """The share of a row's own error that is rounding to its type: a twelfth of a squared step, in the mean."""
    if row.own is None or not row.own.rmse_per_scale:
        return 0.0
    return min(1.0, 1 / 12 / row.own.rmse_per_scale**2)


def with_shares(rows: Sequence[DebugRow], made: Sequence[float]) -> list[DebugRow]:
    """Rows of pairs, with the share of the outputs' error that each makes."""
    return [row if row.own is None else replace(row, share=share) for row, share in zip(rows, made, strict=True)]
