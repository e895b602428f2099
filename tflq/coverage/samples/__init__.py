"""A small model of one operator for each row of the coverage table, in the order of operators.

Every builtin of `schema/tfl.toml` has samples, or a line in its [unquantized] that says why it has no quantized
signature. A sample's name is the operator, the storage types, and after a colon what else tells it from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from tflq.coverage.samples import casts, control, elementwise, movement, recurrent, stablehlo, weighted, windows
from tflq.coverage.samples.entry import Entry
from tflq.coverage.samples.signatures import plain_samples
from tflq.ir.dialects import op_names, table

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
    return {name: reason for reason, names in table("tfl")["unquantized"].items() for name in names.split()}


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
