"""One C source on its way: its constants, its kernels, of which equal ones are written once, and the small functions
that these call, from `helpers.c`, behind `head.c`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from tflq.analysis.placing import aligned
from tflq.base.files import resource
from tflq.formats.c.names import _TYPES, NAME, c_type, comment, dims_of
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, i8, i16, i32


class Scratch(NamedTuple):
    """Memory that a kernel needs while it runs: element type, name of the parameter, bytes."""

    type: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A call of a function of C. leaves: tensors that it reads. shares: those of them of which each element is read
    before that of the result is written in its place. results: none where only state is written. lines: the function's
    statements; none copy a variable."""

    op: Op
    leaves: Sequence[Value]
    results: Sequence[Value]
    scratch: Sequence[Scratch] = ()
    shares: Sequence[Value] = ()
    lines: Sequence[str] = ()

    @property
    def bytes(self) -> int:
        """The memory that it needs while it runs."""
        return sum(aligned(each.size) for each in self.scratch)


@dataclass(slots=True)
class Unit:
    """`constants`: by element type and bytes, the name, elements and type of each.
    `texts`: all functions by name, each behind those that it calls."""

    constants: dict[tuple[str, bytes], tuple[str, np.ndarray, ScalarType]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def constant(self, array: np.ndarray, storage: ScalarType) -> str:
        """The name of a constant array; equal arrays share one."""
        array = np.ascontiguousarray(array, storage.dtype).reshape(-1)
        key = _TYPES[storage.name], array.tobytes()
        if key not in self.constants:
            self.constants[key] = f"{NAME}_c{len(self.constants)}", array, storage
        return self.constants[key][0]

    def numbers(self, array: np.ndarray, storage: ScalarType) -> str:
        """The name of a constant whose elements expressions read, of the narrowest type that has them."""
        if storage.is_integer and storage.bits > 8 and array.size:
            ends = array.min(), array.max()
            fits = (t for t in (i8, i16, i32) if t.minimum <= ends[0] and ends[1] <= t.maximum)
            storage = min(next(fits, storage), storage, key=lambda t: t.bits)
        return self.constant(array, storage)

    def function(self, kernel: Kernel) -> str:
        """The name of the function of a kernel; equal functions share one, of the first operator."""
        op, results = kernel.op, kernel.results
        parameters = [f"const {c_type(v)} *p{at}" for at, v in enumerate(kernel.leaves)]
        parameters += [f"{c_type(v)} *{name}" for v, name in zip(results, result_names(results), strict=True)]
        parameters += [f"{s.type} *{'restrict ' * (s.size > 0)}{s.name}" for s in kernel.scratch]
        key = "\n".join([*parameters, "", *kernel.lines])
        if key not in self._names:
            place = op.location
            opcode = comment(place.opcode if place else op.short_name)
            word = re.sub(r"\W", "", opcode.lower().replace(" ", "_")) or "op"
            heading = f"{opcode} {place.operator}: {comment(place.tensor)}" if place else opcode.upper()
            self._names[key] = name = f"{NAME}_{len(self._names)}_{word}"
            shape = ", ".join("x".join(map(str, dims_of(v))) or "scalar" for v in results)
            self.add(name, parameters, kernel.lines, f"/* {heading} -> {shape} */\n")
        return self._names[key]

    def add(self, name: str, parameters: Iterable[str], lines: Iterable[str], head: str = "") -> None:
        """Writes a static function."""
        self.texts[name] = f"{head}static void {name}({', '.join(parameters)}) {{\n{indented(lines)}}}\n"

    def keep(self, lines: Iterable[str]) -> None:
        """Drops constants that neither functions nor other lines read."""
        read = set(_CONSTANT.findall("\n".join([*self.texts.values(), *lines])))
        self.constants = {key: known for key, known in self.constants.items() if known[0] in read}

    def readers(self) -> set[str]:
        """The functions that read constants, or call others that do."""
        readers: set[str] = set()
        for name, text in self.texts.items():
            if f"{NAME}_c" in text or not readers.isdisjoint(_CALL.findall(text)):
                readers.add(name)
        return readers


_CONSTANT: Final = re.compile(r"@_c\d+")
_CALL: Final = re.compile(r"@_\w+(?=\()")
_CALLED: Final = re.compile(r"\b(\w+)\(")


def result_names(results: Sequence[Value]) -> list[str]:
    """The names of the parameters for results."""
    return ["y"] if len(results) == 1 else [f"y{at}" for at in range(len(results))]


def loops(**sizes: int | str) -> list[str]:
    """The heads of loops, the outermost first: an index from 0 below each size."""
    return [f"for (int32_t {at} = 0; {at} < {size}; {at}++) {{" for at, size in sizes.items()]


def closed(lines: Iterable[str]) -> list[str]:
    """Statements, and the ends of the blocks that they leave open."""
    lines = [*lines]
    return [*lines, *["}"] * sum(line.endswith("{") - line.startswith("}") for line in lines)]


def indented(lines: Iterable[str]) -> str:
    """Statements, each in a line, inside of the braces of a function."""
    depth, out = 1, []
    for line in lines:
        depth -= line.startswith("}")
        out.append(f"{'  ' * depth}{line}\n")
        depth += line.endswith("{")
    return "".join(out)


# Loops over statements.

_NUMBER: Final = re.compile(r"(?<!\w)\d+")
_LONGEST: Final = 32
"""Statements of a loop, at most."""
_TIMES: Final = 4
"""Repetitions that become a loop, at least."""


def rolled(lines: Sequence[str]) -> list[str]:
    """Statements, with loops in the place of those that repeat others but for numbers that grow by a step each time.
    Those with comments are of one tensor, and stay."""
    rows = [(_NUMBER.sub("#", line), [*map(int, _NUMBER.findall(line))]) for line in lines]
    out: list[str] = []
    at = 0
    while at < len(lines):
        sizes = (size for size in range(1, min(_LONGEST + 1, len(rows) - at)) if rows[at + size][0] == rows[at][0])
        ways = ((_times(rows, at, size), size) for size in sizes)
        times, size = max(ways, key=lambda way: (way[0] - 1) * way[1], default=(1, 1))
        if times < _TIMES:
            times = size = 1
            out.append(lines[at])
        else:
            out += loops(step=times)
            for line, (_, first), (_, second) in zip(lines[at : at + size], rows[at:], rows[at + size :], strict=False):
                terms = (f"{a} + {b - a} * step" if a != b else str(a) for a, b in zip(first, second, strict=True))
                out.append(_NUMBER.sub(lambda _, terms=terms: next(terms), line))  # type: ignore[misc]
            out.append("}")
        at += times * size
    return out


def _times(rows: Sequence[tuple[str, list[int]]], at: int, size: int) -> int:
    """The times that a number of statements stand behind each other, with numbers that grow by the same steps."""
    first, second = rows[at : at + size], rows[at + size : at + 2 * size]
    if [form for form, _ in first] != [form for form, _ in second] or any("/*" in form for form, _ in first):
        return 1
    times, steps = 2, [[b - a for a, b in zip(x, y, strict=True)] for (_, x), (_, y) in zip(first, second, strict=True)]
    while rows[at + times * size : at + (times + 1) * size] == [
        (form, [n + times * step for n, step in zip(numbers, row, strict=True)])
        for (form, numbers), row in zip(first, steps, strict=True)
    ]:
        times += 1
    return times


# Small functions.


@cache
def _texts() -> dict[str, str]:
    """Each function by its name; one is defined before those that call it."""
    with open(resource("formats/c/helpers.c"), encoding="utf-8") as file:
        texts = file.read().strip().split("\n\n")[1:]
    return {name[1]: text for text in texts if (name := _CALLED.search(text)) is not None}


def helpers(texts: Iterable[str]) -> list[str]:
    """The definitions of all functions that some text calls, in an order in which each is defined before its use."""
    used, wanted = set(_CALLED.findall("\n".join(texts))), []
    for name, text in reversed(_texts().items()):
        if name in used:
            wanted.append(text)
            used |= set(_CALLED.findall(text))
    return wanted[::-1]


def head(*, floats: bool) -> str:
    """The checks that a compiler makes, of integers and of floats, and the macros that a build may define."""
    with open(resource("formats/c/head.c"), encoding="utf-8") as file:
        integers, of_floats, macros = file.read().split("\n\n")
    return "\n\n".join([integers, *[of_floats] * floats, macros])
