"""Rules named before they are imported.

    softmax = later("reference.activation.softmax")
    RULES: Final[Rules] = {Softmax: (softmax.softmax,), ...}

A table names many rules, and a model has few of its operators: the module of a rule is imported when the rule is tried.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflq.legalize.rule import Answer, Rule, RuleBuilder

__all__ = ["LaterRule", "later"]


class LaterRule:
    """A function of a module, which is imported when it is asked for."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def function(self) -> Rule:
        """The rule itself. AttributeError if the module has no such function."""
        found: Rule = getattr(import_module(self._module), self._name)
        return found

    def __call__(self, op: Any, b: RuleBuilder) -> Answer:
        return self.function()(op, b)


class _Later:
    """A module of rules: what is read from it is a `LaterRule`."""

    __slots__ = ("_module",)

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Rule:
        return LaterRule(self._module, name)


def later(module: str) -> _Later:
    """The rules of a module, named within `tflq.legalize`. A test imports each."""
    return _Later(f"tflq.legalize.{module}")
