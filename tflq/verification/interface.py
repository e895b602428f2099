"""What a drop-in replacement keeps: names, shapes, types, quantization of inputs and outputs; signatures; metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tflq.verification.model_file import Entry, ModelFile, Tensor

__all__ = ["Entries", "allocation_differences", "interface_differences", "same_inputs", "shapes_fit"]

Entries = Mapping[str, Mapping[str, list[tuple[str, dict[str, Any]]]]]
"""The entries of a model, as `worker.Model.entries` gives them."""

RUNTIME = "min_runtime_version"
"""Metadata that says which release the operators of a model need: a model of other operators needs another."""


def interface_differences(a: ModelFile, b: ModelFile) -> list[str]:
    """One sentence per difference of b's interface from a's."""
    found = [f"signature '{key}' is missing" for key in a.entries if key not in b.entries]
    found += [f"signature '{key}' is new" for key in b.entries if key not in a.entries]
    for key in a.entries:
        if key in b.entries:
            where = f"signature '{key}': " if key else ""
            found += [where + text for text in _entries(a, b, a.entries[key], b.entries[key])]
    return found + list(_metadata(a.metadata, b.metadata))


def _metadata(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> Iterator[str]:
    for name in a:
        if name not in b:
            yield f"metadata '{name}' is missing"
        elif name != RUNTIME and a[name] != b[name]:
            yield f"metadata '{name}' is {_short(b[name])} instead of {_short(a[name])}"
    yield from (f"metadata '{name}' is new" for name in b if name not in a and name != RUNTIME)


def _entries(a: ModelFile, b: ModelFile, before: Entry, after: Entry) -> Iterator[str]:
    for kind in ("input", "output"):
        pairs = [getattr(entry, f"{kind}s") for entry in (before, after)]
        if [name for name, _ in pairs[0]] != [name for name, _ in pairs[1]]:
            yield f"{kind}s are {_names(pairs[1])} instead of {_names(pairs[0])}"
            continue
        for (name, i), (_, j) in zip(*pairs, strict=True):
            tensors = a.graphs[before.graph].tensor(i), b.graphs[after.graph].tensor(j)
            yield from (f"{kind} '{name}': {text}" for text in _tensors(*tensors))


def _tensors(a: Tensor, b: Tensor) -> Iterator[str]:
    if a.name != b.name:
        yield f"its tensor is '{b.name}' instead of '{a.name}'"
    for field in ("shape", "signature", "type", "scales", "zero_points", "axis", "details"):
        before, after = getattr(a, field), getattr(b, field)
        if field == "signature" and (before, after) == (a.shape, b.shape):
            continue  # nothing is open: they are the shapes again
        same = before.tobytes() == after.tobytes() if field == "scales" else before == after
        if not same:
            before, after = (x.tolist() if field == "scales" else x for x in (before, after))
            yield f"{_WORDS[field]} {_short(_listed(after))} instead of {_short(_listed(before))}"


_WORDS = {
    "shape": "shape is",
    "signature": "shape signature is",
    "type": "type is",
    "scales": "scales are",
    "zero_points": "zero points are",
    "axis": "quantized axis is",
    "details": "quantization details are of kind",
}


def allocation_differences(a: Entries, b: Entries) -> list[str]:
    """One sentence per input or output that an interpreter allocates otherwise for b than for a, before it runs."""
    found = []
    for key in a:
        for side in ("inputs", "outputs"):
            pairs = zip(a[key][side], b.get(key, {}).get(side, ()), strict=False)
            where = f"signature '{key}': " if key else ""
            found += [
                f"{where}{side[:-1]} '{name}': is allocated as {after['shape']} instead of {before['shape']}"
                for (name, before), (_, after) in pairs
                if before["shape"] != after["shape"]
            ]
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


def _names(side: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"'{name}'" for name, _ in side) or "none"


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
