"""A sweep in Markdown, for the summary of a job or a comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from tflq.files import replace_file
from tflq.sweep.changes import FAILING, Change
from tflq.sweep.summary import Summary

__all__ = ["markdown", "markdown_changes", "write_markdown"]

SHOWN: Final = 30


def write_markdown(summary: Summary, path: Path, changes: Sequence[Change] | None = None) -> None:
    replace_file(path, [markdown(summary, changes).encode()])


def markdown(summary: Summary, changes: Sequence[Change] | None = None) -> str:
    """Counts per target, what changed if it was compared, and causes of failures."""
    return "\n".join(_lines(summary, changes)) + "\n"


def _lines(summary: Summary, changes: Sequence[Change] | None) -> Iterator[str]:
    columns = summary.columns
    yield "## Sweep"
    yield ""
    yield f"| target | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for target, counts in summary.statuses.items():
        yield f"| {_cell(target)} | {' | '.join(str(counts[c] or '') for c in columns)} |"
    yield ""
    yield f"{summary.total} results, {summary.unexpected} not as expected."
    if summary.missing or summary.incomplete:
        yield ""
        yield f"**{len(summary.missing)} missing**: {_cell(summary.named_missing)}"
        yield from (f"- {_cell(text)}" for text in summary.incomplete)
    if changes is not None:
        yield ""
        yield from markdown_changes(changes, summary.prefix)
    causes = [cause for cause in summary.grouped if cause.unexpected]
    if causes:
        yield ""
        yield "### Causes"
        yield ""
        yield "| count | cause | first |"
        yield "|---:|---|---|"
        for cause in causes[:SHOWN]:
            yield f"| {cause.count} | {_cell(cause.text)} | {_cell(cause.named(summary.prefix))} |"


def markdown_changes(changes: Sequence[Change], prefix: str = "") -> Iterator[str]:
    """The lines of what changed. prefix: what ids are shown without."""
    yield "### Since the baseline"
    yield ""
    if not changes:
        yield "No change."
        return
    yield "| change | model | what | first layer |"
    yield "|---|---|---|---|"
    for kind, group in groupby(changes, key=lambda change: change.kind):
        listed = list(group)
        name = f"**{kind}**" if kind in FAILING else kind
        for change in listed[:SHOWN]:
            yield f"| {name} | {_cell(change.place(prefix))} | {_cell(change.what)} | {_cell(change.layer)} |"
        if len(listed) > SHOWN:
            yield f"| {name} | and {len(listed) - SHOWN} more | | |"


def _cell(text: str) -> str:
    """A text that ends no cell, row or tag."""
    text = " ".join(text.split())
    for mark in "\\|`*_[]#":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;").replace("@", "@\u200b")[:300]
