"""Output files, and the data files of the package.

Every command checks the files that it will write with `check_outputs` before it works, and writes them with
`replace_files`. An input is never replaced, another file only with `force`. A file is written whole or not at all: on
an error, what was there before stays.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import ELOOP
from functools import cache
from io import IOBase
from typing import Any, TypeAlias

from tflq.base.drafts import Draft
from tflq.base.errors import FileError, OptionError, Reason

FilePath: TypeAlias = str | os.PathLike[str]
"""The path of a file or of a folder."""
Place: TypeAlias = FilePath | int
"""A path, or the number of an open stream: 0 is standard input, 1 standard output."""
Output: TypeAlias = tuple[str, Place | None]
"""The name of an output in messages, such as "--report", and where it goes; None if there will be none."""
Pieces: TypeAlias = Iterable[bytes | bytearray | memoryview]

_FORCE = "--force (in Python: force=True) replaces it"


@contextmanager
def file_errors(path: FilePath) -> Iterator[None]:
    """Turns an error of the system on reading or writing a file into a FileError."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise _file_error(path, error) from error


def reads_once(path: FilePath) -> bool:
    """Whether what a path leads to can be read once only, or by this process alone: a pipe, `<(...)`, `/dev/stdin`.
    FileError if there is nothing, or a link to itself."""
    with file_errors(path):
        mode = os.stat(path).st_mode
    if stat.S_ISREG(mode):
        return os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))
    return not stat.S_ISDIR(mode)


def check_link(path: FilePath) -> None:
    """FileError for a link that leads nowhere but to itself, which is no missing file."""
    with file_errors(path), suppress(FileNotFoundError):
        os.stat(path)


def _file_error(path: FilePath, error: OSError) -> FileError:
    if error.errno == ELOOP:
        what, remedy = "this is a link that leads back to itself", "remove the link, or name the file"
        return FileError(os.fspath(path), what, remedy=remedy, errno=error.errno)
    return FileError(os.fspath(path), error.strerror or str(error), errno=error.errno)


def check_outputs(
    outputs: Iterable[Output], *, inputs: Iterable[object] = (), force: bool = False, folders: bool = False
) -> None:
    """Checks all files that a command will write, before it starts to work.

    inputs: what it reads. Paths, streams and open files are compared; others, such as the bytes of a model, are
    ignored. force: files that exist may be replaced, but not inputs. folders: those that are missing will be made.

    FileError: an output is an input, under any name; it exists; it is a folder, or its folder does not exist.
    OptionError: two outputs are the same file.
    """
    read = {*map(_identity, inputs)} - {None}
    written: dict[tuple[str, str], str] = {}
    for label, place in outputs:
        if place is None:
            continue
        identity = _identity(place)
        if identity in read:
            name = "standard output" if isinstance(place, int) else os.fspath(place)
            raise FileError(name, "this is an input, which is never replaced", remedy="write to another file")
        if isinstance(place, int):
            continue
        path = os.fspath(place)
        _check_place(path, exists=identity is not None, force=force, folders=folders)
        if (key := _key(path)) in written:
            raise OptionError(Reason(f"{written[key]} and {label} would both be this file", path, remedy="rename one"))
        written[key] = label


def _check_place(path: str, *, exists: bool, force: bool, folders: bool) -> None:
    check_link(path)
    if os.path.isdir(path):
        raise FileError(path, "this is a folder", remedy="name a file")
    if exists and not force:
        raise FileError(path, "it exists already", remedy=_FORCE)
    parent = os.path.dirname(os.path.realpath(path))
    if not folders and not os.path.isdir(parent):
        raise FileError(path, f"there is no folder {os.path.dirname(path) or parent}", remedy="make it first")


