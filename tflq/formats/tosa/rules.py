"""The tables of `rules/tosa.toml`: the operators of each profile and extension of TOSA, and the limits of each level.

A user's file is merged over the default, line by line. Its faults are `OptionError`s that name line and key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from tflq.base.arguments import unknown_target
from tflq.base.errors import TflqError
from tflq.base.files import FilePath, resource
from tflq.ir.ops import op_names
from tflq.ir.types import ScalarType
from tflq.targets.load import DEVICES
from tflq.targets.target import KernelRules, RulesFile


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a level; `rules/tosa.toml` says each field's meaning."""

    rank: int
    kernel: int
    stride: int
    scale: int
    log2_size: int
    nesting: int
    list: int


class Choices:
    """A `[target]` section: what the device takes of the tables."""

    __slots__ = ("extensions", "level", "profiles", "specification")

    def __init__(self, specification: str, profiles: frozenset[str], extensions: frozenset[str], level: str) -> None:
        self.specification: Final = specification
        self.profiles: Final = profiles
        self.extensions: Final = extensions
        self.level: Final = level


class Rules:
    """The signatures of each profile and extension, the levels, the profile each extension extends."""

    def __init__(
        self,
        profiles: Mapping[str, KernelRules],
        extensions: Mapping[str, KernelRules],
        levels: Mapping[str, Limits],
        extends: Mapping[str, str],
    ) -> None:
        self.profiles: Final = profiles
        self.extensions: Final = extensions
        self.levels: Final = levels
        self.extends: Final = extends

    def providers(self, name: str, operands: tuple[str, ...], results: tuple[str, ...]) -> Iterator[str]:
        """The profiles, then the extensions, that have an operator ("add") on element types."""
        for table in (self.profiles, self.extensions):
            yield from (key for key, kernels in table.items() if kernels.admits(name, operands, results))


@cache
def default_rules() -> tuple[Rules, Choices]:
    """The rules and the target of `rules/tosa.toml`."""
    return read_rules(resource("rules/tosa.toml"))


def read_rules(path: FilePath, default: str | None = None) -> tuple[Rules, Choices]:
    """The rules and the target of a file; of the user's, over the default. OptionError names the line and the key at
    fault."""
    file = _File(path)
    content = file.content
    if default is not None:
        file.check()
        content = _merged(_File(default).content, content)
    rules = Rules(
        {name: file.kernels("profile", name, lines) for name, lines in content["profile"].items()},
        {name: file.kernels("extension", name, lines) for name, lines in content["extension"].items()},
        file.levels(content["level"]),
        content["extends"],
    )
    chosen = file.choices(content["target"], rules)
    file.check_faults()
    return rules, chosen


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Tables merged key by key, at every depth."""
    out = dict(under)
    for key, value in over.items():
        out[key] = _merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


@dataclass(frozen=True, slots=True)
class Target:
    """The capabilities of a device, as `rules/tosa.toml` or a user's file says.

    Profiles ("pro_int", "pro_fp"), extensions ("int16", "int4", "doubleround", ...) and level ("8k", "none").

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

    def takes(self, name: str, operands: Sequence[ScalarType], results: Sequence[ScalarType]) -> bool:
        """Whether it has an operator ("gather") on element types."""
        types = tuple(t.name for t in operands), tuple(t.name for t in results)
        return any(map(self.has, self.rules.providers(name, *types)))

    @property
    def limits(self) -> Limits:
        """The limits of its level."""
        return self.rules.levels[self.level]


def load_target(path: FilePath | None = None) -> Target:
    """The default target, a device's by name, or that of a file, which inherits what it does not say. OptionError names
    line and key."""
    if path is None:
        rules, choices = default_rules()
    else:
        if path not in DEVICES and not os.fspath(path).endswith(".toml") and not os.path.exists(path):
            raise unknown_target(path, ("tosa", *DEVICES), "tosa")
        file = resource(f"rules/{path}.toml") if path in DEVICES else path
        rules, choices = read_rules(file, resource("rules/tosa.toml"))
    return Target(choices.profiles, choices.extensions, choices.level, choices.specification, rules)


# The file.

_SECTIONS: Final = ("target", "level", "extends", "profile", "extension")
_SPECIFICATIONS: Final = ("1.0",)


