"""The errors a caller can catch. Every message says operator, tensor, place, reason and what can be done."""

from __future__ import annotations

__all__ = ["InvalidModelError", "ParseError", "TflqError", "UnsupportedError", "VerificationError"]


class TflqError(Exception):
    """Base of the family."""


class InvalidModelError(TflqError):
    """The bytes are not a valid model. `where` is the path into the file, `reason` what is wrong there."""

    def __init__(self, where: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{where}: {reason}" + (f" ({hint})" if hint else ""))
        self.where = where
        self.reason = reason
        self.hint = hint


class UnsupportedError(TflqError):
    """The model is valid but cannot be converted as asked. `reasons` holds one sentence per operator."""

    def __init__(self, message: str, reasons: list[str] | None = None) -> None:
        self.reasons = reasons or []
        super().__init__("\n  ".join([message, *self.reasons]))


class VerificationError(TflqError):
    """IR or results that must hold do not: an op illegal in its form, or two models that differ."""


class ParseError(TflqError):
    """The text form is not valid: `line` and `column` (from 1) are in the message, `excerpt` shows the place."""

    def __init__(self, file: str, line: int, column: int, reason: str, excerpt: str) -> None:
        self.line = line
        self.column = column
        self.reason = reason
        super().__init__(f"{file}:{line}:{column}: {reason}\n{excerpt}")
