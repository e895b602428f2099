"""What a drop-in replacement keeps: names, shapes, types and quantization of inputs and outputs, and the signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Entries", "interface_differences", "same_inputs", "shapes_fit"]

Entries = Mapping[str, Mapping[str, list[tuple[str, dict[str, Any]]]]]
"""The entries of a model, as `worker.Model.entries` gives them."""


def interface_differences(a: Entries, b: Entries) -> list[str]:
    """One sentence per difference of b's interface from a's."""
    found = [f"signature '{key}' is missing" for key in a if key not in b]
    found += [f"signature '{key}' is new" for key in b if key not in a]
    for key in a:
        if key in b:
            for side in ("inputs", "outputs"):
                where = f"signature '{key}': " if key else ""
                found += [where + text for text in _sides(side[:-1], a[key][side], b[key][side])]
    return found


def same_inputs(a: Entries, b: Entries, key: str, *, fit: bool = False) -> bool:
    """Whether both models take the same arrays at an entry, so that they can be compared there; with `fit`, once each
    has the dims that the other states and it leaves open, which it is given.
    """
    sides = [[d for _, d in entries[key]["inputs"]] for entries in (a, b) if key in entries]
    if len(sides) < 2 or [d["dtype"] for d in sides[0]] != [d["dtype"] for d in sides[1]]:
        return False
    stated = [[d["shape_signature"] or d["shape"] for d in side] for side in sides]
    if stated[0] == stated[1]:
        return True
    if not fit or not all(map(shapes_fit, *stated)):
        return False
    for x, y, m, n in zip(*sides, *stated, strict=True):
        x["shape"] = y["shape"] = [d if max(pair) < 0 else max(pair) for *pair, d in zip(m, n, x["shape"], strict=True)]
    return True


def shapes_fit(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes may be one; -1 is an open dim."""
    return len(a) == len(b) and all(m == n or min(m, n) < 0 for m, n in zip(a, b, strict=True))


def _sides(kind: str, a: list[tuple[str, dict[str, Any]]], b: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    if [name for name, _ in a] != [name for name, _ in b]:
        yield f"{kind}s are {_names(b)} instead of {_names(a)}"
        return
    for (name, before), (_, after) in zip(a, b, strict=True):
        for field, value in before.items():
            if after[field] != value:
                yield f"{kind} '{name}': {field.replace('_', ' ')} is {_short(after[field])} instead of {_short(value)}"


def _names(side: list[tuple[str, dict[str, Any]]]) -> str:
    return ", ".join(f"'{name}'" for name, _ in side) or "none"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
