"""Signatures of quantized kernels: ports of operands and results, and constraints on their scales.

    "operands -> results; NAME = port port ...; constraint number ...; constraint"

`slots.py` says what `*`, `?`, `...` and NAME mean; without "->" the results are not specified. A port is what one
operand or result may be:

    i32           a plain tensor of that type
    qi8           quantized, stored as that type, one scale (per layer)
    qi8/axis      one scale per index of some axis; qi8/axis3: of that one
    qi8/blocks    one scale per block
    qi8/any       any of these
    qi8<-127:127> stored integers within these, by the type or, of a constant, by what it holds
    qi8:0         zero point 0 (symmetric); qi8/axis:0
    q             any quantized tensor; plain: any other; any: whatever
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.declare import Slot as Declared
from tflq.dialects.tfl import op_name
from tflq.ir.ops import Op, Value, op_class
from tflq.ir.types import (
    QUANTIZED_TYPES,
    SCALARS,
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
)
from tflq.targets.constraints import CONSTRAINTS
from tflq.targets.slots import REST, Group, Side, Slot, bare, match, slots, split, spread

_KINDS = {
    "": (UniformQuantizedType,),
    "axis": (UniformQuantizedPerAxisType,),
    "blocks": (UniformQuantizedSubChannelType,),
    "any": (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType),
}
_QUANTIZED = r"q([a-z]+\d+)(?:<(-?\d+):(-?\d+)>)?(?:/(axis|blocks|any)(\d+)?)?(?::(-?\d+))?"


Kind: TypeAlias = tuple[type[ElementType], ScalarType]
"""The first requirement of a port on a tensor: the class of its element type, and its storage."""


def kind_of(value: Value) -> Kind:
    """The kind of a tensor."""
    return value.type.element.__class__, value.type.storage


@dataclass(frozen=True, slots=True)
class Port:
    """The types that a port takes; `kinds` empty: plain tensors, None: any at all."""

    text: str
    kinds: tuple[type, ...] | None
    storage: ScalarType | None = None
    axis: int | None = None
    zero_point: int | None = None
    low: int | None = None
    high: int | None = None

    def may_take(self, kind: Kind) -> bool:
        """Whether some tensor of a kind fits."""
        if self.kinds is None:
            return True
        element, storage = kind
        if not self.kinds and element is not ScalarType:
            return False
        return (not self.kinds or issubclass(element, self.kinds)) and self.storage in (None, storage)

    @property
    def asks_more(self) -> bool:
        """Whether it asks more of a quantized tensor than its kind."""
        return self.axis is not None or self.zero_point is not None or self.low is not None

    @property
    def takes_one_scale(self) -> bool:
        """Whether it takes quantized tensors of one scale."""
        return UniformQuantizedType in (self.kinds or ())

    @property
    def wants_axis(self) -> bool:
        """Whether it takes one scale per index of an axis, and no single one."""
        return UniformQuantizedPerAxisType in (self.kinds or ()) and not self.takes_one_scale

    def takes(self, value: Value) -> bool:
        """Whether a tensor of a kind that fits does so itself."""
        element = value.type.element
        if not isinstance(element, QUANTIZED_TYPES):
            return True
        if self.axis is not None and getattr(element, "axis", None) != self.axis:
            return False
        if not self._holds(value, element.storage_min, element.storage_max):
            return False
        if self.zero_point is None:
            return True
        zero = element.zero_point if isinstance(element, UniformQuantizedType) else element.zero_points
        return bool(np.all(zero == self.zero_point))

    def why_not(self, value: Value) -> str:
        """Why a tensor does not fit, in the words of ports; empty if it does."""
        if self.may_take(kind_of(value)) and self.takes(value):
            return ""
        element = value.type.element
        words = value.type.storage.name
        if isinstance(element, QUANTIZED_TYPES):
            words = f"q{words}"
            if isinstance(element, UniformQuantizedPerAxisType):
                words += f"/axis{element.axis}"
            elif isinstance(element, UniformQuantizedSubChannelType):
                words += "/blocks"
            elif self.zero_point is not None and isinstance(element, UniformQuantizedType):
                words += f":{element.zero_point}"
        return f"'{value.name}' is {words}, not {self.text}"

    def _holds(self, value: Value, low: int, high: int) -> bool:
        if self.low is None or self.high is None or (self.low <= low and high <= self.high):
            return True
        if not value.is_constant:
            return False
        array = value.array
        return not array.size or bool(self.low <= array.min() and array.max() <= self.high)


def is_port(text: str) -> bool:
    """Whether a word is a port, as against a name that a signature gives."""
    try:
        parse_port(text)
    except ValueError:
        return False
    return True


def parse_port(text: str) -> Port:
    """ValueError says what is wrong."""
    if text == "any":
        return Port(text, None)
    if text == "plain":
        return Port(text, ())
    if text == "q":
        return Port(text, _KINDS["any"])
    if text in SCALARS:
        return Port(text, (), SCALARS[text])
    parts = re.fullmatch(_QUANTIZED, text)
    if parts is None or parts[1] not in SCALARS or not SCALARS[parts[1]].is_integer:
        raise ValueError(
            f"'{text}' is not a port: known are i32, qi8, qi8/axis, qi8/blocks, qi8/any, qi8:0, q, plain, any"
        )
    kind, axis = parts[4] or "", parts[5]
    if axis is not None and kind != "axis":
        raise ValueError(f"'{text}': only /axis has a number")
    storage = SCALARS[parts[1]]
    low, high, zero = (None if parts[i] is None else int(parts[i]) for i in (2, 3, 6))
    if low is not None and high is not None and not storage.minimum <= low < high <= storage.maximum:
        raise ValueError(f"'{text}': {low}:{high} is not a range within {storage}")
    if zero is not None and not storage.minimum <= zero <= storage.maximum:
        raise ValueError(f"'{text}': zero point {zero} is outside {storage}")
    return Port(text, _KINDS[kind], storage, None if axis is None else int(axis), zero, low, high)


Kinds: TypeAlias = tuple[Kind | None, ...]
"""Of the operands or results of an op; None: left out."""


class Signature:
    """One key of a target's table, the `sides` operands and results; and its value, the constraints."""

    def __init__(
        self, text: str, sides: tuple[Side, Side], constraints: tuple[tuple[str, tuple[float, ...]], ...]
    ) -> None:
        self.text: Final = text
        self.sides: Final = sides
        self.constraints: Final = constraints

    @cached_property
    def alternatives(self) -> Sequence[tuple[Side, Side]]:
        """The sides for each choice of what the names stand for, in the order in which the text gives them."""
        named = dict(split(self.text).named)
        ports = {slot.name: slot.ports for side in self.sides for slot in side if slot.name}
        choices = product(*(ports[name] for name in named))
        return [tuple(_chosen(side, dict(zip(named, c, strict=True))) for side in self.sides) for c in choices]  # type: ignore[misc]

    def fits(self, op: Op) -> bool:
        """Whether the op's element types are those of the signature."""
        possible = self.possible(kinds_of(op.operands), kinds_of(op.results))
        return possible is not None and possible.fits(op)

    def possible(self, operands: Kinds, results: Kinds) -> Possible | None:
        """The signature's demands beyond the kinds of tensors; None if no alternative fits."""
        groups = match(self.sides, (operands, results), Port.may_take, gaps=True)
        if groups is None:
            return None
        return Possible(self, [(ports, at) for ports, at in groups if all(port.asks_more for port in ports)])

    def why_not(self, op: Op) -> list[str]:
        """The misfits of an op's types to the nearest alternative; empty if the types fit."""
        misfits = (_why_not(left, op.operands) + _why_not(right, op.results) for left, right in self.alternatives)
        return min(misfits, key=len)

    @property
    def lowers(self) -> bool:
        """Whether it says that what fits it is lowered."""
        return any(name == "lowered" for name, _ in self.constraints)

    def broken(self, op: Op) -> str | None:
        """The constraint that an op, whose types fit, does not keep, in words."""
        for name, numbers in self.constraints:
            reason = CONSTRAINTS[name].function(op, *numbers)
            if reason is not None:
                return reason
        return None

    def misfit(self, name: str) -> str | None:
        """Why no operator of that name ("conv_2d") can ever fit."""
        declared = op_class(op_name(name))
        assert declared is not None
        operands, results = self.sides
        for constraint, _ in self.constraints:
            words = CONSTRAINTS[constraint].misfit(declared.operand_slots)
            if words is not None:
                return f"{constraint} is of {words}"
        return _misfit("operand", operands, declared.operand_slots) or _misfit("result", results, declared.result_slots)


