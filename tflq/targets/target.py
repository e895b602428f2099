"""A target: its table of quantized kernels, and what it says of an op; rules for plain kernels; files of rules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import eq
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from tflq.base.arguments import choices
from tflq.base.documents import TomlFile, read_json
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, resource
from tflq.dialects.forms import OF_TARGET
from tflq.ir.ops import Op, Value, op_class
from tflq.ir.types import SCALARS, ScalarType
from tflq.targets.slots import Side, bare, match, slots, split

if TYPE_CHECKING:
    from tflq.numerics.float_basics import SumRounding
    from tflq.targets.signature import Kinds, Possible, Signature

WeightType: TypeAlias = Literal["float32", "int8"]


class Verdict:
    """Whether the target has a kernel for an op, and why (not). `listed`: a signature fits the op's types."""

    __slots__ = ("listed", "reason", "runs")

    def __init__(self, runs: bool, reason: str, listed: bool = False) -> None:
        self.runs: Final = runs
        self.reason: Final = reason
        self.listed: Final = listed


class Target:
    """Kernels by name ("conv_2d") and their signatures, the first that fits wins; all else is lowered to plain
    integers.

    unsigned: kernels whose uint8 form is the int8 one on values less 128. signed: kernels whose int8 form is the uint8
    one on values more by 128. uniform: kernels to which per-axis parameters that are all equal are what one scale is.
    Of these, other storage is met by an exact rescale, on the signatures that are `agreed`, where some of a kernel are:
    those on which it was measured that it is exact. recurrent: whether it runs operators with
    variable tensors, which it does not list. builtins: which builtins on plain tensors it has, if it is not all that
    the interpreter has; floats: which operators that stay in float32 may be there beside these; sums: how it may round
    MUL and ADD of floats; weights: in which type those of float kernels are stored, int8 where DEQUANTIZE of a constant
    is computed once. first_entry: whether it runs the first subgraph alone.
    by_parameters: whether its kernels compute what the parameters say, where the interpreter's give something else.
    of_user: whether it is of a user's file, whose lines should match something.
    """

    def __init__(
        self,
        name: str,
        kernels: Mapping[str, Sequence[Signature]] | None = None,
        unsigned: frozenset[str] = frozenset(),
        signed: frozenset[str] = frozenset(),
        uniform: frozenset[str] = frozenset(),
        recurrent: bool = True,
        agreed: Mapping[str, Sequence[Signature]] | None = None,
        builtins: KernelRules | None = None,
        floats: frozenset[str] = frozenset(),
        sums: SumRounding = "separate",
        weights: WeightType = "int8",
        first_entry: bool = False,
        by_parameters: bool = False,
        of_user: bool = False,
    ) -> None:
        self.name: Final = name
        self.kernels: Final = kernels or {}
        self.unsigned: Final = unsigned
        self.signed: Final = signed
        self.uniform: Final = uniform
        self.recurrent: Final = recurrent
        self.agreed: Final = agreed or {}
        self.builtins: Final = builtins
        self.floats: Final = floats
        self.sums: Final = sums
        self.weights: Final = weights
        self.first_entry: Final = first_entry
        self.by_parameters: Final = by_parameters
        self.of_user: Final = of_user
        self._remembered: Final[dict[tuple[str, Kinds, Kinds], Sequence[Possible]]] = {}

    def replace(self, **changes: Any) -> Target:
        """A copy with other values of some fields."""
        fields = {name: value for name, value in vars(self).items() if name != "_remembered"}
        return Target(**fields | changes)

    @property
    def complete(self) -> bool:
        """Whether it lists all that it has, hybrid operators and weights that are dequantized, too."""
        return self.builtins is not None

    def judge(self, op: Op) -> Verdict:
        """Whether it runs an op as it is."""
        name = op.short_name
        for possible in self._possible(op, name):
            if possible.fits(op):
                signature = possible.signature
                broken = signature.broken(op)
                if broken is None:
                    return Verdict(True, self.reason(signature), True)
                if signature.lowers:
                    return Verdict(False, f"lowered, as target '{self.name}' says: {name} = \"{signature.text}\"", True)
                return Verdict(False, f"{broken}, as the target '{self.name}' asks: {signature.text}", True)
        if name in self.kernels:
            return Verdict(False, f"the target '{self.name}' has no such kernel on these types")
        return Verdict(False, f"the target '{self.name}' has no such kernel")

    def reason(self, signature: Signature) -> str:
        """Why an op that fits a signature stays as it is."""
        return f"{OF_TARGET} '{self.name}': {signature.text}"

    def why_not(self, op: Op) -> str:
        """Why none of the kernels that it lists under an op's name runs it; empty if it lists none."""
        listed = self.kernels.get(op.short_name, ())
        verdict = self.judge(op)
        if not listed or verdict.runs or verdict.listed:
            return verdict.reason if verdict.listed and not verdict.runs else ""
        signature, words = self.nearest(op)
        return f"{words}, in the target '{self.name}': {signature.text}"

    def nearest(self, op: Op) -> tuple[Signature, str]:
        """The signature under an op's name that misses it in the fewest ways, and these in words. The first that fits
        its types, if one does."""
        name = op.short_name
        for possible in self._possible(op, name):
            if possible.fits(op):
                return possible.signature, possible.signature.broken(op) or ""
        words, signature = min(((s.why_not(op), s) for s in self.kernels[name]), key=lambda pair: len(pair[0]))
        return signature, ", ".join(words)

    def _possible(self, op: Op, name: str) -> Sequence[Possible]:
        """The signatures of a kernel that ops on tensors of these kinds may fit, remembered."""
        from tflq.targets.signature import kinds_of

        key = name, kinds_of(op.operands), kinds_of(op.results)
        known = self._remembered.get(key)
        if known is None:
            candidates = (signature.possible(*key[1:]) for signature in self.kernels.get(name, ()))
            known = self._remembered[key] = [possible for possible in candidates if possible is not None]
        return known

    def agree(self, op: Op, changed: Op) -> bool:
        """Whether an op computes the same on other storage: it was measured on kernels that are right on either."""
        known = self.agreed.get(op.short_name, ())
        return not known or all(any(s.fits(o) and s.broken(o) is None for s in known) for o in (op, changed))


