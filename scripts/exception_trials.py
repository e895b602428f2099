"""The results of a case by the interpreter, by converted models and by the parameters, and how far apart they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from exception_cases.case import Arrays, Case
from support.coverage_inputs import inputs_of
from support.harness import interpret
from support.real_twin import float_twin, quantized, real_values
from support.stablehlo_real import REAL

import tflq
from tflq.conversion.report import Row, short_type
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedType

__all__ = ["Trial", "measure", "misread_types", "settled_words"]

_MOST_TYPES = 6
_DISTANCE = re.compile(
    r"(, |: )(up to \d+ count\(s\) from the real value|[\d.]+% of all pairs of values are told apart wrongly)"
)
_NAMED = re.compile(r"'\w+'")


@dataclass(frozen=True, slots=True)
class Trial:
    """A line of the page: the exception, what the model is, the report's warning, and how far apart the results are:
    the interpreter's from the real ones, the converted model's from the interpreter's, and those under semantics "real"
    from the real ones."""

    exception: str
    operator: str
    types: str
    warning: str
    kernel: str
    converted: str
    real: str


def measure(case: Case) -> Trial:
    """Converts a case's model, runs all, and compares."""
    module = tflq.read(case.model)
    op = next(op for op in module.ops() if op.name == f"tfl.{case.of.lower()}")
    batches = case.inputs or inputs_of(module, case.of.lower())
    conversion = tflq.convert(case.model, **case.options)
    row = _row(conversion.report.rows, case.of)
    real = _real(case, module, batches)
    kernel = None if case.chance else _run(case.model, batches, case.resets)
    outputs = module.main.outputs
    return Trial(
        row.exception,
        case.of,
        _types(op, case.when),
        settled_words(row.warning),
        "left to chance" if case.chance else _apart(outputs, kernel, real),
        "left to chance" if case.chance else _apart(outputs, _run(conversion.data, batches, case.resets), kernel),
        _under_real(case, batches, outputs, real),
    )


def misread_types(name: str, model: bytes) -> tuple[str, str] | None:
    """The types of a model that a conversion warns of as broken, and the warning, for any tensor. None if the
    interpreter does not run it, or is right."""
    module, conversion = tflq.read(model), tflq.convert(model)
    batches, op = inputs_of(module, name), next(op for op in module.ops() if op.name == f"tfl.{name}")
    given, made = (
        ", ".join("none" if v is None else short_type(v) for v in side) for side in (op.operands, op.results)
    )
    got, wanted = _run(model, batches), _run(conversion.data, batches)
    far = _apart(module.main.outputs, got, wanted)
    alike = [a.dtype == b.dtype for a, b in zip((got or [[]])[0], (wanted or [[]])[0], strict=False)]
    row = _row(conversion.report.rows, name.upper())
    if got is None or (far in ("0", "1 count") and all(alike)):
        return None
    short = given if len(op.operands) <= _MOST_TYPES else given.partition(", none")[0] + ", ..."
    return f"{short} → {made}", _NAMED.sub("'...'", row.warning)


def settled_words(warning: str) -> str:
    """A warning without the distance that it states, which is the model's own."""
    return _DISTANCE.sub("", warning)


def _row(rows: Sequence[Row], operator: str) -> Row:
    found = [row for row in rows if row.opcode == operator]
    return next((row for row in found if row.warning), found[0])


def _run(model: bytes, batches: Arrays, resets: Sequence[int] = ()) -> Arrays | None:
    """By the reference kernels, or by others where these lack the operator; None if neither runs."""
    for resolver in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        try:
            return interpret(model, batches, resolver, resets=resets)
        except RuntimeError as error:
            if "Didn't find op" not in str(error):
                return None
    return None


