"""How much of the outputs' error each operator makes, and what to do about it.

What reaches an operator's result is its own error and what its operands bring. Taken as independent, their powers add:
of the error at a result the share own / reached is the operator's, and the rest goes back to its operands, each by the
power of its error there. From the outputs back to the inputs this divides the outputs' error among all operators. It
costs no runs beyond those that measured the errors, and is a prediction: errors that depend on each other do not add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from tflq.debugging.outcome import WORTH, Advice, DebugRow
from tflq.debugging.pairing import INPUT, Pairing

_NEARLY: Final = 0.9
"""16 bits are advised where they gain so much of what floats gain."""
_MOST: Final = 60.0
"""Decibels: no larger gain is predicted."""


def shares(pairing: Pairing, own: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The share of the outputs' error that each pair makes. own, reached: the power of its own error, NaN where it is
    unknown, and of that which has reached it."""
    blame, made = np.zeros(len(reached)), np.zeros(len(reached))
    total = sum(reached[place] for place in pairing.outputs)
    for place in pairing.outputs if total else ():
        blame[place] += reached[place] / total
    for place in reversed(range(len(reached))):
        if not blame[place]:
            continue
        sources = [s for s in pairing.pairs[place].sources if reached[s] > 0]
        known = 0.0 if math.isnan(own[place]) else min(1.0, own[place] / reached[place])
        made[place] = blame[place] * (known if sources else 1.0)
        brought = sum(reached[s] for s in sources)
        for source in sources:
            blame[source] += (blame[place] - made[place]) * reached[source] / brought
    return made


def advised(rows: Sequence[DebugRow]) -> list[Advice]:
    """What to do with operators from which something is gained, the largest gain first."""
    advice = []
    for row in rows:
        gain, narrow = _gain(row.share), _gain(row.share * _rounding(row))
        if gain >= WORTH and (row.stands_for or row.operator == INPUT or row.range is not None):
            wide = narrow >= _NEARLY * gain or not row.stands_for
            advice.append(Advice(row.operator, row.partner, "16 bits" if wide else "float", narrow if wide else gain))
    return sorted(advice, key=lambda each: -each.gain_db)


def _gain(share: float) -> float:
    """By how many decibels an error falls if a share of it goes."""
    return min(_MOST, -10 * math.log10(max(1 - share, 1e-9)))


def _rounding(row: DebugRow) -> float:
    """The share of a row's own error that is rounding to its type: a twelfth of a squared step, in the mean."""
    if row.own is None or not row.own.rmse_per_scale:
        return 0.0
    return min(1.0, 1 / 12 / row.own.rmse_per_scale**2)
