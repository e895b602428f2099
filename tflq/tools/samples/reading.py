"""Samples: what a model is run on, from files or from a program, one at a time (docs/data.md).

A sample is an array for each input, by name. Nothing is held but the sample at hand: arrays of an .npz file are read
from it row by row. What files hold can be read at any place and in any process (`Stored`), so that only its place is
sent to one; what a program gives, and what is compressed, comes one after the other.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tflq.base.arguments import not_expected
from tflq.base.errors import FileError, OptionError, Reason
from tflq.tools.samples.files import Batch, Images, Samples, Stored, of_folder, of_npy, of_npz
from tflq.tools.samples.inputs import Arrangement, Entry, Input, Sample, fitted, signature_keys, stacked
from tflq.tools.samples.labels import KEY, by_sample, key_of, labels_of, names_of, settled

if TYPE_CHECKING:
    from tflq.ir.module import Module

BATCH: Final = 16
"""Samples that a process runs at once."""


class Batches:
    """Samples in batches, one after the other, for processes: of files their places, otherwise arrays."""

    def __init__(self, samples: Samples) -> None:
        self._stored = samples.arrays if isinstance(samples.arrays, Stored) else None
        self._arrays = iter(()) if self._stored is not None else iter(samples.arrays)
        self._done = 0

    def of(self, most: int | None = None) -> Iterator[Batch]:
        """Batches of at most so many of the next samples; of all that are left without a number."""
        count = 0
        while batch := self.following(BATCH if most is None else min(BATCH, most - count)):
            count += len(batch)
            yield batch

    def following(self, most: int) -> Batch:
        """The next samples; empty at the end."""
        if self._stored is None:
            return list(islice(self._arrays, most))
        places = range(self._done, min(self._done + most, len(self._stored)))
        self._done += len(places)
        return self._stored.at(places)


def check_data(name: str, data: object) -> None:
    """A form of docs/data.md, or None. OptionError for anything else."""
    iterable = isinstance(data, Iterable) and not isinstance(data, (bytes, bytearray, memoryview))
    if not (data is None or iterable or callable(data) or isinstance(data, os.PathLike)):
        raise not_expected(name, data, "a path, arrays by input name, or an iterable of samples")


def samples_of(
    data: Any, entry: Entry, images: Images | None = None, labels: Any = None, *, labelled: bool = True
) -> Samples:
    """Samples from data in any of the forms of docs/data.md: the path of an .npz or .npy file or of a folder; arrays by
    name; an iterable of samples, or a function that returns one.

    labels: where their labels are, as of `labels_of`. labelled: whether labels are read at all. OptionError if data is
    none of these, or does not fit the inputs; FileError if it cannot be read.
    """
    key = key_of(data, labels)
    samples = _samples_of(data, replace(entry, labels=key), images)
    array = labels_of(data, labels, key) if labelled else None
    if array is None:
        return samples
    count = samples.count
    if count is None:
        raise OptionError(Reason("labels need a known number of samples", remedy="give a list, arrays, or a path"))
    rows = by_sample(array, count, max((input_.batch for input_ in entry.inputs), default=1))
    return replace(samples, labels=settled(rows, entry.outputs))


def _samples_of(data: Any, entry: Entry, images: Images | None) -> Samples:
    if isinstance(data, Span):
        return data.samples()
    if isinstance(data, (str, os.PathLike)):
        return replace(_of_path(Path(data), entry, images), path=os.fspath(data))
    data = data() if callable(data) else data
    if isinstance(data, Mapping) and entry.is_by_key(list(data)):
        return _samples_of(_of_signature(data, entry), entry, images)
    if isinstance(data, Mapping):
        return _of_arrays(data, entry)
    check_data("data", data)
    return _of_items(data, entry)


def _of_signature(data: Mapping[str, Any], entry: Entry) -> Any:
    """The samples of an entry in a mapping by keys of signatures. OptionError if it has none, or if the model has no
    such signature."""
    entry.check_not_of_signatures(list(data), "the data")
    if unknown := [key for key in data if key not in (*entry.signatures, entry.labels)]:
        known = ", ".join(f"'{key}'" for key in entry.signatures)
        what = f"there are samples of signature '{unknown[0]}', which the model has not"
        raise OptionError(Reason(what, value=unknown[0], remedy=f"signatures of the model: {known}"))
    if entry.key not in data:
        known = ", ".join(f"'{key}'" for key in data)
        what = f"there are no samples of signature '{entry.key}', and some of {known}"
        raise OptionError(Reason(what, value=entry.key, remedy="give some of each signature that runs"))
    rows = data[entry.key]
    is_array = getattr(rows, "__array__", None) is not None and len(entry.inputs) == 1
    return {entry.inputs[0].name: rows} if is_array else rows


def _of_path(path: Path, entry: Entry, images: Images | None) -> Samples:
    if path.is_dir():
        arrays, samples = of_folder(path, entry, images)
        return samples or _of_arrays(arrays, entry, str(path))
    if not path.exists():
        raise FileError(str(path), "there is no such file")
    if path.suffix == ".npz":
        return of_npz(path, entry)
    if path.suffix == ".npy":
        return of_npy(path, entry)
    remedy = "give an .npz or .npy file, or a folder of .npz, .npy or image files (docs/data.md)"
    raise OptionError(Reason("this is not a file of samples", str(path), remedy=remedy))


def _of_arrays(arrays: Mapping[str, Any], entry: Entry, where: str = "the arrays") -> Samples:
    """Samples in arrays by name, which are one each, or have them in their rows."""
    by_input = {input_: np.asarray(arrays[name]) for input_, name in entry.names(list(arrays), where).items()}
    arrangement = Arrangement.of({input_: array.shape for input_, array in by_input.items()}, where)
    if arrangement.rows is None:
        return Samples([fitted(by_input, where)[0]], 1)
    return Samples(
        (_of_rows(by_input, arrangement.places(sample), where) for sample in range(arrangement.count)),
        arrangement.count,
    )


def _of_rows(arrays: Mapping[Input, np.ndarray], places: Sequence[int], where: str) -> Sample:
    rows = [
        fitted({input_: a[place] for input_, a in arrays.items()}, f"row {place} of {where}")[0] for place in places
    ]
    return rows[0] if len(rows) == 1 else stacked(rows, len(rows))


def _of_items(data: Iterable[Any], entry: Entry) -> Samples:
    """Samples that an iterable gives, each by name or in the order of the inputs."""
    single = all(input_.batch == 1 for input_ in entry.inputs)
    count = len(data) if single and isinstance(data, Sized) and not _has_keys(data) else None
    return Samples(_grouped(_fitted_items(data, entry)), count)


def _has_keys(data: Any) -> bool:
    """Whether samples are pairs of a signature's key and a sample, some of which may be for other signatures."""
    return isinstance(data, Sequence) and any(isinstance(item, tuple) and _is_pair(item) for item in data)


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _fitted_items(data: Iterable[Any], entry: Entry) -> Iterator[tuple[Sample, int]]:
    for place, item in enumerate(data):
        if _is_pair(item):
            key, item = item
            if key not in (*entry.signatures, entry.key):
                what = f"the sample of place {place} is for signature '{key}', which the model has not"
                known = ", ".join(f"'{each}'" for each in entry.signatures) or "none"
                raise OptionError(Reason(what, value=key, remedy=f"signatures of the model: {known}"))
            if not entry.is_for(key):
                continue
        yield fitted(_by_input(item, entry, f"place {place}"), f"place {place}")


