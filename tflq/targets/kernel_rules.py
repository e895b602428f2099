"""The kernel signatures of a target, `rules/integer.toml`: which builtins its result may hold, on which types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from tflq.errors import OptionError
from tflq.ir.core import Op, Value
from tflq.ir.types import SCALARS, ScalarType
from tflq.light import dataclass
from tflq.resources import resource
from tflq.toml import read_toml

__all__ = ["KernelRules", "load_rules"]

_ANY = "any"
"""The variable that need not be the same type wherever it occurs."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """Types of the operands and results in order; a variable stands for one of `choices`."""

    operands: tuple[str, ...]
    results: tuple[str, ...]
    choices: dict[str, frozenset[str]]

    def admits(self, operands: Sequence[str], results: Sequence[str]) -> bool:
        """Whether the types (empty for an operand left out) fit, the same type for the same variable."""
        bound: dict[str, str] = {}
        return self._fits(self.operands, operands, bound) and self._fits(self.results, results, bound)

    def _fits(self, ports: tuple[str, ...], types: Sequence[str], bound: dict[str, str]) -> bool:
        if ports and ports[-1].endswith("*"):
            ports = (*ports[:-1], *(len(types) - len(ports) + 1) * (ports[-1][:-1],))
        if len(types) > len(ports):
            return False
        for i, port in enumerate(ports):
            name, optional = port.removesuffix("?"), port.endswith("?")
            found = types[i] if i < len(types) else ""
            if not found:
                if not optional:
                    return False
            elif name in self.choices:
                if found not in self.choices[name]:
                    return False
                if name != _ANY and bound.setdefault(name, found) != found:
                    return False
            elif found != name:
                return False
        return True


class KernelRules:
    """The signatures of one section. Lines are parsed when their kernel is first met; answers are remembered."""

    def __init__(self, lines: dict[str, str], where: str) -> None:
        self._lines = lines
        self._where = where
        self._parsed: dict[str, list[_Signature]] = {}
        self._answers: dict[tuple[str, tuple[str, ...], tuple[str, ...]], bool] = {}

    @property
    def names(self) -> frozenset[str]:
        """The kernels it has."""
        return frozenset(self._lines)

    def admit(self, op: Op) -> bool:
        """Whether some signature of the op's kernel fits its plain types."""
        name = op.name.removeprefix("tfl.")
        if name == op.name:
            return False
        return self.admits(name, tuple(map(_type, op.operands)), tuple(map(_type, op.results)))

    def admits(self, name: str, operands: tuple[str, ...], results: tuple[str, ...]) -> bool:
        """Whether some signature of a kernel fits types of operands ("" for one left out) and results."""
        if name not in self._lines:
            return False
        key = (name, operands, results)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = any(s.admits(operands, results) for s in self._signatures(name))
        return answer

    def parse(self) -> None:
        """Parses every line now. OptionError if one is not a signature."""
        for name in self._lines:
            self._signatures(name)

    def _signatures(self, name: str) -> list[_Signature]:
        if name not in self._parsed:
            self._parsed[name] = [self._parse(name, text) for text in self._lines[name].split("|")]
        return self._parsed[name]

    def _parse(self, name: str, text: str) -> _Signature:
        ports, *definitions = text.split(";")
        operands, arrow, results = ports.partition("->")
        choices: dict[str, frozenset[str]] = {}
        for definition in definitions:
            variable, _, types = definition.partition("=")
            choices[variable.strip()] = frozenset(types.split())
        known = {p.rstrip("*?") for p in (*operands.split(), *results.split())} - choices.keys()
        unknown = (known | frozenset().union(*choices.values())) - SCALARS.keys()
        if not arrow or unknown:
            fault = ", ".join(sorted(unknown)) or "no ->"
            raise OptionError(f"{self._where}, kernel {name}: '{text.strip()}' is not a signature ({fault})")
        return _Signature(tuple(operands.split()), tuple(results.split()), choices)


def _type(value: Value | None) -> str:
    if value is None:
        return ""
    element = value.type.element
    return element.name if isinstance(element, ScalarType) else value.type.storage.name


@cache
def load_rules(path: str | os.PathLike[str] | None = None) -> dict[str, KernelRules]:
    """The sections of a rules file (default: the target "integer"). OptionError if it is not one."""
    path = resource("rules/integer.toml") if path is None else path
    try:
        with open(path, encoding="utf-8") as file:
            sections = read_toml(file.read())
    except ValueError as error:
        raise OptionError(f"{path}: {error}") from error
    where = os.path.basename(path)
    return {name: KernelRules(lines, f"{where}, section {name}") for name, lines in sections.items()}
