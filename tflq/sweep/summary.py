"""What a sweep found, in counts: what every page and message begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tflq.sweep.result import Key, Result, key_of, shared_prefix
from tflq.sweep.status import STATUSES

__all__ = ["Cause", "Summary", "summarize"]

NAMED: Final = 5  # models of one cause that are named


@dataclass(slots=True)
class Cause:
    """Failures of one cause: how many, and model and target of the first of them."""

    text: str
    count: int = 0
    unexpected: int = 0
    first: list[Key] = field(default_factory=list)

    def named(self, prefix: str = "") -> str:
        """The first of them in words, without what all ids of a sweep begin with."""
        shown = ", ".join(f"{id.removeprefix(prefix)} [{target}]" for id, target in self.first)
        return f"{shown} …" if self.count > len(self.first) else shown


@dataclass(slots=True)
class Summary:
    """Counts of a sweep's results. prefix: the folders that all ids are in."""

    total: int = 0
    unexpected: int = 0
    passes: int = 0  # that were not expected to
    statuses: dict[str, Counter[str]] = field(default_factory=dict)  # by target
    causes: dict[str, Cause] = field(default_factory=dict)
    missing: list[Key] = field(default_factory=list)  # models and targets without a result
    incomplete: list[str] = field(default_factory=list)  # sentences on parts that lack results, or are not there
    prefix: str = ""

    def add(self, result: Result) -> None:
        self.prefix = shared_prefix([result["id"], *([self.prefix] if self.total else [])])
        self.total += 1
        self.statuses.setdefault(result["target"], Counter())[result["status"]] += 1
        if not result["expected"]:
            self.unexpected += 1
            self.passes += result["status"] == "ok"
        if result["cause"]:
            cause = self.causes.setdefault(result["cause"], Cause(result["cause"]))
            cause.count += 1
            cause.unexpected += not result["expected"]
            if len(cause.first) < NAMED:
                cause.first.append(key_of(result))

    @property
    def failed(self) -> bool:
        """Whether something is not as expected, or not there."""
        return bool(self.unexpected or self.missing or self.incomplete)

    @property
    def verdict(self) -> str:
        """The counts in words."""
        counts = [f"{self.unexpected} of {self.total} not as expected"] if self.unexpected else []
        if self.missing:
            counts.append(f"{len(self.missing)} of {self.total + len(self.missing)} missing")
        elif self.incomplete:
            counts.append("parts missing")
        return ", ".join(counts) or "all as expected"

    @property
    def named_missing(self) -> str:
        """The first that are missing, in words."""
        first = Cause("", len(self.missing), first=self.missing[:NAMED])
        return first.named(self.prefix)

    @property
    def columns(self) -> list[str]:
        """The statuses that there are, in their order."""
        return [status for status in STATUSES if any(counts[status] for counts in self.statuses.values())]

    @property
    def grouped(self) -> list[Cause]:
        """Causes, those of unexpected failures first, the commonest before the rarer."""
        return sorted(self.causes.values(), key=lambda c: (not c.unexpected, -c.count, c.text))

    def to_json(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "unexpected": self.unexpected,
            "unexpected_passes": self.passes,
            "statuses": {target: dict(counts) for target, counts in self.statuses.items()},
            "causes": [
                {
                    "cause": cause.text,
                    "count": cause.count,
                    "unexpected": cause.unexpected,
                    "first": [f"{id} [{target}]" for id, target in cause.first],
                }
                for cause in self.grouped
            ],
            "missing": [f"{id} [{target}]" for id, target in self.missing],
            "incomplete": self.incomplete,
        }


def summarize(results: Iterable[Result]) -> Summary:
    summary = Summary()
    for result in results:
        summary.add(result)
    return summary