def _by_input(item: Any, entry: Entry, where: str) -> dict[Input, Any]:
    inputs = entry.inputs
    if isinstance(item, Mapping):
        return {input_: item[name] for input_, name in entry.names(list(item), f"the sample of {where}").items()}
    arrays = list(item) if isinstance(item, (list, tuple)) and _are_arrays(item) else [item]
    if len(arrays) != len(inputs):
        what = f"the sample of {where} has {len(arrays)} arrays, and the model {len(inputs)} inputs"
        named = ", ".join(f"'{input_.name}'" for input_ in inputs)
        labels = ", and leave labels out" if isinstance(item, tuple) and len(arrays) == len(inputs) + 1 else ""
        raise OptionError(Reason(what, value=len(arrays), remedy=f"give an array for each of {named}{labels}"))
    return dict(zip(inputs, arrays, strict=True))


def _are_arrays(items: Sequence[Any]) -> bool:
    """Whether a list holds arrays, and is not one itself."""
    return any(getattr(item, "__array__", None) is not None for item in items)


def _grouped(samples: Iterable[tuple[Sample, int]]) -> Iterator[Sample]:
    """Whole samples, and those that rows make together."""
    rows: list[Sample] = []
    size = 1
    for sample, group in samples:
        if group == 1:
            yield sample
            continue
        size = group
        rows.append(sample)
        if len(rows) == size:
            yield stacked(rows, size)
            rows = []
    if rows:
        yield stacked(rows, size)


