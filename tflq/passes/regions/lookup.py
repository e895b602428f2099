"""The key of a target's table: a kernel by its name and the specs of its ports.

A spec may leave the type open: a plain one, a range (calibrated) or a width (any). The first signature that fits what
is stated supplies the rest; where it leaves it open, too, (`q`), 8 bits are the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.dialects.quant.regions import Region
from tflq.ir.core import walk
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    i8,
    is_quantized,
)
from tflq.targets.load import Kernels
from tflq.targets.port import Port as Kind
from tflq.targets.signature import Signature

__all__ = ["Match", "admits", "lookup", "stored_as"]


@dataclass(frozen=True, slots=True)
class Match:
    """A signature, and what it says of each input and output."""

    signature: Signature
    inputs: tuple[Kind, ...]
    outputs: tuple[Kind, ...]


def lookup(
    kernels: Kernels, region: Region, inputs: Sequence[ElementType], outputs: Sequence[ElementType]
) -> Match | None:
    """The first signature of a region's kernel that the specs of its ports fit; None if there is none."""
    for signature in kernels.get(region.kernel, ()):
        if not _holds(signature, region):
            continue
        for sides in signature.alternatives:
            found = [_assigned(slots, specs) for slots, specs in zip(sides, (inputs, outputs), strict=True)]
            if found[0] is not None and found[1] is not None:
                return Match(signature, found[0], found[1])
    return None


def _holds(signature: Signature, region: Region) -> bool:
    """Whether it has a kernel at all, for the activations that the ops inside have."""
    names = {name for name, _ in signature.constraints}
    if "no_activation" in names:
        fused = (op.attributes.get("fused_activation_function", "NONE") for op in walk(region.regions[0].block.ops))
        if any(activation != "NONE" for activation in fused):
            return False
    return "lowered" not in names


def _assigned(slots: Sequence[object], specs: Sequence[ElementType]) -> tuple[Kind, ...] | None:
    """What a side of a signature says of each port; None if one does not fit."""
    places: list[tuple[Kind, str]] = [(slot.port, slot.many) for slot in slots]  # type: ignore[attr-defined]
    if places and places[-1][1] in ("*", "..."):
        places = [*places[:-1], *places[-1:] * max(len(specs) - len(places) + 1, 0)]
    if len(specs) > len(places) or any(not many for _, many in places[len(specs) :]):
        return None
    kinds = tuple(kind for kind, _ in places[: len(specs)])
    return kinds if all(map(admits, kinds, specs)) else None


def admits(kind: Kind, spec: ElementType) -> bool:
    """Whether a port takes a spec, or what it will be. Integers that mean places or sizes have no parameters: any port
    takes them."""
    if kind.kinds is None or (isinstance(spec, ScalarType) and not spec.is_float):
        return True
    if isinstance(spec, NoQuantizedType):
        return not kind.kinds
    if isinstance(spec, ScalarType):
        return bool(kind.kinds) or kind.storage in (None, spec)
    if not kind.kinds:
        return False
    if isinstance(spec, CalibratedQuantizedType):
        return True
    if isinstance(spec, AnyQuantizedType):
        return kind.storage is None or kind.storage.bits >= spec.storage.bits
    return _takes(kind, spec)


def _takes(kind: Kind, spec: ElementType) -> bool:
    """Whether a port takes parameters."""
    if not is_quantized(spec) or not isinstance(spec, kind.kinds or ()):
        return False
    if kind.storage not in (None, spec.storage) or kind.axis not in (None, getattr(spec, "axis", None)):
        return False
    if (
        kind.low is not None
        and kind.high is not None
        and not kind.low <= spec.storage_min < spec.storage_max <= kind.high
    ):
        return False
    zeros = getattr(spec, "zero_points", None)
    zeros = [spec.zero_point] if zeros is None else zeros.reshape(-1).tolist()  # type: ignore[union-attr]
    return kind.zero_point is None or all(zero == kind.zero_point for zero in zeros)


def stored_as(kind: Kind, spec: ElementType) -> AnyQuantizedType | None:
    """The storage of a port that has no parameters yet; None if it stays plain."""
    if not kind.kinds or isinstance(spec, NoQuantizedType) or (isinstance(spec, ScalarType) and not spec.is_float):
        return None
    wide = isinstance(spec, AnyQuantizedType)
    storage = kind.storage or (spec.storage if wide and spec.storage.bits > i8.bits else i8)  # type: ignore[union-attr]
    expressed = spec if isinstance(spec, ScalarType) else spec.expressed  # type: ignore[union-attr]
    if wide and kind.low is None and spec.storage == storage:  # type: ignore[union-attr]
        low, high = spec.storage_min, spec.storage_max  # type: ignore[union-attr]
    else:
        low = storage.minimum if kind.low is None else kind.low
        high = storage.maximum if kind.high is None else kind.high
    return AnyQuantizedType(storage, expressed, low, high)
