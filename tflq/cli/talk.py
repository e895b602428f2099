"""How much the commands say beside their result: `-v`, `-q`, and progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tflq.logs import DEBUG, INFO

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["add_options", "progress", "quiet", "spoken", "verbosity"]

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


def quiet() -> bool:
    """Whether the user wants no more than results and errors."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def verbosity() -> int:
    """How often `-v` was given."""
    context = click.get_current_context(silent=True)
    return 0 if context is None else int(context.meta.get(_VERBOSE, 0))


@contextmanager
def spoken(count: int) -> Iterator[None]:
    """Has the library's logger say what `-v`, given so often, asks for."""
    if not count:
        yield
        return
    from tflq.cli.listening import lines

    detach = lines(DEBUG if count > 1 else INFO)
    try:
        yield
    finally:
        detach()


def _quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_QUIET] = value


def _verbose(context: click.Context, _: click.Parameter, count: int) -> None:
    context.meta[_VERBOSE] = count
    if count:
        context.with_resource(spoken(count))


@contextmanager
def progress(what: str, *, silent: bool = False, total: int | None = None) -> Iterator[Progress | None]:
    """Shows what is going on, and for how long, where someone can see it: on a terminal, unless `silent`, `-q` or `-v`
    is asked for. `total`: how many things there are to do, for a bar; the display's first task counts them."""
    if silent or verbosity() or quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from tflq.cli.listening import stages

    counted = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    columns = SpinnerColumn(), TextColumn("{task.description}"), *counted, TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(escape(what), total=total)
        detach = stages(display, task, escape(what)) if total is None else None
        try:
            yield display
        finally:
            if detach is not None:
                detach()
