"""Reducing a model that fails to the smallest part of it that still does: delta debugging over its operators."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tflq.backends import of_target
from tflq.dialects.effects import callees
from tflq.errors import OptionError, Reason, TflqError, check_flags, check_numbers, check_path
from tflq.files import check_outputs, replace_files
from tflq.flatbuffer.layout import TOSA
from tflq.flatbuffer.reader import read
from tflq.flatbuffer.structure import identify
from tflq.ir.core import Module
from tflq.passes.source import entries
from tflq.pipelines import Fallback, asked
from tflq.reduction.failing import Conversion, Inputs, Predicate
from tflq.reduction.parts import Candidate, Recording, build, record
from tflq.select.lowering import Mac
from tflq.verification.inputs import GivenInputs, check_inputs, files_of, given_inputs, load_inputs, made_inputs
from tflq.verification.interface import function_number, signature_of
from tflq.verification.runner import RunError, opened_whole
from tflq.verification.worker import Side

# Delta debugging (Zeller and Hildebrandt 2002): the least part of a list that still fails.


T = TypeVar("T")


def minimize(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of items, in their order, that fails, and does not without any single one of them. `items` itself fails.

    Each part is tried once: about 2 log2(n) parts, if one item is at fault.
    """
    kept, chunks = list(items), 2
    tried: set[tuple[T, ...]] = {tuple(kept)}

    def still(candidate: list[T]) -> bool:
        key = tuple(candidate)
        if not candidate or key in tried:
            return False
        tried.add(key)
        return fails(candidate)

    while len(kept) > 1:
        bounds = [len(kept) * i // chunks for i in range(chunks + 1)]
        parts = [kept[a:b] for a, b in pairwise(bounds)]
        smaller = next((part for part in parts if still(part)), None)
        if smaller is not None:
            kept, chunks = smaller, 2
            continue
        rests = ([x for j, part in enumerate(parts) if j != i for x in part] for i in range(chunks))
        smaller = next((rest for rest in rests if still(rest)), None)
        if smaller is not None:
            kept, chunks = smaller, max(chunks - 1, 2)
        elif chunks < len(kept):
            chunks = min(2 * chunks, len(kept))
        else:
            break
    return kept


# The call.


JSON_VERSION = 1


@dataclass(frozen=True)
class Reduction:
    """The part of a model that fails in the same way as the model: returned by `tflq.reduce`.

    Attributes:
        source: Path of the model.
        kind: The failure: "differs", "does not run", "dies", "refused: REASON", "error: TYPE in FUNCTION" or "crash:
            SIGNAL".
        data: The part, as a TFLite file.
        inputs: Arrays by input name on which it fails.
        operators: The model's operators that are left, such as "subgraph 0, operator 3 (ADD), tensor 'y'".
        total: Number of operators in the model.
        tried: Number of parts that were tried.
        seconds: How long that took.

    Example:
        ```python
        part = tflq.reduce("model.tflite")
        if part is not None:
            part.save("part.tflite", force=True)
        ```
    """

    source: str
    kind: str
    data: bytes = field(repr=False)
    inputs: Inputs = field(repr=False)
    operators: tuple[str, ...]
    total: int
    tried: int
    seconds: float

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the model, and its inputs next to it: both, or neither.

        Args:
            path: Where to write the model.
            force: Replace existing files.

        Returns:
            The path of the inputs.

        Raises:
            FileError: A file exists or cannot be written.
        """
        part, arrays = _places(Path(path))
        check_outputs([("the part", part), ("its inputs", arrays)], inputs=[self.source], force=force)
        held = io.BytesIO()
        np.savez(held, **{f"arr_{i}": array for i, array in enumerate(self.inputs.values())})
        replace_files([(part, [self.data]), (arrays, [held.getbuffer()])], force=force)
        return arrays

    def to_json(self) -> dict[str, Any]:
        """The result in a versioned JSON form, without the model and its inputs."""
        return {
            "format": "tflq.reduction",
            "version": JSON_VERSION,
            "source": self.source,
            "kind": self.kind,
            "operators": list(self.operators),
            "total": self.total,
            "tried": self.tried,
            "seconds": round(self.seconds, 3),
        }


def reduce(
    model: str | os.PathLike[str] | bytes,
    destination: str | os.PathLike[str] | None = None,
    *,
    target: str | os.PathLike[str] | None = None,
    mac: Mac = "integer",
    fallback: Fallback = "float",
    inputs: GivenInputs | str | os.PathLike[str] | None = None,
    seeds: int = 2,
    timeout: float = 120.0,
    force: bool = False,
    predicate: Predicate | None = None,
) -> Reduction | None:
    """Find the smallest part of a TFLite model whose conversion still differs, fails or crashes.

    A part is a set of operators of one function. It reads what the model computes at that place: one run in the
    interpreter records every tensor. If the original does not run, random integers take their place.

    Args:
        model: The TFLite model: a path or bytes.
        destination: Where to write the part. Its inputs are written next to it (.npz).
        target: As in `tflq.convert`.
        mac: As in `tflq.convert`.
        fallback: As in `tflq.convert`.
        inputs: Arrays by input name, an .npz file of them, or a folder. By default the inputs of `tflq.verify`: `seeds`
            random sets, then edge values. The first set on which an entry fails is used.
        seeds: Number of sets of random inputs.
        timeout: Seconds that a conversion or a run may take.
        force: Replace existing files.
        predicate: What counts as failing, instead of these options: a function of a model's bytes and of arrays by
            input name that returns the kind of failure, or "" if there is none.

    Returns:
        The part and how it fails, or None if the whole model does not fail.

    Raises:
        InvalidModelError: The model is not valid.
        OptionError: An option makes no sense, or the model is a TOSA file.
        FileError: The destination exists or cannot be written.
        TflqError: No interpreter is installed.

    Example:
        ```python
        found = tflq.reduce("model.tflite", "part.tflite", target="kernels")
        if found is not None:
            print(found.kind, found.operators)
        ```
    """
    start = time.monotonic()
    check_numbers(0, whole=True, seeds=seeds)
    check_numbers(0, timeout=timeout)
    check_flags(force=force)
    check_inputs(inputs)
    check_path("destination", destination)
    if destination is not None:
        part, arrays = _places(Path(destination))
        read = model, target, *files_of(inputs)
        check_outputs([("the part", part), ("its inputs", arrays)], inputs=read, force=force)
    if identify(model) is TOSA:
        remedy = "reduce the TFLite model that it was made of, with target 'tosa'"
        raise OptionError(Reason("only TFLite models can be reduced; this is a TOSA file", _name(model), remedy=remedy))
    format = of_target(target, static=True).name
    asked(format, target, mac=mac, fallback=fallback)
    options = {"target": target, "mac": mac, "fallback": fallback, "format": format}
    with ExitStack() as stack:
        asked_for = predicate or stack.enter_context(Conversion(options, timeout=timeout))
        reduction = _reduced(model, asked_for, start, seeds, inputs, timeout)
    if reduction is not None and destination is not None:
        reduction.save(Path(destination), force=force)
    return reduction


def _reduced(
    model: str | os.PathLike[str] | bytes,
    predicate: Predicate,
    start: float,
    seeds: int,
    inputs: GivenInputs | str | os.PathLike[str] | None,
    timeout: float,
) -> Reduction | None:
    """The smallest part that fails as the predicate says."""
    module = read(model)
    with tempfile.TemporaryDirectory(prefix="tflq-reduce-") as folder:
        path = Path(folder, "model.tflite")
        data = model if isinstance(model, bytes) else Path(model).read_bytes()
        path.write_bytes(data)
        search = _Search(data, module, predicate)
        for entry, arrays in _runs(path, module, seeds, inputs, timeout):
            index = function_number(module, entry)
            search.recording = _recorded_inputs(module, entry, index, arrays)
            if search.fails_whole(index):
                search.recording = record(path, module, entry, arrays, timeout) or search.recording
                smallest = search.smallest(index)
                return Reduction(module.source, search.kind, *smallest, search.tried, time.monotonic() - start)
    return None


def _places(path: Path) -> tuple[Path, Path]:
    """Where a part and its inputs go."""
    return path, path.with_suffix(".npz")


def _name(model: str | os.PathLike[str] | bytes) -> str:
    return "" if isinstance(model, bytes) else os.fspath(model)


def _runs(
    path: Path, module: Module, seeds: int, own: GivenInputs | str | os.PathLike[str] | None, timeout: float
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Entries and inputs to try. If the interpreter does not open the model: its first function, without inputs."""
    try:
        with opened_whole(str(path), keep=False, timeout=timeout) as opened:
            sides = opened.head["entries"]
            runs = [(key, arrays) for key in entries(module) for arrays in input_sets(sides[key]["inputs"], seeds, own)]
    except RunError:
        runs = [("", [])]
    yield from runs


def _recorded_inputs(module: Module, entry: str, index: int, arrays: Sequence[np.ndarray]) -> Recording:
    """The inputs of an entry, by their places."""
    function = module.functions[index]
    values = function.inputs
    if (signature := signature_of(module, entry)) is not None:
        values = [value for _, value in sorted(signature.inputs or (), key=lambda pair: pair[0] or "")]
    numbers = {value: n for n, value in enumerate(function.tensors)}
    return {(index, numbers[v]): array for v, array in zip(values, arrays, strict=False)}


def input_sets(side: Side, seeds: int, own: GivenInputs | str | os.PathLike[str] | None) -> Iterator[list[np.ndarray]]:
    """The inputs of an entry, as `tflq.verify` makes them, or the user's own."""
    if own is not None:
        yield from (given_inputs(side, arrays) for _, arrays in load_inputs(own))
    else:
        yield from (arrays for _, arrays in made_inputs(side, seeds, None))


class _Search:
    """The parts of one model that are tried."""

    def __init__(self, data: bytes, module: Module, predicate: Predicate) -> None:
        self._data = data
        self._module = module
        self._predicate = predicate
        self.recording: Recording = {}
        self.kind = ""
        self.tried = 0

    def fails_whole(self, index: int) -> bool:
        """Whether a function fails; its parts must then fail in the same way."""
        self.kind = self._kind(self._part(index, self._all(index)))
        return bool(self.kind)

    def smallest(self, index: int) -> tuple[bytes, Inputs, tuple[str, ...], int]:
        """The smallest part of a function, or of one that its last operator runs."""
        total = sum(len(function.ops) for function in self._module.functions)
        kept = self._minimized(index)
        while len(kept) == 1:
            inner = self._failing_callee(index, kept[0])
            if inner is None:
                break
            index, kept = inner, self._minimized(inner)
        data, inputs = self._part(index, kept)
        ops = self._module.functions[index].ops
        return data, inputs, tuple(str(ops[i].location).removeprefix(f"{self._module.source}: ") for i in kept), total

    def _minimized(self, index: int) -> list[int]:
        return minimize(self._all(index), lambda operators: self._fails(index, operators))

    def _failing_callee(self, index: int, operator: int) -> int | None:
        called = dict.fromkeys(callees(self._module.functions[index].ops[operator]))
        return next((i for i in called if self._fails(i, self._all(i))), None)

    def _all(self, index: int) -> list[int]:
        return list(range(len(self._module.functions[index].ops)))

    def _part(self, index: int, operators: Sequence[int]) -> Candidate:
        return build(self._data, index, operators, self.recording)

    def _fails(self, index: int, operators: Sequence[int]) -> bool:
        try:
            candidate = self._part(index, operators)
        except TflqError:  # these operators make no model of their own
            return False
        return self._kind(candidate) == self.kind

    def _kind(self, candidate: Candidate) -> str:
        self.tried += 1
        return self._predicate(*candidate)