INTEGER = Target("integer")
"""Nothing is kept."""


# Which builtins the result may hold, on which plain types. They were measured: they compute right on tensors without
# quantization parameters, with the reference kernels, with the optimized ones and with XNNPACK, on every release tried
# (ai-edge-litert 2.3, TensorFlow 2.20 and 2.21). What is not listed is wrong (MUL of i8: zeros), missing, or aborts the
# process (ADD of i8), or has not been measured. The file is JSON, since every conversion reads it. Its sections:
#
#   integer         all builtins of the target "integer"
#   float32         multiply-accumulate as float convolutions on integer values (mac = "float32"), below 2^24, and what
#                   brings integers there and back
#   float_kernels   operators whose own kernel computes in float, written out: QUANTIZE from float, DEQUANTIZE,
#                   RESIZE_BILINEAR on uint8

RULES: Final = "rules/integer.json"

_Wanted: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Attributes of an op, and the words that each may be."""


class KernelRules:
    """The signatures of one section, by kernel: "operands -> results; NAME = types; ...", several separated by "|".

    An operand or result is a type, or a NAME that stands for one of some types, the same wherever it occurs in the
    signature; of `x*` there is any number, `x?` may be left out. "attribute = WORD WORD" behind a ";" says what an
    attribute of the op may be. Lines are parsed when their kernel is first met; answers are remembered.
    """

    def __init__(self, lines: Mapping[str, str], where: str) -> None:
        self._lines = lines
        self._where = where
        self._parsed: dict[str, list[tuple[Side, Side, _Wanted]]] = {}
        self._answers: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[_Wanted]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The kernels it has."""
        return frozenset(self._lines)

    def admit(self, op: Op) -> bool:
        """Whether some signature of the op's kernel fits its plain types and attributes."""
        return any(all(str(getattr(op, key)) in words for key, words in wanted) for wanted in self._wanted(op))

    def admit_all(self, op: Op) -> bool:
        """Whether one fits all ops of its kernel on its plain types, whatever their attributes."""
        return () in self._wanted(op)

    def _wanted(self, op: Op) -> list[_Wanted]:
        """The demands on attributes, of each signature that fits an op's plain types."""
        name = op.name.removeprefix("tfl.")
        if name == op.name:
            return []
        return self._fitting(name, tuple(map(_type, op.operands)), tuple(map(_type, op.results)))

    def admits(self, name: str, operands: tuple[str, ...], results: tuple[str, ...]) -> bool:
        """Whether some signature of a kernel fits types of operands ("" for one left out) and results."""
        return bool(self._fitting(name, operands, results))

    def _fitting(self, name: str, operands: tuple[str, ...], results: tuple[str, ...]) -> list[_Wanted]:
        """The demands on attributes, of each signature that fits."""
        if name not in self._lines:
            return []
        key = (name, operands, results)
        answer = self._answers.get(key)
        if answer is None:
            fits = (item for item in self._signatures(name) if match(item[:2], key[1:], eq, gaps=False) is not None)
            answer = self._answers[key] = [wanted for _, _, wanted in fits]
        return answer

    def parse(self) -> None:
        """Parses every line now. OptionError if one is not a signature."""
        for name in self._lines:
            self._signatures(name)

    def _signatures(self, name: str) -> list[tuple[Side, Side, _Wanted]]:
        if name not in self._parsed:
            self._parsed[name] = [self._parse(name, text) for text in self._lines[name].split("|")]
        return self._parsed[name]

    def _parse(self, name: str, text: str) -> tuple[Side, Side, _Wanted]:
        parts = split(text)
        kind = op_class(f"tfl.{name}")
        known = kind.attribute_slots if kind is not None else {}
        wanted = tuple((key, tuple(words)) for key, words in parts.named if key in known)
        named = {variable: tuple(types) for variable, types in parts.named if variable not in known}
        results = parts.results or []
        words = {bare(word) for word in (*parts.operands, *results)} - named.keys()
        unknown = words.union(*named.values()) - SCALARS.keys()
        fault = ", ".join(sorted(unknown)) or ("no ->" if parts.results is None else "")
        try:
            if not fault:
                return slots(parts.operands, named, str), slots(results, named, str), wanted
        except ValueError as error:
            fault = str(error)
        raise OptionError(f"{self._where}, kernel {name}: '{text.strip()}' is not a signature ({fault})")