def _real(case: Case, module: Module, batches: Arrays) -> Arrays | None:
    """Results of real values, quantized."""
    inputs, outputs = module.main.inputs, module.main.outputs
    floats = [[real_values(v, array) for v, array in zip(inputs, batch, strict=True)] for batch in batches]
    op, found = module.main.ops[0], None
    function = REAL.get(op.name.removeprefix("tfl.stablehlo_")) if op.name.startswith("tfl.stablehlo_") else None
    with np.errstate(all="ignore"):
        if case.real is not None:
            found = [[case.real(*arrays)] for arrays in floats]
        elif function is not None:
            given = [dict(zip(inputs, arrays, strict=True)) for arrays in floats]
            found = [[function(_operands(op, arrays), op.attributes)] for arrays in given]
        else:
            found = _run(float_twin(case.model), floats, case.resets)
    if found is None:
        return None
    return [
        [quantized(v, a) if v.type.quantized else a for v, a in zip(outputs, arrays, strict=True)] for arrays in found
    ]


def _operands(op: Op, given: dict[Value, np.ndarray]) -> list[np.ndarray]:
    return [real_values(v, v.array) if v.is_constant else given[v] for v in op.operands if v is not None]


def _under_real(case: Case, batches: Arrays, outputs: Sequence[Value], real: Arrays | None) -> str:
    try:
        conversion = tflq.convert(case.model, **{**case.options, "semantics": "real"})
    except tflq.UnsupportedError:
        return "refused"
    path = _row(conversion.report.rows, case.of).path
    form = {"integer": "in integers", "float": "in float", "kept": "kept"}[path]
    return f"{_apart(outputs, _run(conversion.data, batches), real)}, {form}"


def _apart(outputs: Sequence[Value], got: Arrays | None, wanted: Arrays | None) -> str:
    """How far results are apart: in counts, as a share of unequal ones, or as a number, by type."""
    if got is None:
        return "does not run"
    if wanted is None:
        return "not known"
    found: dict[str, float] = {}
    with np.errstate(all="ignore"):
        for unit, far in _distances(outputs, got, wanted):
            found[unit] = max(found.get(unit, 0.0), far)
    return ", ".join(_words(unit, far) for unit, far in found.items() if far) or "0"


def _distances(outputs: Sequence[Value], got: Arrays, wanted: Arrays) -> Iterator[tuple[str, float]]:
    for number, value in enumerate(outputs):
        pairs = [(g[number], w[number]) for g, w in zip(got, wanted, strict=True)]
        if any(g.shape != w.shape for g, w in pairs):
            yield "shape", 1.0
            continue
        given, want = (np.concatenate([np.ravel(a) for a in side]) for side in zip(*pairs, strict=True))
        if value.type.quantized:
            yield "count", float(np.abs(given.astype(np.int64) - want.astype(np.int64)).max(initial=0))
        elif value.type.storage.is_float:
            yield "number", 0.0 if np.allclose(given, want, 1e-4, 1e-5, equal_nan=True) else _largest(given - want)
        else:
            yield "share", float((given != want).mean()) if given.size else 0.0


def _largest(differences: np.ndarray) -> float:
    return float(np.nan_to_num(np.abs(differences), nan=np.inf).max(initial=0))


def _words(unit: str, far: float) -> str:
    if unit == "count":
        return f"{far:.0f} count{'s'[: far != 1]}"
    if unit == "share":
        return f"{far:.1%} of the results"
    return "another shape" if unit == "shape" else f"by {far:.3g}"


def _types(op: Op, when: str) -> str:
    values = [*op.operands, *op.results]
    if len(values) > _MOST_TYPES:
        given, made = f"{_type(op.operands[0])}, ...", ", ".join(map(_type, op.results))
    else:
        given, made = (", ".join(map(_type, side)) for side in (op.operands, op.results))
    text = f"{given} → {made}" if made else given
    return f"{text}; {when}" if when else text


def _type(value: Value | None) -> str:
    """Such as `qi8 0.0625:3 [2,3]`: type, scale and zero point, shape."""
    if value is None:
        return "none"
    element, shape = value.type.element, value.type.shape
    parameters = f" {element.scale:.4g}:{element.zero_point}" if isinstance(element, UniformQuantizedType) else ""
    dims = "?" if shape is None else ",".join("?" if d is None else str(d) for d in shape)
    return f"{short_type(value)}{parameters} [{dims}]"
