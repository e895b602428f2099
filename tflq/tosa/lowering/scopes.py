"""Variables in functions that control flow calls: values beside their arguments and results.

Only an entry point reads and writes variables, each once; what a branch or a loop reads it is given, and what it
writes it gives back. Handles of variables that are passed on are names by which a function is lowered, not arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.analysis.variables import accesses
from tflq.ir.core import Module, Value
from tflq.ir.types import TensorType

__all__ = ["NO_STATE", "Scope", "Use", "uses"]


@dataclass(frozen=True)
class Scope:
    """What a function that is called has of variables: the name of the one each argument is a handle of, if it is;
    those it is given, with the types of the values, and those it gives back."""

    handles: tuple[str | None, ...] = ()
    given: tuple[tuple[str, TensorType], ...] = ()
    returned: tuple[str, ...] = ()


NO_STATE = Scope()


@dataclass(frozen=True, slots=True)
class Use:
    """That functions use a variable: a value it holds there, and whether they write it."""

    like: Value
    written: bool


def uses(module: Module, index: int, handles: Sequence[str | None]) -> dict[str, Use]:
    """The variables that a function and those it calls use; `handles`: the names of those its arguments stand for."""
    found: dict[str, Use] = {}
    for access in accesses(module, index, handles):
        if access.once is None:
            known = found.get(access.name)
            like = access.value if known is None else known.like
            found[access.name] = Use(like, access.written or (known is not None and known.written))
    return found
