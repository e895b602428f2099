"""The coverage table: what becomes of each operator on each signature, asked of the engine itself.

A small model of one operator stands for each row: it is written, read and converted as any other, and the row says what
came out (`outcome`). Every builtin has samples, or is `Unquantized` and says why: then it has one row of path "none". A
sample's name is the operator, the storage types, and after a colon what else tells it from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tflq.base.errors import TflqError
from tflq.conversion.convert import lower
from tflq.conversion.report import short_type
from tflq.dialects.declare import Slot as Port
from tflq.dialects.parameters import FixedScale, Parameters, SameScale
from tflq.dialects.tfl import builtin_of, op_name
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.movement import Table
from tflq.dialects.traits import SameElementType, Unquantized
from tflq.formats.options import Options
from tflq.formats.tflite.reader import read
from tflq.formats.tosa.check import Requirements
from tflq.ir.module import Module
from tflq.ir.ops import Op, dialect, op_class, op_names
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i4, i8, i16
from tflq.tools.coverage import CoverageRow
from tflq.tools.coverage import samples_of_layers as layers
from tflq.tools.coverage import samples_with_state as with_state
from tflq.tools.coverage.samples_of_layers import SCALE, STORED, Entry, Samples, Slot, model_of, per_layer


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a conversion of one operator's model. `needs`: the profiles and extensions of TOSA for its `module`.

    Paths:
        kept: The target's own kernel.
        integer: Plain integers, equal to the reference kernel bit for bit.
        table: Plain integers, equal to the reference kernel bit for bit, as a table of all values of an 8-bit operand.
        float: In float between casts, within one count of the real result.
        refused: Not converted; `reason` says why.
    """

    path: str
    reason: str = ""
    warning: str = ""
    needs: tuple[str, ...] = ()
    module: Module | None = None


def outcome(module: Module, op: Op, options: Options) -> Outcome:
    """The outcome of a conversion for an operator of a module."""
    try:
        lowered, report = lower(module, options)
    except TflqError as error:
        return Outcome("refused", refusal(error))
    row = next(row for row in report.rows if row.opcode == builtin_of(op.name))
    path = "table" if row.path == "integer" and any(map(_is_table, lowered.ops())) else row.path
    needed = report.requirements if isinstance(report.requirements, Requirements) else None
    needs = () if needed is None else (*needed.profiles, *needed.extensions)
    return Outcome(path, row.reason or row.note, row.warning, needs, lowered)


def _is_table(op: Op) -> bool:
    return isinstance(op, Table) or (isinstance(op, Gather) and op.input.is_constant)


def refusal(error: TflqError) -> str:
    """An error's reasons without the places, which the rows name."""
    return "; ".join(dict.fromkeys(part for reason in error.reasons for part in (reason.what, reason.remedy) if part))


def coverage(options: Options | None = None, operator: str = "") -> Iterator[CoverageRow]:
    """A row per operator and signature, in the order of names, of the operators whose name contains `operator`, in a
    conversion with these options."""
    for name in operators():
        if operator.lower() not in name:
            continue
        if name in unquantized():
            reason = f"no quantized signature: {unquantized()[name]}"
            yield CoverageRow(name.upper(), (), (), "", "none", reason, "", (), name)
        for key, model in samples_of(name):
            yield converted(key, model, options or Options())[0]


def converted(key: str, model: bytes, options: Options) -> tuple[CoverageRow, Module | None]:
    """The row of a sample, and what it was converted to, if it was."""
    name, detail = key.partition(" ")[0], key.partition(": ")[2]
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    try:
        module = read(model)
    except TflqError as error:
        result = Outcome("refused", refusal(error))
    else:
        op = next(op for op in module.ops() if op.name == op_name(name))
        operands = tuple("none" if v is None else short_type(v) for v in op.operands)
        results = tuple(short_type(v) for v in op.results)
        result = outcome(module, op, options)
    fields = result.path, result.reason, result.warning, result.needs
    return CoverageRow(name.upper(), operands, results, detail, *fields, key), result.module


# The signatures an entry comes in: element types of its quantized tensors, by the operator's declaration.
#
# storage     int8, uint8, int16 and int4, for all of them; if results may have another type than the operands (no
#             `SameElementType` says otherwise of quantized ones), int8 → int16 and int16 → int8, too; if operands may
#             differ, int8 with int16
# scales      all equal; all different; if the kernel fixes the result's (`FixedScale`), those and others
# per axis    one operand, or the result, has a scale for each index of its last dim; if integers are moved
#             (`SameScale`), both
# hybrid      float operands with a quantized constant


_MIXED = ((i8, i16), (i16, i8))


@dataclass(frozen=True)
class _Shape:
    """Where an entry's quantized tensors are, and what the schema says of them."""

    operands: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]
    mixed: bool
    unlike: bool
    hybrid: bool
    moved: bool
    fixed: Parameters

    @classmethod
    def of(cls, name: str, entry: Entry) -> _Shape:
        declared = op_class(op_name(name))
        assert declared is not None
        operands = list(_ports(declared.operand_slots, entry.operands))
        results = list(_ports(declared.result_slots, entry.results))
        one_type, same_scale = declared.trait(SameElementType), declared.trait(SameScale)
        fixed = declared.trait(FixedScale)
        alike = frozenset(one_type.slots if one_type else ())
        real = one_type is not None and one_type.unless_quantized
        return cls(
            _quantized(entry.operands),
            _quantized(entry.results),
            mixed=entry.mixed
            and bool(operands and results)
            and (real or not alike.issuperset({operands[0], results[0]})),
            unlike=len(operands) > 1 and real,
            hybrid=len(operands) > 1 and not alike.issuperset(operands),
            moved=frozenset(same_scale.slots if same_scale else ()).issuperset({*operands, *results}),
            fixed=fixed.parameters if fixed else {},
        )


