"""Inputs to compare two models on: random ones from a seed, the edges of the storage range, or the user's own."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tflq.errors import TflqError

__all__ = ["GivenInputs", "Side", "given", "made", "shape_of"]

Side = list[tuple[str, dict[str, Any]]]
"""Inputs or outputs of an entry: name and description, as `worker.describe` gives it."""

GivenInputs = Mapping[str, np.ndarray]

FLOAT_RANGE = (-1.0, 1.0)


def shape_of(description: Mapping[str, Any], batch: int | None) -> tuple[int, ...]:
    """The shape to run an input with: that of the file, its first dim resized if a batch is asked for and that dim is
    unknown.
    """
    shape, signature = tuple(description["shape"]), description["shape_signature"]
    if batch is not None and signature and signature[0] == -1:
        return (batch, *shape[1:])
    return shape


def made(side: Side, seeds: int, batch: int | None) -> Iterator[tuple[str, list[np.ndarray]]]:
    """`seeds` random sets over the full storage range, then all minimum, all maximum and all zero point.

    Floats are drawn from [-1, 1]. Integers that are not quantized and wider than a byte are often indices or sizes: 0
    or 1.
    """
    for name in (*(f"random {seed}" for seed in range(seeds)), "minimum", "maximum", "zero point"):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        yield name, [_draw(name, description, shape_of(description, batch), rng) for _, description in side]


def _draw(name: str, description: Mapping[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    dtype = (
        np.dtype("S1")
        if description["dtype"].startswith(("bytes", "str", "object"))
        else np.dtype(description["dtype"])
    )
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
    at = {"minimum": 0, "maximum": 1, "zero point": 2}.get(name)
    return values if at is None else np.full(shape, edges[at])


def given(side: Side, source: GivenInputs | str | os.PathLike[str]) -> list[np.ndarray]:
    """The user's own inputs: arrays by input name, or all of them in order as `arr_0`, `arr_1` ... (what np.savez calls
    them).

    TflqError names what is missing or does not fit.
    """
    arrays = source if isinstance(source, Mapping) else _load(source)
    values: list[np.ndarray] = []
    for i, (name, description) in enumerate(side):
        key = name if name in arrays else f"arr_{i}"
        if key not in arrays:
            raise TflqError(f"no array for input '{name}': there are {', '.join(map(repr, arrays)) or 'none'}")
        values.append(_fitting(name, description, np.asarray(arrays[key])))
    return values


def _load(source: str | os.PathLike[str]) -> GivenInputs:
    try:
        with open(source, "rb") as file:
            data = np.load(file, allow_pickle=False)
            return {"arr_0": data} if isinstance(data, np.ndarray) else {name: data[name] for name in data.files}
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise TflqError(f"{os.fspath(source)}: not a readable .npz file of arrays: {error}") from error


def _fitting(name: str, description: Mapping[str, Any], array: np.ndarray) -> np.ndarray:
    want = description["shape_signature"] or description["shape"]
    fits = len(want) == array.ndim and all(w in (-1, d) for w, d in zip(want, array.shape, strict=True))
    if not fits:
        raise TflqError(f"the array for input '{name}' has shape {array.shape}, the model wants {tuple(want)}")
    if array.dtype.name != description["dtype"] and array.dtype.kind not in "SU":
        raise TflqError(f"the array for input '{name}' is {array.dtype}, the model wants {description['dtype']}")
    return np.ascontiguousarray(array).reshape(array.shape)
