"""A target: its table of quantized kernels, and what it says of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tflq.dialects.forms import OF_TARGET
from tflq.ir.core import Op
from tflq.light import dataclass, field

if TYPE_CHECKING:
    from tflq.targets.signature import Kinds, Possible, Signature

__all__ = ["INTEGER", "Target", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the target has a kernel for an op, and why (not). `listed`: a signature fits the op's types."""

    kept: bool
    reason: str
    listed: bool = False


@dataclass(frozen=True)
class Target:
    """Kernels by name ("conv_2d") and their signatures, the first that fits wins; all else is lowered to plain
    integers.

    unsigned: kernels whose uint8 form is the int8 one on values less 128. signed: kernels whose int8 form is the uint8
    one on values more by 128. uniform: kernels to which per-axis parameters that are all equal are what one scale is.
    Of these, other storage is met by an exact rescale, on the signatures that are `agreed`, where some of a kernel are:
    those on which it was measured that it is exact. recurrent: whether it runs operators with
    variable tensors, which it does not list.
    """

    name: str
    kernels: Mapping[str, Sequence[Signature]] = field(default_factory=dict)
    unsigned: frozenset[str] = frozenset()
    signed: frozenset[str] = frozenset()
    uniform: frozenset[str] = frozenset()
    recurrent: bool = True
    agreed: Mapping[str, Sequence[Signature]] = field(default_factory=dict)
    _remembered: dict[tuple[str, Kinds, Kinds], Sequence[Possible]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def judge(self, op: Op) -> Verdict:
        """Whether it runs an op as it is."""
        name = op.short_name
        for possible in self._possible(op, name):
            if possible.fits(op):
                signature = possible.signature
                broken = signature.broken(op)
                if broken is None:
                    return Verdict(True, f"{OF_TARGET} '{self.name}': {signature.text}", True)
                return Verdict(False, f"{broken}, as the target '{self.name}' asks: {signature.text}", True)
        if name in self.kernels:
            return Verdict(False, f"the target '{self.name}' has no such kernel on these types")
        return Verdict(False, f"the target '{self.name}' has no such kernel")

    def why_not(self, op: Op) -> str:
        """Why none of the kernels that it lists under an op's name runs it; empty if it lists none."""
        listed = self.kernels.get(op.short_name, ())
        verdict = self.judge(op)
        if not listed or verdict.kept or verdict.listed:
            return verdict.reason if verdict.listed and not verdict.kept else ""
        words, signature = min(((s.why_not(op), s) for s in listed), key=lambda pair: len(pair[0]))
        return f"{', '.join(words)}, in the target '{self.name}': {signature.text}"

    def _possible(self, op: Op, name: str) -> Sequence[Possible]:
        """The signatures of a kernel that ops on tensors of these kinds may fit, remembered."""
        from tflq.targets.signature import kinds_of

        key = name, kinds_of(op.operands), kinds_of(op.results)
        known = self._remembered.get(key)
        if known is None:
            found = (signature.possible(*key[1:]) for signature in self.kernels.get(name, ()))
            known = self._remembered[key] = [possible for possible in found if possible is not None]
        return known

    def agree(self, op: Op, changed: Op) -> bool:
        """Whether an op computes the same on other storage: it was measured on kernels that are right on either."""
        known = self.agreed.get(op.short_name, ())
        return not known or all(any(s.fits(o) and s.broken(o) is None for s in known) for o in (op, changed))


INTEGER = Target("integer")
"""Nothing is kept."""
