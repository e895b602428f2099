"""What an error becomes: a message or a JSON document, and an exit code."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

import tflq
from tflq.cli import output
from tflq.errors import InvalidModelError, Reason, TflqError, UnsupportedError, VerificationError
from tflq.light import dataclass

__all__ = ["BUG", "DIFFERS", "INVALID", "UNSUPPORTED", "USAGE", "Failure", "Stopped"]

USAGE, INVALID, UNSUPPORTED, DIFFERS, BUG = 2, 3, 4, 5, 70
JSON_VERSION: Final = 2
_CODES: Final = ((InvalidModelError, INVALID), (UnsupportedError, UNSUPPORTED), (VerificationError, BUG))


class Stopped(BaseException):
    """The process was told to end, by a signal."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


@dataclass(frozen=True)
class Failure:
    """An error's class, its exit code and its message; the `reasons` in the form of JSON. Can be pickled, whatever the
    error holds."""

    kind: str
    code: int
    message: str
    reasons: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What an error becomes. What is none of the library's or the system's is a bug; its traceback goes to a
        file."""
        if isinstance(error, (click.Abort, KeyboardInterrupt)):
            return cls._plain("Interrupted", 130, "interrupted")
        if isinstance(error, Stopped):
            return cls._plain("Stopped", 128 + error.signal, "told to stop")
        if isinstance(error, click.ClickException):
            return cls._plain(type(error).__name__, error.exit_code, error.format_message())
        if isinstance(error, TflqError):
            code = next((code for kind, code in _CODES if isinstance(error, kind)), USAGE)
            message = "\n  ".join([str(error), *getattr(error, "__notes__", ())])
            found = cls(type(error).__name__, code, message, tuple(reason.to_json() for reason in error.reasons))
            return found if code != BUG else found._reported(error)
        if isinstance(error, OSError):
            what = error.strerror or str(error)
            reason = Reason(what, str(error.filename or ""))
            return cls("FileError", USAGE, str(reason), (reason.to_json(),))
        return cls._plain(type(error).__name__, BUG, str(error))._reported(error)

    @classmethod
    def _plain(cls, kind: str, code: int, message: str) -> Failure:
        return cls(kind, code, message, (Reason(message).to_json(),))

    def _reported(self, error: BaseException) -> Failure:
        """A bug: the message says what to report it with."""
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile("w", prefix="tflq-bug-", suffix=".txt", delete=False) as file:
            file.write(f"tflq {tflq.__version__}, Python {sys.version}, {sys.platform}\n{sys.argv}\n\n")
            traceback.print_exception(error, file=file)
        message = (
            f"internal error: {self.kind}: {self.message}\n"
            f"This is a bug of tflq's own. Please report it with the model and the file {file.name}."
        )
        return Failure(self.kind, BUG, message, self.reasons)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": "tflq.error",
            "version": JSON_VERSION,
            "error": self.kind,
            "exit_code": self.code,
            "message": self.message,
            "reasons": list(self.reasons),
        }

    def show(self, *, as_json: bool = False) -> int:
        """Prints it, to stderr or as JSON to stdout; the exit code."""
        if as_json:
            output.print_json(self.to_json())
        else:
            output.line(("tflq: ", "bold red"), self.message, err=True)
        return self.code
