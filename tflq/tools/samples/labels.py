"""Labels of samples: a class, or the numbers that are wanted, for each row (docs/data.md).

They are an array `labels` beside the inputs', by that key or another; a file of their own, .npy, .npz or .csv; for a
folder of images the file `labels.csv` in it (name of the file, label), or folders by class.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from tflq.base.errors import FileError, OptionError, Reason
from tflq.base.files import file_errors
from tflq.tools.samples.files import IMAGES, LABELS_FILE, loaded, sorted_files

KEY: Final = "labels"
"""The name of an array of labels beside the inputs'."""
_MOST: Final = 2**53
"""Numbers of classes are below: float64 holds each of them."""


def key_of(data: Any, labels: Any) -> str:
    """The name of the array of labels in data: `labels`, if it is the name of one, else `KEY`."""
    return labels if isinstance(labels, str) and labels in names_of(data) else KEY


def labels_of(data: Any, labels: Any, key: str) -> np.ndarray | None:
    """The labels of all rows of data: numbers, whose first dim counts rows. None if there are none.

    labels: where they are: the key of an array in the data, a path, or the labels themselves; None: where the data has
    them. OptionError if they are nowhere, or not numbers; FileError if they cannot be read.
    """
    if labels is None or (isinstance(labels, str) and labels == key and key in names_of(data)):
        array = _beside(data, key)
    elif isinstance(labels, (str, os.PathLike)):
        array = _of_file(Path(labels), data)
    else:
        array = np.asarray(labels)
    if array is not None and (array.dtype.kind not in "iufb" or array.ndim == 0):
        what = f"labels are numbers, an array of one or more dims, and these are {array.dtype} of {array.ndim} dims"
        raise OptionError(Reason(what, value=str(array.dtype), remedy="give the number of the class of each sample"))
    return array


