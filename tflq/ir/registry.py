"""Which class an op of a given name is of: dialects by name, each loaded when its first op is met.

A `Dialect` knows the module that declares each op. Those of tflq are in `tflq/index.py`; a package from outside names
its own by an entry point in the group `tflq.dialects`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from tflq.index import DIALECTS, FOLDERS
from tflq.light import dataclass

if TYPE_CHECKING:
    from tflq.ir.core import Op

_GROUP: Final = "tflq.dialects"

COMPLETE: Final = frozenset({"ext", "fxpmath", "quant"})
"""Dialects without other ops than those that tflq declares."""


@dataclass(frozen=True)
class Dialect:
    """The ops of one dialect: `families` has the names of the ops that each module of `package` declares."""

    name: str
    package: str
    families: Mapping[str, Sequence[str]]

    @cached_property
    def family_of(self) -> Mapping[str, str]:
        """The module of each op."""
        return {op: family for family, ops in self.families.items() for op in ops}

    @cached_property
    def op_names(self) -> frozenset[str]:
        """All its ops: `tosa.add` ..."""
        return frozenset(f"{self.name}.{op}" for op in self.family_of)

    def op_class(self, op: str) -> type[Op] | None:
        """The class of an op by its name without the dialect; None if the dialect has no such op."""
        family = self.family_of.get(op)
        if family is None:
            return None
        importlib.import_module(f"{self.package}.{family}")
        return _CLASSES.get(f"{self.name}.{op}")

    def classes(self) -> list[Any]:
        """The classes of all its ops, in the order of the families."""
        return [self.op_class(op) for op in self.family_of]


_CLASSES: Final[dict[str, type[Op]]] = {}


def register(name: str, declared: type[Op]) -> None:
    """Enters the class of an op. ValueError if there is another one of that name."""
    if _CLASSES.setdefault(name, declared) is not declared:
        raise ValueError(f"{name} is declared twice: by {_CLASSES[name].__module__} and {declared.__module__}")


def declared() -> Mapping[str, type[Op]]:
    """The classes of all ops that are declared by now, by name."""
    return dict(_CLASSES)


@cache
def dialect(name: str) -> Dialect | None:
    """A dialect by name; None if nobody declares it."""
    families = DIALECTS.get(name)
    if families is not None:
        package = f"tflq.dialects.{name}" if name in FOLDERS else "tflq.dialects"
        return Dialect(name, package, {family: ops.split() for family, ops in families.items()})
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP, name=name):
        loaded: Dialect = entry.load()
        return loaded
    return None


def op_class(name: str) -> Any:
    """The class that declares an op called `tosa.add`; None if nobody declares it."""
    found = _CLASSES.get(name)
    if found is not None:
        return found
    prefix, _, short = name.partition(".")
    known = dialect(prefix)
    return None if known is None else known.op_class(short)


def family(name: str) -> str | None:
    """The family of an op: the name of the module that declares it."""
    prefix, _, short = name.partition(".")
    known = dialect(prefix)
    return None if known is None else known.family_of.get(short)


def dialects() -> tuple[str, ...]:
    """The names of tflq's own dialects."""
    return tuple(DIALECTS)


def op_names(name: str) -> frozenset[str]:
    """The names of all ops of a dialect; none if nobody declares it."""
    known = dialect(name)
    return frozenset() if known is None else known.op_names
