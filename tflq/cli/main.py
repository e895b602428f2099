"""`tflq`: the group of commands, and how errors become messages and exit codes.

Commands are imported when they are used, so that `tflq --version` imports neither numpy nor the compiler.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, ClassVar, Final, NoReturn

import click

from tflq.base.arguments import choices, nearest
from tflq.base.collector import RARELY
from tflq.base.errors import InvalidModelError, OptionError, Reason, TflqError, UnsupportedError, VerificationError
from tflq.base.version import __version__
from tflq.cli import output
from tflq.cli.output import Undelivered, open_standard_streams

# What `--help` says in addition to click: groups of commands, sections of options, examples. `docs/cli.md` has the same
# (`scripts/make_docs.py`), and a test runs every example.


GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Convert": {"convert": "Lower a model, or many, and write the result."},
    "Quantize": {
        "quantize": "Make a float network one of quantized operators.",
        "calibrate": "Run a model on samples, and keep the ranges of its values.",
        "debug": "Find the operators of a quantized network that are far from the float ones.",
    },
    "Look": {
        "inspect": "Show what a model holds, and what a conversion would do.",
        "ops": "Show what becomes of each operator, on each signature.",
    },
    "Check": {
        "verify": "Run two models and compare them.",
        "reduce": "Find the smallest part of a model whose conversion fails.",
        "bisect": "Find the pass of a conversion that first changed a result.",
        "sweep": "Convert and verify many models, and see what changed.",
    },
    "Work on the text form": {"opt": "Print a model as text, and run passes on it."},
}
"""The commands by what they are for, each in a line."""
EXAMPLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "convert": (
        ("plain integers", "tflq convert model.tflite integer.tflite"),
        ("keep the kernels that the interpreter gets right", "tflq convert model.tflite fast.tflite --target kernels"),
        ("TOSA", "tflq convert model.tflite model.tosa"),
        ("through pipes", "cat model.tflite | tflq convert - - --format mlir > model.mlir"),
        ("refuse what has no integer form", "tflq convert model.tflite strict.tflite --fallback error"),
        ("many models, in four processes", "tflq convert models/*.tflite -o converted --workers 4"),
    ),
    "quantize": (
        ("8 bits, calibrated with samples", "tflq quantize float.tflite quantized.tflite --calibration samples.npz"),
        ("only the weights", "tflq quantize float.tflite small.tflite --scheme weight-only"),
    ),
    "calibrate": (
        ("the ranges of all tensors", "tflq calibrate float.tflite samples.npz -o statistics.json"),
        (
            "in two processes, without histograms",
            "tflq calibrate float.tflite samples.npz -o s.json --workers 2 --no-histogram",
        ),
        ("several runs as one", "tflq calibrate merge first.json second.json -o statistics.json"),
    ),
    "debug": (
        ("which operators are far from the float ones?", "tflq debug float.tflite int8.tflite samples.npz"),
        ("as a page", "tflq debug float.tflite int8.tflite samples.npz --html page.html"),
    ),
    "inspect": (
        ("inputs, outputs, operators, and how far it is quantized", "tflq inspect model.tflite"),
        ("what a conversion does with each operator, and why", "tflq inspect model.tflite --why"),
        ("the same for a target, for programs", "tflq inspect model.tflite --why --target kernels --json"),
        ("as text, large constants left out", "tflq inspect model.tflite --ir | head -40"),
    ),
    "ops": (
        ("what converts, and how", "tflq ops"),
        ("one operator, for TOSA", "tflq ops --operator conv_2d --target tosa"),
        ("for a device of your own", "tflq ops --target npu.toml"),
    ),
    "verify": (
        ("are they equal?", "tflq verify model.tflite integer.tflite"),
        ("where do they begin to differ?", "tflq verify model.tflite integer.tflite --layers"),
    ),
    "reduce": (("does its conversion fail, and where?", "tflq reduce model.tflite --target kernels"),),
    "bisect": (
        ("which pass changed a result?", "tflq bisect model.tflite"),
        ("the same for TOSA, for programs", "tflq bisect model.tflite --target tosa --json"),
    ),
    "sweep": (
        ("a folder of models, for two targets", "tflq sweep models -o after --target integer --target kernels"),
        ("with options of `tflq convert`", "tflq sweep models -o floats --mac float32 --fallback error"),
        ("go on with one that was interrupted", "tflq sweep models -o after --resume"),
    ),
    "opt": (
        ("the whole model as text", "tflq opt model.tflite > model.mlir"),
        ("some passes", "tflq opt model.mlir -p lower-quant-ops,canonicalize"),
        ("a conversion up to the integer form", "tflq opt model.tflite -p infer-shapes,legalize,canonicalize,dce"),
    ),
}
"""Per command: what for, and the line. They run in a folder with model.tflite, integer.tflite, models/, npu.toml,
float.tflite, int8.tflite, samples.npz and two files of statistics."""

COMPLETION: Final = {
    "bash, in ~/.bashrc": 'eval "$(_TFLQ_COMPLETE=bash_source tflq)"',
    "zsh, in ~/.zshrc": 'eval "$(_TFLQ_COMPLETE=zsh_source tflq)"',
    "fish, in ~/.config/fish/completions/tflq.fish": "_TFLQ_COMPLETE=fish_source tflq | source",
}


_ALL: Final = "tflq.help_all"


class SectionedCommand(click.Command):
    """A command whose options are listed in sections, by the names of their parameters; the others come last.

    most_used: those that `--help` shows; `--help-all` and docs/cli.md have all. Empty: `--help` shows all."""

    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    most_used: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if self.most_used:
            shown = "Show all options and exit."
            flag = click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_help_all, help=shown
            )
            self.params.append(flag)

    def by_section(self, context: click.Context) -> Iterator[tuple[str, list[click.Parameter]]]:
        """The heads of the sections, and their options."""
        options = {p.name: p for p in self.get_params(context) if isinstance(p, click.Option) and not p.hidden}
        for head, names in self.sections.items():
            yield head, [options.pop(name) for name in names]
        yield "Options", list(options.values())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = list(self.by_section(ctx))
        if self.most_used and not ctx.meta.get(_ALL):
            by_name = {option.name: option for _, options in sections for option in options}
            sections = [("Options most used", [by_name[name] for name in (*self.most_used, "help_all")])]
        for head, options in sections:
            with formatter.section(head):
                formatter.write_dl([record for o in options if (record := o.get_help_record(ctx)) is not None])


class GroupOfRun(click.Group):
    """A group one of whose commands is `run`, which any other first word is for: `tflq sweep SOURCE`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "run", self.commands["run"], args

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            if (meant := nearest(args[0], self.commands)) and not os.path.exists(args[0]):
                what = f"'{args[0]}' is neither a command of {ctx.info_name} nor a file or folder"
                raise OptionError(Reason(what, value=args[0], remedy=meant))
            args = ["run", *args]
        return super().parse_args(ctx, args)


