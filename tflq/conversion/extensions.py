"""Passes and rules that packages and Python files of a user add. (`tflq.ir.ops` finds their dialects.)

A package names an `Extension` by an entry point in the group `tflq.rules`; a Python file calls it `EXTENSION`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

from tflq.base.arguments import items, not_expected
from tflq.base.errors import FileError, OptionError, Reason
from tflq.base.faults import fault_of_file
from tflq.base.files import FilePath, file_errors
from tflq.dialects.tfl.state import Custom
from tflq.ir.module import Module
from tflq.ir.ops import Op

if TYPE_CHECKING:
    from tflq.legalize.rule import Rule
    from tflq.transforms.pass_manager import Pass

_GROUP = "tflq.rules"


@dataclass(frozen=True)
class Extension:
    """Your own rules and passes, for `tflq.convert(..., rules=[...])` and `--rules`.

    A rule is a function of an operator and a `tflq.RuleBuilder`. It returns the results, or raises
    `tflq.NotApplicable`.

    Attributes:
        passes: Classes of passes. Each has a `name` that no other pass has.
        rules: How operators become the integer form, in the order in which rules are tried, before those of tflq. The
            key of a custom operator is its code; the key of one of TFLite's own is its class
            (`tflq.dialects.tfl.activation.Gelu`).

    Example:
        ```python
        def threshold(op, b: tflq.RuleBuilder):
            return b.clamp(b.value(op.operand(0)), 0, 127)

        EXTENSION = tflq.Extension(rules={"Threshold": [threshold]})
        tflq.convert("in.tflite", "out.tflite", rules=[EXTENSION])
        ```
    """

    passes: Sequence[type[Pass]] = ()
    rules: Mapping[str | type[Op], Sequence[Rule]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """OptionError for rules that are no lists of functions by operator."""
        by_operator: Any = self.rules
        if not isinstance(by_operator, Mapping) or not all(isinstance(key, (str, type)) for key in by_operator):
            raise not_expected("Extension.rules", by_operator, 'lists by operator, as {"Threshold": [rule]}')
        for key, rules in by_operator.items():
            if not isinstance(rules, (list, tuple)) or not all(map(callable, rules)):
                raise not_expected(f"Extension.rules[{key!r}]", rules, "a list of functions, as [rule]")


@cache
def installed() -> tuple[Extension, ...]:
    """The extensions of installed packages. OptionError for an entry point that does not load, or is something else."""
    extensions = []
    for entry in entry_points(group=_GROUP):
        named = f"the entry point '{entry.name}' of group {_GROUP}"
        remedy = "mend or uninstall the package that has it"
        try:
            loaded = entry.load()
        except Exception as error:
            what = f"{named} cannot be loaded: {type(error).__name__}: {error}"
            raise OptionError(Reason(what, entry.value, remedy=remedy)) from error
        if not isinstance(loaded, Extension):
            raise OptionError(Reason(f"{named} is not an Extension", entry.value, remedy=remedy))
        extensions.append(loaded)
    return tuple(extensions)


def extension_of(path: Path) -> Extension:
    """The extension of a Python file. OptionError if it has none."""
    extension = attribute_of(path, "EXTENSION")
    if not isinstance(extension, Extension):
        what = "the file has no EXTENSION" if extension is None else f"EXTENSION is a {type(extension).__name__}"
        raise OptionError(Reason(what, str(path), remedy="end it with EXTENSION = tflq.Extension(...)"))
    return extension


def attribute_of(path: Path, name: str) -> Any:
    """The attribute of this name of a Python file; None without one. OptionError if the file fails.

    The name of its module has the path and the thread in it, so that neither another file of this name nor another
    thread that runs this file takes its place meanwhile."""
    place = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:8]
    spec = importlib.util.spec_from_file_location(f"tflq_rules_{path.stem}_{place}_{get_ident()}", path)
    if spec is None or spec.loader is None:
        raise OptionError(Reason("this is not a Python file", str(path), remedy="give a file whose name ends in .py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        with file_errors(path):
            spec.loader.exec_module(module)
    except (KeyboardInterrupt, FileError):
        raise
    except BaseException as error:
        del sys.modules[spec.name]
        raise fault_of_file(error, str(path)) from error
    return getattr(module, name, None)


def checked(rules: object) -> tuple[Extension | FilePath, ...]:
    """The argument `rules` of a call. OptionError if it is something else."""
    return items("rules", rules, (Extension, str, os.PathLike), "extensions (tflq.Extension) and Python files")


def rules_for(module: Module, extensions: Sequence[Extension | FilePath]) -> Mapping[str | type[Op], tuple[Rule, ...]]:
    """The rules of the extensions and Python files, and those of installed packages for custom operators of the
    module that these do not cover."""
    rules: dict[str | type[Op], tuple[Rule, ...]] = {}
    for item in extensions:
        extension = item if isinstance(item, Extension) else extension_of(Path(item))
        for key, added in extension.rules.items():
            rules[key] = (*rules.get(key, ()), *added)
    codes = {op.code for op in module.ops() if isinstance(op, Custom)} - rules.keys()
    for code in sorted(codes):
        if of_packages := tuple(rule for extension in installed() for rule in extension.rules.get(code, ())):
            rules[code] = of_packages
    return rules