def _quantized(slots: tuple[Slot, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(slot for slot in slots if isinstance(slot, tuple))


def _ports(declared: Sequence[Port], slots: Sequence[Slot]) -> Iterator[Port]:
    """The declared operands or results of the quantized tensors; the last one takes the rest."""
    for i, slot in enumerate(slots):
        if isinstance(slot, tuple):
            yield declared[min(i, len(declared) - 1)]


def plain_samples(name: str, entry: Entry) -> Samples:
    """Each signature's sample: its name, and the file."""
    shape = _Shape.of(name, entry)
    for storage in STORED:
        yield from _scales(name, entry, shape, storage)
    yield f"{name} i4: {_EQUAL}", _model(name, entry, shape, i4, i4)
    if shape.mixed:
        for source, target in _MIXED:
            yield f"{name} {source} → {target}: {_EQUAL}", _model(name, entry, shape, source, target)
    if shape.unlike:
        yield f"{name} i8 × i16 → i8: {_EQUAL}", _unlike(name, entry, shape)
    yield from _per_axis(name, entry, shape)
    yield from _hybrid(name, entry, shape)
    for words, options in entry.others.items():
        variant = replace(entry, options={**entry.options, **options})
        yield f"{name} i8: {_EQUAL}, {words}", _model(name, variant, shape, i8, i8)


_EQUAL = "equal scales"


def _scales(name: str, entry: Entry, shape: _Shape, storage: ScalarType) -> Samples:
    count = len(shape.operands) + len(shape.results)
    if shape.fixed:
        yield f"{name} {storage}: the result's scale is the kernel's", _model(name, entry, shape, storage, storage)
        elements = [per_layer(storage)] * len(shape.operands), [per_layer(storage, SCALE * 1.5)] * len(shape.results)
        yield f"{name} {storage}: the result has another scale than the kernel's", model_of(name, entry, *elements)
        return
    yield f"{name} {storage}: {_EQUAL if count > 1 else ''}", _model(name, entry, shape, storage, storage)
    if count > 1:
        operands = [per_layer(storage, SCALE / (i + 1)) for i in range(len(shape.operands))]
        results = [per_layer(storage, SCALE * (1.5 + i)) for i in range(len(shape.results))]
        yield f"{name} {storage}: other scales", model_of(name, entry, operands, results)


def _model(name: str, entry: Entry, shape: _Shape, source: ScalarType, target: ScalarType) -> bytes:
    operands = [per_layer(source)] * len(shape.operands)
    return model_of(name, entry, operands, [_result(shape, target)] * len(shape.results))


def _unlike(name: str, entry: Entry, shape: _Shape) -> bytes:
    operands = [per_layer(i8)] * (len(shape.operands) - 1)
    return model_of(name, entry, [*operands, per_layer(i16)], [_result(shape, i8)] * len(shape.results))


def _result(shape: _Shape, storage: ScalarType) -> ElementType:
    fixed = shape.fixed.get(storage.name)
    return per_layer(storage) if fixed is None else UniformQuantizedType.of(storage, *fixed)


def _axis(dims: tuple[int, ...]) -> ElementType:
    return UniformQuantizedPerAxisType.of(i8, len(dims) - 1, SCALE / (np.arange(dims[-1]) + 1), 0)


def _per_axis(name: str, entry: Entry, shape: _Shape) -> Samples:
    operands: list[ElementType] = [per_layer(i8)] * len(shape.operands)
    results: list[ElementType] = [_result(shape, i8)] * len(shape.results)
    for i, dims in enumerate(shape.operands):
        if dims:
            mixed = [*operands[:i], _axis(dims), *operands[i + 1 :]]
            yield f"{name} i8 per axis, operand {i}: ", model_of(name, entry, mixed, results)
    if not shape.results or not all(shape.results):
        return
    axes = [_axis(dims) for dims in shape.results]
    if not shape.fixed:
        yield f"{name} i8 per axis, result: ", model_of(name, entry, operands, axes)
    if shape.moved and all(shape.operands):
        yield f"{name} i8 per axis, all: ", model_of(name, entry, [_axis(d) for d in shape.operands], axes)


def _hybrid(name: str, entry: Entry, shape: _Shape) -> Samples:
    if not shape.hybrid:
        return
    places = [i for i, slot in enumerate(entry.operands) if isinstance(slot, tuple)]
    operands: list[ElementType] = [*[f32] * (len(places) - 1), per_layer(i8)]
    yield f"{name} f32 × i8: constant i8", model_of(name, entry, operands, [f32] * len(shape.results), places[-1:])


_ENTRIES: Mapping[str, Entry] = {**layers.ENTRIES, **with_state.ENTRIES}
_SAMPLES = {**layers.SAMPLES, **with_state.SAMPLES}


def operators() -> list[str]:
    """All builtins, in the order of the table."""
    return sorted(name.removeprefix("tfl.") for name in op_names("tfl"))


@cache
def unquantized() -> Mapping[str, str]:
    """Operators without a quantized signature, and why."""
    declared = dialect("tfl")
    assert declared is not None
    traits = ((c.op_name.removeprefix("tfl."), c.trait(Unquantized)) for c in declared.classes())
    return {name: trait.reason for name, trait in traits if trait is not None}


def samples() -> Samples:
    """Each sample's name and file."""
    for name in operators():
        yield from samples_of(name)


def samples_of(name: str) -> Samples:
    """An operator's samples."""
    if name in _ENTRIES:
        yield from plain_samples(name, _ENTRIES[name])
    if name in _SAMPLES:
        yield from _SAMPLES[name]()
