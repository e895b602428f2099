"""The files that a finished sweep leaves beside its results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tflq.files import replace_file
from tflq.sweep import page
from tflq.sweep.baseline import BASELINE, write_baseline
from tflq.sweep.changes import Change, failing
from tflq.sweep.junit import write_junit
from tflq.sweep.markdown import write_markdown
from tflq.sweep.result import key_of
from tflq.sweep.store import expected_keys, read_results, read_settings
from tflq.sweep.summary import Summary, summarize

__all__ = ["summary_of", "write_outputs"]


def write_outputs(
    folder: Path,
    changes: Sequence[Change] | None = None,
    fail_on: Sequence[str] = (),
    earlier: Sequence[Path] = (),
) -> Summary:
    """Writes baseline.json, summary.md, junit.xml, of a comparison changes.json, and index.html; the counts.
    What the settings in the folder expect and has no result is missing: after a merge of some parts.

    earlier: sweeps' folders or baselines to show beside this one.
    """
    summary = summary_of(folder)
    write_baseline(read_results(folder), folder / BASELINE)
    write_markdown(summary, folder / "summary.md", changes)
    regressions = None if changes is None else failing(changes, fail_on)
    write_junit(read_results(folder), folder / "junit.xml", regressions, summary.missing)
    if changes is not None:
        document = {"format": "tflq.sweep-changes", "version": 1, "changes": [c.to_json() for c in changes]}
        replace_file(folder / "changes.json", [json.dumps(document, indent=1).encode(), b"\n"])
    else:
        (folder / "changes.json").unlink(missing_ok=True)
    page.write(read_results(folder), folder / "index.html", earlier, changes, summary)
    return summary


def summary_of(folder: Path) -> Summary:
    """The counts of the results in a folder, and what its settings expect and has no result."""
    summary, settings = summarize(read_results(folder)), read_settings(folder)
    there = {key_of(result) for result in read_results(folder)}
    summary.missing = [key for key in expected_keys(settings) if key not in there]
    summary.incomplete = settings.get("incomplete", [])
    return summary