def _help_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def with_examples(command: click.Command, name: str) -> click.Command:
    """Gives a command its examples."""
    lines = [f"# {what}\n{line}" for what, line in EXAMPLES[name]]
    command.epilog = "\b\nExamples:\n" + "\n".join(lines).replace("\n", "\n  ").join(["  ", ""])
    return command


# What an error becomes: a message or a JSON document, and an exit code.


USAGE, INVALID, UNSUPPORTED, DIFFERS, INCOMPARABLE, BUG = 2, 3, 4, 5, 6, 70
JSON_VERSION: Final = 3
_CODES: Final = ((InvalidModelError, INVALID), (UnsupportedError, UNSUPPORTED), (VerificationError, BUG))


class Stopped(BaseException):
    """The process was told to end, by a signal."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class Failure:
    """An error's class, its exit code and its message; the `reasons` in the form of JSON. Can be pickled, whatever the
    error holds."""

    def __init__(self, kind: str, code: int, message: str, reasons: tuple[dict[str, Any], ...]) -> None:
        self.kind: Final = kind
        self.code: Final = code
        self.message: Final = message
        self.reasons: Final = reasons

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure of an error. An error that is neither the library's nor the system's is a bug.

        The traceback of a bug goes to a file.
        """
        if isinstance(error, (click.Abort, KeyboardInterrupt)):
            return cls.because("Interrupted", 130, Reason("interrupted"))
        if isinstance(error, Stopped):
            return cls.because("Stopped", 128 + error.signal, Reason(f"told to stop, by signal {error.signal}"))
        if isinstance(error, click.ClickException):
            return cls.because("OptionError", error.exit_code, _usage(error))
        if isinstance(error, TflqError):
            code = next((code for kind, code in _CODES if isinstance(error, kind)), USAGE)
            message = "\n  ".join([str(error), *getattr(error, "__notes__", ())])
            kind = "InternalError" if code == BUG else type(error).__name__
            reasons = tuple(_with_remedy(kind, reason, error.remedy) for reason in error.reasons)
            failure = cls(kind, code, message, reasons)
            return failure if code != BUG else failure._reported(error)
        if isinstance(error, OSError):
            return cls.because("FileError", USAGE, Reason(error.strerror or str(error), str(error.filename or "")))
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return cls.because("InternalError", BUG, Reason(what))._reported(error)

    @classmethod
    def because(cls, kind: str, code: int, reason: Reason) -> Failure:
        return cls(kind, code, str(reason), (_with_remedy(kind, reason),))

    def _reported(self, error: BaseException) -> Failure:
        """A bug: the message says what to report it with."""
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="backslashreplace", prefix="tflq-bug-", suffix=".txt", delete=False
        ) as file:
            file.write(f"tflq {__version__}, Python {sys.version}, {sys.platform}\n{sys.argv}\n\n")
            traceback.print_exception(error, file=file)
        remedy = f"report it with the model and the file {file.name}"
        message = f"internal error: {self.message}\nThis is a bug of tflq's own. Please {remedy}."
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
"""Remedies for errors that do not have their own."""


