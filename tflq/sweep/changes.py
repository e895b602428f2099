"""What changed from one sweep to another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from tflq.sweep.baseline import Entry

__all__ = ["FAILING", "KINDS", "Change", "Kind", "compare", "failing", "is_slower"]

Kind = Literal[
    "failing",  # it was ok or as expected, and is not any more
    "numbers",  # it differs from the original by something else
    "path",  # an operator takes another path: integer, float or kept
    "memory",  # static memory is not kept any more
    "cause",  # it fails still, for another reason
    "fixed",  # it failed, and is ok now
    "unexpected-pass",  # it is ok, and something else is expected of it
    "new",
    "gone",
    "renamed",
    "content",  # another model under the same name
    "larger",
    "slower",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

FAILING: Final[frozenset[Kind]] = frozenset({"failing", "numbers", "path", "memory"})
"""Regressions: exit code 5. `--fail-on` adds others."""

SLOWER_BY: Final = 1.25, 0.15
"""Times as much, and seconds more: what is slower by less is noise."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a model under a target. what: a sentence. layer: the first that differs, if any does."""

    kind: Kind
    id: str
    target: str
    what: str
    layer: str = ""

    def place(self, prefix: str = "") -> str:
        """Model and target, without what all ids of a sweep begin with."""
        return f"{self.id.removeprefix(prefix)} [{self.target}]"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "id": self.id, "target": self.target, "what": self.what, "layer": self.layer}


def compare(before: Iterable[Entry], now: Iterable[Entry]) -> list[Change]:
    """The changes, the gravest kind first. Models are told by name and target, and those that are left by content.

    What only takes longer is not among them: see `is_slower`.
    """
    old = {entry.key: entry for entry in before}
    new = {entry.key: entry for entry in now}
    changes: list[Change] = []
    pairs = [(old.pop(key), new.pop(key)) for key in list(new) if key in old]
    known = {(e.sha256, e.target): e for e in old.values() if e.sha256}
    for entry in list(new.values()):
        if match := known.pop((entry.sha256, entry.target), None):
            changes.append(Change("renamed", entry.id, entry.target, f"was {match.id}"))
            pairs.append((old.pop(match.key), new.pop(entry.key)))
    changes += [Change("new", e.id, e.target, _words(e)) for e in new.values()]
    changes += [Change("failing", e.id, e.target, f"new, {_words(e)}") for e in new.values() if not e.expected]
    changes += [Change("gone", e.id, e.target, f"was {e.status}") for e in old.values()]
    for a, b in pairs:
        changes += _changes(a, b)
    return sorted(changes, key=lambda c: (KINDS.index(c.kind), c.id, c.target))


def _changes(a: Entry, b: Entry) -> Iterable[Change]:
    def change(kind: Kind, what: str) -> Change:
        return Change(kind, b.id, b.target, what)

    if a.sha256 and b.sha256 and a.sha256 != b.sha256:
        yield change("content", f"another model: {b.sha256[:12]}, was {a.sha256[:12]}")
    if a.status != b.status:
        if b.status == "ok":
            yield change("fixed", f"was {_words(a)}")
        elif a.status == "ok" or (a.expected and not b.expected):
            yield change("failing", f"{_words(b)}; was {a.status}")
        else:
            yield change("cause", f"{_words(b)}; was {_words(a)}")
    elif a.cause != b.cause and b.status != "differs":
        yield change("cause", f"{_words(b)}; was {_words(a)}")
    elif b.status == "differs" and (a.numbers, a.cause) != (b.numbers, b.cause):
        told = [text for text in b.numbers if text not in a.numbers] or [b.why]
        yield change("numbers", f"{told[0]}; was {next((t for t in a.numbers if t not in b.numbers), a.why)}")
    if b.status == "ok" and not b.expected:
        yield change("unexpected-pass", "ok, and something else is expected of it")
    if a.paths and b.paths and a.paths != b.paths and a.sha256 == b.sha256:
        yield change("path", "; ".join(_paths(a.paths, b.paths)))
    if a.static and b.static is False:
        yield change("memory", "the interpreter does not allocate all of it before it runs any more")
    if a.converted and b.converted > a.converted and a.sha256 == b.sha256:
        yield change("larger", f"{b.converted} bytes, was {a.converted}")


def _words(entry: Entry) -> str:
    return f"{entry.status}: {entry.why}" if entry.why else entry.status


def _paths(a: Mapping[str, Mapping[str, int]], b: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    for opcode in sorted({*a, *b}):
        if a.get(opcode) != b.get(opcode):
            yield f"{opcode}: {_counts(b.get(opcode, {}))}, was {_counts(a.get(opcode, {}))}"


def _counts(counts: Mapping[str, int]) -> str:
    return " + ".join(f"{count} {path}" for path, count in counts.items()) or "none"


def is_slower(seconds: float, before: float) -> bool:
    """Whether a CPU time is more than noise above another."""
    times, more = SLOWER_BY
    return before > 0 and seconds > before * times and seconds > before + more


def failing(changes: Iterable[Change], fail_on: Collection[str] = ()) -> list[Change]:
    """Those that make a sweep fail."""
    return [change for change in changes if change.kind in FAILING or change.kind in fail_on]
