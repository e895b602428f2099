"""`tflq`: the group of commands, and how errors become messages and exit codes.

Commands are imported when they are used, so that `tflq --version` imports neither numpy nor the compiler.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, Final, NoReturn

import click

import tflq
from tflq.arguments import choices
from tflq.cli import talk
from tflq.cli.failures import USAGE, Failure, Stopped
from tflq.cli.help import GROUPS, with_examples
from tflq.cli.streams import Undelivered, open_standard_streams
from tflq.collector import RARELY
from tflq.errors import OptionError, Reason

__all__ = ["COMMANDS", "group", "main"]

COMMANDS: Final = {
    "convert": "tflq.cli.convert",
    "inspect": "tflq.cli.inspect",
    "ops": "tflq.cli.ops",
    "verify": "tflq.cli.verify",
    "reduce": "tflq.cli.reduce",
    "bisect": "tflq.cli.bisect",
    "sweep": "tflq.cli.sweep",
    "opt": "tflq.cli.opt",
}

CLOSED: Final = 141
"""The exit code where what reads standard output ends early, as that of a process that SIGPIPE ends."""


class _SystemError(Exception):
    """An error of the system, under a name that click does not know: it ends the process at a closed pipe, silently."""


class LazyGroup(click.Group):
    """A group whose commands are each in a module of their own, as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return with_examples(talk.add_options(import_module(COMMANDS[cmd_name]).command), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            what, remedy = f"there is no command '{args[0]}'", choices(args[0], COMMANDS)
            raise OptionError(Reason(what, value=args[0], remedy=remedy))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for head, commands in GROUPS.items():
            with formatter.section(head):
                formatter.write_dl(list(commands.items()))

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        if os.environ.get("NO_COLOR"):
            extra["color"] = False
        return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            raise _SystemError(error) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(tflq.__version__, message="tflq %(version)s")
def group() -> None:
    """Lower quantized TensorFlow Lite models to plain integer operators, bit for bit.

    \b
    Exit codes: 0 done, 2 wrong usage, 3 invalid model, 4 not supported,
    5 results differ, 70 a bug of tflq's own, 128 + n ended by signal n,
    141 what reads the output ended early.

    `tflq COMMAND --help` ends with examples. Completion in the shell: docs/cli.md.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits. A signal to stop is an exception, so that no half-written file stays."""
    gc.set_threshold(RARELY, *gc.get_threshold()[1:])
    stop_by_exception()
    open_standard_streams()
    code = run(arguments)
    gc.freeze()  # what is left ends with the process, and need not be searched for garbage
    sys.exit(code)


def stop_by_exception() -> None:
    """Has the signals that tell a process to stop raise `Stopped` in it."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _stop)


def _stop(number: int, _: FrameType | None) -> None:
    raise Stopped(number)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; its exit code. An error becomes one message on standard error, or, with `--json`, a
    document on standard output."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _run(given)
        sys.stdout.flush()
    except Undelivered as stop:
        if stop.closed:
            return CLOSED
        with suppress(Undelivered):
            Failure.of(stop.error).show()
        return USAGE
    return code


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        return int(group.main(args=arguments, prog_name="tflq", standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except _SystemError as error:
        return Failure.of(error.args[0]).show(as_json=as_json)
    except (Exception, KeyboardInterrupt, Stopped) as error:  # noqa: BLE001 - what is left is a bug, and says so
        return Failure.of(error).show(as_json=as_json)
