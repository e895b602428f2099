"""Reading a target's file. Its faults are `OptionError`s that name file, line and key.

[target]
name = "npu"             # by default the file's
base = "integer"         # kernels that it does not list: "integer" (lowered) or "kernels" (as there, and recurrent
                         # operators kept)
entries = "all"          # "first": it runs the first subgraph and what that calls; a file has no other signatures

[kernels]
conv_2d = "qi8 qi8:0 qi32? -> qi8; multiplier_accumulator_scale"
abs = ["qi8 -> qi8", "qi16 -> qi16"]

[rescale]                # in place of what rules/kernels.toml says, where it is measured, signature by signature
unsigned = ["add"]
signed = ["add"]
uniform = ["conv_2d"]

[builtins]               # what operators are lowered to, if not all that the interpreter has
add = "f32 f32 -> f32"

[floats]                 # what operators that stay in float32 may be beside these
run = ["softmax"]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tflq.base.arguments import choices, unknown_target
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, resource
from tflq.ir.ops import op_names
from tflq.targets.constraints import load_quant_functions
from tflq.targets.signature import Signature, parse_signature
from tflq.targets.target import INTEGER, KernelRules, RulesFile, Target

if TYPE_CHECKING:
    from tflq.numerics.float_basics import SumRounding

Kernels: TypeAlias = Mapping[str, Sequence[Signature]]
"""Logical kernels by name: the signatures of each, in order."""

_KEYS = {
    "target": ("name", "base", "sums", "weights", "entries"),
    "rescale": ("unsigned", "signed", "uniform"),
    "floats": ("run",),
}
_SECTIONS = ("target", "kernels", "rescale", "builtins", "floats")
_BASES = ("integer", "kernels")
_SUMS = ("separate", "any")
_WEIGHTS = ("float32", "int8")
_ENTRIES = ("all", "first")
_CHOICES = {"base": _BASES, "sums": _SUMS, "weights": _WEIGHTS, "entries": _ENTRIES}
RUNTIMES = ("portable", "tflm")
"""The targets of runtimes that were measured, `rules/<name>.toml`."""
SCHEMES = ("int8", "int16x8", "uint8")
"""The targets of quantization schemes, `rules/<name>.toml`: the kernels of `rules/kernels.toml` on one storage."""
JOINED = "+"
"""Stands between targets whose kernels are taken together."""
DEVICES = ("ethos-u55", "ethos-u65", "ethos-u85")
"""The targets of TOSA files that are devices, `rules/<name>.toml`."""
_MEASURED = "rules/kernels.toml"
_OF_TOSA = {"profile", "extension", "level", "extends"}
_CHOICES_OF_TOSA = {"profiles", "extensions", "level", "specification"}


def load_target(target: FilePath | None = None) -> Target:
    """ "integer" (the default), "kernels", one of `RUNTIMES` or `SCHEMES`, or a path to a file. OptionError for all
    else, and for targets of TOSA files; FileError if it cannot be read."""
    if target in (None, "integer"):
        return INTEGER
    if target == "kernels":
        return _measured()
    path = _path(target)
    if target == "tosa" or target in DEVICES:
        remedy = "a .tflite file has 'integer', 'kernels', 'portable' or 'tflm'"
        raise OptionError(Reason(f"target '{target}' is for TOSA files (.tosa, .mlir)", value=target, remedy=remedy))
    if not path.endswith(".toml") and not os.path.exists(path):
        raise unknown_target(target, (*_BASES, *RUNTIMES, *SCHEMES))
    loaded = _File(path).target()
    return loaded if target in (*RUNTIMES, *SCHEMES) else loaded.replace(of_user=True)


def load_kernels(target: FilePath) -> Kernels:
    """The kernels that a target lists, also logical ones, which are not builtins. Of several ("int8+int16x8") the
    signatures of the first before those of the next. Errors as of `load_target`."""
    several = str(target).split(JOINED)
    if len(several) > 1 and not os.path.exists(str(target)):
        joined: dict[str, list[Signature]] = {}
        for each in several:
            for name, signatures in load_kernels(each).items():
                joined.setdefault(name, []).extend(signatures)
        return joined
    if target in SCHEMES:
        return _of_scheme(str(target))
    path = _path(target)
    if path in _BASES or (not path.endswith(".toml") and not os.path.exists(path)):
        return load_target(target).kernels
    load_quant_functions()
    return _File(path).kernels()


def check_kernel_target(target: FilePath | None) -> None:
    """OptionError for a target by whose kernels no float network is quantized: all but `SCHEMES`, several of them
    joined, and files."""
    name = str(target)
    if target is None or name.endswith(".toml") or os.path.exists(name) or set(name.split(JOINED)) <= {*SCHEMES}:
        return
    if name not in (*_BASES, *RUNTIMES, "tosa", *DEVICES):
        raise unknown_target(target, SCHEMES)
    remedy = f"leave it out, give {', '.join(SCHEMES)} or a target file (.toml), and convert the result to '{name}'"
    what = f"target '{name}' is what a quantized network is converted to, and says nothing of floats"
    raise OptionError(Reason(what, value=target, remedy=remedy))


def is_of_tosa(target: FilePath | None) -> bool:
    """Whether a target is of TOSA files: "tosa", one of `DEVICES`, or a file that says so. OptionError if the file has
    faults."""
    path = str(target)
    return target in ("tosa", *DEVICES) or (path.endswith(".toml") and os.path.exists(path) and _File(path).of_tosa)


def _path(target: FilePath | None) -> str:
    """The path of a target's file; the name of one that has none."""
    return resource(f"rules/{target}.toml") if target in (*RUNTIMES, *SCHEMES) else str(target)


