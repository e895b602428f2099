"""`tflq sweep`: many models; `tflq sweep merge` and `tflq sweep diff` for what sweeps found."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output

if TYPE_CHECKING:
    from tflq.sweep import Summary

__all__ = ["command"]

DIFFERS = 5
INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}
CAUSES = 12

FOLDER = click.Path(file_okay=False, path_type=Path)


class SweepGroup(click.Group):
    """The commands of sweeps; what names none of them is sources for `run`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "run", self.commands["run"], args

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=SweepGroup)
def command() -> None:
    """Convert and verify many models, and see what changed: `tflq sweep SOURCE... -o DIR`.

    `tflq sweep run --help` lists the options. A folder named as a command is written `./merge`.
    """


@command.command("run")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("-o", "--output", "folder", metavar="DIR", type=FOLDER, required=True, help="Where results go.")
@click.option(
    "--target",
    "targets",
    metavar="NAME|PATH.toml",
    multiple=True,
    default=("integer",),
    show_default=True,
    help="integer, kernels, tosa, or a target's file; may be repeated.",
)
@click.option("--workers", type=click.IntRange(0), default=0, help="Processes at once; one per CPU by default.")
@click.option("--timeout", type=click.FloatRange(0.1), default=300.0, show_default=True, help="Seconds for one model.")
@click.option("--memory", type=click.IntRange(64), default=4096, show_default=True, help="MiB for one model.")
@click.option("--seeds", type=click.IntRange(0), default=2, show_default=True, help="Sets of random inputs.")
@click.option("--xnnpack/--no-xnnpack", default=True, show_default=True, help="Run the default kernels, too.")
@click.option("--resume", is_flag=True, help="Go on with a sweep that was interrupted.")
@click.option("--force", is_flag=True, help="Replace the results in DIR.")
@click.option("--only", metavar="PATTERN", multiple=True, help="Only models whose id matches or contains this.")
@click.option("--failed-from", metavar="DIR", type=FOLDER, help="Only what was not as expected in that sweep.")
@click.option("--shard", metavar="I/N", help="Only part I of N; `tflq sweep merge` puts them together.")
@click.option("--cache", metavar="DIR", type=FOLDER, help="For fetched models and verifications: ~/.cache/tflq.")
@click.option("--no-cache", is_flag=True, help="Verify everything anew, and keep nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run(
    sources: tuple[str, ...],
    folder: Path,
    targets: tuple[str, ...],
    *,
    workers: int,
    timeout: float,
    memory: int,
    seeds: int,
    xnnpack: bool,
    shard: str | None,
    cache: Path | None,
    no_cache: bool,
    as_json: bool,
    **selection: Any,
) -> None:
    """Convert the models of each SOURCE to each target, verify them against the originals, and write DIR.

    A SOURCE is a folder, a pattern, a model, a URL or a manifest (.toml). Each model has a process of its own, with
    limits. Exit code 5 if a status is not as expected.
    """
    from tflq.cli.sweep_progress import Display
    from tflq.sweep import Limits, Plan, Settings, StoppedError, cache_folder, sweep
    from tflq.sweep.selection import read_shard

    plan = Plan(
        sources,
        folder,
        targets,
        Settings(seeds, xnnpack),
        Limits(timeout, memory << 20),
        workers,
        None if no_cache else cache or cache_folder(),
        shard=read_shard(shard) if shard else None,
        **selection,
    )
    with _stopping() as received, Display(quiet=as_json) as display:
        try:
            summary = sweep(plan, observer=display, begin=display.begin, stop=lambda: bool(received))
        except StoppedError:
            summary = None
    if summary is None:
        click.echo(f"interrupted; `tflq sweep {' '.join(sources)} -o {folder} ... --resume` goes on", err=True)
        click.get_current_context().exit(INTERRUPTED[received[0]])
    if as_json:
        output.print_json({"format": "tflq.sweep-summary", "version": 1, "folder": str(folder), **summary.to_json()})
    else:
        print_summary(summary, folder)
    click.get_current_context().exit(DIFFERS if summary.unexpected else 0)


@contextmanager
def _stopping() -> Iterator[list[signal.Signals]]:
    """The signals that asked to stop; a second Ctrl-C stops at once."""
    received: list[signal.Signals] = []

    def hear(number: int, _: object) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signal.Signals(number))

    before = {number: signal.signal(number, hear) for number in INTERRUPTED}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_summary(summary: Summary, folder: Path) -> None:
    columns = summary.columns
    rows = [[target, *(str(counts[c] or "-") for c in columns)] for target, counts in summary.statuses.items()]
    output.table(["target", *columns], rows, right=range(1, len(columns) + 1))
    click.echo()
    shown = [cause for cause in summary.grouped if cause.unexpected][:CAUSES]
    for cause in shown:
        click.echo(f"{click.style(f'{cause.count} × ', fg='red')}{cause.text}")
        click.echo(f"    {', '.join(cause.first)}{' ...' if cause.count > len(cause.first) else ''}")
    if summary.passes:
        output.warnings([f"{summary.passes} passed that were not expected to: change what is expected of them"])
    output.field("results", folder / "results.jsonl")
    output.field("page", folder / "index.html")
    verdict = f"{summary.unexpected} of {summary.total} not as expected" if summary.unexpected else "all as expected"
    click.secho(verdict.upper(), fg="red" if summary.unexpected else "green", bold=True)