def _with_remedy(kind: str, reason: Reason, general: str = "") -> dict[str, Any]:
    """A reason in the form of JSON, always with a remedy: its own, the error's, or that of its class."""
    document = reason.to_json()
    return document if document["remedy"] else {**document, "remedy": general or _REMEDIES.get(kind, "see the message")}


def _usage(error: click.ClickException) -> Reason:
    """Click's message on a wrong command line, in the form of our errors."""
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


COMMANDS: Final = tuple(name for commands in GROUPS.values() for name in commands)
_BESIDE: Final = {
    "calibrate": "quantize",
    "debug": "quantize",
    "ops": "inspect",
    "opt": "inspect",
    "reduce": "verify",
    "bisect": "verify",
}
"""The module of `tflq.cli` that a command is in, if it has none of its own name."""

CLOSED: Final = 141
"""The exit code if the reader of standard output ends early: that of a process ended by SIGPIPE."""


class _SystemError(Exception):
    """An error of the system, hidden from click, which would end the process silently at a closed pipe."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        home = import_module(f"tflq.cli.{_BESIDE.get(cmd_name, cmd_name)}")
        return with_examples(output.add_options(getattr(home, cmd_name)), cmd_name)

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


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    help="""Lower quantized TensorFlow Lite models to plain integer operators, bit for bit.

    \b
    Exit codes: 0 done, 2 wrong usage, 3 invalid model, 4 not supported,
    5 results differ, 6 nothing comparable, 70 a bug of tflq's own,
    128 + n ended by signal n, 141 what reads the output ended early.

    `tflq COMMAND --help` ends with examples. Completion in the shell: docs/cli.md.
    """,
)
@click.version_option(__version__, message="tflq %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """The commands of tflq."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), color=context.color)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits. A signal to stop is an exception, so that no half-written file stays."""
    gc.set_threshold(RARELY, *gc.get_threshold()[1:])
    stop_by_exception()
    open_standard_streams()
    code = run(arguments)
    gc.freeze()  # what is left ends with the process, and need not be searched for garbage
    sys.exit(code)


def stop_by_exception() -> None:
    """Makes the signals that tell a process to stop raise `Stopped` in it."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _stop)


def _stop(number: int, _: FrameType | None) -> None:
    raise Stopped(number)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; its exit code. An error becomes one message on standard error, or, with `--json`, a
    document on standard output."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _run(words)
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
