"""A small model of one operator for each row of the coverage table, in the order of operators.

Every builtin has samples, or is `Unquantized` and says why. A sample's name is the operator, the storage types, and
after a colon what else tells it from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from tflq.coverage.samples import casts, control, elementwise, movement, recurrent, stablehlo, weighted, windows
from tflq.coverage.samples.entry import Entry
from tflq.coverage.samples.signatures import plain_samples
from tflq.dialects.traits.effects import Unquantized
from tflq.ir.registry import dialect, op_names

__all__ = ["operators", "samples", "samples_of", "unquantized"]

_ENTRIES: Mapping[str, Entry] = {
    **elementwise.ENTRIES,
    **movement.ENTRIES,
    **windows.ENTRIES,
    **stablehlo.ENTRIES,
}


def operators() -> list[str]:
    """All builtins, in the order of the table."""
    return sorted(name.removeprefix("tfl.") for name in op_names("tfl"))


@cache
def unquantized() -> Mapping[str, str]:
    """Operators without a quantized signature, and why."""
    declared = dialect("tfl")
    assert declared is not None
    traits = ((c.op_name.removeprefix("tfl."), c.trait(Unquantized)) for c in declared.classes())
    return {name: trait.reason for name, trait in traits if trait is not None}


def samples() -> Iterator[tuple[str, bytes]]:
    """Each sample's name and file."""
    for name in operators():
        yield from samples_of(name)


def samples_of(name: str) -> Iterator[tuple[str, bytes]]:
    """An operator's samples."""
    if name in _ENTRIES:
        yield from plain_samples(name, _ENTRIES[name])
    for family in (weighted, casts, recurrent, control, stablehlo):
        if name in family.SAMPLES:
            yield from family.SAMPLES[name]()
