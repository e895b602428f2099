"""Samples: what a model is run on, from files or from a program, one at a time.

A sample is an array for each input, by name. Nothing is held but the sample at hand: arrays of an .npz file are read
from it row by row. What files hold can be read at any place and in any process (`Stored`), so that only its place is
sent to one; what a program gives, and what is compressed, comes one after the other.
"""

from __future__ import annotations

import os
import random
import struct
import zipfile
from abc import ABC
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tflq.errors import FileError, OptionError, Reason, choices
from tflq.files import file_errors

if TYPE_CHECKING:  # a process that runs a model needs none of it
    from tflq.ir.core import Module, Value

Sample = Mapping[str, np.ndarray]
IMAGES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


@dataclass(frozen=True)
class Images:
    """How images become inputs: (pixel - mean) * scale, after they are resized to the input's height and width.

    mean: one number for all channels, or one for each. Nothing is guessed: a model that wants values in [-1, 1] has
    mean 127.5 and scale 1 / 127.5.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]


@dataclass(frozen=True)
class Input:
    """An input of an entry: its name, that of its tensor, and what a sample of it must be."""

    name: str
    tensor: str
    shape: tuple[int | None, ...]
    dtype: np.dtype

    def fitted(self, array: Any, where: str) -> np.ndarray:
        """An array of a sample, as the input takes it: of its shape, or of its shape without the first dim of 1.
        OptionError for any other."""
        array = np.asarray(array)
        if array.dtype != self.dtype:
            wanted = f"{self.dtype.name}, and the sample of {where} is {array.dtype.name}"
            raise OptionError(Reason(f"input '{self.name}' is {wanted}", tensor=self.tensor, value=array.dtype.name))
        given = array if array.ndim == len(self.shape) else array[None] if array.ndim + 1 == len(self.shape) else None
        if given is None or any(own not in (None, d) for own, d in zip(self.shape, given.shape, strict=True)):
            what = f"input '{self.name}' has the shape {_dims(self.shape)}, and the sample of {where} {array.shape}"
            raise OptionError(Reason(what, tensor=self.tensor, value=list(array.shape)))
        return given


def _dims(shape: Sequence[int | None]) -> str:
    return f"({', '.join('?' if d is None else str(d) for d in shape)})"


@dataclass(frozen=True)
class Entry:
    """What runs of a model: the signature of a key, or, without a key, the first subgraph; its function and inputs."""

    key: str
    function: int
    inputs: tuple[Input, ...]

    @classmethod
    def of(cls, module: Module, signature: str | None = None) -> Entry:
        """The entry of a key; by default that of the only signature, else the first subgraph. OptionError if no
        signature has the key."""
        signatures = [s for s in module.signatures or [] if s.key and s.inputs is not None]
        if signature is not None:
            signatures = [s for s in signatures if s.key == signature]
            if not signatures:
                known = ", ".join(f"'{s.key}'" for s in module.signatures or []) or "none"
                remedy = f"signatures of the model: {known}"
                raise OptionError(Reason(f"there is no signature '{signature}'", value=signature, remedy=remedy))
        elif len(signatures) != 1:
            return cls.first(module)
        found = signatures[0]
        return cls(found.key or "", found.function, _inputs(module, found.function, found.inputs or ()))

    @classmethod
    def first(cls, module: Module) -> Entry:
        """The first subgraph, whose inputs have the names of their tensors."""
        return cls("", 0, _inputs(module, 0, ()))

    def places(self, module: Module) -> dict[Value, tuple[int, int]]:
        """Of each tensor of its function the number of the function, and the tensor's own."""
        return {value: (self.function, number) for number, value in enumerate(module.functions[self.function].tensors)}

    @property
    def in_run_order(self) -> list[Input]:
        """The inputs in the order in which the interpreter's runner takes them: a signature's by their names."""
        return sorted(self.inputs, key=lambda own: own.name) if self.key else list(self.inputs)


def _inputs(module: Module, function: int, names: Iterable[tuple[str | None, Value]]) -> tuple[Input, ...]:
    """names: the signature's names for the inputs; empty: the tensors' own."""
    said = {value: name for name, value in names}
    return tuple(
        Input(said.get(v) or v.name, v.name, v.type.dims, v.type.storage.dtype)
        for v in module.functions[function].inputs
    )


@dataclass(frozen=True)
class Stored(ABC, Sized, Iterable[Sample]):
    """Samples that are read from files when they are iterated, any number of times. Those at some places can be sent to
    a process, which reads them. sources: a file or the number of a row for each."""

    sources: Sequence[Any]

    def __len__(self) -> int:
        return len(self.sources)

    def at(self, places: Sequence[int]) -> Self:
        """Those at some places, in that order."""
        return replace(self, sources=[self.sources[place] for place in places])


