"""Inputs to compare two models on: random ones from a seed, the edges of the storage range, or the user's own."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from tflq.errors import FileError, OptionError, Reason, not_expected
from tflq.files import file_errors
from tflq.verification.difference import EXACT, Tolerance
from tflq.verification.expectations import ReportLike
from tflq.verification.runner import Resolver, Runtime
from tflq.verification.worker import Side

GivenInputs = Mapping[str, np.ndarray]

FLOAT_RANGE = (-1.0, 1.0)
EDGES = ("minimum", "maximum", "zero point")
IN_A_ROW = 10
"""Runs with state that follow each other."""


def check_inputs(inputs: object) -> None:
    """Arrays by input name, a path, or None."""
    if not (inputs is None or isinstance(inputs, (Mapping, str, os.PathLike))):
        raise not_expected("inputs", inputs, "arrays by input name, or the path of an .npz file or a folder")


def made_inputs(
    side: Side, seeds: int, shapes: Sequence[tuple[int, ...]] | None, seed: int = 0
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """`seeds` random sets over the full storage range, then all minimum, all maximum and all zero point, in these
    shapes, or those of the file. `seed`: another one gives other random sets.

    Floats are drawn from [-1, 1]. Integers that are not quantized and wider than a byte are often indices or sizes: 0
    or 1.
    """
    for name in (*(f"random {number}" for number in range(seeds)), *EDGES):
        rng = np.random.default_rng((zlib.crc32(name.encode()), seed))
        pairs = zip(side, shapes or [tuple(description["shape"]) for _, description in side], strict=True)
        yield name, [_draw(name, description, shape, rng) for (_, description), shape in pairs]


def inputs_in_a_row(
    side: Side, shapes: Sequence[tuple[int, ...]] | None, seed: int = 0
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Random sets for runs that follow each other, each with the state that those before have left."""
    for _, arrays in islice(made_inputs(side, IN_A_ROW, shapes, seed), IN_A_ROW):
        yield f"{IN_A_ROW} in a row", arrays


def _draw(name: str, description: Mapping[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    is_text = description["dtype"].startswith(("bytes", "str", "object"))
    dtype = np.dtype("S1" if is_text else description["dtype"])
    zero = description["zero_points"][0] if description["zero_points"] else 0
    if dtype.kind in "fc":
        low, high = FLOAT_RANGE
        values = rng.uniform(low, high, shape)
        return _edge(name, (low, high, 0.0), shape, values).astype(dtype)
    if dtype.kind in "iu" and (description["scales"] or dtype.itemsize == 1 or dtype == np.int16):
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if dtype.itemsize < 4 else (-(2**20), 2**20)
        return _edge(name, (low, high, zero), shape, rng.integers(low, high, shape, endpoint=True)).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def _edge(name: str, edges: tuple[float, float, float], shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    return np.full(shape, edges[EDGES.index(name)]) if name in EDGES else values


def given_inputs(side: Side, arrays: GivenInputs) -> list[np.ndarray]:
    """The user's own inputs: arrays by input name, or all of them in order as `arr_0`, `arr_1` ... (what np.savez calls
    them). A single input may have any name.

    OptionError names an array that is missing, that no input takes, or that does not fit.
    """
    chosen: dict[str, str] = {}
    for i, (name, _) in enumerate(side):
        keys = [key for key in (name, _as_file(name), f"arr_{i}") if key in arrays]
        keys = keys or (list(arrays) if len(side) == len(arrays) == 1 else [])
        if not keys:
            there = ", ".join(map(repr, arrays)) or "none"
            raise OptionError(Reason(f"no array for input '{name}': there are {there}", tensor=name))
        chosen[name] = keys[0]
    if unused := [key for key in arrays if key not in chosen.values()]:
        names = ", ".join(f"'{name}'" for name, _ in side)
        raise OptionError(Reason(f"no input takes the array '{unused[0]}': the inputs are {names}", value=unused[0]))
    return [_fitting(name, description, np.asarray(arrays[chosen[name]])) for name, description in side]


def _as_file(name: str) -> str:
    """A name as that of a file: characters that systems reserve are '_'."""
    return re.sub(r'[/\\:*?"<>|]', "_", name)


def load_inputs(source: GivenInputs | str | os.PathLike[str]) -> list[tuple[str, GivenInputs]]:
    """The sets that a source holds, and what to call them. Arrays by name, an .npz file, or the .npy file of a single
    input are one set; so are all .npy files of a folder, by input, and each of its .npz files.

    FileError if there is nothing to read.
    """
    if isinstance(source, Mapping):
        return [("given", source)]
    path = Path(source)
    if not path.is_dir():
        return [("given", _load(path))]
    sets = [(file.name, _load(file)) for file in sorted(path.glob("*.npz"))]
    arrays = {file.stem: array for file in sorted(path.glob("*.npy")) for array in _load(file).values()}
    if not (sets or arrays):
        raise FileError(str(path), "the folder holds no .npy files and no .npz files")
    return [*([("given", arrays)] if arrays else []), *sets]


def files_of(source: object) -> list[Path]:
    """The files that a source may be read from; arrays have none."""
    if not isinstance(source, (str, os.PathLike)):
        return []
    path = Path(source)
    return [*path.iterdir()] if path.is_dir() else [path]


def _load(path: Path) -> GivenInputs:
    try:
        with file_errors(path), path.open("rb") as file:
            data = np.load(file, allow_pickle=False)
            return {"arr_0": data} if isinstance(data, np.ndarray) else {name: data[name] for name in data.files}
    except (EOFError, ValueError, zipfile.BadZipFile) as error:
        raise FileError(str(path), f"not a readable .npy or .npz file of arrays: {error}") from error


def _fitting(name: str, description: Mapping[str, Any], array: np.ndarray) -> np.ndarray:
    want = description["shape_signature"] or description["shape"]
    if len(want) != array.ndim or any(w not in (-1, d) for w, d in zip(want, array.shape, strict=True)):
        what = f"the array for input '{name}' has shape {array.shape}, the model wants {tuple(want)}"
        raise OptionError(Reason(what, tensor=name))
    if array.dtype.name != description["dtype"] and array.dtype.kind not in "SU":
        what = f"the array for input '{name}' is {array.dtype}, the model wants {description['dtype']}"
        raise OptionError(Reason(what, tensor=name))
    return np.ascontiguousarray(array).reshape(array.shape)


# How two models are compared.


Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Progress = Callable[[str, int, int], None]


class Recorded(Protocol):
    """Outputs of an original, by the kernels it ran on, the entry and the inputs, from its initial state. Such runs do
    not depend on each other, so a run whose outputs are known is not repeated."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Outputs in the order of the entry's; None if they are not known."""

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None: ...


@dataclass(frozen=True)
class Options:
    """How two models are compared: the options of `verify`, by the same names; and `recorded` outputs of the original,
    which replace a run if nothing else of it is needed."""

    inputs: GivenInputs | str | os.PathLike[str] | None = None
    seeds: int = 2
    seed: int = 0
    layers: bool = False
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    resolver: Resolver = "reference"
    runtime: Runtime | None = None
    interface: bool = True
    tolerance: Tolerance = EXACT
    report: ReportLike | None = None
    recorded: Recorded | None = None
    time: bool = False
    timeout: float = 600.0
    progress: Progress = lambda _, __, ___: None
