"""ATAN2, POW, FLOOR_DIV and FLOOR_MOD of a tensor and a constant that holds one number: a function of one tensor, so a
table also for int16 and for scales per axis. FLOOR_DIV and FLOOR_MOD compute in float32, as their float kernels do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.arithmetic import Atan2, FloorDiv, FloorMod, Pow
from tflq.ir.core import Value
from tflq.ir.parameters import parameters
from tflq.legalize.real.arithmetic.arithmetic import NOTE
from tflq.legalize.real.generic.grid import grids_of
from tflq.legalize.real.generic.lookup import looked_up_by
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name
from tflq.numerics.floor_division import floor_quotient, floor_remainder
from tflq.numerics.real_tables import REAL_FUNCTIONS_OF_TWO
from tflq.numerics.tables import FloatFunction

__all__: list[str] = []

_Two = Callable[[np.ndarray, np.ndarray], np.ndarray]
_FUNCTIONS: dict[str, _Two] = {
    "ATAN2": REAL_FUNCTIONS_OF_TWO["ATAN2"],
    "FLOOR_DIV": lambda x, y: floor_quotient(x.astype(np.float32), y.astype(np.float32)),
    "FLOOR_MOD": lambda x, y: floor_remainder(x.astype(np.float32), y.astype(np.float32)),
    "POW": REAL_FUNCTIONS_OF_TWO["POW"],
}


@rule(FloorDiv, FloorMod, Pow, Atan2, order=3)
def function_with_a_number(op: FloorDiv | FloorMod | Atan2 | Pow, b: RuleBuilder) -> Answer:
    """The table of the real function of the operand that is no number."""
    grids = grids_of(*op.tensors)
    for place in (1, 0):
        known, other = _number(op.operand(place)), op.operand(1 - place)
        if known is None or broadcast(op.operand(place).type.shape, other.type.shape) != other.type.shape:
            continue
        function = _of_one(_FUNCTIONS[kernel_name(op)], known, place)
        made = looked_up_by(b, other, grids[1 - place], grids[-1], function)
        return Rewritten([made], note=NOTE)
    raise NotApplicable(f"{kernel_name(op)} on {op.result.type.storage} has no table: neither operand is one number")


def _number(value: Value) -> np.ndarray | None:
    """The one number that a constant holds, float64, as DEQUANTIZE gives it."""
    if not value.is_constant or not value.array.size:
        return None
    scale, zero = parameters(value.type)
    reals = (value.array.astype(np.int32) - zero).astype(np.float32) * scale
    return reals.flat[0].astype(np.float64) if (reals == reals.flat[0]).all() else None


def _of_one(function: _Two, known: np.ndarray, place: int) -> FloatFunction:
    return (lambda x: function(x, known)) if place else (lambda x: function(known, x))