Batch = Stored | list[Sample]
"""Some samples, as they are sent to a process."""


@dataclass(frozen=True)
class Samples:
    """Samples in an order, each fitted to the inputs.

    Attributes:
        arrays: The samples; iterated once.
        count: How many there are; None if that is not known before.
    """

    arrays: Iterable[Sample]
    count: int | None


BATCH: Final = 16
"""Samples that a process runs at once."""


class Batches:
    """Samples in batches, one after the other, for processes: of files their places, otherwise arrays."""

    def __init__(self, samples: Samples) -> None:
        self._stored = samples.arrays if isinstance(samples.arrays, Stored) else None
        self._arrays = iter(()) if self._stored is not None else iter(samples.arrays)
        self._done = 0

    def of(self, most: int | None = None) -> Iterator[Batch]:
        """Those of the next so many samples; of all that are left without a number."""
        given = 0
        while batch := self.following(BATCH if most is None else min(BATCH, most - given)):
            given += len(batch)
            yield batch

    def following(self, most: int) -> Batch:
        """The next samples; empty at the end."""
        if self._stored is None:
            return list(islice(self._arrays, most))
        places = range(self._done, min(self._done + most, len(self._stored)))
        self._done += len(places)
        return self._stored.at(places)


def samples_of(data: Any, inputs: Sequence[Input], images: Images | None = None) -> Samples:
    """Samples from data: the path of an .npz file, whose arrays have the inputs' names and a first dim of samples; of
    a folder of .npz files (a sample each, arrays by name), .npy files (for a model of one input) or images; or an
    iterable of arrays, of mappings by name, or of sequences in the order of the inputs.

    OptionError if it is none of these, or does not fit the inputs; FileError if it cannot be read.
    """
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        if path.is_dir():
            return _of_folder(path, inputs, images)
        if path.suffix != ".npz":
            remedy = "give an .npz file, or a folder of .npz, .npy or image files"
            raise OptionError(Reason("this is not data to calibrate with", str(path), remedy=remedy))
        return _of_npz(path, inputs)
    if not isinstance(data, Iterable):
        what = f"data={data!r} is neither a path nor iterable"
        raise OptionError(Reason(what, remedy="give a path, or an iterable of samples"))
    count = len(data) if isinstance(data, Sized) else None
    return Samples((_of_object(item, place, inputs) for place, item in enumerate(data)), count)


@dataclass(frozen=True)
class Span:
    """Samples in a row, of data that can be gone through any number of times: each time one is held after the other.
    They are the data's from `start` to before `stop`."""

    data: Any
    inputs: Sequence[Input]
    images: Images | None
    start: int
    stop: int

    @classmethod
    def of(cls, data: Any, inputs: Sequence[Input], images: Images | None = None) -> Span:
        """All samples of data, as of `samples_of`. An iterator, which is gone through once, becomes a list."""
        data = list(data) if isinstance(data, Iterator) else data
        found = samples_of(data, inputs, images)
        count = sum(1 for _ in found.arrays) if found.count is None else found.count
        return cls(data, inputs, images, 0, count)

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Sample]:
        arrays = samples_of(self.data, self.inputs, self.images).arrays
        if isinstance(arrays, Stored):
            return iter(arrays.at(range(self.start, self.stop)))
        return islice(arrays, self.start, self.stop)

    def split(self, count: int) -> tuple[Span, Span]:
        """The first so many, and the others."""
        return replace(self, stop=self.start + count), replace(self, start=self.start + count)


def drawn(samples: Samples, most: int | None, seed: int | None) -> Samples:
    """At most so many of the samples, all without a number: the first ones, or, with a seed, drawn at random, in their
    order. OptionError for a seed where the number of samples is not known."""
    if most is None:
        return samples
    if samples.count is None:
        if seed is not None:
            raise OptionError(Reason("a seed draws from a known number of samples", remedy="give a list, or a path"))
        return Samples(islice(samples.arrays, most), None)
    count = min(most, samples.count)
    kept = range(count) if seed is None else sorted(random.Random(seed).sample(range(samples.count), count))  # noqa: S311
    if isinstance(samples.arrays, Stored):
        return Samples(samples.arrays.at(kept), count)
    wanted, last = set(kept), kept[-1] + 1 if kept else 0
    return Samples((s for place, s in enumerate(islice(samples.arrays, last)) if place in wanted), count)


