"""The interface of a program in C as `tflq convert` writes it: what its header and source say of entries and layers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from tflq.base.errors import FileError, InvalidModelError
from tflq.base.files import file_errors
from tflq.base.version import __version__
from tflq.ir.ops import Value
from tflq.ir.types import SCALARS, TensorType
from tflq.numerics.kernel_sets import Exactness

C_TYPES: Final = {
    "bool": "i1",
    "int8_t": "i8",
    "uint8_t": "ui8",
    "int16_t": "i16",
    "uint16_t": "ui16",
    "int32_t": "i32",
    "int64_t": "i64",
    "float": "f32",
}
_DESCRIBED: Final = r"/\* (\w+)\[([\d,]*)\] (.*) \*/"
_LAYER: Final = re.compile(rf"_LAYER\(\d+, .*\); {_DESCRIBED}")
_CALL: Final = re.compile(r" +(?!\w+_STEP\()\w+\(")
CALLED: Final = re.compile(r"_(\d+_\w+)\(")
_DIGEST: Final = re.compile(rf"written by tflq {re.escape(__version__)}\n \* SHA-256 of the source: (\w+)\n")
_KERNELS: Final = re.compile(
    r"^ \* kernels: ([-.\w]+)(?:; operators that differ: (\S+ \d+(?:, \S+ \d+)*))?$", re.MULTILINE
)
_RUN: Final = re.compile(r"^int (\w+)_run\((.*)\)", re.MULTILINE)
_KEY: Final = re.compile(r"/\* Signature (.*)\. 0; 1 if")


def exactness_in(source: str) -> Exactness | None:
    """The kernel sets that a source in C reproduces, by its head; None if it does not say."""
    match = _KERNELS.search(source)
    if match is None:
        return None
    counts = (part.split(" ") for part in (match[2] or "").split(", ") if part)
    return Exactness(match[1], {unquote(name): int(count) for name, count in counts})


class Entry(NamedTuple):
    """A function of the source. layers: results whose hook it calls. single: the names of those that one call
    computes. calls: the functions that it calls, without the name of the source."""

    inputs: Sequence[Value]
    outputs: Sequence[Value]
    layers: Sequence[Value]
    single: Collection[str]
    calls: Sequence[str]


class Interface:
    """The interface that a header says, as far as it is one of tflq's. entries: by what stands before `_run`; keys: the
    signature of each. InvalidModelError if it is not."""

    def __init__(self, path: str) -> None:
        header = os.path.splitext(path)[0] + ".h"
        if os.path.exists(path) and not os.path.exists(header):
            what, remedy = f"its header {header} is not there", "put it beside the source, as tflq convert wrote it"
            raise FileError(path, what, remedy=remedy)
        with file_errors(header):
            text = Path(header).read_text("utf-8", "replace")
        with file_errors(path):
            source = Path(path).read_text("utf-8", "replace")
        runs = _RUN.findall(text)
        macro = re.search(r"^#ifndef (\w+)_H$", text, re.MULTILINE)
        if not runs or macro is None:
            raise InvalidModelError("", "its header declares no NAME_run: tflq has not written it", path=path)
        self.macro = macro[1]
        self.blob = _blob(path, text) if "const uint8_t *constants" in runs[0][1] else ""
        init = re.search(r"^void (\w+)_init\(", text, re.MULTILINE)
        self.state = "" if init is None else init[1]
        self.inexact = "NOT bit-exact" in text
        digest, exactness = _DIGEST.search(source), exactness_in(source)
        self.digest = "" if digest is None else digest[1]
        self.kernels = "" if exactness is None else exactness.name
        self.keys = [unquote(key) for key in _KEY.findall(text)] or [""]
        _, *parts = _RUN.split(source)
        bodies = dict(zip(parts[::3], parts[2::3], strict=True))
        for name in {name for name, _ in runs} - bodies.keys():
            raise InvalidModelError("", f"it defines no {name}_run, which its header declares", path=path)
        self.entries = {
            name: Entry(
                _side(path, name, "IN", text),
                _side(path, name, "OUT", text),
                [_value(path, *row) for row in _LAYER.findall(bodies[name])],
                _single(bodies[name]),
                CALLED.findall(bodies[name]),
            )
            for name, _ in runs
        }
        self.shapes = [[value.type.shape for value in entry.inputs] for entry in self.entries.values()]
        self.batch = next((dims[0] for row in self.shapes for dims in row if dims), None)
        if len(self.keys) != len(self.entries):
            raise InvalidModelError("", "its header does not say which signature each NAME_run is of", path=path)


def _blob(path: str, header: str) -> str:
    """The path of the file of constants. InvalidModelError if it has fewer bytes than the header says."""
    blob = f"{os.path.splitext(path)[0]}.bin"
    number = re.search(r"_CONSTANT_BYTES (\d+)$", header, re.MULTILINE)
    with file_errors(blob):
        size = os.path.getsize(blob)
    if number is None or size < int(number[1]):
        what = f"its constants in {blob} have {size} bytes, and its header says {number[1] if number else 'no number'}"
        raise InvalidModelError("", what, path=path)
    return os.path.abspath(blob)


def _single(body: str) -> set[str]:
    """The names of layers before whose hook one call stands, and no more since the hook before."""
    names, calls = set(), 0
    for line in body.split("\n"):
        if layer := _LAYER.search(line):
            names |= {unquote(layer[3])} if calls == 1 else set()
            calls = 0
        else:
            calls += _CALL.match(line) is not None
    return names


def _side(path: str, name: str, side: str, header: str) -> list[Value]:
    """The inputs or the outputs of an entry."""
    rows = re.findall(rf"{_DESCRIBED}\n#define {name.upper()}_{side}\d+_SIZE", header)
    return [_value(path, *row) for row in rows]


def _value(path: str, type: str, dims: str, name: str) -> Value:
    """The tensor that a comment describes."""
    if type not in C_TYPES:
        raise InvalidModelError("", f"a tensor of {type}", path=path)
    return Value(
        TensorType(tuple(map(int, filter(None, dims.split(",")))), SCALARS[C_TYPES[type]]),
        unquote(name, errors="surrogateescape"),
    )