class Possible:
    """A signature for ops on tensors of some kinds. `groups`: the values of which some port requires more
    than the kind."""

    __slots__ = ("groups", "signature")

    def __init__(self, signature: Signature, groups: Sequence[Group]) -> None:
        self.signature: Final = signature
        self.groups: Final = groups

    def fits(self, op: Op) -> bool:
        """Whether an op on such tensors fits the signature."""
        sides = op.operands, op.results
        for ports, places in self.groups:
            values = [sides[side][place] for side, place in places]
            if not any(all(port.takes(value) for value in values) for port in ports):
                return False
        return True


def kinds_of(values: Sequence[Value | None]) -> Kinds:
    """The kinds of operands or results."""
    return tuple([None if value is None else kind_of(value) for value in values])


def _chosen(side: Side, ports: Mapping[str, Port]) -> Side:
    return tuple(Slot((ports[slot.name],), "", slot.many, slot.most) if slot.name else slot for slot in side)


def _why_not(side: Side, values: Sequence[Value | None]) -> list[str]:
    """Why the values of a side do not fit its ports."""
    open_end = bool(side) and side[-1].many == REST
    side = spread(side, len(values))
    words = []
    for i in range(len(side) if open_end else max(len(side), len(values))):
        value = values[i] if i < len(values) else None
        if i >= len(side):
            words += [] if value is None else [f"'{value.name}' is one more than it takes"]
        elif value is not None:
            words += filter(None, [side[i].ports[0].why_not(value)])
        elif side[i].many not in ("?", "*"):
            words.append(f"a tensor {side[i].ports[0].text} is missing")
    return words