def _of_object(item: Any, place: int, inputs: Sequence[Input]) -> Sample:
    where = f"place {place}"
    if isinstance(item, Mapping):
        return _of_arrays(item, where, inputs)
    arrays = [item] if isinstance(item, np.ndarray) or len(inputs) == 1 else list(item)
    if len(arrays) != len(inputs):
        what = f"the sample of {where} has {len(arrays)} arrays, and the model {len(inputs)} inputs"
        raise OptionError(Reason(what, value=len(arrays)))
    return {own.name: own.fitted(array, where) for own, array in zip(inputs, arrays, strict=True)}


def _of_arrays(arrays: Mapping[str, Any], where: str, inputs: Sequence[Input]) -> Sample:
    named = _named(list(arrays), where, inputs)
    return {own.name: own.fitted(arrays[named[own]], where) for own in inputs}


def _named(names: Sequence[str], where: str, inputs: Sequence[Input]) -> dict[Input, str]:
    """The name of each input in some data. OptionError for one that is missing, and for one too many."""
    found = {own: next((name for name in (own.name, own.tensor) if name in names), None) for own in inputs}
    for own, name in found.items():
        if name is None:
            if len(inputs) == len(names) == 1:
                return {own: names[0]}
            what = f"{where} has no array '{own.name}', which is an input"
            remedy = choices(own.name, names) or "save each input under its name: np.savez(path, name=array)"
            raise OptionError(Reason(what, tensor=own.tensor, value=own.name, remedy=remedy))
    if extra := [name for name in names if name not in found.values()]:
        what = f"{where} has '{extra[0]}', which is not an input"
        raise OptionError(Reason(what, value=extra[0], remedy=choices(extra[0], [own.name for own in inputs])))
    return {own: name for own, name in found.items() if name is not None}


# Files.


def _of_npz(path: Path, inputs: Sequence[Input]) -> Samples:
    with file_errors(path):
        try:
            with zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if name.endswith(".npy")]
                names = _named([name.removesuffix(".npy") for name in members], str(path), inputs)
                arrays = [_Array.of(archive, f"{name}.npy", own, path) for own, name in names.items()]
        except zipfile.BadZipFile as error:
            raise FileError(str(path), "not an .npz file") from error
    if len({array.count for array in arrays}) > 1:
        shown = ", ".join(f"{array.count} of '{array.own.name}'" for array in arrays)
        raise OptionError(Reason(f"not as many samples of each input: {shown}", str(path)))
    count = arrays[0].count
    if any(array.start is None for array in arrays):
        return Samples(_inflated(path, arrays), count)
    return Samples(_Rows(range(count), path, tuple(arrays)), count)


