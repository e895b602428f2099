"""`tflq`: the group of commands, and how errors become messages and exit codes.

Commands are imported when they are used, so that `tflq --version` imports neither numpy nor the compiler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

import click

import tflq
from tflq.errors import InvalidModelError, ParseError, TflqError, UnsupportedError, VerificationError

__all__ = ["group", "main"]

USAGE, INVALID, UNSUPPORTED, BUG = 2, 3, 4, 70
INTERRUPTED = 130

COMMANDS: Final = {
    "convert": "tflq.cli.convert",
    "inspect": "tflq.cli.inspect",
    "ops": "tflq.cli.ops",
    "verify": "tflq.cli.verify",
    "sweep": "tflq.cli.sweep",
    "opt": "tflq.cli.opt",
}


class LazyGroup(click.Group):
    """A group whose commands are each in a module of their own, as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(tflq.__version__, message="tflq %(version)s")
def group() -> None:
    """Lower quantized TensorFlow Lite models to plain integer operators, bit for bit.

    \b
    Exit codes: 0 done, 2 wrong usage, 3 invalid model, 4 not supported,
    5 results differ, 70 a bug of tflq's own.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; its exit code. Errors of the library become one message on standard error."""
    try:
        return int(group.main(args=arguments, prog_name="tflq", standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe, `head` say, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (InvalidModelError, ParseError) as error:
        return _fail(_message(error), INVALID)
    except UnsupportedError as error:
        return _fail(_message(error), UNSUPPORTED)
    except VerificationError as error:  # a pass left invalid IR behind
        return _bug(error)
    except TflqError as error:
        return _fail(_message(error), USAGE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}", USAGE)
    except Exception as error:  # noqa: BLE001 - whatever is left is a bug, and says so
        return _bug(error)


def _message(error: TflqError) -> str:
    return "\n  ".join([str(error), *getattr(error, "__notes__", ())])


def _fail(message: str, code: int) -> int:
    click.echo(click.style("tflq: ", fg="red", bold=True) + message, err=True)
    return code


def _bug(error: Exception) -> int:
    """One message, and the traceback in a file to report the bug with."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="tflq-bug-", suffix=".txt", delete=False) as file:
        file.write(f"tflq {tflq.__version__}, Python {sys.version}, {sys.platform}\n{sys.argv}\n\n")
        traceback.print_exception(error, file=file)
    return _fail(
        f"internal error: {type(error).__name__}: {error}\n"
        f"This is a bug of tflq's own. Please report it with the model and the file {file.name}.",
        BUG,
    )