def _type(value: Value | None) -> str:
    if value is None:
        return ""
    element = value.type.element
    return element.name if isinstance(element, ScalarType) else value.type.storage.name


@cache
def load_rules(path: FilePath | None = None) -> dict[str, KernelRules]:
    """The sections of a file like `rules/integer.json`, the default. OptionError if it is not one."""
    path = resource(RULES) if path is None else path
    sections = read_json(path, Mapping[str, Mapping[str, str]], "a file of kernels")
    where = os.path.basename(path)
    return {name: KernelRules(lines, f"{where}, section {name}") for name, lines in sections.items()}


# TOML files of rules, the user's own among them. All faults of one are told in one `OptionError`, which names file,
# line and key of each.


class RulesFile(TomlFile):
    """One file of sections, which collects its faults."""

    def __init__(self, path: FilePath) -> None:
        """FileError if there is no file, OptionError if it is not TOML."""
        super().__init__(path)
        self._faults: list[Reason] = []

    def fault(
        self,
        reason: str,
        section: str = "",
        key: str = "",
        *,
        item: str = "",
        known: Iterable[object] = (),
        remedy: str = "",
    ) -> None:
        """Notes what is wrong at a key of a section ("level.8k"), or at an item of the key's list; `known`: what could
        be there instead. `check_faults` raises it."""
        where = f"[{section}] " if section else ""
        remedy = remedy or choices(item or key, map(str, known))
        self._faults.append(self._reason(self.line(section, key, item), where + reason, remedy))

    def check_sections(self, known: Iterable[str]) -> None:
        """Notes the sections and keys at the top that nothing reads."""
        for name in self.content:
            if name not in known:
                self.fault(f"'{name}' is not a section", "", name, known=known)

    def fail(
        self, reason: str, section: str = "", key: str = "", *, item: str = "", known: Iterable[object] = ()
    ) -> NoReturn:
        """OptionError for a fault that makes it impossible to go on, and for those before it."""
        self.fault(reason, section, key, item=item, known=known)
        self.check_faults()
        raise AssertionError

    def check_faults(self) -> None:
        """OptionError with all that was noted, if anything was."""
        if len(self._faults) == 1:
            raise OptionError(self._faults[0])
        if self._faults:
            reasons = sorted(self._faults, key=lambda reason: int(reason.place))
            raise OptionError(f"{self.path} has {len(reasons)} faults:", reasons)

    def _reason(self, line: int, what: str, remedy: str = "") -> Reason:
        return Reason(what, self.path, place=str(line), remedy=remedy)

    def line(self, section: str, key: str, item: str = "") -> int:
        """The line of a key, or of what holds it: an inline table, the section's head; 1 if there is nothing."""
        wanted = (*(section.split(".") if section else ()), *((key,) if key else ()))
        start, depth = self.locate(wanted)
        if not item or depth < len(wanted):
            return start
        lines = self.text.split("\n")[start - 1 :]
        return next((number for number, line in enumerate(lines, start) if item in line), start)