@dataclass(frozen=True)
class _Array:
    """An array in an .npz file, for an input.

    Attributes:
        member: Its name in the archive.
        own: The input.
        header: The number of bytes before its elements.
        start: Where its elements begin in the file; None if they are compressed.
        count: The number of rows, which are samples.
        shape: That of a row.
        dtype: That of its elements.
    """

    member: str
    own: Input
    header: int
    start: int | None
    count: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, archive: zipfile.ZipFile, member: str, own: Input, path: Path) -> _Array:
        with archive.open(member) as stream:
            try:
                layout: Any = np.lib.format
                read = {1: layout.read_array_header_1_0, 2: layout.read_array_header_2_0}[layout.read_magic(stream)[0]]
                shape, by_column, dtype = read(stream)
            except (KeyError, ValueError) as error:
                raise FileError(str(path), f"'{member}' is not an array: {error}") from error
            header = stream.tell()
        if not shape or by_column or dtype.hasobject:
            what = f"'{own.name}' has no first dim of samples that can be read in order"
            raise OptionError(Reason(what, str(path), tensor=own.tensor, remedy="save it with np.savez, in C order"))
        return cls(member, own, header, _start(archive, member, path, header), shape[0], shape[1:], dtype)

    @property
    def size(self) -> int:
        """Bytes of a row."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def read(self, stream: Any, place: int, path: Path) -> np.ndarray:
        """The row at a place, from where the stream is."""
        data = np.empty(self.size, np.uint8)
        done = 0
        while done < self.size:
            got = stream.readinto(data[done:].data)
            if not got:
                raise FileError(str(path), f"'{self.member}' ends early, in row {place}")
            done += got
        return self.own.fitted(data.view(self.dtype).reshape(self.shape), f"row {place} of {path}")


def _start(archive: zipfile.ZipFile, member: str, path: Path, header: int) -> int | None:
    """Where in the file an array's elements begin: behind the member's own header, whose last fields vary in length."""
    info = archive.getinfo(member)
    if info.compress_type != zipfile.ZIP_STORED:
        return None
    with path.open("rb") as stream:
        stream.seek(info.header_offset)
        *_, name, extra = struct.unpack("<4s5H3I2H", stream.read(30))
    return int(info.header_offset + 30 + name + extra + header)


@dataclass(frozen=True)
class _Rows(Stored):
    """Rows of the arrays in an .npz file that is not compressed."""

    path: Path
    arrays: tuple[_Array, ...]

    def __iter__(self) -> Iterator[Sample]:
        with file_errors(self.path), self.path.open("rb", buffering=0) as stream:
            for place in self.sources:
                sample = {}
                for array in self.arrays:
                    stream.seek((array.start or 0) + place * array.size)
                    sample[array.own.name] = array.read(stream, place, self.path)
                yield sample


def _inflated(path: Path, arrays: Sequence[_Array]) -> Iterator[Sample]:
    """The rows of arrays in an .npz file some of which are compressed."""
    with ExitStack() as stack, file_errors(path):
        archive = stack.enter_context(zipfile.ZipFile(path))
        streams = [stack.enter_context(archive.open(array.member)) for array in arrays]
        for stream, array in zip(streams, arrays, strict=True):
            stream.read(array.header)
        for place in range(arrays[0].count):
            yield {a.own.name: a.read(stream, place, path) for stream, a in zip(streams, arrays, strict=True)}


def _of_folder(folder: Path, inputs: Sequence[Input], images: Images | None) -> Samples:
    with file_errors(folder):
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    kinds = {"image" if file.suffix.lower() in IMAGES else file.suffix for file in files}
    if len(kinds) != 1 or not kinds <= {"image", ".npy", ".npz"}:
        what = f"the folder holds {', '.join(sorted(kinds)) or 'no'} files"
        raise OptionError(Reason(what, str(folder), remedy="put samples into it: only .npz, only .npy, or only images"))
    (kind,) = kinds
    if kind == "image":
        _image_shape(inputs, images)
    elif kind == ".npy" and len(inputs) != 1:
        what = f"the folder holds .npy files, which have no names, and the model has {len(inputs)} inputs"
        raise OptionError(Reason(what, str(folder), remedy="save a sample of all inputs by np.savez"))
    return Samples(_Files(files, tuple(inputs), images if kind == "image" else None), len(files))


@dataclass(frozen=True)
class _Files(Stored):
    """Files that hold a sample each. images: how they become inputs; None: they hold arrays."""

    inputs: tuple[Input, ...]
    images: Images | None

    def __iter__(self) -> Iterator[Sample]:
        if self.images is not None:
            return _of_images(self.sources, self.inputs[0], self.images)
        return (_of_file(file, self.inputs) for file in self.sources)


def _of_file(file: Path, inputs: Sequence[Input]) -> Sample:
    with file_errors(file):
        try:
            loaded: Any = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise FileError(str(file), f"not an array: {error}") from error
        if isinstance(loaded, np.ndarray):
            return {inputs[0].name: inputs[0].fitted(loaded, str(file))}
        with loaded:
            return _of_arrays(loaded, str(file), inputs)


def _image_shape(inputs: Sequence[Input], images: Images | None) -> tuple[int, int, int]:
    """Height, width and channels of images for an input. OptionError if it takes none, or nothing says how."""
    if images is None:
        raise OptionError(Reason("images need a mean and a scale", remedy="state them: --mean 127.5 --scale 0.00784"))
    own = inputs[0]
    _, *size = own.shape if len(inputs) == 1 and len(own.shape) == 4 else (None,)
    height, width, channels = (dim or 0 for dim in size or (0, 0, 0))
    if not height or not width or channels not in (1, 3):
        what = f"images are for a model of one input of N x height x width x 1 or 3, and it has {_dims(own.shape)}"
        raise OptionError(Reason(what, tensor=own.tensor))
    return height, width, channels


def _of_images(files: Sequence[Path], own: Input, images: Images) -> Iterator[Sample]:
    try:
        from PIL import Image
    except ImportError as error:
        raise OptionError(Reason("images need Pillow", remedy="pip install pillow")) from error
    height, width, channels = _image_shape([own], images)
    for file in files:
        with file_errors(file), Image.open(file) as image:
            resized = image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.asarray(resized, np.float32).reshape(height, width, channels)
        made = (pixels - np.array(images.mean, np.float32)) * np.array(images.scale, np.float32)
        yield {own.name: own.fitted(made.astype(own.dtype), str(file))}
