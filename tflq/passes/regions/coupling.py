"""Points of one `quant.coupled_ref` key: their values get one type, in whichever functions they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tflq.dialects.regions import CoupledRef
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Function, Value, walk
from tflq.ir.print_types import type_text
from tflq.ir.types import BareType, CalibratedQuantizedType, ElementType, ScalarType, is_quantized
from tflq.passes.regions.ranges import same_value

COUPLED: Final = "coupled"
"""Where the parameters of a port come from that a coupled value has them from."""
_REMEDY: Final = "give both points the same parameters, or other keys"


class Coupling:
    """The points of some functions, by their keys. A value with points of several keys joins these."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.points: dict[str, list[CoupledRef]] = {}
        self._joined: dict[Value, Value] = {}
        for op in (op for function in functions for op in walk(function.ops) if isinstance(op, CoupledRef)):
            self.points.setdefault(op.coupled_key, []).append(op)
        for points in self.points.values():
            first, *rest = (self.shared(op.arg) for op in points)
            for value in rest:
                if self.shared(value) is not self.shared(first):
                    self._joined[self.shared(value)] = self.shared(first)

    def shared(self, value: Value) -> Value:
        """The value that stands for all that are coupled with one; most values stand for themselves."""
        value = same_value(value)
        while value in self._joined:
            value = self._joined[value]
        return value

    def check(self, type_of: Callable[[Value], ElementType | None]) -> None:
        """UnsupportedError names two points of one key whose values have different parameters. type_of: the parameters
        of a value, None if it has none."""
        reasons = []
        for key, points in self.points.items():
            known = [(op, kind) for op in points if (kind := type_of(same_value(op.arg))) is not None]
            other = next((pair for pair in known if pair[1] != known[0][1]), None)
            if other is not None:
                (op, kind), (conflicting, its_kind) = known[0], other
                what = (
                    f"the points of '{key}' must have one type: {op.arg.label} has {_shown(kind)}, and "
                    f"{conflicting.arg.label} {_shown(its_kind)}"
                )
                reasons.append(Reason.at(conflicting.location, what, value=key, remedy=_REMEDY))
        if reasons:
            raise UnsupportedError("coupled points have different types", reasons)


def common(kinds: Iterable[ElementType]) -> ElementType | None:
    """What coupled values have in common, of what is said about each: parameters, else a range that holds all ranges;
    None if nothing is said."""
    kinds = list(kinds)
    known = next((kind for kind in kinds if is_quantized(kind)), None)
    if known is not None:
        return known
    ranges = [kind for kind in kinds if isinstance(kind, CalibratedQuantizedType)]
    if not ranges or not isinstance(ranges[0].expressed, ScalarType):
        return None
    low, high = min(kind.minimum for kind in ranges), max(kind.maximum for kind in ranges)
    return CalibratedQuantizedType.of(ranges[0].expressed, low, high)


def _shown(kind: ElementType) -> str:
    return type_text(BareType.of(kind))
