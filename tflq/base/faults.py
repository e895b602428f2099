"""Faults in Python code of a user, reported with file, line and what was raised there, not as a bug of tflq."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tflq.base.errors import OptionError, Reason, VerificationError

if TYPE_CHECKING:
    from tflq.base.errors import Location

_MEND = "mend the file"


def fault_of_file(error: BaseException, path: str) -> OptionError:
    """The error for what importing a file raised."""
    if isinstance(error, SyntaxError) and error.filename in (path, os.path.abspath(path)):
        text = f": {error.text.strip()}" if error.text else ""
        return OptionError(Reason(f"{error.msg}{text}", path, place=str(error.lineno or 1), remedy=_MEND))
    return OptionError(_raised(error, path, 1, "importing the file"))


def fault_of_rule(error: Exception, rule: Callable[..., Any], at: Location | None, name: str) -> OptionError:
    """The error for an exception of a rule or for invalid IR from it. It names the operator's location or, without
    one, the operator."""
    reason = _raised(error, *_place(rule), f"the rule '{name_of(rule)}' for {at or name}")
    if at is not None:
        what = reason.what.replace(f": {at}: ", ": ", 1)  # the verifier says it as well
        place = at.function, at.operator, at.opcode, at.tensor
        reason = Reason(what, reason.path, *place, place=reason.place, remedy=reason.remedy)
    return OptionError(reason)


def fault_of_pass(error: BaseException, name: str, run: Callable[..., Any]) -> OptionError:
    """The error for what a pass raised, or for the invalid IR that it left."""
    return OptionError(_raised(error, *_place(run), f"the pass '{name}'"))


def fault_of_metric(error: BaseException, metric: Callable[..., Any]) -> OptionError:
    """The error for what a metric raised."""
    return OptionError(_raised(error, *_place(metric), f"the metric '{name_of(metric)}'"))


def no_number_of_metric(result: object, metric: Callable[..., Any]) -> OptionError:
    """The error for what a metric returned in place of a number."""
    path, line = _place(metric)
    what = f"the metric '{name_of(metric)}' returns {reprlib.repr(result)}, not a number"
    return OptionError(Reason(what, path, place=str(line), remedy=_MEND))


def name_of(rule: Callable[..., Any]) -> str:
    """The name of a rule in messages."""
    return getattr(rule, "__qualname__", "") or repr(rule)


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    """The file and the line of a function, if it is written in Python."""
    code = getattr(function, "__code__", None)
    return ("", 1) if code is None else (code.co_filename, code.co_firstlineno)


def _raised(error: BaseException, path: str, line: int, who: str) -> Reason:
    """The reason, at the innermost line of the file that the error went through, or else at `line`."""
    from traceback import extract_tb

    files, frames = (path, os.path.abspath(path)), extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename in files and frame.lineno]
    if isinstance(error, VerificationError):
        did = f"makes invalid IR: {str(error).splitlines()[0]}"
    else:
        did = f"raises {type(error).__name__}" + (f": {error}" if str(error) else "")
    missing = error.name if isinstance(error, ImportError) else None
    remedy = f"install '{missing}' where tflq runs, or leave the import out" if missing else _MEND
    return Reason(f"{who} {did}", path, place=str(lines[-1] if lines else line), remedy=remedy)