@dataclass(frozen=True)
class Span:
    """Samples in a row, of data that can be gone through any number of times: each time one is held after the other.
    They are the data's from `start` to before `stop`."""

    data: Any
    entry: Entry
    images: Images | None
    start: int
    stop: int
    labels: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, data: Any, entry: Entry, images: Images | None = None, labels: Any = None) -> Span:
        """All samples of data, as of `samples_of`. An iterator, which is gone through once, becomes a list."""
        data = _to_go_through_again(data)
        samples = samples_of(data, entry, images, labels)
        count = sum(1 for _ in samples.arrays) if samples.count is None else samples.count
        return cls(data, replace(entry, labels=key_of(data, labels)), images, 0, count, samples.labels)

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples().arrays)

    def samples(self) -> Samples:
        """The samples, to go through once."""
        every = _samples_of(self.data, self.entry, self.images)
        arrays: Iterable[Sample]
        if isinstance(every.arrays, Stored):
            arrays = every.arrays.at(range(self.start, self.stop))
        else:
            arrays = islice(every.arrays, self.start, self.stop)
        return Samples(arrays, len(self), path=every.path)

    def parts(self) -> tuple[Span, Span]:
        """The samples that networks are made by, and those that judge: `JUDGED` at the end, one at least."""
        return self.split(fitted_of(len(self)))

    def split(self, count: int) -> tuple[Span, Span]:
        """The first so many, and the others."""
        first = replace(self, stop=self.start + count, labels=self.labels[:count])
        return first, replace(self, start=self.start + count, labels=self.labels[count:])


JUDGED: Final = 1 / 4
"""The share of samples that are held back, to judge by; the last ones."""


def fitted_of(count: int) -> int:
    """The number of samples, of so many, that are not held back."""
    return min(math.ceil(count * (1 - JUDGED)), count - 1)


@dataclass(frozen=True)
class Spans:
    """Samples of a model. each: those of its only entry, or of each signature that there are some of."""

    each: tuple[Span, ...]

    @classmethod
    def of(cls, data: Any, module: Module, images: Images | None = None, labels: Any = None) -> Spans:
        """All samples of data, as of `Span.of`: of the signatures that it names by key, else of the entry that a model
        has by default. OptionError for labels of several signatures."""
        data = _to_go_through_again(data)
        keys = signature_keys(module)
        named = [key for key in keys if key in _keys_in(data, keys)] if len(keys) > 1 else []
        if named and (labels is not None or KEY in names_of(data)):
            remedy = "leave labels out, or quantize each signature's network alone"
            raise OptionError(Reason("labels are of the samples of one signature", remedy=remedy))
        entries = [Entry.of(module, key) for key in named] or [Entry.of(module)]
        return cls(tuple(Span.of(data, entry, images, labels) for entry in entries))

    def __len__(self) -> int:
        return sum(map(len, self.each))

    @property
    def least(self) -> int:
        """The number of samples of the entry that has the fewest."""
        return min(map(len, self.each))

    @property
    def labels(self) -> tuple[np.ndarray, ...]:
        return tuple(label for span in self.each for label in span.labels)

    def parts(self) -> tuple[Spans, Spans]:
        """The samples that networks are made by, and those that judge, as of `Span.parts`."""
        first, judge = zip(*(span.parts() for span in self.each), strict=True)
        return Spans(first), Spans(judge)


def _to_go_through_again(data: Any) -> Any:
    """Data with a list in the place of each iterator: of samples, or of those of a signature."""
    if isinstance(data, dict):
        return {key: _to_go_through_again(each) for key, each in data.items()}
    return list(data) if isinstance(data, Iterator) else data


def _keys_in(data: Any, keys: Sequence[str]) -> set[str]:
    """The keys of signatures that data has samples for by key: names KEY/NAME, {KEY: samples}, or pairs (KEY,
    sample)."""
    if isinstance(data, (Mapping, str, os.PathLike)):
        names = names_of(data)
        return {key for key in keys if key in names or any(name.startswith(f"{key}/") for name in names)}
    items = data() if callable(data) else data
    return {item[0] for item in items if _is_pair(item)} if isinstance(items, Iterable) else set()


def drawn(samples: Samples, most: int | None, seed: int | None) -> Samples:
    """At most so many of the samples, all without a number: the first ones, or, with a seed, drawn at random, in their
    order. OptionError for a seed where the number of samples is not known."""
    if most is None:
        return samples
    if samples.count is None:
        if seed is not None:
            raise OptionError(Reason("a seed draws from a known number of samples", remedy="give a list, or a path"))
        return replace(samples, arrays=islice(samples.arrays, most), names=())
    count = min(most, samples.count)
    places = range(count) if seed is None else sorted(random.Random(seed).sample(range(samples.count), count))  # noqa: S311
    arrays: Iterable[Sample]
    if isinstance(samples.arrays, Stored):
        arrays = samples.arrays.at(places)
    else:
        wanted, last = set(places), places[-1] + 1 if places else 0
        arrays = (s for place, s in enumerate(islice(samples.arrays, last)) if place in wanted)
    labels = tuple(samples.labels[place] for place in places) if samples.labels else ()
    return replace(samples, arrays=arrays, count=count, names=(), labels=labels)
