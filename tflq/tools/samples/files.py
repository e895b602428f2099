"""Samples in files: .npz and .npy files, and folders of these or of images."""

from __future__ import annotations

import math
import os
import re
import struct
import tokenize
import zipfile
import zlib
from abc import ABC
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from errno import EINVAL
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from tflq.base.errors import FileError, MissingPackageError, OptionError, Reason, TflqError
from tflq.base.files import file_errors
from tflq.tools.samples.inputs import Arrangement, Entry, Input, Sample, as_file_name, dims, fitted, group_of, stacked

IMAGES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
LABELS_FILE: Final = "labels.csv"
"""The labels of a folder of images, in it."""
DAMAGED: Final[tuple[type[Exception], ...]] = (
    *(EOFError, MemoryError, OverflowError, RuntimeError, SyntaxError, ValueError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
"""Errors of zipfile, numpy and Pillow on a damaged file; RuntimeError stands for encryption and other compressions."""
_MOST: Final = 200
"""Characters of such an error that are shown: some have the bytes of the file."""
Level = float | Sequence[float]
"""One number for all channels, or one for each."""


@dataclass(frozen=True)
class Images:
    """Conversion of images to inputs: (pixel - mean) * scale, after a resize to the input's height and width.

    mean, scale: one number for all channels, or one for each. Nothing is guessed: a model that wants values in [-1, 1]
    has mean 127.5 and scale 1 / 127.5.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def of(cls, mean: Level | None, scale: Level | None) -> Images | None:
        """The images' parameters, as a call states them; None without them. OptionError if one is missing or is not
        made of finite numbers."""
        if mean is None and scale is None:
            return None
        return cls(_levels("mean", mean), _levels("scale", scale))


def _levels(name: str, value: Level | None) -> tuple[float, ...]:
    remedy = "give both, one number or one for each channel: --mean 127.5 --scale 0.00784 (in Python: mean=, scale=)"
    try:
        levels = np.asarray([] if value is None else value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        levels = np.zeros(0)
    if levels.size not in (1, 3) or not np.isfinite(levels).all():
        listed = "not given" if value is None else re.sub(r"[()\[\] ]", "", str(value)).rstrip(",")
        what = f"the {name} of images is {listed}: it must be one finite number, or three"
        raise OptionError(Reason(what, value=str(value), remedy=remedy))
    return tuple(levels.tolist())


@dataclass(frozen=True)
class Stored(ABC, Sized, Iterable[Sample]):
    """Samples that are read from files when they are iterated, any number of times. Those at some places can be sent to
    a process, which reads them. sources: where each is."""

    sources: Sequence[Any]

    def __len__(self) -> int:
        return len(self.sources)

    def at(self, places: Sequence[int]) -> Self:
        """The samples at some places, in that order."""
        return replace(self, sources=[self.sources[place] for place in places])


Batch = Stored | list[Sample]
"""Some samples, as they are sent to a process."""


@dataclass(frozen=True)
class Samples:
    """Samples in an order, each fitted to the inputs.

    Attributes:
        arrays: The samples; iterated once.
        count: The number of samples; None if it is not known before.
        names: Names of files for each sample; empty if it has none of its own.
        path: The path that they are read from; "" of what a program gives.
        labels: The labels of the rows of each sample; empty if there are none.
    """

    arrays: Iterable[Sample]
    count: int | None
    names: tuple[str, ...] = ()
    path: str = ""
    labels: tuple[np.ndarray, ...] = ()


@contextmanager
def _reading(path: Path, what: str, *more: type[Exception]) -> Iterator[None]:
    """Turns an error of the system, or of a file that is not what its name says, into a FileError."""
    with file_errors(path):
        try:
            yield
        except TflqError:
            raise
        except OSError as error:
            if error.errno != EINVAL:
                raise
            raise FileError(str(path), f"not a readable {what}: it names a place before its begin") from error
        except (*DAMAGED, *more) as error:
            raise FileError(str(path), f"not a readable {what}: {str(error)[:_MOST]}") from error


def files_of(data: object) -> list[Path]:
    """The files that samples may be read from, of a folder also those in folders by class; those of a program have
    none."""
    if not isinstance(data, (str, os.PathLike)):
        return []
    top, files = os.fspath(data), []
    for folder, folders, names in os.walk(top, followlinks=True):
        files += [Path(folder, name) for name in names]
        if folder != top:
            folders.clear()
    return files or [Path(data)]


# Arrays in an .npz file.


def of_npz(path: Path, entry: Entry) -> Samples:
    """The samples of an .npz file, read from it row by row."""
    arrays = _arrays(path, entry)
    arrangement = Arrangement.of({array.input: array.shape for array in arrays}, str(path))
    if any(array.start is None for array in arrays) and arrangement.rows is not None:
        return Samples(_inflated(path, arrays, arrangement), arrangement.count)
    if arrangement.rows is None:
        return Samples(_Files([((path, None),)], entry, None), 1)
    return Samples(_Rows(range(arrangement.count), path, tuple(arrays), arrangement), arrangement.count)


def _arrays(path: Path, entry: Entry) -> list[_Array]:
    """The arrays of an .npz file that are an entry's inputs."""
    with _reading(path, ".npz file"), zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        names = entry.names([name.removesuffix(".npy") for name in members], str(path))
        return [_Array.of(archive, f"{name}.npy", input_, path) for input_, name in names.items()]


@dataclass(frozen=True)
class _Array:
    """An array in an .npz file, for an input.

    Attributes:
        member: Its name in the archive.
        input: The input that it is for.
        header: The number of bytes before its elements.
        start: Where its elements begin in the file; None if they are compressed.
        shape: The shape of the array, whose first dim is rows.
        dtype: That of its elements.
    """

    member: str
    input: Input
    header: int
    start: int | None
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, archive: zipfile.ZipFile, member: str, input_: Input, path: Path) -> _Array:
        with _reading(path, f".npz file, in '{member}'"), archive.open(member) as stream:
            layout: Any = np.lib.format
            version = layout.read_magic(stream)[0]
            read = layout.read_array_header_1_0 if version == 1 else layout.read_array_header_2_0
            shape, by_column, dtype = read(stream)
            header = stream.tell()
        if (by_column and len(shape) > 1) or dtype.hasobject:
            what = f"'{input_.name}' has no first dim of samples that can be read in order"
            raise OptionError(Reason(what, str(path), tensor=input_.tensor, remedy="save it with np.savez, in C order"))
        there = archive.getinfo(member).file_size - header
        if math.prod(shape) * dtype.itemsize > there:
            shown = "x".join(map(str, shape))
            raise FileError(
                str(path), f"'{member}' ends early: it states {shown} elements of {dtype}, and has {there} bytes"
            )
        return cls(member, input_, header, _start(archive, member, path, header), shape, dtype)

    @property
    def size(self) -> int:
        """Bytes of a row."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def read(self, stream: Any, place: int, path: Path) -> np.ndarray:
        """The row at a place, from where the stream is."""
        data = np.empty(self.size, np.uint8)
        done = 0
        while done < self.size:
            got = stream.readinto(data[done:].data)
            if not got:
                raise FileError(str(path), f"'{self.member}' ends early, in row {place}")
            done += got
        return data.view(self.dtype).reshape(self.shape[1:])


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
    """Samples in the rows of the arrays in an .npz file that is not compressed. sources: numbers of samples."""

    path: Path
    arrays: tuple[_Array, ...]
    arrangement: Arrangement

    def __iter__(self) -> Iterator[Sample]:
        with _reading(self.path, ".npz file"), self.path.open("rb", buffering=0) as stream:
            for sample in self.sources:
                yield _joined([self._row(stream, place) for place in self.arrangement.places(sample)])

    def _row(self, stream: Any, place: int) -> Sample:
        row = {}
        for array in self.arrays:
            stream.seek((array.start or 0) + place * array.size)
            row[array.input] = array.read(stream, place, self.path)
        return fitted(row, f"row {place} of {self.path}")[0]


def _joined(rows: Sequence[Sample]) -> Sample:
    return rows[0] if len(rows) == 1 else stacked(rows, len(rows))


def _inflated(path: Path, arrays: Sequence[_Array], arrangement: Arrangement) -> Iterator[Sample]:
    """The samples in the rows of arrays in an .npz file some of which are compressed."""
    with _reading(path, ".npz file"), ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        streams = [stack.enter_context(archive.open(array.member)) for array in arrays]
        for stream, array in zip(streams, arrays, strict=True):
            stream.read(array.header)

        def row(place: int) -> Sample:
            read = {a.input: a.read(stream, place, path) for stream, a in zip(streams, arrays, strict=True)}
            return fitted(read, f"row {place} of {path}")[0]

        for sample in range(arrangement.count):
            places = dict.fromkeys(arrangement.places(sample))
            yield stacked([row(place) for place in places], arrangement.group)


# .npy files, folders and images.


def of_npy(path: Path, entry: Entry) -> Samples:
    """The samples of an .npy file, for an entry of one input."""
    if len(entry.inputs) != 1:
        what = f"an .npy file has no names, and the model has {len(entry.inputs)} inputs"
        raise OptionError(Reason(what, str(path), remedy="save all inputs by np.savez(path, name=array)"))
    return _of_files([path], entry)


def of_folder(folder: Path, entry: Entry, images: Images | None) -> tuple[dict[str, np.ndarray], Samples | None]:
    """The samples of the files of a folder; or, if these are .npy files named as the inputs, arrays by name."""
    files, _ = sorted_files(folder)
    kinds = {"image" if file.suffix.lower() in IMAGES else file.suffix for file in files}
    if len(kinds) != 1 or not kinds <= {"image", ".npy", ".npz"}:
        what = f"the folder holds {', '.join(sorted(kinds)) or 'no'} files"
        raise OptionError(Reason(what, str(folder), remedy="put samples into it: only .npz, only .npy, or only images"))
    (kind,) = kinds
    if kind == "image":
        image_shape(entry, images)
        batch = entry.inputs[0].batch
        sources = [tuple((file, None) for file in files[i : i + batch]) for i in range(0, len(files), batch)]
        names = tuple(source[0][0].name for source in sources)
        return {}, Samples(_Files(sources, entry, images, batch), len(sources), names)
    named = {as_file_name(input_.name) for input_ in entry.inputs}
    if kind == ".npy" and {file.stem for file in files} == named:
        return {file.stem: loaded(file) for file in files}, None
    if kind == ".npy" and len(entry.inputs) != 1:
        what = f"the folder holds .npy files of other names than the model's {len(entry.inputs)} inputs"
        remedy = f"name them {', '.join(sorted(f'{name}.npy' for name in named))}, or save each sample by np.savez"
        raise OptionError(Reason(what, str(folder), remedy=remedy))
    return {}, _of_files(files, entry)


def _of_files(files: Sequence[Path], entry: Entry) -> Samples:
    """The samples of files of arrays: one in each, or those in its rows."""
    places: list[tuple[Path, int | None]] = []
    groups = set()
    for file in files:
        if file.suffix == ".npz":
            shapes = {array.input: array.shape for array in _arrays(file, entry)}
        else:
            shapes = {entry.inputs[0]: loaded(file).shape}
        is_row = all(input_.takes_row(shape) and not input_.takes(shape) for input_, shape in shapes.items())
        batch = group_of([*shapes], len(shapes), str(file)) if is_row else 1
        arrangement = Arrangement(None, batch) if batch > 1 else Arrangement.of(shapes, str(file))
        groups.add(arrangement.group)
        places += [(file, row) for row in ([None] if arrangement.rows is None else range(arrangement.rows))]
    if len(groups) > 1:
        raise OptionError(Reason("some files hold whole batches, and some rows", str(files[0].parent)))
    (group,) = groups
    sources = [tuple(places[i : i + group]) for i in range(0, len(places), group)]
    many = len(places) > len(files)
    names = [f"{file.name}{f'[{row}]' if many and row is not None else ''}" for file, row in (s[0] for s in sources)]
    return Samples(_Files(sources, entry, None, group), len(sources), tuple(names) if len(files) > 1 else ())


@dataclass(frozen=True)
class _Files(Stored):
    """Samples in files, each of one or more (file, row). images: how they become inputs; None: they hold arrays."""

    entry: Entry
    images: Images | None
    group: int = 1

    def __iter__(self) -> Iterator[Sample]:
        for places in self.sources:
            if self.images is not None:
                rows = [_of_image(file, self.entry, self.images) for file, _ in places]
            else:
                rows = [self._read(file, row) for file, row in places]
            yield rows[0] if self.group == 1 else stacked(rows, self.group)

    def _read(self, file: Path, row: int | None) -> Sample:
        arrays = loaded(file)
        named = self.entry.names(list(arrays), str(file)) if isinstance(arrays, Mapping) else {}
        by_input = {input_: arrays[name] for input_, name in named.items()} or {self.entry.inputs[0]: arrays}
        where = str(file) if row is None else f"row {row} of {file}"
        return fitted(by_input if row is None else {input_: array[row] for input_, array in by_input.items()}, where)[0]


def sorted_files(folder: Path) -> tuple[list[Path], list[int]]:
    """The files of a folder that hold samples, by name; or, where it has folders alone, the images in these, and the
    class of each: the number that is the folder's name, if each has one, else the folder's place by name. OptionError
    for files beside folders by class, unless labels of these files are there, too."""
    with file_errors(folder):
        inside = [each for each in folder.iterdir() if not each.name.startswith(".") and each.name != LABELS_FILE]
        files, folders = sorted(filter(Path.is_file, inside)), sorted(filter(Path.is_dir, inside))
        if (
            files
            and not (folder / LABELS_FILE).exists()
            and any(_is_image(file) for f in folders for file in f.iterdir())
        ):
            what = f"the folder holds folders of images and, beside them, {files[0].name}: samples are in one of these"
            remedy = "move the file away, or the folders, or give labels of the files in labels.csv"
            raise OptionError(Reason(what, str(folder), remedy=remedy))
        if files or not folders:
            return files, []
        numbered = all(re.fullmatch("[0-9]{1,9}", each.name) for each in folders)
        classes = {each: int(each.name) if numbered else place for place, each in enumerate(folders)}
        pairs = [(file, classes[each]) for each in folders for file in sorted(each.iterdir()) if _is_image(file)]
    return [file for file, _ in pairs], [each for _, each in pairs]


def _is_image(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in IMAGES and not file.name.startswith(".")


def loaded(file: Path, *, names: bool = False) -> Any:
    """The array of an .npy file, mapped; the arrays of an .npz file by name, or their names alone."""
    with _reading(file, f"{file.suffix} file"):
        if file.suffix == ".npy":
            return np.load(file, mmap_mode="r", allow_pickle=False)
        with np.load(file, allow_pickle=False) as arrays:
            return arrays.files if names else {name: arrays[name] for name in arrays.files}


def image_shape(entry: Entry, images: Images | None) -> tuple[int, int, int]:
    """Height, width and channels of images for an input. OptionError if it takes none, or nothing says how."""
    if images is None:
        raise OptionError(Reason("images need a mean and a scale", remedy="state them: --mean 127.5 --scale 0.00784"))
    input_ = entry.inputs[0]
    _, *size = input_.shape if len(entry.inputs) == 1 and len(input_.shape) == 4 else (None,)
    height, width, channels = (dim or 0 for dim in size or (0, 0, 0))
    if not height or not width or channels not in (1, 3):
        what = f"images are for a model of one input of N x height x width x 1 or 3, and it has {dims(input_.shape)}"
        raise OptionError(Reason(what, tensor=input_.tensor))
    return height, width, channels


def _of_image(file: Path, entry: Entry, images: Images) -> Sample:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackageError("images need Pillow", "images") from error
    height, width, channels = image_shape(entry, images)
    (input_,) = entry.inputs
    with _reading(file, "image", Image.DecompressionBombError), Image.open(file) as image:
        resized = image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(resized, np.float32).reshape(height, width, channels)
    values = (pixels - np.array(images.mean, np.float32)) * np.array(images.scale, np.float32)
    return fitted({input_: values if input_.scale else values.astype(input_.dtype)}, str(file))[0]
