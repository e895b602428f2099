"""The report of a conversion: the outcome for each operator of the source model, and why; and its text: the verdict, a
table of operators, why some are not integer, and the warnings.

`tflq convert` prints the text, and `str(report)` is it. The JSON form is versioned and described in docs/json.md.
Within a version fields may be added; none is removed or renamed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from tflq.base.tables import Blocks, Cell, Line, Table, plain, warning_line
from tflq.dialects.forms import OF_TARGET, UNQUANTIZED
from tflq.dialects.tfl.state import Custom
from tflq.ir.module import Module
from tflq.ir.ops import Location, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, element_storage, is_quantized
from tflq.numerics.kernel_sets import Exactness

if TYPE_CHECKING:
    from tflq.formats.tosa.check import Requirements
    from tflq.transforms.pass_manager import Decision, Note

JSON_VERSION = 3
PATHS = ("integer", "float", "kept")
Outcome = Literal["integer", "float", "kept", "kernel", "unquantized"]


def short_type(value: Value) -> str:
    """The element type of a tensor in a word: `f32`, `qi8` (quantized), `qi8/axis3` (per axis), `qi4/blocks`."""
    element = value.type.element
    storage = element_storage(element).name
    if not is_quantized(element):
        return storage
    if isinstance(element, UniformQuantizedPerAxisType):
        return f"q{storage}/axis{element.axis}"
    return f"q{storage}/blocks" if isinstance(element, UniformQuantizedSubChannelType) else f"q{storage}"


@dataclass(frozen=True, slots=True)
class Row:
    """One operator of the source model: an item of `Report.rows`.

    Attributes:
        subgraph: Number of the subgraph in the file.
        operator: Number of the operator in the subgraph.
        opcode: The operator's type, such as "CONV_2D".
        tensor: Name of its first result.
        operands: Types of its operands, such as "qi8".
        results: Types of its results.
        path: "integer" (lowered), "float" (computed in float between casts) or "kept" (left as it is).
        reason: Why it was computed in float or kept.
        note: How it was lowered, if there is more than one way.
        warning: How its result may surprise you.
        emitted: Number of operators in the converted model that compute it. 0 if it was folded away or shares those of
            another.
        exception: Which of the exceptions in docs/exceptions.md the warning is about.
        custom_code: The name of a custom operator, whose opcode is "CUSTOM".
        not_kernel: Why none of the kernels that the target lists for the operator could be used. Empty if it lists
            none.
        remedy: What you can do about the warning.
        not_rule: Why none of the rules that you gave for the operator could be used. Empty if you gave none.
        differs_under: Kernel sets whose kernels compute it otherwise than the result, or in a way that is not known.

    Example:
        ```python
        for row in tflq.convert("in.tflite").report.rows:
            if row.outcome == "float":
                print(row.place, row.reason)
        ```
    """

    subgraph: int
    operator: int
    opcode: str
    tensor: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    path: str
    reason: str
    note: str
    warning: str
    emitted: int
    exception: str = ""
    custom_code: str = ""
    not_kernel: str = ""
    remedy: str = ""
    not_rule: str = ""
    differs_under: tuple[str, ...] = ()

    @property
    def advice(self) -> str:
        """The warning, and what you can do about it. Empty if there is no warning."""
        return _joined(self.warning, self.remedy)

    @property
    def name(self) -> str:
        """The opcode, or the name of a custom operator."""
        return self.custom_code or self.opcode

    @property
    def outcome(self) -> Outcome:
        """The path, but "kept" is divided: "kernel" (a kernel of the target), "unquantized" (a builtin without
        quantized tensors), or "kept" (kept although it has some).
        """
        if self.path != "kept":
            return "integer" if self.path == "integer" else "float"
        if self.reason.startswith(OF_TARGET):
            return "kernel"
        return "unquantized" if self.reason == UNQUANTIZED and not self.custom_code else "kept"

    @property
    def number(self) -> str:
        """The operator's number in the file: "3", or "1:3" in a later subgraph."""
        return f"{self.subgraph}:{self.operator}" if self.subgraph else str(self.operator)

    @property
    def place(self) -> str:
        """Where the operator is, in words for a message."""
        subgraph = f"subgraph {self.subgraph}, " if self.subgraph else ""
        return f"{subgraph}operator {self.operator} ({self.opcode})" + (
            f", tensor '{self.tensor}'" if self.tensor else ""
        )


