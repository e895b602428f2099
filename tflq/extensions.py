"""What packages and files of a user add: passes by name; dialects are found by `tflq.ir.registry`.

A package names an `Extension` by an entry point in the group `tflq.rules`; a file of Python has it as `EXTENSION`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from tflq.code_generation import QuantCodegen
from tflq.contract import Pass
from tflq.errors import OptionError, Reason
from tflq.files import file_errors
from tflq.passes.pipeline_text import PASSES
from tflq.steps import STEPS
from tflq.tosa_pipeline import TflToTosa

__all__ = ["Extension", "extension_of", "named_passes"]

_GROUP = "tflq.rules"


@dataclass(frozen=True)
class Extension:
    """What is added. `passes`: classes with a `name` that no other pass has."""

    passes: Sequence[type[Pass]] = ()


@cache
def _installed() -> tuple[Extension, ...]:
    """The extensions of installed packages. OptionError if one is none."""
    found = []
    for entry in entry_points(group=_GROUP):
        loaded = entry.load()
        if not isinstance(loaded, Extension):
            raise OptionError(Reason(f"the entry point '{entry.name}' of group {_GROUP}", value=entry.value))
        found.append(loaded)
    return tuple(found)


def extension_of(path: Path) -> Extension:
    """The extension that a file of Python has. OptionError if it has none."""
    spec = importlib.util.spec_from_file_location(f"tflq_rules_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise OptionError(Reason("the file is no file of Python", str(path), remedy="call it *.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with file_errors(path):
        spec.loader.exec_module(module)
    made = getattr(module, "EXTENSION", None)
    if not isinstance(made, Extension):
        raise OptionError(Reason("the file has no EXTENSION", str(path), remedy="EXTENSION = tflq.Extension(...)"))
    return made


def named_passes(*files: Path) -> Mapping[str, type[Pass]]:
    """Every pass by its name: those of tflq, of installed packages and of files. OptionError if two have one name."""
    own = {item.name: item for item in (QuantCodegen, TflToTosa)}
    passes: dict[str, type[Pass]] = {**PASSES, **STEPS, **own}
    for extension in (*_installed(), *map(extension_of, files)):
        for item in extension.passes:
            if passes.setdefault(item.name, item) is not item:
                raise OptionError(f"there are two passes '{item.name}': {passes[item.name]} and {item}")
    return passes