def _misfit(kind: str, side: Side, declared: Sequence[Declared]) -> str | None:
    """Why the operator never has as many values as a side takes."""
    least = sum(slot.many == "" for slot in side)
    most = None if side and side[-1].many in ("*", REST) else len(side)
    fewest = sum(not (slot.optional or slot.variadic) for slot in declared)
    open_end = any(slot.variadic for slot in declared)
    if (most is None or most >= fewest) and (open_end or least <= len(declared)):
        return None
    words = " ".join(slot.name + ("*" if slot.variadic else "?" if slot.optional else "") for slot in declared)
    count = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
    return f"{count} {kind}(s), but the operator has: {words or 'none'}"


def parse_signature(text: str) -> Signature:
    """ValueError says what is wrong."""
    parts = split(text)
    if not parts.operands and parts.results is None:
        raise ValueError("the signature is empty: '...' stands for any operands")
    named: dict[str, tuple[Port, ...]] = {}
    for name, ports in parts.named:
        if not name.isidentifier():
            raise ValueError(f"'{name}' is not a name for ports")
        if name in named or is_port(name):
            raise ValueError(f"'{name}' has a meaning already")
        if not ports:
            raise ValueError(f"'{name}' stands for no port")
        named[name] = tuple(map(parse_port, ports))
    constraints = tuple(map(_constraint, parts.clauses))
    words = parts.operands, [REST] if parts.results is None else parts.results
    if unused := named.keys() - {bare(word) for side in words for word in side}:
        raise ValueError(f"'{min(unused)}' stands for ports, but is not in the signature")
    operands, results = (slots(side, named, parse_port) for side in words)
    return Signature(text, (operands, results), constraints)


def _constraint(clause: str) -> tuple[str, tuple[float, ...]]:
    name, *words = clause.split() or [""]
    if name not in CONSTRAINTS:
        raise ValueError(f"'{name}' is not a constraint: known are {', '.join(CONSTRAINTS)}")
    try:
        return name, CONSTRAINTS[name].parse(words)
    except ValueError as error:
        raise ValueError(f"'{clause}': {name} takes {error}") from None
