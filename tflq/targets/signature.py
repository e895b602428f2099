"""Signatures of kernels: ports of operands and results, and constraints on their scales.

    "operands -> results; NAME = port port ...; constraint number ...; constraint"

x*   any number of them, last of its side; x? may be left out
...  the rest of a side is not specified; without "->" the results are not
NAME stands for one of some ports, the same wherever it occurs in the signature
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tflq.ir.core import Op, Value
from tflq.targets.constraints import CONSTRAINTS
from tflq.targets.port import Port, parse_port

__all__ = ["Signature", "parse_signature"]

_REST: Final = "..."


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place of a signature: the ports it may be, and the name that binds them to one choice."""

    name: str
    choices: tuple[Port, ...]
    many: Literal["", "?", "*", "..."] = ""


@dataclass(frozen=True)
class Signature:
    """One key of a target's table, and its value, the constraints."""

    text: str
    operands: tuple[_Slot, ...]
    results: tuple[_Slot, ...]
    constraints: tuple[tuple[str, tuple[float, ...]], ...]

    def fits(self, op: Op) -> bool:
        """Whether the op's element types are those of the signature."""
        bound: dict[str, Port] = {}
        return _fits(self.operands, op.operands, bound) and _fits(self.results, op.results, bound)

    def broken(self, op: Op) -> str | None:
        """The constraint that an op, whose types fit, does not keep, in words."""
        for name, numbers in self.constraints:
            reason = CONSTRAINTS[name][0](op, *numbers)
            if reason is not None:
                return reason
        return None


def _fits(slots: tuple[_Slot, ...], values: Sequence[Value | None], bound: dict[str, Port]) -> bool:
    last = slots[-1].many if slots else ""
    if last in ("*", _REST):
        repeated = slots[-1:] if last == "*" else ()
        slots = (*slots[:-1], *repeated * max(0, len(values) - len(slots) + 1))
        values = values if last == "*" else values[: len(slots)]
    if len(values) > len(slots):
        return False
    for i, slot in enumerate(slots):
        value = values[i] if i < len(values) else None
        if value is None:
            if slot.many not in ("?", "*"):
                return False
            continue
        element = value.type.element
        choices = (bound[slot.name],) if slot.name in bound else slot.choices
        chosen = next((port for port in choices if port.takes(element)), None)
        if chosen is None:
            return False
        if slot.name:
            bound[slot.name] = chosen
    return True


def parse_signature(text: str) -> Signature:
    """ValueError says what is wrong."""
    head, *clauses = (part.strip() for part in text.split(";"))
    named: dict[str, tuple[Port, ...]] = {}
    constraints: list[tuple[str, tuple[float, ...]]] = []
    for clause in clauses:
        name, equals, ports = (part.strip() for part in clause.partition("="))
        if equals:
            named[name] = tuple(map(parse_port, ports.split()))
            if not named[name]:
                raise ValueError(f"'{name}' stands for no port")
        else:
            constraints.append(_constraint(clause))
    operands, arrow, results = head.partition("->")
    return Signature(
        text,
        _slots(operands.split(), named),
        _slots(results.split() if arrow else [_REST], named),
        tuple(constraints),
    )


def _constraint(clause: str) -> tuple[str, tuple[float, ...]]:
    name, *words = clause.split() or [""]
    if name not in CONSTRAINTS:
        raise ValueError(f"'{name}' is no constraint: known are {', '.join(CONSTRAINTS)}")
    _, least, most = CONSTRAINTS[name]
    try:
        numbers = tuple(map(float, words))
    except ValueError:
        raise ValueError(f"'{clause}': {name} takes numbers") from None
    if not least <= len(numbers) <= most:
        raise ValueError(f"'{clause}': {name} takes {least if least == most else f'{least} to {most}'} number(s)")
    return name, numbers


def _slots(words: Sequence[str], named: dict[str, tuple[Port, ...]]) -> tuple[_Slot, ...]:
    slots: list[_Slot] = []
    for place, word in enumerate(words):
        last = place == len(words) - 1
        if word == _REST:
            slots.append(_Slot("", (), _REST))
        else:
            many: Literal["", "?", "*"] = "?" if word.endswith("?") else "*" if word.endswith("*") else ""
            name = word.removesuffix(many) if many else word
            slots.append(_Slot(name, named[name], many) if name in named else _Slot("", (parse_port(name),), many))
        if slots[-1].many in ("*", _REST) and not last:
            raise ValueError(f"'{word}' is not the last of its side")
    return tuple(slots)
