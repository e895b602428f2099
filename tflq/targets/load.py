"""Reading a target's file. Its faults are `TflqError`s that name file, line and key.

[target]
name = "npu"             # by default the file's
base = "integer"         # what of the kernels that it does not list: "integer" (lowered) or "kernels" (as there)

[kernels]
conv_2d = "qi8 qi8:0 qi32? -> qi8; multiplier_accumulator_scale"
abs = ["qi8 -> qi8", "qi16 -> qi16"]

[rescale]
unsigned = ["add"]       # in place of those of rules/kernels.toml, where they are measured
uniform = ["conv_2d"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tflq.errors import TflqError, UnsupportedError
from tflq.ir.dialects import op_names
from tflq.resources import resource
from tflq.targets.signature import Signature, parse_signature
from tflq.targets.target import INTEGER, Target

__all__ = ["load_target"]

_KEYS = {"target": ("name", "base"), "rescale": ("unsigned", "uniform")}
_SECTIONS = ("target", "kernels", "rescale")
_BASES = ("integer", "kernels")
_OF_TOSA = {"profile", "extension", "level", "extends"}
_CHOICES_OF_TOSA = {"profiles", "extensions", "level", "specification"}


def load_target(target: str | Path | None = None) -> Target:
    """ "integer" (the default), "kernels", or a path to a file. TflqError if it is none; UnsupportedError if the
    name is not known, or the file is of a TOSA target."""
    if target in (None, "integer"):
        return INTEGER
    if target == "kernels":
        return _measured()
    path = Path(str(target))
    if target == "tosa":
        raise UnsupportedError(
            "target 'tosa' is of TOSA files (.tosa, .mlir); a .tflite file has 'integer' or 'kernels'"
        )
    if path.suffix != ".toml" and not path.exists():
        raise UnsupportedError(
            f"target '{target}' is not known: integer, kernels, or a path to a file of kernels (.toml)"
        )
    return _File(path).target()


@cache
def _measured() -> Target:
    return _File(resource("rules/kernels.toml")).target()


class _File:
    """One file; its text finds the line of a fault."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
            self.content: dict[str, Any] = tomllib.loads(self.text)
        except OSError as error:
            raise TflqError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TflqError(f"{path}: {error}") from error

    def target(self) -> Target:
        if _OF_TOSA & self.content.keys() or _CHOICES_OF_TOSA & self._section("target").keys():
            raise UnsupportedError(
                f"{self.path} is a target of TOSA files (.tosa, .mlir); a .tflite file's has [kernels]"
            )
        for name in self.content:
            if name not in _SECTIONS:
                self._fail("", name, f"'{name}' is no section; known are {', '.join(_SECTIONS)}")
        said = self._checked("target", _KEYS["target"])
        for key, value in said.items():
            if not isinstance(value, str):
                self._fail("target", key, f"{key} is not a string")
        base = said.get("base", "integer")
        if base not in _BASES:
            self._fail("target", "base", f"base: '{base}' is not known; known are {', '.join(_BASES)}")
        builtins = {name.removeprefix("tfl.") for name in op_names("tfl")}
        kernels: dict[str, Sequence[Signature]] = {
            name: self._signatures(name, lines, builtins) for name, lines in self._section("kernels").items()
        }
        shifts = {
            key: self._names(key, names, builtins) for key, names in self._checked("rescale", _KEYS["rescale"]).items()
        }
        if self.path != resource("rules/kernels.toml"):
            measured = _measured()
            shifts = {"unsigned": measured.unsigned, "uniform": measured.uniform} | shifts
            kernels = {
                **(dict(measured.kernels) if base == "kernels" else {}),
                **kernels,
            }
        return Target(said.get("name", self.path.stem), kernels, **shifts)

    def _section(self, name: str) -> dict[str, Any]:
        section = self.content.get(name, {})
        if not isinstance(section, dict):
            self._fail("", name, f"'{name}' is not a section")
        return section

    def _checked(self, name: str, known: tuple[str, ...]) -> dict[str, Any]:
        section = self._section(name)
        for key in section:
            if key not in known:
                self._fail(name, key, f"'{key}' is not known; known are {', '.join(known)}")
        return section

    def _signatures(self, name: str, lines: object, builtins: set[str]) -> tuple[Signature, ...]:
        if name not in builtins:
            self._fail("kernels", name, f"'{name}' is no builtin of TFLite")
        found = [lines] if isinstance(lines, str) else lines
        if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
            self._fail("kernels", name, f"{name} is neither a string nor a list of strings")
        signatures = []
        for line in found:
            try:
                signatures.append(parse_signature(line))
            except ValueError as error:
                self._fail("kernels", name, f"{name}: {error}")
        return tuple(signatures)

    def _names(self, key: str, names: object, builtins: set[str]) -> frozenset[str]:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self._fail("rescale", key, f"{key} is not a list of strings")
        for name in names:
            if name not in builtins:
                self._fail("rescale", key, f"'{name}' is no builtin of TFLite")
        return frozenset(names)

    def _fail(self, section: str, key: str, reason: str) -> NoReturn:
        where = f"[{section}] " if section else ""
        raise TflqError(f"{self.path}:{self._line(section, key)}: {where}{reason}")

    def _line(self, section: str, key: str) -> int:
        """The line of a key, or of a section's head, or 1."""
        current, found = "", 1
        for number, line in enumerate(self.text.splitlines(), 1):
            if head := re.match(r"\s*\[([^\]\[]+)\]\s*(#.*)?$", line):
                current = head[1].strip()
                if current in (section, key):
                    found = number
            elif current == section and re.match(rf'\s*"?{re.escape(key)}"?\s*=', line):
                return number
        return found
