"""Which entry of a TFLite model a TOSA file is, and what of an entry's interface the file keeps.

A TOSA file has one entry and no signatures; its inputs and outputs have the names of the tensors, their storage types
and known shapes, and no quantization parameters. int64 tensors are int32 there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tflq.ir.core import Module, Value
from tflq.verification.interface import shapes_fit
from tflq.verification.runner import Runner
from tflq.verification.tosa_runner import Names, TosaRunner

__all__ = ["align"]

Side = list[tuple[str, dict[str, Any]]]


def align(model: Runner, module: Module, tosa: TosaRunner) -> tuple[str | None, list[str]]:
    """Gives the TOSA file the key, names and order of the model's entry with the same tensors, and that entry the
    shapes of the file. Answers the key (None: no such entry) and a sentence per difference of the interfaces.
    """
    own = {side: [name for name, _ in pairs] for side, pairs in tosa.entries[""].items()}
    for key in model.entries:
        names = _names(model, module, key)
        if names is not None and all(len(names[side]) == len(own[side]) for side in own):
            names = {side: _named(names[side], own[side]) for side in own}
        if names is not None and all(sorted(t for _, t in names[s]) == sorted(own[s]) for s in own):
            tosa.align(key, names["inputs"], names["outputs"])
            return key, [
                text for side in own for text in _differences(side, model.entries[key][side], tosa.entries[key][side])
            ]
    return None, [f"no entry of the TFLite model has the inputs {own['inputs']} and the outputs {own['outputs']}"]


def _named(pairs: Names, own: list[str]) -> Names:
    """Tensors without a name have the file's, by position."""
    return [(name, tensor or made) for (name, tensor), made in zip(pairs, own, strict=True)]


def _names(model: Runner, module: Module, key: str) -> dict[str, Names] | None:
    """For each side of an entry, (name there, name of the tensor); None if it cannot be told."""
    entry = model.entries[key]
    if not key:
        return {side: [(name, name) for name, _ in pairs] for side, pairs in entry.items()}
    signature = next((s for s in module.signatures or () if s.key == key), None)
    if signature is None or signature.inputs is None or signature.outputs is None:
        return None
    sides: dict[str, list[tuple[str | None, Value]]] = {"inputs": signature.inputs, "outputs": signature.outputs}
    found: dict[str, Names] = {}
    for side, pairs in sides.items():
        tensors = {name: value.name for name, value in pairs}
        if any(name not in tensors for name, _ in entry[side]):
            return None
        found[side] = [(name, tensors[name]) for name, _ in entry[side]]
    return found


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
