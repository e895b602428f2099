"""JUnit XML of a sweep, for the pages of a continuous integration service."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tflq.files import replace_file
from tflq.sweep.changes import Change
from tflq.sweep.layer import first_layer
from tflq.sweep.result import Key, Result

__all__ = ["write_junit"]

BUGS: Final = frozenset({"crash", "internal-error", "timeout", "out-of-memory"})
_NOT_IN_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(
    results: Iterable[Result],
    path: Path,
    regressions: Sequence[Change] | None = None,
    missing: Sequence[Key] = (),
) -> None:
    """One test case for each model and target. What fails is what is not as expected, or the regressions; and what is
    missing.

    An expected failure is skipped, with its reason.
    """
    worse = None if regressions is None else {(c.id, c.target): c for c in regressions}
    cases, failures, errors, skipped, seconds = [], 0, 0, 0, 0.0
    for result in results:
        regression = worse.pop((result["id"], result["target"]), None) if worse is not None else None
        fails = not result["expected"] if worse is None else regression is not None
        body = ""
        if fails:
            kind = "error" if result["status"] in BUGS else "failure"
            failures += kind == "failure"
            errors += kind == "error"
            message = regression.what if regression else result["why"] or result["status"]
            more = "\n".join(filter(None, [result["why"], first_layer(result), result.get("log", "")]))
            body = f"<{kind} type={_quoted(result['status'])} message={_quoted(message)}>{_text(more)}</{kind}>"
        elif result["status"] != "ok":
            skipped += 1
            reason = (result["expectation"] or {}).get("reason") or result["why"]
            body = f"<skipped message={_quoted(result['status'] + ': ' + reason)}/>"
        taken = result.get("seconds", 0.0)
        seconds += taken
        name, group = _quoted(result["id"]), _quoted("tflq." + result["target"])
        cases.append(f'<testcase name={name} classname={group} time="{taken:.3f}">{body}</testcase>\n'.encode())
    gone: list[tuple[str, str, str, str]]
    gone = [(change.id, change.target, change.kind, change.what) for change in (worse or {}).values()]
    gone += [(id, target, "missing", "there is no result") for id, target in missing]
    for id, target, kind, what in gone:
        failures += 1
        name, group = _quoted(id), _quoted("tflq." + target)
        body = f"<failure type={_quoted(kind)} message={_quoted(what)}/>"
        cases.append(f"<testcase name={name} classname={group}>{body}</testcase>\n".encode())
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}" time="{seconds:.3f}"'
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites {counts}>\n<testsuite name="tflq sweep" {counts}>\n'
    replace_file(path, [head.encode(), *cases, b"</testsuite>\n</testsuites>\n"])


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def _quoted(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub("\ufffd", text))