class Report:
    """The outcome of a conversion for each operator of the source model: `Conversion.report`.

    Attributes:
        source: Path of the model.
        exactness: The kernel sets that the result reproduces. None where nothing was lowered from TFLite.
        requirements: What a TOSA file requires of a device; which runtimes an ONNX file is exact in. None for TFLite.
        remarks: What concerns the whole model and is no warning: that there is nothing to lower, that a rule or a line
            of the target file matched nothing.

    `str(report)` is the text that `tflq convert` prints.

    Example:
        ```python
        report = tflq.convert("in.tflite").report
        print(report)
        print(report.counts, report.warnings)
        ```
    """

    def __init__(
        self,
        module: Module,
        decisions: Sequence[Decision],
        notes: Sequence[Note] = (),
        remarks: Sequence[str] = (),
    ) -> None:
        self.remarks = list(remarks)
        self.source = module.source
        self.exactness = module.record.find(Exactness)
        self.requirements: Requirements | None = None
        self._module = module
        self._decisions = decisions
        self._notes = notes

    @classmethod
    def of(
        cls,
        module: Module,
        decisions: Sequence[Decision],
        notes: Sequence[Note] = (),
        remarks: Sequence[str] = (),
    ) -> Report:
        """Make the report of a converted module.

        Args:
            module: The converted module.
            decisions: What its conversion decided for each operator.
            notes: Notes on operators.
            remarks: Sentences about the model.
        """
        return cls(module, decisions, notes, remarks)

    def __getstate__(self) -> dict[str, Any]:
        """State of a pickle or a copy: the contents of the report, without the modules that it was computed from."""
        names = ("source", "exactness", "requirements", "remarks", "rows", "counts", "warnings")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {path}" for path, count in self.counts.items() if count)
        return f"<Report on {self.source or 'a model'}: {counts or 'no operators'}>"

    def __str__(self) -> str:
        return plain(blocks(self))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One row for each operator of the source model, in the model's order."""
        emitted = Counter(op.location for op in self._module.ops())
        notes: dict[Location | None, dict[Note, None]] = {}
        for note in self._notes:
            notes.setdefault(note.location, {})[note] = None
        return tuple(
            _row(decision, emitted, tuple(notes.get(decision.op.location, ()))) for decision in self._decisions
        )

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of the source model's operators for each path."""
        counter = Counter(decision.path for decision in self._decisions)
        return {path: counter[path] for path in PATHS}

    @cached_property
    def warnings(self) -> list[str]:
        """Defects that reading the model found, followed by what the conversion of its operators warns of."""
        rows = self.rows if self._notes or any(decision.warning for decision in self._decisions) else ()
        return [*self._module.warnings, *(f"{row.place}: {row.advice}" for row in rows if row.warning)]

    def to_json(self) -> dict[str, Any]:
        """The report in a versioned JSON form, as `tflq convert --report` writes it: docs/json.md."""
        from dataclasses import asdict

        return {
            "format": "tflq.report",
            "version": JSON_VERSION,
            "source": self.source,
            "operators": {**self.counts, "total": len(self.rows), "emitted": sum(row.emitted for row in self.rows)},
            "warnings": self.warnings,
            "remarks": self.remarks,
            "kernel_set": None if self.exactness is None else self.exactness.document,
            "rows": [asdict(row) for row in self.rows],
            "tosa": None,
            **({} if self.requirements is None else {self.requirements.key: self.requirements.to_json()}),
        }


def _gravest(exceptions: Sequence[str]) -> str:
    """The first exception whose result is not the interpreter's; the first one if there is none."""
    from tflq.legalize.caveats import EXCEPTIONS

    return next((name for name in exceptions if not EXCEPTIONS[name].reproduced), next(iter(exceptions), ""))


def _row(decision: Decision, emitted: Counter[Location | None], noted: Sequence[Note]) -> Row:
    op = decision.op
    location = op.location or Location("", 0, 0, op.name, "")
    integer = decision.path == "integer"
    notes = [note.text for note in noted if not note.exception]
    warned = [note for note in noted if note.exception]
    exceptions = [name for name in (decision.exception, *(note.exception for note in warned)) if name]
    return Row(
        location.function,
        location.operator,
        location.opcode,
        location.tensor,
        tuple("none" if value is None else short_type(value) for value in op.operands),
        tuple(short_type(value) for value in op.results),
        decision.path,
        "" if integer else decision.reason,
        "; ".join((decision.reason, *notes) if integer and decision.reason else notes),
        _joined(decision.warning, *(note.text for note in warned)),
        emitted[op.location],
        _gravest(exceptions) if len(exceptions) > 1 else "".join(exceptions),
        op.code if isinstance(op, Custom) else "",
        decision.not_kernel,
        _joined(decision.remedy, *(note.remedy for note in warned)),
        decision.not_rule,
        decision.differs_under,
    )


def _joined(*parts: str) -> str:
    """The parts that are not empty, each once."""
    return "; ".join(dict.fromkeys(filter(None, parts)))


# The text.

T = TypeVar("T")
LABELS: Final = {
    "float": "computed in float",
    "kept": "kept as they are",
    "kernel": "kernels of the target",
    "unquantized": "without quantized tensors",
}
COLOURS: Final = {"integer": "green", "float": "yellow", "kept": "yellow", "kernel": "green", "unquantized": ""}
KINDS, NUMBERS = 5, 8
"""Kinds of operators, and numbers of operators, that are listed at most."""
COUNTS = ("integer", "float", "kept")


_VARIABLE = r"'[^']*'|\b(?:subgraph|operator|tensor) \d+"
"""The parts of a warning in which those of one kind differ: names, and numbers of operators and tensors."""


