"""One draw's verdict: what the interpreter makes of the original, and of what it was converted to."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from support.harness import _run

import tflq
from matrix.run import _difference
from matrix.run_tosa import differs_from, on_reference_model, open_shapes
from matrix.unreasonable.sources import Subject
from tflq.conversion.convert import Conversion
from tflq.ir.ops import family, op_names
from tflq.legalize.caveats import EXCEPTIONS

FAILURES = ("differs", "refused", "raised", "does not run", "died", "no answer")
"""Kinds that are failures; "needless" is one of which few are allowed. Others:

equal       bit for bit
told        likewise, and the report says what of it is not what the parameters say
announced   other than the interpreter, and the report has a warning
both        the interpreter and the conversion refuse it
ours alone  the interpreter refuses the original or dies of it; the conversion runs
not in TOSA refused for TOSA alone
"""
_OTHER = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
_NO_KERNEL = ("Didn't find op", "unresolved", "Encountered unresolved")

_STATEFUL = frozenset(("tfl.assign_variable", *(n for n in op_names("tfl") if family(n) == "recurrent")))
"""On the reference model each run is the first one."""

Outputs = list[list[np.ndarray]]


@dataclass(frozen=True)
class Verdict:
    """What came of one target: `kind` (`FAILURES`), and what shows it."""

    target: str
    kind: str
    detail: str = ""


def judged(
    subject: Subject, targets: tuple[str, ...], say: Callable[[str], None], dead: bool = False
) -> Iterator[Verdict]:
    """The verdicts, one per target. `say` is told of each step before it, as the interpreter may take the process down;
    `dead`: the original did."""
    wanted, why = _original(subject, say, dead)
    for target in targets:
        say(target)
        yield _judged(subject, target, wanted, why)


def runs(subject: Subject) -> bool:
    """Whether the interpreter runs the original, if it survives it."""
    return _interpreted(subject.model, subject.batches)[0] is not None


def _original(subject: Subject, say: Callable[[str], None], dead: bool) -> tuple[Outputs | None, str]:
    if dead:
        return None, "the interpreter dies of the original"
    say("original")
    return _interpreted(subject.model, subject.batches)


def _interpreted(model: bytes, batches: Outputs) -> tuple[Outputs | None, str]:
    """Outputs, or why there are none. Operators without a reference kernel run on the optimized ones."""
    try:
        return _run(model, batches, "BUILTIN_REF"), ""
    except (RuntimeError, ValueError) as error:
        if not any(words in str(error) for words in _NO_KERNEL):
            return None, str(error)
    try:
        return _run(model, batches, _OTHER), ""
    except (RuntimeError, ValueError) as error:
        return None, str(error)


def _judged(subject: Subject, target: str, wanted: Outputs | None, why: str) -> Verdict:
    tosa = target == "tosa"
    try:
        conversion = _converted(subject, target)
    except tflq.UnsupportedError as error:
        kind = "both" if wanted is None else "not in TOSA" if tosa else "refused"
        return Verdict(target, kind, f"{error} [{why}]" if why else str(error))
    except tflq.TflqError as error:
        return Verdict(target, "both" if wanted is None else "refused", f"{error} [{why}]" if why else str(error))
    except Exception as error:  # noqa: BLE001 what it is for
        return Verdict(target, "raised", _place(error))
    warnings = "; ".join(conversion.report.warnings)
    got, problem = _on_tosa(subject, conversion, wanted) if tosa else _interpreted(conversion.data, subject.batches)
    if got is None:
        packed = tosa and any(v.type.storage.bits < 8 for v in tflq.read(subject.model).main.inputs)
        kind = "both" if wanted is None else "not in TOSA" if packed else "does not run"
        return Verdict(target, kind, f"{problem} [{why}]")
    if wanted is None:
        return Verdict(target, "ours alone", why)
    if tosa and any(op.name in _STATEFUL for op in tflq.read(subject.model).ops()):
        wanted = [_run(subject.model, [arrays], "BUILTIN_REF")[0] for arrays in subject.batches]
    float_path = bool(conversion.report.counts["float"])
    difference = differs_from(wanted, got, int(float_path)) if tosa else _difference(wanted, got, 0)
    if difference:
        return Verdict(target, "announced" if warnings else "differs", f"{difference} [{warnings}]")
    if not warnings:
        return Verdict(target, "equal")
    try:
        return Verdict(target, "needless" if _needless(subject, conversion, target, got) else "told", warnings)
    except Exception as error:  # noqa: BLE001 what it is for
        return Verdict(target, "raised", f"real semantics: {_place(error)}")


def _place(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} at {place.filename.rpartition('/')[2]}:{place.lineno}"


def _converted(subject: Subject, target: str, **more: str) -> Conversion:
    if target == "tosa":
        main = tflq.read(subject.model).main
        shapes = open_shapes(main.inputs, subject.batches[0])
        conversion = tflq.convert(subject.model, format="tosa", shapes=shapes, **more)  # type: ignore[arg-type]
    else:
        conversion = tflq.convert(subject.model, target=target, **more)  # type: ignore[arg-type]
    assert conversion.data
    return conversion


def _on_tosa(subject: Subject, conversion: Conversion, wanted: Outputs | None) -> tuple[Outputs | None, str]:
    if wanted is None:
        return [], ""  # the results' types are the originals'
    narrow = [[np.asarray(a, np.int32 if a.dtype == np.int64 else a.dtype) for a in b] for b in subject.batches]
    try:
        problem, results = on_reference_model(conversion, narrow, wanted)
    except ValueError as error:  # inputs that its Python interface does not take
        return None, str(error)
    return (None, problem) if problem else (results, "")


def _needless(subject: Subject, conversion: Conversion, target: str, got: Outputs) -> bool:
    """Whether nothing of what the warnings say shows: they announce a difference and there is none, or say that the
    kernel's result is not what the parameters say, and it is."""
    rows = [row for row in conversion.report.rows if row.warning]
    if any(row.exception and not EXCEPTIONS[row.exception].reproduced for row in rows):
        return True
    if target == "tosa":
        return False
    try:
        real, _ = _interpreted(_converted(subject, target, semantics="real").data, subject.batches)
    except tflq.TflqError:
        return False
    return real is not None and not _difference(got, real, 0)
