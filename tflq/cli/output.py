"""Input and output of the commands: standard streams, lines, tables, JSON, and progress on a terminal.

Colour and width are as rich finds them: the terminal's, or what NO_COLOR, FORCE_COLOR and COLUMNS say. A table wraps
its cells to fit; where nobody says a width, in a pipe, each row is one line, whole.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from tflq.base.arguments import nearest
from tflq.base.errors import FileError, OptionError, Reason, plain_numbers
from tflq.base.files import FilePath, check_link
from tflq.base.logs import DEBUG, INFO, WARNING, logger
from tflq.base.tables import Blocks, Cell, Table, columns, shown, style_of, warning_line

if TYPE_CHECKING:
    from logging import Handler

    from _typeshed import ReadableBuffer
    from rich.console import Console


# Standard input and output: `-` as a model, and what is printed, which is written whole, or an error says so.
#
# With PYTHONUNBUFFERED Python's own streams write once and drop the rest of what a pipe or a full disk does not take.


STREAM = "-"


class _Model(click.Path):
    """The path of a model that is there: the errors are those of the library."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = os.fspath(value)
        if self.allow_dash and is_stream(path):
            return value
        if os.path.isdir(path):
            from tflq.formats.flatbuffer.structure import folder_error

            raise folder_error(path)
        _check_there(path)
        return super().convert(value, param, ctx)


def _check_there(path: str) -> None:
    check_link(path)
    if not os.path.exists(path):
        raise FileError(path, "there is no such file", remedy=_nearest_file(path), errno=errno.ENOENT)


def _nearest_file(path: str) -> str:
    """The remedy if a file is missing."""
    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder or os.curdir)
    except OSError:
        return f"there is no folder {folder} either"
    return nearest(name, there) or "check the path"


class Place(click.Path):
    """The path of a file or a folder that is there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _check_there(os.fspath(value))
        return super().convert(value, param, ctx)


class PathPlace(Place):
    """A place, as a `pathlib.Path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from pathlib import Path

        return Path(super().convert(value, param, ctx))


MODEL = _Model(dir_okay=False, allow_dash=True)
"""The path of a model as text, in which `-` is standard input and `./-` a file of that name."""


class _File(_Model):
    """A model's file, as a `pathlib.Path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from pathlib import Path

        return Path(super().convert(value, param, ctx))


FILE = _File(dir_okay=False)
"""The path of a model; `-` is a file of that name."""


class _Document(PathPlace):
    """A file that is no model, as a `pathlib.Path`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if os.path.isdir(value):
            raise FileError(os.fspath(value), "this is a folder", remedy="name a file")
        return super().convert(value, param, ctx)


DOCUMENT = _Document(exists=True, dir_okay=False)
"""The path of a file that is no model, such as a recipe."""


class Undelivered(BaseException):
    """A standard stream does not take what is printed. `closed`: what reads it has ended, such as `head`; else `error`
    is for the user. Not an Exception, so that nothing between the printing and `main` handles it."""

    def __init__(self, stream: str, cause: OSError) -> None:
        super().__init__(stream, cause)
        self.closed = isinstance(cause, BrokenPipeError)
        self.error = FileError(stream, cause.strerror or str(cause), errno=cause.errno)


class _Whole(io.RawIOBase):
    """A standard stream whose writes loop until all is written. After an error it swallows what still comes."""

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name
        self._failed = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: ReadableBuffer, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while left and not self._failed:
            try:
                left = left[os.write(self._number, left) :]
            except BlockingIOError:
                select.select([], [self._number], [])
            except OSError as error:
                self._failed = True
                raise Undelivered(self._name, error) from error
        return size


def open_standard_streams() -> None:
    """Makes standard output and error write everything, or raise `Undelivered`; names of tensors that they cannot show
    are escaped. Terminals, and streams that are not files, stay as they are.

    The number of a closed stream is taken: otherwise the next file that is opened gets it, and what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = _whole(1, "standard output", sys.stdout)
    sys.stderr = _whole(2, "standard error", sys.stderr) if sys.stderr is not None else sys.stderr