class _File(RulesFile):
    """One rules file."""

    def check(self) -> None:
        """Notes the faults of the file's own sections and keys, and of the kinds of their values; `content` is then
        without them."""
        for name, section in list(self.content.items()):
            if name not in _SECTIONS or not isinstance(section, dict):
                self.fault(f"'{name}' is not a section", "", name, known=_SECTIONS)
                del self.content[name]
        operators = {"const", *(name.removeprefix("tosa.") for name in op_names("tosa"))}
        limits = set(Limits.__match_args__)
        for kind, keys, of in (("profile", operators, str), ("extension", operators, str), ("level", limits, int)):
            tables = self.content.get(kind, {})
            for name in list(tables):
                if not self._is_table(f"{kind}.{name}", tables[name], keys, of):
                    del tables[name]
        if not self._is_table("extends", self.content.get("extends", {}), None, str):
            del self.content["extends"]

    def _is_table(self, section: str, table: object, keys: set[str] | None, kind: type) -> bool:
        """Whether it is a table; lines with faults are taken out."""
        if not isinstance(table, dict):
            above, _, name = section.rpartition(".")
            self.fault(f"'{name}' is not a section", above, name, remedy=f"write [{section}], and its keys below")
            return False
        for key, value in list(table.items()):
            if keys is not None and key not in keys:
                self.fault(f"'{key}' is not known", section, key, known=sorted(keys))
            elif type(value) is not kind:
                self.fault(f"{key} is not {'a string' if kind is str else 'an integer'}", section, key)
            elif section.startswith(("profile.", "extension.")) and not self._is_signature(key, str(value)):
                self.fault(f"{key}: '{value}' is not a signature of known types", section, key)
            else:
                continue
            del table[key]
        return True

    def _is_signature(self, key: str, line: str) -> bool:
        try:
            KernelRules({key: line} if line else {}, os.path.basename(self.path)).parse()
        except TflqError:
            return False
        return True

    def levels(self, tables: dict[str, dict[str, int]]) -> dict[str, Limits]:
        """The levels, each with all of its limits."""
        result = {}
        for name, level in tables.items():
            if missing := [name for name in Limits.__match_args__ if name not in level]:
                self.fault(f"{', '.join(missing)} not stated", f"level.{name}", remedy="a level has all limits")
            else:
                result[name] = Limits(**level)
        return result

    def kernels(self, kind: str, name: str, lines: dict[str, str]) -> KernelRules:
        """The signatures of a section; an operator with an empty line is not in it."""
        return KernelRules(
            {op: line for op, line in lines.items() if line}, f"{os.path.basename(self.path)}, section {kind}.{name}"
        )

    def choices(self, target: dict[str, Any], rules: Rules) -> Choices:
        """The target, whose names must be those of the tables."""
        known: dict[str, tuple[str, ...]] = {
            "specification": _SPECIFICATIONS,
            "profiles": tuple(rules.profiles),
            "extensions": tuple(rules.extensions),
            "level": tuple(rules.levels),
        }
        self._check_choices(target, known)
        self.check_faults()
        profiles, extensions = frozenset(target["profiles"]), set(target["extensions"])
        for name in sorted(extensions):
            if not {rules.extends.get(name)} <= {None, *profiles}:
                if "extensions" in self.content.get("target", {}):
                    reason = f"the extension {name} extends {rules.extends[name]}, which is not among the profiles"
                    self.fault(reason, "target", "extensions", remedy="add that profile, or leave the extension out")
                extensions.remove(name)
        return Choices(target["specification"], profiles, frozenset(extensions), target["level"])

    def _check_choices(self, target: dict[str, Any], known: Mapping[str, tuple[str, ...]]) -> None:
        """Notes the keys and names of [target] that are not known."""
        for key, value in target.items():
            if key not in known:
                self.fault(f"'{key}' is not known", "target", key, known=known)
                continue
            several = key in ("profiles", "extensions")
            names = value if several else [value]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                self.fault(f"{key} is not {'a list of strings' if several else 'a string'}", "target", key)
                continue
            for name in names:
                if name not in known[key]:
                    self.fault(f"{key}: '{name}' is not known", "target", key, item=name, known=known[key])
        if target["profiles"] == []:
            self.fault("profiles is empty: a device has at least one", "target", "profiles", known=known["profiles"])
