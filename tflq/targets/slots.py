"""The text of a kernel's signature, and whether values fit it: for rules of plain kernels, and tables of quantized ones
(`signature.py`), which say what a port takes.

    "operands -> results; NAME = port port ...; clause; clause"

    x*     any number of them, last of its side; x*10: up to ten
    x?     may be left out
    ...    the rest of a side is not specified
    NAME   one of some ports, the same wherever it occurs in the signature, unless it is called `any`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

REST: Final = "..."
ANY: Final = "any"


class Slot:
    """A place of a side: one of `ports`; slots of one name have the same one. `many` is "", "?", "*" or "...";
    `most`: how many of "*" there may be at most, 0 for any number."""

    __slots__ = ("many", "most", "name", "ports")

    def __init__(self, ports: tuple[Any, ...], name: str = "", many: str = "", most: int = 0) -> None:
        self.ports: Final = ports
        self.name: Final = name
        self.many: Final = many
        self.most: Final = most

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and (self.ports, self.name, self.many, self.most) == (
            other.ports,
            other.name,
            other.many,
            other.most,
        )

    def __hash__(self) -> int:
        return hash((self.ports, self.name, self.many, self.most))


Side: TypeAlias = tuple[Slot, ...]
Group: TypeAlias = tuple[list[Any], list[tuple[int, int]]]
"""The ports that values of one name fit, and where the values are: the side, the place in it."""


class Parts:
    """The words of a signature. `results`: None if there is no "->"; `named`: the names that it gives, in order."""

    __slots__ = ("clauses", "named", "operands", "results")

    def __init__(
        self, operands: list[str], results: list[str] | None, named: list[tuple[str, list[str]]], clauses: list[str]
    ) -> None:
        self.operands: Final = operands
        self.results: Final = results
        self.named: Final = named
        self.clauses: Final = clauses


def split(text: str) -> Parts:
    """The words of a text."""
    head, *rest = (part.strip() for part in text.split(";"))
    operands, arrow, results = head.partition("->")
    pairs = [part.partition("=") for part in rest]
    named = [(name.strip(), ports.split()) for name, equals, ports in pairs if equals]
    return Parts(
        operands.split(), results.split() if arrow else None, named, [name for name, equals, _ in pairs if not equals]
    )


def bare(word: str) -> str:
    """A word of a side without what says how often it may occur."""
    stem, star, most = word.rpartition("*")
    return stem if star and most.isdecimal() else word.rstrip("?*")


def slots(words: Sequence[str], named: Mapping[str, tuple[Any, ...]], port: Callable[[str], Any]) -> Side:
    """The slots of a side; `port` reads a word that is not a name. ValueError says what is wrong."""
    side: list[Slot] = []
    for place, word in enumerate(words):
        _, star, digits = word.rpartition("*")
        counted = bool(star) and digits.isdecimal()
        many = REST if word == REST else "*" if counted else word[-1] if word[-1] in "?*" else ""
        name = ANY if many == REST else bare(word)
        ports = named[name] if name in named else (port(name),)
        most = int(digits) if counted else 0
        side.append(Slot(ports, name if name in named and name != ANY else "", many, most))
        if many in ("*", REST) and place < len(words) - 1:
            raise ValueError(f"'{word}' is not the last of its side")
    return tuple(side)


def spread(side: Side, count: int) -> Side:
    """The slots of so many values: a last `*` as often as it takes, without a last `...`."""
    many = side[-1].many if side else ""
    if many == REST:
        return side[:-1]
    if many != "*":
        return side
    times = count - len(side) + 1
    return (*side[:-1], *side[-1:] * (min(times, side[-1].most) if side[-1].most else times))


def match(
    sides: Sequence[Side], values: Sequence[Sequence[Any]], takes: Callable[[Any, Any], bool], *, gaps: bool
) -> list[Group] | None:
    """The ports that operands and results fit; None if they do not. A value that is left out is empty or None; `gaps`:
    it may be one of `*` or stand behind the last slot."""
    groups: dict[object, Group] = {}
    for number, (side, row) in enumerate(zip(sides, values, strict=True)):
        count = len(row)
        while gaps and count and not row[count - 1]:
            count -= 1
        open_end = bool(side) and side[-1].many == REST
        side = spread(side, count)
        if count > len(side) and not open_end:
            return None
        for place, slot in enumerate(side):
            if place >= count or not row[place]:
                if slot.many == "?" or (gaps and slot.many == "*"):
                    continue
                return None
            ports, places = groups.setdefault(slot.name or (number, place), (list(slot.ports), []))
            ports[:] = [port for port in ports if takes(port, row[place])]
            places.append((number, place))
            if not ports:
                return None
    return list(groups.values())
