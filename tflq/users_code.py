"""Faults of Python that a user gives, told as such: file, line and what was raised there, not as a bug of tflq."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tflq.errors import OptionError, Reason
from tflq.light import replace

if TYPE_CHECKING:
    from tflq.ir.core import Op

__all__ = ["fault_of_file", "fault_of_rule", "name_of"]

_MEND = "mend the file"


def fault_of_file(error: BaseException, path: str) -> OptionError:
    """The error for what importing a file raised."""
    if isinstance(error, SyntaxError) and error.filename == path:
        text = f": {error.text.strip()}" if error.text else ""
        return OptionError(Reason(f"{error.msg}{text}", path, place=str(error.lineno or 1), remedy=_MEND))
    return OptionError(_raised(error, path, "importing the file"))


def fault_of_rule(error: Exception, rule: Callable[..., Any], op: Op) -> OptionError:
    """The error for what a rule raised for an operator."""
    code = getattr(rule, "__code__", None)
    path, line = ("", 1) if code is None else (code.co_filename, code.co_firstlineno)
    reason = _raised(error, path, f"the rule '{name_of(rule)}' for {op.location or op.name}", line)
    if (at := op.location) is not None:
        reason = replace(reason, subgraph=at.function, operator=at.operator, opcode=at.opcode, tensor=at.tensor)
    return OptionError(reason)


def name_of(rule: Callable[..., Any]) -> str:
    """What messages call a rule."""
    return getattr(rule, "__qualname__", "") or repr(rule)


def _raised(error: BaseException, path: str, who: str, line: int = 1) -> Reason:
    """The reason, at the innermost line of the file that the error went through, or else at `line`."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path and f.lineno]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    missing = error.name if isinstance(error, ImportError) else None
    remedy = f"install '{missing}' where tflq runs, or leave the import out" if missing else _MEND
    return Reason(f"{who} raises {said}", path, place=str(lines[-1] if lines else line), remedy=remedy)