def _whole(number: int, name: str, stream: Any) -> Any:
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(_Whole(number, name)), "utf-8", "backslashreplace")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="backslashreplace")
    if stream.isatty() or stream.fileno() != number:
        return stream
    stream.flush()
    buffer = io.BufferedWriter(_Whole(number, name))
    buffered = bool(stream.line_buffering)
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, None, buffered, stream.write_through)


class _Input(io.BytesIO):
    """The content of standard input."""

    name = "<stdin>"


def is_stream(path: FilePath) -> bool:
    return os.fspath(path) == STREAM


def stream_or_path(path: str, stream: int) -> str | int:
    """The number of the stream for `-`, as `tflq.base.files` takes it; any other path as it is."""
    return stream if is_stream(path) else path


def name_of(path: str) -> str:
    """The name of a source in messages."""
    return "standard input" if is_stream(path) else path


def source(path: str) -> str | _Input:
    """A source for the library: the path, or all of standard input."""
    if not is_stream(path):
        return path
    if sys.stdin.isatty():
        raise OptionError(Reason("standard input is a terminal", value=path, remedy="pipe a model in, or name a file"))
    from tflq.formats.sources import read_stream

    return _Input(read_stream(sys.stdin.buffer, _Input.name))


def check_output(*, text: bool) -> None:
    """OptionError if standard output is a terminal, unless the model is written as text."""
    if sys.stdout.isatty() and not text:
        raise OptionError(Reason("standard output is a terminal", value=STREAM, remedy="redirect it, or name a file"))


def write_output(pieces: Iterable[Any]) -> None:
    """Writes a model to standard output."""
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


# Lines, tables, sizes, JSON.


_TERMINAL_VARIABLES = ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE")
"""Variables that make rich print in colours or in a width even without a terminal."""


def print_json(document: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(plain_numbers(document), indent=2, allow_nan=False))


def line(*cells: Cell, err: bool = False) -> None:
    """One line of texts in a row; a terminal wraps it between words."""
    _print([cells], err=err)


def heading(text: str) -> None:
    line((text, "bold"))


def field(name: str, value: object, *, err: bool = False) -> None:
    """A line `name    value`."""
    _print(columns([[(name, "dim"), str(value)]], [11, None], gap=" ", most=width(err)), err=err)


def warnings(messages: Sequence[str], *, err: bool = False) -> None:
    """Each warning once; none with `-q`."""
    for message in () if quiet() else dict.fromkeys(messages):
        line(*warning_line(message), err=err)


def size(count: int) -> str:
    """Bytes as people read them."""
    amount, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def change(before: int, after: int) -> str:
    """Bytes before and after, and the ratio: "3.5 → 4.6 MiB (×1.3)"."""
    first, last = size(before), size(after)
    amount, unit = first.split()
    text = f"{amount if last.endswith(f' {unit}') else first} → {last}"
    return f"{text} ({times(after / before)})" if before else text


def times(ratio: float) -> str:
    """A ratio, to as many digits as say something: "×1.3", "×8", "×0.04", "×38"."""
    return f"×{ratio:.0f}" if ratio >= 100 else f"×{round(ratio, 1):g}" if ratio >= 0.1 else f"×{ratio:.2g}"


def blocks(parts: Blocks, *, err: bool = False) -> None:
    """Prints lines and tables."""
    for part in parts:
        _print(part.lines(width(err)) if isinstance(part, Table) else [part], err=err)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    right: Sequence[int] = (),
    total: bool = False,
    err: bool = False,
) -> None:
    """Prints columns as wide as they need to be, those of `right` aligned right; where that is too wide, the widest
    columns of text wrap. Nothing is cut off. `total`: the last row is bold."""
    _print(Table(head, rows, right, total).lines(width(err)), err=err)


