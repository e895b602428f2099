"""`tflq sweep`: many models; `tflq sweep merge`, `diff` and `page` for what sweeps found."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import click

from tflq.cli import output
from tflq.cli.main import DIFFERS, GroupOfRun, SectionedCommand
from tflq.cli.options import (
    FORMS,
    OF_ONE_MODEL,
    PARTS,
    conversion_options,
    json_option,
    seeds_option,
    target_option,
    timeout_option,
    tolerance_options,
)

if TYPE_CHECKING:
    from tflq.tools.sweep.baseline import Change
    from tflq.tools.sweep.sweeping import Outcome
    from tflq.tools.sweep.task import Key


SIGNALS = signal.SIGINT, signal.SIGTERM
CAUSES = 12

OF_MANY = tuple(name for name in PARTS if name not in OF_ONE_MODEL)
PLACE = output.PathPlace(exists=True)
FOLDER = click.Path(file_okay=False, path_type=Path)
SWEPT = output.PathPlace(exists=True, file_okay=False)


@click.group(
    cls=GroupOfRun,
    help="""Convert and verify many models, and see what changed: `tflq sweep SOURCE... -o DIR`.

    `tflq sweep run --help` lists the options. A folder named as a command is written `./merge`.
    """,
)
def sweep() -> None:
    """The commands of sweeps."""


class _Run(SectionedCommand):
    sections: ClassVar = {
        "What models are converted to": ("targets", *FORMS),
        "Which part of each model, and which shapes": OF_MANY,
        "How results are compared with the originals": ("seeds", "xnnpack", "time", "max_lsb", "atol", "rtol"),
        "Which of the models": ("only", "failed_from", "shard"),
        "Where models run": ("workers", "scheduler", "timeout", "memory"),
        "What is kept, and fetched": ("folder", "resume", "force", "cache", "no_cache", "offline", "pin"),
        "What changed since another sweep": ("baseline", "fail_on"),
    }


@sweep.command(
    "run",
    cls=_Run,
    help="""Convert the models of each SOURCE to each target, verify them against the originals, and write DIR.

    A SOURCE is a folder, a pattern, a model, a URL or a manifest (.toml). Each model has a process of its own, with
    limits. Exit code 5 if a status is not as expected; with a baseline, if something got worse.
    """,
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("-o", "--output", "folder", metavar="DIR", type=FOLDER, required=True, help="Where results go.")
@target_option(
    "integer, kernels, portable, tflm, tosa, or a target's file; may be repeated.",
    name="targets",
    metavar="NAME|PATH.toml",
    multiple=True,
    default=("integer",),
    show_default=True,
)
@conversion_options(*FORMS, *OF_MANY)
@click.option("--workers", type=click.IntRange(0), default=0, help="Processes at once; one per CPU by default.")
@click.option("--scheduler", metavar="ADDRESS", default="", help="Run on a Dask cluster: tcp://HOST:PORT.")
@timeout_option(300.0, "Seconds for one model.", least=0.1)
@click.option("--memory", type=click.IntRange(64), default=4096, show_default=True, help="MiB for one model.")
@seeds_option(2)
@click.option("--xnnpack/--no-xnnpack", default=True, show_default=True, help="Run the default kernels, too.")
@click.option("--time", is_flag=True, help="Measure what a run takes before and after: seconds more for each model.")
@tolerance_options(0, 0)
@click.option("--resume", is_flag=True, help="Go on with a sweep that was interrupted: rewrites its DIR.")
@click.option("--force", is_flag=True, help="Replace the results in DIR.")
@click.option("--only", metavar="PATTERN", multiple=True, help="Only models whose id matches or contains this.")
@click.option("--failed-from", metavar="DIR", type=SWEPT, help="Only what was not as expected in that sweep.")
@click.option("--shard", metavar="I/N", help="Only part I of N; `tflq sweep merge` puts them together.")
@click.option(
    "--cache",
    metavar="DIR",
    type=FOLDER,
    help="For fetched models and verifications, by default ~/.cache/tflq; rewrites files there. Nobody else may write "
    "there.",
)
@click.option("--offline", is_flag=True, help="Fetch nothing: models of URLs and of Kaggle come from caches.")
@click.option("--pin", is_flag=True, help="Write the SHA-256 of what was fetched into the manifests: rewrites these.")
@click.option("--no-cache", is_flag=True, help="Verify everything anew, and keep nothing.")
@click.option("--baseline", metavar="DIR|FILE", type=PLACE, help="Compare with an earlier sweep, or its baseline.json.")
@click.option(
    "--fail-on",
    metavar="KIND,...",
    callback=lambda _, __, text: _kinds(text),
    help="More changes that exit with 5: slower, larger, new, gone, renamed, content, cause ...",
)
@json_option()
def run(sources: tuple[str, ...], folder: Path, *, as_json: bool, **options: Any) -> None:
    from tflq.tools.sweep.driver import StoppedError
    from tflq.tools.sweep.sweeping import run_sweep

    with _stopping() as received, Display(quiet=as_json or output.quiet()) as display:
        try:
            outcome = run_sweep(sources, folder, observer=display, stop=lambda: bool(received), **options)
        except StoppedError:
            outcome = None
    if outcome is None:
        click.echo(f"tflq: interrupted; the same command with --resume goes on with {folder}", err=True)
        click.get_current_context().exit(128 + received[0])
    if as_json:
        output.print_json(_document(outcome, folder))
    else:
        print_outcome(outcome, folder)
    click.get_current_context().exit(DIFFERS if outcome.failed else 0)


@sweep.command(
    "merge", help="Put the sweeps of several parts (--shard) into one. Exit code 5 also if something is missing."
)
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=SWEPT)
@click.option("-o", "--output", "into", metavar="DIR", type=FOLDER, required=True, help="Where all of them go.")
@click.option("--force", is_flag=True, help="Replace the results in DIR.")
def merge_command(folders: tuple[Path, ...], into: Path, *, force: bool) -> None:
    from tflq.tools.sweep.baseline import merge
    from tflq.tools.sweep.page import write_outputs
    from tflq.tools.sweep.sweeping import Outcome

    merge(folders, into, force=force)
    outcome = Outcome(write_outputs(into))
    print_outcome(outcome, into)
    click.get_current_context().exit(DIFFERS if outcome.failed else 0)


@sweep.command(
    "diff",
    help="""Show what changed from sweep A to sweep B, each a folder or a baseline.json. Exit code 5 if something got
    worse.

    Times are not compared: only a sweep with --baseline runs again what seems slower.
    """,
)
@click.argument("a", metavar="A", type=PLACE)
@click.argument("b", metavar="B", type=PLACE)
@click.option("--fail-on", metavar="KIND,...", callback=lambda _, __, text: _kinds(text), help="As for a sweep.")
@json_option("Print the changes as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the changes as Markdown.")
def diff_command(a: Path, b: Path, *, fail_on: tuple[str, ...], as_json: bool, as_markdown: bool) -> None:
    from tflq.tools.sweep.baseline import changes_document, compare, failing, options_of, read_entries
    from tflq.tools.sweep.store import other_options

    changes = compare(read_entries(a), read_entries(b))
    fail_on = (*fail_on, "gone")  # both are whole: a model that is left out is no longer tested
    options = other_options(options_of(a), options_of(b))
    if as_json:
        output.print_json(changes_document(changes) | {"options": options})
    elif as_markdown:
        from tflq.tools.sweep.page import markdown_changes

        click.echo("\n".join(markdown_changes(changes)))
    else:
        if options:
            output.field("options", ", ".join(options))
        print_changes(changes, fail_on)
    click.get_current_context().exit(DIFFERS if failing(changes, fail_on) else 0)


@sweep.command(
    "page",
    help="""Write the page of the sweep in DIR again, with EARLIER sweeps next to it: folders, or baseline.json files.

    It rewrites DIR/index.html. What changed since the first of them is listed.
    """,
)
@click.argument("folder", metavar="DIR", type=SWEPT)
@click.argument("earlier", metavar="[EARLIER]...", nargs=-1, type=PLACE)
def page_command(folder: Path, earlier: tuple[Path, ...]) -> None:
    from tflq.tools.sweep import page
    from tflq.tools.sweep.baseline import compare, read_entries
    from tflq.tools.sweep.page import summary_of
    from tflq.tools.sweep.store import place_in, read_results

    path = place_in(folder, "index.html")
    changes = compare(read_entries(earlier[0]), read_entries(folder)) if earlier else None
    page.write(read_results(folder), path, earlier, changes, summary_of(folder))
    output.field("page", str(path))


for _one in sweep.commands.values():
    output.add_options(_one)


def _kinds(text: str | None) -> tuple[str, ...]:
    from tflq.tools.sweep.baseline import KINDS

    kinds = tuple(filter(None, (text or "").split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"'{kind}' is not one of {', '.join(KINDS)}")
    return kinds


def _document(outcome: Outcome, folder: Path) -> dict[str, Any]:
    from tflq.tools.sweep.baseline import changes_document

    head = {"format": "tflq.sweep-summary", "version": 1, "folder": str(folder), "failed": outcome.failed}
    changes = None if outcome.changes is None else changes_document(outcome.changes)["changes"]
    return {**head, **outcome.summary.to_json(), "changes": changes, "pinned": outcome.pinned}


@contextmanager
def _stopping() -> Iterator[list[signal.Signals]]:
    """The signals that asked to stop; a second Ctrl-C stops at once."""
    received: list[signal.Signals] = []

    def hear(number: int, _: object) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signal.Signals(number))

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_outcome(outcome: Outcome, folder: Path) -> None:
    summary = outcome.summary
    columns = summary.columns
    rows = [[target, *(str(counts[c] or "-") for c in columns)] for target, counts in summary.statuses.items()]
    output.table(["target", *columns], rows, right=range(1, len(columns) + 1))
    output.line("")
    for cause in [cause for cause in summary.grouped if cause.unexpected][:CAUSES]:
        output.line((f"{cause.count} × ", "red"), cause.text)
        output.line(f"    {cause.named(summary.prefix)}")
    if summary.missing:
        output.line((f"{len(summary.missing)} missing: ", "red"), summary.named_missing)
    for text in summary.incomplete:
        output.line(f"    {text}")
    if summary.passes:
        output.warnings([f"{summary.passes} ok that were not expected to be: change what is expected of them"])
    if outcome.changes is not None:
        print_changes(outcome.changes, outcome.fail_on, summary.prefix)
    for manifest, ids in (outcome.pinned or {}).items():
        output.field("pinned", f"{len(ids)} {'model' if len(ids) == 1 else 'models'} in {manifest}")
    output.field("results", str(folder / "results.jsonl"))
    output.field("page", str(folder / "index.html"))
    if outcome.changes is not None:
        verdict = "worse than the baseline" if outcome.failed else "no worse than the baseline"
    else:
        verdict = summary.verdict
    output.line((verdict.upper(), "bold red" if outcome.failed else "bold green"))


def print_changes(changes: Sequence[Change], fail_on: Sequence[str] = (), prefix: str = "") -> None:
    from tflq.tools.sweep.baseline import failing

    worse = {id(change) for change in failing(changes, fail_on)}
    for change in changes:
        colour = "red" if id(change) in worse else "yellow"
        output.line((f"{change.kind:<15} ", colour), f"{change.place(prefix)}: {change.what}")
        if change.layer:
            output.line(f"{'':<16}first: {change.layer}")
    if not changes:
        output.line("no change")


# What runs now, how far the sweep is, and how long it will take: on a terminal live, else a line now and then.


EVERY: Final = 30.0  # seconds between lines where there is no terminal


class Display:
    """An observer that shows on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._bar: Any = None
        self._running: dict[tuple[str, str], tuple[str, float]] = {}
        self._counts: Counter[str] = Counter()
        self._prefix = ""
        self._total = self._done = self._before = 0
        self._start = self._printed_at = time.monotonic()

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            left = TextColumn("{task.fields[left]}")
            self._bar = Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), left)
            self._task = self._bar.add_task("", total=None, left="")
            self._live = Live(get_renderable=self._render, console=Console(stderr=True), transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, jobs: Sequence[Key], done: int) -> None:
        from tflq.tools.sweep.task import shared_prefix

        self._prefix = shared_prefix(id for id, _ in jobs)
        self._total, self._done, self._before = len(jobs), done, done
        if done and not self._quiet:
            self._print(f"{done} of {len(jobs)} done")
        self._start = self._printed_at = time.monotonic()

    def started(self, id: str, target: str) -> None:
        self._running[id, target] = "start", time.monotonic()

    def staged(self, id: str, target: str, stage: str) -> None:
        self._running[id, target] = stage, self._running.get((id, target), ("", time.monotonic()))[1]

    def finished(self, result: dict[str, Any]) -> None:
        from tflq.tools.sweep.task import key_of, label

        self._running.pop(key_of(result), None)
        self._done += 1
        self._counts[result["status"]] += 1
        if self._quiet:
            return
        if not result["expected"]:
            line = f"{result['status']:<15} {label(key_of(result), self._prefix)} {result['why']}"
            self._print(line[:300])
        if self._live is None and time.monotonic() - self._printed_at > EVERY:
            self._printed_at = time.monotonic()
            self._print(f"{self._done} of {self._total} {self._left()}")

    def _print(self, line: str) -> None:
        if self._live is None:
            click.echo(line, err=True)
        else:
            self._live.console.print(line, markup=False, highlight=False)

    def _left(self) -> str:
        """Time that the remaining models take at the present rate, as text."""
        done = self._done - self._before
        if not done or self._done >= self._total:
            return ""
        seconds = (time.monotonic() - self._start) / done * (self._total - self._done)
        return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"

    def _render(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        from tflq.tools.sweep.task import label

        self._bar.update(self._task, total=self._total or None, completed=self._done, left=self._left())
        now = time.monotonic()
        counts = ", ".join(f"{count} {status}" for status, count in self._counts.most_common())
        lines = [
            f"  {stage:<9} {now - since:5.0f} s  {label(key, self._prefix)}"
            for key, (stage, since) in self._running.items()
        ]
        return Group(self._bar, Text(counts), *map(Text, lines))
