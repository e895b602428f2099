"""The operator table `schema/tfl.toml`: names, arity and traits of an operator, parsed when it is first met."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from tflq.ir.dialects import Slot, signature, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tflq.ir.core import Op, Value

__all__ = ["DIALECT", "OpSchema", "Slot", "Trait", "fixed_parameters", "op_schema"]

DIALECT: Final = "tfl."


@dataclass(frozen=True, slots=True)
class Trait:
    """One trait and its arguments, as the table's head describes them."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpSchema:
    """What the table says of one operator."""

    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    traits: tuple[Trait, ...]
    places: dict[str, tuple[bool, int, bool]]  # name -> is a result, index, is variadic

    def values(self, op: Op, name: str) -> list[Value]:
        """The values an op has in the operand or result `name`; none if it is left out."""
        is_result, index, variadic = self.places[name]
        values: Sequence[Value | None] = op.results if is_result else op.operands
        return [v for v in values[index : None if variadic else index + 1] if v is not None]


@cache
def op_schema(name: str) -> OpSchema | None:
    """The row of an op called `name` (`tfl.conv_2d`), None if the table has none."""
    line: str | None = table("tfl")["op"].get(name.removeprefix(DIALECT))
    if line is None:
        return None
    ports, *traits = line.split(";")
    sides = signature(ports)
    places = {slot.name: (False, i, slot.variadic) for i, slot in enumerate(sides.operands)}
    places |= {slot.name: (True, i, slot.variadic) for i, slot in enumerate(sides.results)}
    words = [trait.split() for trait in traits]
    return OpSchema(sides.operands, sides.results, tuple(Trait(first, tuple(rest)) for first, *rest in words), places)


@cache
def fixed_parameters(kind: str, storage: str) -> tuple[float, int] | None:
    """Scale and zero point of a result with trait `fixed KIND`, None where its storage type has no fixed ones."""
    row = table("tfl")["fixed"][kind].get(storage)
    return None if row is None else (float(row[0]), int(row[1]))