def _identity(place: object) -> tuple[int, int] | None:
    """Device and inode of a regular file; None if it is something else, or does not exist."""
    try:
        if isinstance(place, (str, os.PathLike, int)):
            status = os.stat(place)
        elif isinstance(place, IOBase):
            status = os.stat(place.fileno())
        else:
            return None
    except (OSError, ValueError):  # the latter for a NUL in a path
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _key(path: str) -> tuple[str, str]:
    """Real folder and name of a file, equal for all paths to it; the file need not exist yet."""
    folder, name = os.path.split(os.path.realpath(path))
    return folder, name.casefold() if _ignores_case(folder) else name


def _ignores_case(folder: str) -> bool:
    """Whether the folder can also be found under its name in the other case."""
    parent, name = os.path.split(folder)
    with suppress(OSError):
        return name != name.swapcase() and os.path.samefile(folder, os.path.join(parent, name.swapcase()))
    return False


def replace_file(destination: FilePath, pieces: Pieces, *, force: bool = True) -> None:
    """Writes one file, with the guarantees of `replace_files`."""
    replace_files([(destination, pieces)], force=force)


def replace_files(files: Iterable[tuple[FilePath, Pieces]], *, force: bool = True) -> None:
    """Writes all files, then puts each in its place, where it takes the mode of the file that it replaces. For a link,
    the file that it leads to is replaced. A place that is not a regular file, such as a pipe, is written directly.

    FileError if this fails, or without `force` if a file exists by then; what was there before stays.
    """
    with files_to_place(files, force=force):
        pass


@contextmanager
def files_to_place(files: Iterable[tuple[FilePath, Pieces]], *, force: bool = True) -> Iterator[None]:
    """Writes files before the block and places them after it, with the guarantees of `replace_files`. An error in
    the block prevents the placing."""
    drafts: list[tuple[str, Draft]] = []
    placed: list[Draft] = []
    try:
        for destination, pieces in files:
            with file_errors(destination):
                _write(os.fspath(destination), pieces, drafts)
        yield
        for path, draft in drafts:
            with file_errors(path):
                _place(path, draft, force=force, restorable=len(drafts) > 1)
            placed.append(draft)
    except BaseException:
        for draft in placed:
            with suppress(OSError):
                draft.restore()
        raise
    finally:
        for _, draft in drafts:
            draft.discard()


def _write(path: str, pieces: Pieces, drafts: list[tuple[str, Draft]]) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.writelines(pieces)
        return
    path = os.path.realpath(path) if os.path.islink(path) else path
    draft = Draft(path)
    drafts.append((path, draft))
    draft.write(pieces)


def _place(path: str, draft: Draft, *, force: bool, restorable: bool) -> None:
    try:
        draft.put(force=force, restorable=restorable)
    except FileExistsError:
        raise FileError(path, "it exists already", remedy=_FORCE) from None


def text_bytes(text: str) -> bytes:
    """A text for a file, in UTF-8. A byte of a file name that is not UTF-8 is written as JSON does: `\\udcff`."""
    return text.encode("utf-8", "backslashreplace")


def tidy(path: FilePath) -> str:
    """A path without "." and double slashes, as `pathlib` writes it. ".." stays, since it may lead out of a link."""
    text = os.fspath(path)
    return text if ".." in text else os.path.normpath(text)


# The data files `schema/` and `rules/`: inside the package in a wheel, next to it in a checkout.

PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


@cache
def resource(name: str) -> str:
    """The path of a data file or folder, such as `schema/tflite.json`. FileNotFoundError if it is in neither place."""
    checkout = os.path.dirname(PACKAGE)
    for root in (PACKAGE, checkout):
        if os.path.exists(path := os.path.join(root, name)):
            return path
    raise FileNotFoundError(f"{name} is neither in {PACKAGE} nor in {checkout}: the installation is incomplete")


@cache
def content(name: str) -> Mapping[str, Any]:
    """The content of a data file in JSON: what every conversion reads, since `tomllib` takes longer to import."""
    import json

    with open(resource(name), encoding="utf-8") as file:
        document: Mapping[str, Any] = json.load(file)
        return document
