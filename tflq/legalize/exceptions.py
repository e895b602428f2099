"""Where a converted model gives something else than the parameters say, or than the interpreter does.

`EXCEPTIONS` names the ways; `docs/exceptions.md` has for each what was measured. A row of the report with a warning has
the name of one. Rules state what parameters kernels disregard, and note what C++ leaves undefined (`note_undefined`);
`settled` finds out whether that shows in a result, and says how far it is from the real value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tflq.dialects.declare import trait_of
from tflq.dialects.traits.kernels import Interpolates
from tflq.ir.core import Op
from tflq.ir.types import UniformQuantizedType, i1, i16
from tflq.legalize.rule import AS_STATED, NotApplicable, Rewritten, Rule
from tflq.light import dataclass, replace

if TYPE_CHECKING:
    from tflq.legalize.probing import Distance

__all__ = ["EXCEPTIONS", "Caveat", "inexact", "remedies", "settled"]


@dataclass(frozen=True, slots=True)
class Caveat:
    """What a user should know of a result. `reproduced`: it is the interpreter's, which is not what the parameters say;
    else it is what the parameters say, and the interpreter's is not, or is not the same everywhere. `remedy`: what the
    user can do, after each warning."""

    text: str
    reproduced: bool
    remedy: str


_QUANTIZED_AGAIN = "quantize the model again with scales closer to each other, or convert with --semantics real"

EXCEPTIONS: dict[str, Caveat] = {
    "disregarded": Caveat(
        "the kernel ignores parameters that the model states",
        reproduced=True,
        remedy="keep it if the model was tested in the interpreter, else convert with --semantics real",
    ),
    "undefined": Caveat(
        "the kernel comes to something that C++ leaves undefined", reproduced=True, remedy=_QUANTIZED_AGAIN
    ),
    "range": Caveat("the kernel's arithmetic leaves the range of its types", reproduced=True, remedy=_QUANTIZED_AGAIN),
    "unsettled": Caveat(
        "the kernel's result is undefined in C++, and interpreters differ",
        reproduced=False,
        remedy="use it, but do not compare it with an interpreter's result",
    ),
    "inexact": Caveat(
        "no integer arithmetic here gives what the kernel does",
        reproduced=False,
        remedy="state sizes that are open (--batch, --shape), else allow for the difference",
    ),
    "broken": Caveat(
        "the kernel's result says nothing of the model",
        reproduced=False,
        remedy="use it, but do not compare it with the result of the reference kernels",
    ),
    "state": Caveat(
        "the state outlives reset_all_variables()",
        reproduced=True,
        remedy="for a new sequence create the interpreter anew, or convert with --reset-signature and call "
        "get_signature_runner('tflq_reset')()",
    ),
}
"""By name."""

_UNDEFINED = "{what}, which C++ leaves undefined; the result is what kernels compiled for x86-64 give{far}"
_UNSETTLED = "{what}, which C++ leaves undefined, and interpreters differ{far}; " + AS_STATED
_RANGE = "at these scales the kernel's sums or products exceed its types; the result is the kernel's{far}"
_USUAL = (1e-12, 1e6)
"""Scales between these do not take the kernels' float32 multipliers out of range."""


def remedies(exceptions: Iterable[str]) -> str:
    """What a user can do about warnings of these exceptions; empty if there are none, or none is named."""
    return "; ".join(dict.fromkeys(EXCEPTIONS[name].remedy for name in exceptions if name))


def settled(rule: Rule, op: Op, answer: Rewritten, undefined: Mapping[str, int | None]) -> Rewritten:
    """A rule's answer with the warnings that its results need: those that no value shows are left out."""
    if answer.warning and not EXCEPTIONS[answer.exception].reproduced:
        return answer
    unusual = _unusual(op)
    if not (undefined or answer.warning or unusual):
        return answer
    from tflq.legalize.probing import Distance, distance

    far = distance(rule, op)
    counts = [c for c in undefined.values() if c is not None]
    if far is None and counts and len(counts) == len(undefined) and not answer.warning:
        far = Distance(max(counts))
    if far is not None and not far.shows:
        return replace(answer, warning="")
    if not answer.warning and not undefined and (far is None or not _plain(op, far)):
        return answer
    tail = "" if far is None else f", {far}"
    if undefined:
        words, name = _UNDEFINED.format(what=" and ".join(undefined), far=tail), "undefined"
    elif answer.warning:
        return answer
    else:
        words, name = _RANGE.format(far=tail), "range"
    return replace(answer, warning="; ".join(w for w in (answer.warning, words) if w), exception=name)


def inexact(rule: Rule, op: Op, answer: NotApplicable) -> dict[str, str]:
    """Warnings that a rule cannot give what the kernel does, and the exceptions that these are."""
    found = {answer.warning: "inexact"} if answer.warning else {}
    if answer.unsettled:
        from tflq.legalize.probing import Distance, distance

        far = distance(rule, op)  # of what one of them gives
        words = _UNSETTLED.format(what=answer.unsettled, far="" if far in (None, Distance(0)) else f": {far}")
        found[words] = "unsettled"
    return found


def _unusual(op: Op) -> bool:
    low, high = _USUAL
    for value in op.tensors:
        element = value.type.element
        if isinstance(element, UniformQuantizedType) and not low <= element.scale <= high:
            return True
    return False


def _plain(op: Op, far: Distance) -> bool:
    """Whether a distance is more than what a kernel's approximations are off. Comparisons round on purpose, and int16
    tables interpolate."""
    storage = op.result.type.storage
    interpolated = storage is i16 and trait_of(op, Interpolates) is not None
    return storage is not i1 and not interpolated and far.counts > 1 << max(storage.bits - 6, 0)