def verdict(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Operators by outcome: a label and a text for each outcome, the integer one first."""
    ways: dict[str, list[Row]] = {}
    for row in rows:
        ways.setdefault(row.outcome, []).append(row)
    total = len(rows)
    lines = [("integer", f"{len(ways.get('integer', ()))} of {total} operator{'s' * (total != 1)}")]
    return lines + [(LABELS[way], f"{len(ways[way])} ({_kinds(ways[way])})") for way in LABELS if way in ways]


def verdict_lines(rows: Sequence[Row]) -> list[Line]:
    """The verdict as lines. What may surprise is yellow."""
    lines = verdict(rows)
    surprises = {LABELS["float"], LABELS["kept"]}
    whole = surprises.isdisjoint(label for label, _ in lines)
    colours = ["yellow" if label in surprises else "green" if whole else "" for label, _ in lines]
    return [
        ((f"{label}: ", f"bold {colour}".strip()), (text, "bold"))
        for (label, text), colour in zip(lines, colours, strict=True)
    ]


def blocks(report: Report) -> Blocks:
    """All of it, as lines and tables."""
    return [*verdict_lines(report.rows), [], *details(report)]


def details(report: Report) -> Blocks:
    """Operators by path, why some are not integer, remarks, and the warnings."""
    opcodes: dict[str, Counter[str]] = {}
    for row in sorted(report.rows, key=lambda row: row.name):
        opcodes.setdefault(row.name, Counter()).update({row.path: 1, "ops": row.emitted})
    parts: list[Line | Table] = []
    if report.rows:
        rows = [_counted(name, counts) for name, counts in opcodes.items()]
        rows.append(_counted("total", sum(opcodes.values(), Counter())))
        parts.append(Table(["operator", *COUNTS, "ops"], rows, right=(1, 2, 3, 4), total=True))
        parts.append([("ops: operators written in their place", "dim")])
    if report.exactness is not None:
        parts += [[], [("kernels".ljust(12), "dim"), _exactness(report)]]
    if report.requirements is not None:
        parts += [[], [("needs".ljust(12), "dim"), str(report.requirements)]]
    parts += _reasons(report.rows)
    parts += [[("note: ", "bold"), text] for text in report.remarks]
    return parts + [warning_line(text) for text in dict.fromkeys(warnings(report))]


def _exactness(report: Report) -> str:
    """The kernel sets that the result reproduces, and how many operators are left to those of what runs it."""
    quantized = sum(row.outcome in ("kept", "kernel") for row in report.rows)
    verb = "operators compute" if quantized > 1 else "operator computes"
    return f"{report.exactness}" + (f"; {quantized} {verb} what runs the file" if quantized else "")


def warnings(report: Report) -> list[str]:
    """Warnings of the model, then of operators. Those that differ in nothing but names and numbers are one line."""
    of_rows = [row for row in report.rows if row.warning]
    of_model = report.warnings[: len(report.warnings) - len(of_rows)]
    texts = [
        texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more of this kind)"
        for texts in _alike(dict.fromkeys(of_model), str)
    ]
    return texts + [f"{_places(rows)}: {rows[0].advice}" for rows in _alike(of_rows, lambda row: row.advice)]


def _alike(items: Iterable[T], text: Callable[[T], str]) -> Iterable[list[T]]:
    """The items by kind of their texts."""
    kinds: dict[str, list[T]] = {}
    for item in items:
        kinds.setdefault(re.sub(_VARIABLE, "", text(item)), []).append(item)
    return kinds.values()


def _reasons(rows: Iterable[Row]) -> Blocks:
    """Why operators are not integer, one row for each kind."""
    kinds: dict[tuple[Outcome, str, str], list[Row]] = {}
    for row in rows:
        if row.outcome in ("float", "kept"):
            kinds.setdefault((row.outcome, row.name, row.reason), []).append(row)
    if not kinds:
        return []
    table: list[list[Cell]] = [
        [name, _numbers(alike), (path, COLOURS[path]), why] for (path, name, why), alike in sorted(kinds.items())
    ]
    return [[], Table(["operator", "number", "path", "why"], table)]


def _counted(name: str, counts: Counter[str]) -> list[Cell]:
    return [name, *(str(counts[key] or "-") for key in (*COUNTS, "ops"))]


def _kinds(rows: Sequence[Row]) -> str:
    """Names and how often: "CONV_2D x3, ADD"; custom operators first, then the most frequent."""
    counts = Counter((not row.custom_code, row.name) for row in rows)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
    listed = [f"{name} x{count}" if count > 1 else name for (_, name), count in ordered]
    return _and_more(listed, KINDS, "kind")


def _numbers(rows: Sequence[Row]) -> str:
    """The operators' numbers; outside the first subgraph, the subgraph's number comes first: "3, 7, 1:0"."""
    if len(rows) == 1 and rows[0].tensor:
        return f"{rows[0].number} '{rows[0].tensor}'"
    return _and_more([row.number for row in rows], NUMBERS, "")


def _places(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return rows[0].place
    return f"{len(rows)} operators ({_kinds(rows)}), the first of them {rows[0].place}"


def _and_more(texts: Sequence[str], most: int, what: str) -> str:
    rest = len(texts) - most
    if rest <= 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {rest} more{f' {what}s' if what else ''}"
