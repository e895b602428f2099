"""The zip archive that may follow a model: the files its metadata names, such as labels.

TFLite's metadata tools append it to the finished model and count its offsets from the start of the whole file, so they
change when the model's length does. Source: the ZIP format, APPNOTE 4.3.12 (central directory header) and 4.3.16
(end of central directory record).
"""

from __future__ import annotations

import struct

import numpy as np

from tflq.light import dataclass

__all__ = ["Archive", "find_archive", "place_archive"]

_END = struct.Struct("<4s4H2IH")  # signature, disks, entries, size and offset of the directory, comment length
_ENTRY = struct.Struct("<4s24x3H8xI")  # signature, lengths of name, extra field and comment, offset of the local header
_LONGEST_COMMENT = 65535


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive: its bytes and where they began in the file; `entries` and `end` are places in its bytes."""

    data: np.ndarray
    start: int
    entries: tuple[int, ...]
    end: int


def find_archive(data: memoryview) -> Archive | None:
    """The archive at the end of a file whose offsets count from the file's start; None if there is none."""
    first = max(0, len(data) - _LONGEST_COMMENT - _END.size)
    at = first + bytes(data[first:]).rfind(b"PK\5\6")
    if at < first or at + _END.size > len(data):
        return None
    *_, size, offset, comment = _END.unpack_from(data, at)
    if at + _END.size + comment != len(data) or offset + size != at:
        return None
    entries, start = [], offset
    place = offset
    while place < at:
        signature, name, extra, note, local = (
            _ENTRY.unpack_from(data, place) if place + _ENTRY.size <= at else (b"",) * 5
        )
        if signature != b"PK\1\2" or local >= offset:
            return None
        entries.append(place)
        start = min(start, local)
        place += _ENTRY.size + name + extra + note
    return Archive(np.frombuffer(data, np.uint8)[start:], start, tuple(p - start for p in entries), at - start)


def place_archive(archive: Archive, start: int) -> bytes:
    """The archive's bytes for a file in which it begins at `start`."""
    out = bytearray(archive.data)
    shift = start - archive.start
    for at in [entry + _ENTRY.size - 4 for entry in archive.entries] + [archive.end + 16]:
        struct.pack_into("<I", out, at, struct.unpack_from("<I", out, at)[0] + shift)
    return bytes(out)
