"""A file on its way to its place: whole in the place, or not there, whatever ends the process.

Where the system has unnamed files (`O_TMPFILE` of Linux), a draft has no name until it is whole: a process that is
killed leaves nothing. Elsewhere, and for the moment in which it replaces a file, its name says whose it is:

    .tflq-HOST-PROCESS-START-RANDOM

HOST stands for a boot of a machine and a namespace of processes in it, START for when the process began. The next draft
in a folder removes those whose process is certainly dead: of this host, and gone or begun at another time. A host that
cannot be told apart from others, as outside Linux, is "0", and its drafts stay.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Final

_PREFIX: Final = ".tflq-"
_NAME: Final = r"\.tflq-(?P<host>[0-9a-f]+)-(?P<process>\d+)-(?P<start>\d+)-[0-9a-f]{8}"
_DESCRIPTORS: Final = "/proc/self/fd"
_FLAGS: Final = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Draft:
    """A file for one place. `write`, then `put` it there; `discard` ends it in any case."""

    def __init__(self, path: str) -> None:
        """path: the place, which may hold a regular file. OSError if its folder takes no file."""
        self._path = path
        self._folder = os.path.dirname(path)
        self._name = ""
        self._backup = ""
        self._replaces = False
        _remove_dead(os.path.abspath(self._folder))
        try:
            replaced = os.stat(path)
        except FileNotFoundError:
            replaced = None
        self._descriptor = self._open(0o666 if replaced is None else replaced.st_mode & 0o777)
        if replaced is not None:
            _resemble(self._descriptor, replaced)

    def write(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        """Writes all of the file."""
        with os.fdopen(self._descriptor, "wb", closefd=False) as file:
            file.writelines(pieces)

    def put(self, *, force: bool, restorable: bool) -> None:
        """Puts the file in its place. restorable: `restore` can undo it. FileExistsError without `force` if there is a
        file by then."""
        if not force:
            self._link(self._path)
            return
        self._replaces = os.path.lexists(self._path)
        if restorable and self._replaces:
            with suppress(OSError):  # a file system without links
                backup = self._beside()
                os.link(self._path, backup)
                self._backup = backup
        if not self._name:
            with suppress(FileExistsError):
                self._link(self._path)
                return
            name = self._beside()
            self._link(name)
            self._name = name
        self._close()
        os.replace(self._name, self._path)
        self._name = ""

    def restore(self) -> None:
        """Undoes `put`: what was in the place is there again. Without links in the file system a new file stays there
        that has replaced another."""
        if self._backup:
            os.replace(self._backup, self._path)
            self._backup = ""
        elif not self._replaces:
            os.unlink(self._path)

    def discard(self) -> None:
        """Removes what is not in its place."""
        self._close()
        for name in filter(None, (self._name, self._backup)):
            with suppress(OSError):
                os.unlink(name)
        self._name = self._backup = ""

    def _open(self, mode: int) -> int:
        if hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS):
            with suppress(OSError):  # a file system without unnamed files, or an error that the name gives, too
                return os.open(self._folder or os.curdir, _FLAGS | os.O_TMPFILE, mode)
        name = self._beside()
        descriptor = os.open(name, _FLAGS | os.O_CREAT | os.O_EXCL, mode)
        self._name = name
        return descriptor

    def _link(self, path: str) -> None:
        """Gives the file another name, or its first one. FileExistsError if a file has it."""
        if not self._name:
            folder = os.open(self._folder or os.curdir, os.O_PATH)
            try:  # a folder's descriptor makes `os.link` follow the link that /proc has to the file
                os.link(f"{_DESCRIPTORS}/{self._descriptor}", os.path.basename(path), dst_dir_fd=folder)
            finally:
                os.close(folder)
            return
        try:
            os.link(self._name, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError(path) from None
            self._close()
            os.replace(self._name, path)
            self._name = ""

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _beside(self) -> str:
        """A name in the folder that says whose it is; none is longer than 80 bytes."""
        process = os.getpid()
        name = f"{_PREFIX}{_host()}-{process}-{_start(process)}-{os.urandom(4).hex()}"
        return os.path.join(self._folder, name)


def _resemble(descriptor: int, replaced: os.stat_result) -> None:
    """Gives a file the mode of another and, as far as the system lets this process, the owner."""
    if not hasattr(os, "fchmod"):
        return
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (replaced.st_uid, replaced.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode) & 0o777)


@cache
def _remove_dead(folder: str) -> None:
    """Removes drafts of processes of this host that are dead; looked for once by each process."""
    with suppress(OSError), os.scandir(folder) as entries:
        drafts = [entry.name for entry in entries if entry.name.startswith(_PREFIX)]
        names = [match for name in drafts if (match := re.fullmatch(_NAME, name))]
        for match in names:
            if match["host"] == _host() != "0" and _is_dead(int(match["process"]), int(match["start"])):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, match[0]))


def _is_dead(process: int, start: int) -> bool:
    """Whether a process of this host, begun at that time, is certainly gone."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    begun = _start(process)
    return 0 != begun != start != 0


@cache
def _host() -> str:
    """The boot of this machine and the namespace of its processes, in digits of base 16; "0" if it is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().replace("-", "")
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except (OSError, ValueError):
        return "0"
    return f"{boot[:16]}{namespace:x}"


def _start(process: int) -> int:
    """When a process began, in ticks since the machine did; 0 if that is not known."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
