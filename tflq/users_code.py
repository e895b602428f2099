"""Faults of Python that a user gives, told as such: file, line and what was raised there, not as a bug of tflq."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tflq.errors import OptionError, Reason, VerificationError
from tflq.light import replace

if TYPE_CHECKING:
    from tflq.contract import Pass
    from tflq.ir.core import Op

__all__ = ["fault_of_file", "fault_of_pass", "fault_of_rule", "is_users", "name_of"]

_MEND = "mend the file"


def fault_of_file(error: BaseException, path: str) -> OptionError:
    """The error for what importing a file raised."""
    if isinstance(error, SyntaxError) and error.filename == path:
        text = f": {error.text.strip()}" if error.text else ""
        return OptionError(Reason(f"{error.msg}{text}", path, place=str(error.lineno or 1), remedy=_MEND))
    return OptionError(_raised(error, path, 1, "importing the file"))


def fault_of_rule(error: Exception, rule: Callable[..., Any], op: Op) -> OptionError:
    """The error for what a rule raised for an operator, or for the invalid IR that it made."""
    reason = _raised(error, *_place(rule), f"the rule '{name_of(rule)}' for {op.location or op.name}")
    if (at := op.location) is not None:
        what = reason.what.replace(f": {at}: ", ": ", 1)  # the verifier says it as well
        reason = replace(
            reason, what=what, subgraph=at.function, operator=at.operator, opcode=at.opcode, tensor=at.tensor
        )
    return OptionError(reason)


def fault_of_pass(error: BaseException, item: Pass) -> OptionError:
    """The error for what a pass raised, or for the invalid IR that it left."""
    return OptionError(_raised(error, *_place(type(item).run), f"the pass '{item.name}'"))


def is_users(item: Pass) -> bool:
    """Whether a pass is none of tflq's own."""
    return type(item).__module__.partition(".")[0] != "tflq"


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    """The file and the line of a function, if it is one of Python."""
    code = getattr(function, "__code__", None)
    return ("", 1) if code is None else (code.co_filename, code.co_firstlineno)


def name_of(rule: Callable[..., Any]) -> str:
    """What messages call a rule."""
    return getattr(rule, "__qualname__", "") or repr(rule)


def _raised(error: BaseException, path: str, line: int, who: str) -> Reason:
    """The reason, at the innermost line of the file that the error went through, or else at `line`."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path and f.lineno]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    did = (
        f"makes invalid IR: {str(error).splitlines()[0]}" if isinstance(error, VerificationError) else f"raises {said}"
    )
    missing = error.name if isinstance(error, ImportError) else None
    remedy = f"install '{missing}' where tflq runs, or leave the import out" if missing else _MEND
    return Reason(f"{who} {did}", path, place=str(lines[-1] if lines else line), remedy=remedy)