def width(err: bool = False) -> int | None:
    """Columns to print in; None where nobody says how many."""
    stream = sys.stderr if err else sys.stdout
    return _console(err).width if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else None


def _is_plain(err: bool) -> bool:
    """Whether there is neither colour nor width to ask rich for."""
    stream = sys.stderr if err else sys.stdout
    return not stream.isatty() and not any(os.environ.get(name) for name in _TERMINAL_VARIABLES)


def _console(err: bool) -> Console:
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def _print(lines: Sequence[Sequence[Cell]], *, err: bool) -> None:
    if _is_plain(err):
        click.echo("\n".join("".join(map(shown, cells)) for cells in lines), err=err)
        return
    from rich.text import Text

    whole = Text("\n").join(Text.assemble(*((shown(c), style_of(c)) for c in cells)) for cells in lines)
    _console(err).print(whole, soft_wrap=width(err) is None)


# How much the commands say besides their result: `-v`, `-q`, and progress on a terminal.


_QUIET = "tflq.quiet"
_VERBOSE = "tflq.verbose"


def add_options(command: click.Command) -> click.Command:
    """Gives a command, or each command of a group, `-v` and `-q`."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_options(each)
    elif not any(parameter.name == "verbose" for parameter in command.params):
        command.params += [
            click.Option(
                ["-v", "--verbose"],
                count=True,
                expose_value=False,
                callback=_verbose,
                help="Report each stage and its time on stderr; -vv reports each pass, too.",
            ),
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_quiet,
                help="Print only the result of the command, and errors.",
            ),
        ]
    return command


def _quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_QUIET] = value


def _verbose(context: click.Context, _: click.Parameter, count: int) -> None:
    context.meta[_VERBOSE] = count
    if count:
        context.with_resource(spoken(count))


@contextmanager
def spoken(count: int) -> Iterator[None]:
    """Prints what the library logs, as far as `-v`, given `count` times, asks for it. Warnings are left out: the
    commands print these themselves."""
    if not count:
        yield
        return
    import logging

    handler = logging.StreamHandler()
    handler.setLevel(DEBUG if count > 1 else INFO)
    handler.setFormatter(logging.Formatter("tflq: %(message)s"))
    handler.addFilter(lambda record: record.levelno < WARNING)
    with _listening(handler):
        yield


@contextmanager
def _listening(handler: Handler) -> Iterator[None]:
    """Adds a handler to the library's logger for a while."""
    log = logger()
    before = log.level
    log.addHandler(handler)
    log.setLevel(DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def quiet() -> bool:
    """Whether the user wants no more than results and errors."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def verbosity() -> int:
    """Number of `-v` options."""
    context = click.get_current_context(silent=True)
    return 0 if context is None else int(context.meta.get(_VERBOSE, 0))


@contextmanager
def progress(what: str, *, silent: bool = False, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Shows what is going on, and for how long, where someone can see it: on a terminal, unless `silent`, `-q` or `-v`
    is asked for. With `total`, the number of things to do, there is a bar; without it the library's stages are shown.

    Yields show(what, done, total), which says what is done now and how far it is; "" and None leave that as it was.
    """
    if silent or verbosity() or quiet() or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    counted = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    columns = SpinnerColumn(), TextColumn("{task.description}"), *counted, TimeElapsedColumn()
    with ExitStack() as stack:
        display = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        task = display.add_task(escape(what), total=total)

        def show(now: str, done: int | None = None, total: int | None = None) -> None:
            display.update(task, description=escape(now) or None, completed=done, total=total)

        if total is None:
            import logging

            def begun(record: logging.LogRecord) -> bool:
                if stage := getattr(record, "begins", ""):
                    show(f"{what}: {stage}")
                return False

            handler = logging.Handler()
            handler.addFilter(begun)
            stack.enter_context(_listening(handler))
        yield show
