"""What an error becomes: a message or a JSON document, and an exit code."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import click

import tflq
from tflq.arguments import nearest
from tflq.cli import output
from tflq.errors import InvalidModelError, Reason, TflqError, UnsupportedError, VerificationError
from tflq.light import dataclass

__all__ = ["BUG", "DIFFERS", "INVALID", "UNSUPPORTED", "USAGE", "Failure", "Stopped"]

USAGE, INVALID, UNSUPPORTED, DIFFERS, BUG = 2, 3, 4, 5, 70
JSON_VERSION: Final = 3
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
            return cls._of("Interrupted", 130, Reason("interrupted"))
        if isinstance(error, Stopped):
            return cls._of("Stopped", 128 + error.signal, Reason(f"told to stop, by signal {error.signal}"))
        if isinstance(error, click.ClickException):
            return cls._of("OptionError", error.exit_code, _usage(error))
        if isinstance(error, TflqError):
            code = next((code for kind, code in _CODES if isinstance(error, kind)), USAGE)
            message = "\n  ".join([str(error), *getattr(error, "__notes__", ())])
            kind = "InternalError" if code == BUG else type(error).__name__
            found = cls(
                kind, code, message, tuple(_with_remedy(kind, reason, error.remedy) for reason in error.reasons)
            )
            return found if code != BUG else found._reported(error)
        if isinstance(error, OSError):
            return cls._of("FileError", USAGE, Reason(error.strerror or str(error), str(error.filename or "")))
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return cls._of("InternalError", BUG, Reason(what))._reported(error)

    @classmethod
    def _of(cls, kind: str, code: int, reason: Reason) -> Failure:
        return cls(kind, code, str(reason), (_with_remedy(kind, reason),))

    def _reported(self, error: BaseException) -> Failure:
        """A bug: the message says what to report it with."""
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile("w", prefix="tflq-bug-", suffix=".txt", delete=False) as file:
            file.write(f"tflq {tflq.__version__}, Python {sys.version}, {sys.platform}\n{sys.argv}\n\n")
            traceback.print_exception(error, file=file)
        message = (
            f"internal error: {self.message}\n"
            f"This is a bug of tflq's own. Please report it with the model and the file {file.name}."
        )
        remedy = f"report it with the model and the file {file.name}"
        return Failure(self.kind, BUG, message, tuple({**reason, "remedy": remedy} for reason in self.reasons))

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


_REMEDIES: Final = {
    "FileError": "check the path, its permissions, and the space on the disk",
    "Interrupted": "start it again: no file was left half-written",
    "InvalidModelError": "write the model again, or tell whoever made it",
    "OptionError": "see tflq COMMAND --help-all",
    "ParseError": "mend the text at that place",
    "Stopped": "start it again: no file was left half-written",
    "UnsupportedError": "convert the part before it (--cut), or write a rule for it (--rules)",
}
"""What can be done where an error itself does not say it."""


def _with_remedy(kind: str, reason: Reason, general: str = "") -> dict[str, Any]:
    """A reason in the form of JSON, always with a remedy: its own, the error's, or that of its class."""
    found = reason.to_json()
    return found if found["remedy"] else {**found, "remedy": general or _REMEDIES.get(kind, "see the message")}


def _usage(error: click.ClickException) -> Reason:
    """What click has against a command line, in the words of our errors."""
    context = getattr(error, "ctx", None)
    remedy = f"see {context.command_path if context else 'tflq'} --help"
    if isinstance(error, click.NoSuchOption):
        known = [name for p in context.command.params for name in p.opts] if context else error.possibilities or []
        remedy = nearest(error.option_name, known) or remedy
        return Reason(f"there is no option {error.option_name}", value=error.option_name, remedy=remedy)
    text = error.format_message().rstrip(".")
    chosen = re.search(r"'([^']*)' is not one of (.*)", text)
    if chosen:
        remedy = nearest(chosen[1], re.findall("'([^']*)'", chosen[2])) or remedy
    return Reason(text[:1].lower() + text[1:] if not text.startswith("IN ") else text, remedy=remedy)