@cache
def _of_scheme(name: str) -> Kernels:
    return _File(_path(name)).kernels()


@cache
def measured_kernels(names: frozenset[str]) -> Target:
    """The target "kernels" with the kernels of operators of these names alone: the others take a while to read."""
    return _File(resource(_MEASURED)).part(names)


@cache
def _measured() -> Target:
    return _File(resource(_MEASURED)).target()


class _File(RulesFile):
    """One target's file."""

    @property
    def of_tosa(self) -> bool:
        """Whether it is a file for TOSA."""
        return bool(_OF_TOSA & self.content.keys() or _CHOICES_OF_TOSA & self._section("target").keys())

    def kernels(self) -> Kernels:
        """Its kernels, also those that are not builtins, and those of its base."""
        declared = self._target_section()
        listed = {name: self._signatures(name, lines, None) for name, lines in self._section("kernels").items()}
        self.check_faults()
        return {**_measured().kernels, **listed} if declared.get("base") == "kernels" else listed

    def target(self) -> Target:
        builtins = {name.removeprefix("tfl.") for name in op_names("tfl")}
        declared = self._target_section()
        listed: dict[str, Sequence[Signature]] = {
            name: self._signatures(name, lines, builtins) for name, lines in self._section("kernels").items()
        }
        shifts = self._named("rescale", builtins)
        plain, floats = self._plain(builtins), self._named("floats", builtins).get("run", frozenset())
        self.check_faults()
        name = declared.get("name", os.path.splitext(os.path.basename(self.path))[0])
        if self.path == resource(_MEASURED):
            return self._of(name, listed, shifts, recurrent=True, agreed=listed)
        measured, based = _measured(), declared.get("base") == "kernels"
        agreeing = {"unsigned": measured.unsigned, "signed": measured.unsigned, "uniform": measured.uniform}
        kernels = {**(measured.kernels if based else {}), **listed}
        agreed = {} if shifts else dict(measured.kernels)
        target = self._of(name, kernels, agreeing | shifts, recurrent=based, agreed=agreed)
        weights = "float32" if plain is not None and declared.get("weights") != "int8" else "int8"
        first = declared.get("entries") == "first"
        return target.replace(builtins=plain, floats=floats, weights=weights, first_entry=first)

    def part(self, names: frozenset[str]) -> Target:
        """The target of some operators, without the others' kernels and without what is told of RESCALE."""
        lines = self._section("kernels")
        listed = {name: self._signatures(name, lines[name], set(names)) for name in sorted(names) if name in lines}
        self.check_faults()
        return self._of(self._target_section()["name"], listed, {}, recurrent=True, agreed=listed)

    def _of(
        self,
        name: str,
        kernels: Kernels,
        shifts: Mapping[str, frozenset[str]],
        *,
        recurrent: bool,
        agreed: Kernels,
    ) -> Target:
        unsigned, signed, uniform = (shifts.get(key, frozenset()) for key in _KEYS["rescale"])
        sums: SumRounding = "any" if self._section("target").get("sums") == "any" else "separate"
        return Target(name, kernels, unsigned, signed, uniform, recurrent, agreed, sums=sums)

    def _plain(self, builtins: set[str]) -> KernelRules | None:
        """The builtins on plain tensors, if it restricts them."""
        lines = self._section("builtins")
        for name, line in lines.items():
            if name not in builtins:
                remedy = choices(name, builtins) or "tflq ops lists them"
                self.fault(f"'{name}' is not an operator of TFLite", "builtins", name, remedy=remedy)
            elif not isinstance(line, str):
                remedy = f'write {name} = "f32 -> f32 | i32 -> i32"'
                self.fault(f"{name} is not a string", "builtins", name, remedy=remedy)
        self.check_faults()
        if "builtins" not in self.content:
            return None
        rules = KernelRules(lines, f"{self.path}, section builtins")
        rules.parse()
        return rules

    def _target_section(self) -> dict[str, str]:
        """The keys of [target]. OptionError if the file is not for TFLite or has other sections than it can have."""
        if self.of_tosa:
            what = "it is a target for TOSA files (.tosa, .mlir)"
            raise OptionError(Reason(what, self.path, remedy="one for .tflite files has [kernels]"))
        self.check_sections(_SECTIONS)
        declared = self._checked("target")
        for key, value in declared.items():
            if not isinstance(value, str):
                self.fault(f"{key} is not a string", "target", key, remedy=f'write {key} = "..."')
            elif value not in (known := _CHOICES.get(key, (value,))):
                self.fault(f"{key}: '{value}' is not known", "target", key, item=value, known=known)
        return declared

    def _section(self, name: str) -> dict[str, Any]:
        section = self.content.get(name, {})
        if isinstance(section, dict):
            return section
        self.fault(f"'{name}' is not a section", "", name, remedy=f"write [{name}], and its keys below")
        return {}

    def _checked(self, name: str) -> dict[str, Any]:
        """The known keys of a section; any other is a fault."""
        section = self._section(name)
        for key in section:
            if key not in _KEYS[name]:
                self.fault(f"'{key}' is not known", name, key, known=_KEYS[name])
        return {key: value for key, value in section.items() if key in _KEYS[name]}

    def _signatures(self, name: str, lines: object, builtins: set[str] | None) -> tuple[Signature, ...]:
        """`builtins`: what a kernel can be; None: any, since it is a logical one."""
        if builtins is not None and name not in builtins:
            remedy = choices(name, builtins) or "tflq ops lists them"
            self.fault(f"'{name}' is not an operator of TFLite", "kernels", name, remedy=remedy)
            return ()
        texts = [lines] if isinstance(lines, str) else lines
        if not isinstance(texts, list) or not all(isinstance(line, str) for line in texts):
            what = f"{name} is neither a string nor a list of strings"
            self.fault(what, "kernels", name, remedy=f'write {name} = "qi8 -> qi8"')
            return ()
        signatures: list[Signature] = []
        for line in texts:
            self._add(signatures, name, line, known=builtins is not None)
        return tuple(signatures)

    def _add(self, signatures: list[Signature], name: str, line: str, *, known: bool) -> None:
        """Adds the signature that a line says, unless it has a fault."""
        try:
            signature = parse_signature(line)
        except ValueError as error:
            self.fault(f"{name}: {error}", "kernels", name, item=line)
            return
        reason = signature.misfit(name) if known else None
        first = next((s for s in signatures if s.alternatives == signature.alternatives), None)
        if reason is not None:
            self.fault(f"{name}: '{line}': {reason}", "kernels", name, item=line)
        elif first is not None:
            reason = f"is never reached: the first that fits wins, and '{first.text}' takes the same types"
            self.fault(f"{name}: '{line}' {reason}", "kernels", name, item=line, remedy="leave one of them out")
        else:
            signatures.append(signature)

    def _named(self, section: str, builtins: set[str]) -> dict[str, frozenset[str]]:
        """A section of lists of operators."""
        return {key: self._names(section, key, names, builtins) for key, names in self._checked(section).items()}

    def _names(self, section: str, key: str, names: object, builtins: set[str]) -> frozenset[str]:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.fault(f"{key} is not a list of strings", section, key, remedy=f'write {key} = ["add"]')
            return frozenset()
        for name in names:
            if name not in builtins:
                remedy = choices(name, builtins) or "tflq ops lists them"
                self.fault(f"'{name}' is not an operator of TFLite", section, key, item=name, remedy=remedy)
        return frozenset(names)
