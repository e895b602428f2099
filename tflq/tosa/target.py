"""What a device takes: profiles, extensions and level of TOSA, as `rules/tosa.toml` or a user's file says."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from tflq.resources import resource
from tflq.tosa.rules import Limits, Rules, default_rules, read_rules

__all__ = ["Target", "load_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Profiles ("pro_int", "pro_fp"), extensions ("int16", "int4", "doubleround", ...) and level ("8k", "none").

    `rules` are the tables of signatures and limits that the names refer to.
    """

    profiles: frozenset[str] = frozenset({"pro_int", "pro_fp"})
    extensions: frozenset[str] = frozenset({"int16", "int4", "doubleround", "variable", "controlflow"})
    level: str = "8k"
    specification: str = "1.0"
    rules: Rules = field(default_factory=lambda: default_rules()[0], compare=False, repr=False)

    def has(self, name: str) -> bool:
        """Whether it has a profile or an extension."""
        return name in self.profiles or name in self.extensions

    @property
    def limits(self) -> Limits:
        """The limits of its level."""
        return self.rules.levels[self.level]


def load_target(path: str | os.PathLike[str] | None = None) -> Target:
    """The default target, or that of a file, which inherits what it does not say. OptionError names line and key."""
    if path is None:
        rules, choices = default_rules()
    else:
        rules, choices = read_rules(path, resource("rules/tosa.toml"))
    return Target(choices.profiles, choices.extensions, choices.level, choices.specification, rules)
