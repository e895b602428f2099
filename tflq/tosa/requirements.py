"""The profiles and extensions that a module in the tosa form needs: the least that has all of its operators.

An operator on given element types is in the tables of one profile or extension, or in those of both profiles; the
latter needs what the rest needs, or else the integer profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.state import Variable
from tflq.ir.core import Module, Op, Value
from tflq.ir.types import TensorType
from tflq.tosa.operands import signless
from tflq.tosa.target import Target

__all__ = ["Requirements", "demands", "providers", "requirements", "summed"]

Signature = tuple[str, tuple[str, ...], tuple[str, ...]]
"""An operator and the element types of its operands and results."""

_WORDS: Final = {"pro_int": "integer", "pro_fp": "floating-point"}


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a device must have to run a module: profiles, extensions, the level, the specification's version."""

    profiles: tuple[str, ...]
    extensions: tuple[str, ...]
    level: str
    specification: str

    def __str__(self) -> str:
        words = [_WORDS.get(name, name) for name in self.profiles]
        profiles = f"{' and '.join(words)} profile{'s' * (len(words) > 1)}"
        count = len(self.extensions)
        extensions = f", with extension{'s' * (count > 1)} {', '.join(self.extensions)}" if count else ""
        return f"TOSA {self.specification}, level {self.level}: valid for the {profiles}{extensions}"

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "specification": self.specification,
            "level": self.level,
            "profiles": list(self.profiles),
            "extensions": list(self.extensions),
        }


def demands(op: Op) -> list[Signature]:
    """The operator's signature, and that of each constant it takes."""
    given: list[str] = []
    constants: set[str] = set()
    for value in op.operands:
        if value is not None:
            given.append(name := value.type.storage.name)
            if value.is_constant:
                constants.add(name)
    made = tuple([v.type.storage.name for v in op.results])
    signature = op.name.removeprefix("tosa."), tuple(given), made
    return [signature, *[("const", (), (name,)) for name in sorted(constants)]]


def of_type(type: TensorType) -> Signature:
    """The signature that stands for an argument, a result or a variable: that of IDENTITY."""
    name = signless(type.storage).name
    return "identity", (name,), (name,)


def boundary(module: Module) -> Iterable[tuple[Value, Signature]]:
    """Arguments and results of the functions."""
    for function in module.functions:
        for value in (*function.inputs, *function.outputs):
            yield value, of_type(value.type)


def providers(signature: Signature, target: Target) -> frozenset[str]:
    """The profiles and extensions of the target that have a signature."""
    return frozenset(filter(target.has, target.rules.providers(*signature)))


def requirements(module: Module, target: Target, signatures: Iterable[Signature] | None = None) -> Requirements:
    """What a module needs, as far as the target has it. `signatures`: those of its operators and its boundary, where
    they are known."""
    found = _signatures(module) if signatures is None else dict.fromkeys(signatures)
    named: set[str] = set()
    for op in module.ops():
        if isinstance(op, Variable):
            found[of_type(op.initial_value.type)] = None
        if isinstance(op, Rescale) and op.rounding_mode == "DOUBLE_ROUND":
            named.add("doubleround")
    return summed([providers(signature, target) for signature in found], named, target)


def _signatures(module: Module) -> dict[Signature, None]:
    found = {signature: None for _, signature in boundary(module)}
    for op in module.ops():
        found.update(dict.fromkeys(demands(op)))
    return found


def summed(choices: Iterable[frozenset[str]], named: Iterable[str], target: Target) -> Requirements:
    """The least that has one of each choice, and what is named."""
    several = set()
    needed = set(named)
    for choice in choices:
        needed.update(choice) if len(choice) == 1 else several.add(choice)
    needed |= {target.rules.extends[name] for name in needed if name in target.rules.extends}
    for choice in sorted(several, key=sorted):
        if choice and not choice & needed:
            needed.add("pro_int" if "pro_int" in choice else min(choice))
    if not any(name in target.rules.profiles for name in needed):
        needed.add("pro_int" if "pro_int" in target.profiles else min(target.profiles))
    return Requirements(
        tuple(name for name in target.rules.profiles if name in needed),
        tuple(name for name in target.rules.extensions if name in needed),
        target.level,
        target.specification,
    )
