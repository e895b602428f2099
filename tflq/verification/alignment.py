"""Which entry of a TFLite model a TOSA file is, and what of an entry's interface the file keeps.

A TOSA file has one entry and no signatures; its inputs and outputs have the names of the tensors, their storage types
and known shapes, and no quantization parameters. int64 tensors are int32 there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tflq.verification.file_runner import FileRunner, Names
from tflq.verification.interface import Entries, shapes_fit
from tflq.verification.model_file import ModelFile, entry_of
from tflq.verification.tflite_runner import TfliteRunner

__all__ = ["align", "tosa_differences"]

Side = list[tuple[str, dict[str, Any]]]


def align(model: TfliteRunner, file: ModelFile, tosa: FileRunner) -> tuple[str | None, list[str]]:
    """Gives the TOSA file the key, names and order of the model's entry with the same tensors, and that entry the
    shapes of the file. Answers the key (None: no such entry) and a sentence per difference of the interfaces.
    """
    own = {side: [name for name, _ in pairs] for side, pairs in tosa.entries[""].items()}
    for key in model.entries:
        names = _names(file, key)
        if any(len(names[side]) != len(own[side]) for side in own):
            continue
        names = {side: _named(names[side], own[side]) for side in own}
        if all(sorted(t for _, t in names[s]) == sorted(own[s]) for s in own):
            tosa.align(key, names["inputs"], names["outputs"])
            return key, [
                text for side in own for text in _differences(side, model.entries[key][side], tosa.entries[key][side])
            ]
    return None, [f"no entry of the TFLite model has the inputs {own['inputs']} and the outputs {own['outputs']}"]


def _named(pairs: Names, own: list[str]) -> Names:
    """The names that tensors have in the file: their own; another, made of it, where one is listed twice, since names
    are unique there; and what is left, in order, for those without a name."""
    free = list(own)
    found: dict[int, str] = {}
    for fits in (_is, _is_made_of):
        for i, (_, tensor) in enumerate(pairs):
            taken = next((name for name in free if fits(name, tensor)), None) if i not in found else None
            if taken is not None:
                found[i] = taken
                free.remove(taken)
    rest = iter(free)
    return [(name, found[i] if i in found else tensor or next(rest)) for i, (name, tensor) in enumerate(pairs)]


def _is(name: str, tensor: str) -> bool:
    return bool(tensor) and name == tensor


def _is_made_of(name: str, tensor: str) -> bool:
    return bool(tensor) and name.removeprefix(f"{tensor}_").isdigit()


def _names(file: ModelFile, key: str) -> dict[str, Names]:
    """For each side of an entry, (name there, name of the tensor)."""
    entry, graph = entry_of(file, key)
    sides = {"inputs": entry.inputs, "outputs": entry.outputs}
    return {side: [(name, graph.tensor(index).name) for name, index in pairs] for side, pairs in sides.items()}


def _differences(side: str, model: Side, tosa: Side) -> Iterator[str]:
    for (name, before), (_, after) in zip(model, tosa, strict=True):
        shape, signature = before["shape"], before["shape_signature"] or before["shape"]
        dims = after["shape"]
        if not shapes_fit(dims, signature) and dims != shape:
            yield f"{side[:-1]} '{name}': shape is {dims} instead of {signature}"
            continue
        before["shape"] = dims
        if after["dtype"] != before["dtype"] and (before["dtype"], after["dtype"]) != ("int64", "int32"):
            yield f"{side[:-1]} '{name}': dtype is {after['dtype']} instead of {before['dtype']}"


def tosa_differences(a: Entries, b: Entries) -> list[str]:
    """One sentence per difference of two TOSA files' interfaces: they have one entry each."""
    found: list[str] = []
    for side in ("inputs", "outputs"):
        before, after = a[""][side], b[""][side]
        names = [", ".join(f"'{name}'" for name, _ in pairs) or "none" for pairs in (before, after)]
        if names[0] != names[1]:
            found.append(f"{side} are {names[1]} instead of {names[0]}")
            continue
        for (name, old), (_, new) in zip(before, after, strict=True):
            fields = [field for field in ("shape_signature", "dtype") if old[field] != new[field]]
            found += [f"{side[:-1]} '{name}': {f.split('_')[0]} is {new[f]} instead of {old[f]}" for f in fields]
    return found
