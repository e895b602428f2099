"""Tools of kernels: operands, scratch and expressions, and loops over windows and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from tflq.analysis.known import Ranges
from tflq.analysis.placing import aligned
from tflq.formats.c.expressions import Expressions, declared_type
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.names import c_type, count, dims_of, plus
from tflq.formats.c.unit import Kernel, Scratch, Unit, loops
from tflq.ir.ops import Op, Value

Ints: TypeAlias = Sequence[int]
AXES: Final = "zyx"
"""Letters of the spatial dims in the names of indices; of two dims the last two."""
_BLOCK: Final = 64
_FEW: Final = 16
"""Channels that have sums at a time: where those of all need too much memory, and on the stack."""
ON_STACK: Final = 128
"""Bytes of sums that may be on the stack."""
_SIZES: Final = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "float": 4, "int64_t": 8}


class Rows(NamedTuple):
    """Loops that fill a row of sums, open at the place where the row is read. base: the index of its first element in
    the result. length: its elements, a number or the name of one. sum: the expression of an element j. channel: that of
    its channel, if these are not all elements of a place."""

    lines: Sequence[str]
    base: str
    length: int | str
    sum: str
    channel: str = ""


class Body:
    """The function of one root, as far as it is known: what its tree reads, and its scratch memory. `declared`:
    declarations of few sums for which there is no room in the arena."""

    def __init__(self, unit: Unit, fusion: Fusion, ranges: Ranges, room: int = 1 << 31) -> None:
        self.unit = unit
        self.fusion = fusion
        self.terms = Expressions(unit, fusion, ranges)
        self.room = room
        self.scratch: list[Scratch] = []
        self.declared: list[str] = []

    def accumulator(self, type: str, size: int, *, on_stack: bool = False) -> None:
        """Asks for a row of sums. Few that have no room are on the stack, too."""
        bytes = size * _SIZES[type]
        if on_stack or self.room < bytes <= ON_STACK:
            self.declared.append(f"{type} acc[{size}];")
        else:
            self.scratch.append(Scratch(type, "acc", bytes))

    def operand(self, value: Value) -> tuple[str, str, int]:
        """The name of a tensor that rows are made of, its type in C, and what is taken off its elements beyond a zero
        point."""
        root = self.fusion.root(value)
        if root.is_constant:
            return self.unit.constant(root.array, root.type.storage), c_type(root), 0
        raw = self.fusion.raw.get(root)
        return self.terms.leaf(raw or root), c_type(raw or root), 0 if raw is None else 128

    def finished(self, op: Op, lines: Sequence[str], results: Sequence[Value], since: int | None = None) -> Kernel:
        """The kernel of the lines. since: leaves from this one on are read where the result is written."""
        leaves, sizes = [*self.terms.leaves], [*map(count, results)]
        same = [v for v in leaves[len(leaves) if since is None else since :] if sizes == [count(v)]]
        return Kernel(op, leaves, results, self.scratch, same, lines)


def read_sum(type: str, value: Value) -> str:
    """The expression of a sum in the row, in the type that expressions of the value have."""
    wanted = declared_type(value)
    return "acc[j]" if type == wanted or "int64_t" not in (type, wanted) else f"({wanted})acc[j]"


def flat(first: str, letter: str, sizes: Ints) -> str:
    """The index of an element by those of all dims but the last, of which `first` is that of the first dim."""
    text = first
    for axis, size in zip(AXES[-len(sizes) :], sizes, strict=True):
        text = f"({text} * {size} + {letter}{axis})" if text else f"{letter}{axis}"
    return text


def pixel(image: Value, letter: str) -> str:
    """The index of the first channel of an image at (g, iz, iy, ix), where the letter is i."""
    _, *sizes, channels = dims_of(image)
    return f"{flat('g', letter, sizes)} * {channels}"


class Block(NamedTuple):
    """Channels that have a row of sums together. heads: the loop over blocks. size: how many, a number or the name of
    one. first: the index of the first and a plus. most: how many there are at most. on_stack: where their sums are."""

    heads: Sequence[str]
    size: int | str
    first: str
    most: int
    on_stack: bool = False

    @classmethod
    def of(cls, channels: int, bytes: int, room: int, *, whole: bool = False) -> Block:
        """A block of channels for whose sums, of so many bytes, there is room, or a small one on the stack. whole: all
        of them, if these have room."""
        most = channels if whole else min(channels, _BLOCK)
        on_stack = aligned((most + most % 2) * bytes) > room
        most = min(most, _FEW) if on_stack else most
        if channels <= most:
            return cls([], channels, "", channels, on_stack)
        heads = [f"for (int32_t b = 0; b < {channels}; b += {most}) {{"]
        if channels % most:
            heads.append(f"const int32_t n = min32({most}, {channels} - b);")
        return cls(heads, "n" if channels % most else most, "b + ", most, on_stack)

    def rows(self, lines: Sequence[str], base: str, sum: str) -> Rows:
        """The rows of a block at each place. base: the index of the place in the result."""
        base, channel = (f"{base} + b", f"({self.first}j)") if self.first else (base, "j")
        return Rows(lines, base, self.size, sum, channel)


def placed(image: Value, lines: Sequence[str], sum: str, block: Block | None = None) -> list[Rows]:
    """Rows at each place of an image."""
    n, *sizes, channels = dims_of(image)
    heads = loops(g=n, **{f"o{axis}": size for axis, size in zip(AXES[-len(sizes) :], sizes, strict=True)})
    return [(block or Block([], channels, "", channels)).rows([*heads, *lines], pixel(image, "o"), sum)]


def window(kernel: Ints, stride: Ints, dilation: Ints, before: Ints, sizes: Ints = ()) -> list[str]:
    """Loops over a window at (oz, oy, ox): iz, row iy, column ix. sizes: those of the picture, if elements outside of
    it are left out."""
    lines = []
    for at, axis in enumerate(AXES[-len(kernel) :]):
        index = plus(f"o{axis} * {stride[at]} + k{axis} * {dilation[at]}", -before[at])
        lines += [*loops(**{f"k{axis}": kernel[at]}), f"const int32_t i{axis} = {index};"]
        lines += [f"if (i{axis} < 0 || i{axis} >= {sizes[at]}) {{", "continue;", "}"] if sizes else []
    return lines