def by_sample(labels: np.ndarray, count: int, batch: int) -> tuple[np.ndarray, ...]:
    """The labels of the rows of each sample. batch: rows of a sample. OptionError if there are as many as neither
    samples nor rows."""
    if len(labels) == count:
        return tuple(
            labels[place : place + 1] if batch == 1 else np.atleast_1d(labels[place]) for place in range(count)
        )
    if batch > 1 and -(-len(labels) // batch) == count:
        return tuple(labels[place * batch : (place + 1) * batch] for place in range(count))
    rows = f", of {batch} rows each" if batch > 1 else ""
    what = f"there are {len(labels)} labels, and {count} samples{rows}"
    raise OptionError(Reason(what, value=len(labels), remedy="give one for each sample, in the same order"))


def settled(labels: tuple[np.ndarray, ...], outputs: Sequence[tuple[int | None, ...]]) -> tuple[np.ndarray, ...]:
    """Labels of samples by what they are: int64 of one dim for classes, int64 rows that are one-hot, or float64 for the
    numbers that an output should have. OptionError for labels that are none of these.

    outputs: the shapes of the model's outputs; empty if they are not known.
    """
    if not labels:
        return labels
    rows = np.concatenate([each.reshape(len(each), -1) for each in labels]).astype(np.float64)
    width = rows.shape[1]
    sizes = [_numbers(shape) for shape in outputs] or [None]
    classes = next((size for size in sizes if size != 1), 1)
    if classes != 1 and width == 1 and bool(((rows == np.rint(rows)) & (abs(rows) < _MOST)).all()):
        return tuple(each.reshape(len(each)).astype(np.int64) for each in labels)
    if width > 1 and classes in (None, width) and bool(((rows == 0) | (rows == 1)).all() and (rows.sum(1) == 1).all()):
        return tuple(each.astype(np.int64) for each in labels)
    if bool(np.isfinite(rows).all()) and (None in sizes or width in sizes):
        return tuple(each.astype(np.float64) for each in labels)
    shown = f"{width} number{'s' * (width > 1)} a row" + (
        "" if np.isfinite(rows).all() else ", some of them not finite"
    )
    what = f"labels are {shown}, and outputs have {' and '.join(str(size or 'any') for size in dict.fromkeys(sizes))}"
    remedy = "give the number of the class of each sample, rows that are one-hot, or as many numbers as an output has"
    raise OptionError(Reason(what, value=width, remedy=remedy))


def _numbers(shape: tuple[int | None, ...]) -> int | None:
    """The numbers of a row of an output; None if they are not known."""
    dims = shape[1:] if len(shape) > 1 else shape
    return None if None in dims else math.prod(dim or 0 for dim in dims)


def names_of(data: Any) -> Sequence[str]:
    """The names of the arrays of data that has names."""
    if isinstance(data, Mapping):
        return list(data)
    if isinstance(data, (str, os.PathLike)) and (path := Path(data)).suffix == ".npz" and path.is_file():
        return list(loaded(path, names=True))
    return []


def _beside(data: Any, key: str) -> np.ndarray | None:
    """The labels that come with data."""
    if key in names_of(data):
        return np.asarray(data[key] if isinstance(data, Mapping) else loaded(Path(data))[key])
    if isinstance(data, (str, os.PathLike)) and (folder := Path(data)).is_dir():
        if (file := folder / LABELS_FILE).is_file():
            return _of_csv(file, [each.name for each in sorted_files(folder)[0]])
        _, classes = sorted_files(folder)
        return np.array(classes) if classes else None
    return None


def _of_file(path: Path, data: Any) -> np.ndarray:
    if path.suffix == ".csv":
        is_folder = isinstance(data, (str, os.PathLike)) and Path(data).is_dir()
        files = sorted_files(Path(data))[0] if is_folder else []
        return _of_csv(path, [file.name for file in files if file.suffix.lower() in IMAGES])
    if not path.is_file():
        names = names_of(data)
        remedy = f"the data has {', '.join(map(repr, names))}" if names else "give a .npy, .npz or .csv file"
        raise OptionError(
            Reason(f"labels '{path}' are neither an array of the data nor a file", str(path), remedy=remedy)
        )
    if path.suffix not in (".npy", ".npz"):
        raise OptionError(Reason("this is not a file of labels", str(path), remedy="give a .npy, .npz or .csv file"))
    arrays = loaded(path)
    if isinstance(arrays, Mapping):
        name = KEY if KEY in arrays else next(iter(arrays), "")
        if (len(arrays) > 1 and name != KEY) or not name:
            what = f"the file has {len(arrays)} arrays, and none is called '{KEY}'"
            raise OptionError(Reason(what, str(path), remedy=f"np.savez(path, {KEY}=array)"))
        return np.asarray(arrays[name])
    return np.asarray(arrays)


def _of_csv(path: Path, files: Sequence[str]) -> np.ndarray:
    """The labels of a file of lines: the name of an image and its label, or labels alone, in the order of the samples.
    A first line without a number is a head. files: the names of images, in their order; empty: lines are in order."""
    import csv

    with file_errors(path), path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        lines = [line for line in enumerate(csv.reader(stream), 1) if any(map(str.strip, line[1]))]
    if lines and not _is_number(lines[0][1][-1]):
        del lines[0]
    rows: dict[str, list[float]] = {}
    for number, fields in lines:
        numbers = fields[1:] if files or (len(fields) > 1 and not _is_number(fields[0])) else fields
        if not numbers or not all(map(_is_number, numbers)):
            raise FileError(f"{path}, line {number}", f"'{','.join(fields)}' has no label that is a number")
        name = fields[0].strip() if files else str(number)
        if name in rows:
            raise FileError(f"{path}, line {number}", f"'{name}' has a label already, in a line before")
        rows[name] = [float(each) for each in numbers]
    if missing := [file for file in files if file not in rows]:
        raise FileError(str(path), f"there is no label of '{missing[0]}'")
    chosen = [rows[file] for file in files] if files else list(rows.values())
    if len({len(row) for row in chosen}) > 1:
        raise FileError(str(path), "its lines have different numbers of labels")
    array = np.array(chosen, np.float64)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    return array.astype(np.int64) if (array == np.rint(array)).all() else array


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
