"""One line of results: what became of a model under a target."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Any, Final, Literal, get_args

from tflq.sweep.task import Ending

# What can become of a model under a target.


Status = Literal[
    "ok",  # converted, and equal to the original
    "differs",  # the converted model gives something else, or does not run
    "refused",  # it cannot be converted as asked: `reasons` says why
    "invalid",  # not a valid model
    "original-fails",  # converted, but the interpreter does not run the original: nothing to compare with
    "unavailable",  # the model could not be had
    "checksum",  # the model is another one than was pinned
    "timeout",
    "out-of-memory",
    "crash",  # the process was killed by a signal, or ended without an answer
    "internal-error",  # a bug of tflq's own
    "flaky",  # two tries gave two answers
]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

ACCEPTED: Final[frozenset[Status]] = frozenset({"ok", "original-fails"})
"""As expected, unless a model says otherwise."""

RETRIED: Final[frozenset[Status]] = frozenset({"differs", "timeout", "out-of-memory", "crash", "internal-error"})
"""Tried once more: what gives another status then is flaky."""


# A model of a sweep: where it comes from, and what is expected of it.


@dataclass(frozen=True, slots=True)
class Expectation:
    """A status that a model is expected to have, and why; for some targets or, if none is named, for all.

    match: a pattern of ids, for an expectation of a whole manifest.
    """

    status: Status
    reason: str
    targets: tuple[str, ...] = ()
    match: str = "*"

    def concerns(self, id: str, target: str) -> bool:
        return fnmatchcase(id, self.match) and (not self.targets or target in self.targets)


@dataclass(frozen=True, slots=True)
class Model:
    """One model of a sweep. Exactly one of `path`, `url` and `kaggle` says where it is.

    id: its name in results, unique in a sweep.
    kaggle: a handle, `owner/model/tfLite/variation/version`; `file` is a pattern of the file in it.
    source: the page that it comes from.
    sha256: its content, in hex; "" if it is not pinned.
    targets: those to convert to; empty: those of the sweep.
    inputs: an .npz file of arrays to run it on, in addition to random ones.
    shapes: whole shapes of inputs, by name.
    verified: whether somebody has had the file under this hash.
    """

    id: str
    path: str = ""
    url: str = ""
    kaggle: str = ""
    file: str = ""
    source: str = ""
    sha256: str = ""
    targets: tuple[str, ...] = ()
    inputs: str = ""
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    expect: tuple[Expectation, ...] = ()
    verified: bool = True

    @property
    def place(self) -> str:
        """Where it comes from, in a word."""
        return self.path or self.url or f"kaggle:{self.kaggle}"

    def to_json(self) -> dict[str, Any]:
        """The part of it that results contain."""
        return {"place": self.place, "source": self.source}


def expectation_for(model: Model, target: str) -> Expectation | None:
    """The first expectation that concerns a model under a target."""
    return next((e for e in model.expect if e.concerns(model.id, target)), None)


def as_expected(status: Status, expectation: Expectation | None) -> bool:
    return status in ACCEPTED if expectation is None else status == expectation.status


RESULT_FORMAT: Final = "tflq.sweep-result"
RESULT_VERSION: Final = 1
Result = dict[str, Any]
"""A line of results.jsonl, by the fields that docs/sweeps.md lists."""
Key = tuple[str, str]
"""Model and target."""

VOLATILE: Final = frozenset(
    {"cpu", "seconds", "peak_bytes", "peak_convert", "run_time", "cached", "recorded", "ended", "log"}
)
HOW: Final[Mapping[str, Status]] = {
    "error": "internal-error",
    "timeout": "timeout",
    "memory": "out-of-memory",
    "signal": "crash",
    "exit": "crash",
}


def key_of(result: Mapping[str, Any]) -> Key:
    return result["id"], result["target"]


def shared_prefix(ids: Iterable[str]) -> str:
    """The folders that all ids are in, which says nothing where they are shown: "zoo/vision/"."""
    folders = [id.split("/")[:-1] for id in ids]
    common = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return "".join(f"{names[0]}/" for names in common)


def in_part(id: str, shard: Sequence[int] | None) -> bool:
    """Whether a model is in part i of n of a sweep, from 1; a model is always in the same. None: the sweep is whole."""
    return shard is None or zlib.crc32(id.encode()) % shard[1] + 1 == shard[0]


def label(key: Key, prefix: str = "") -> str:
    """Model and target in words, without what all ids of a sweep begin with."""
    return f"{key[0].removeprefix(prefix)} [{key[1]}]"


def how_far(difference: Mapping[str, Any]) -> str:
    """A difference in its JSON form, in words: "7 of 64, up to 5.0 LSB"."""
    unit = " LSB" if difference["unit"] == "LSB" else ""
    measured = f"{difference['differing']} of {difference['elements']}, up to {difference['largest']}{unit}"
    return difference["problem"] or measured


def new_result(model: Model, target: str, outcome: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> Result:
    """The line of a model under a target; `outcome` holds its status and what was measured."""
    expectation = expectation_for(model, target)
    status: Status = outcome["status"]
    where = model.to_json() | outcome.get("model", {})
    return {
        "format": RESULT_FORMAT,
        "version": RESULT_VERSION,
        "id": model.id,
        "target": target,
        "status": status,
        "expected": as_expected(status, expectation),
        "expectation": expectation and {"status": expectation.status, "reason": expectation.reason},
        "why": outcome.get("why", ""),
        "cause": cause_of(status, outcome.get("why", "")),
        **{key: value for key, value in outcome.items() if key not in ("status", "why")},
        "model": where,
        "fingerprint": {**fingerprint, "model": where.get("sha256", "")},
    }


def from_ending(ending: Ending) -> Result:
    """What a try found, however it ended."""
    measures = {"seconds": ending.seconds, "peak_bytes": ending.peak}
    if ending.answer is not None:
        cpu = {**ending.answer.get("cpu", {}), "total": ending.cpu}
        return {"why": "", **ending.answer, **measures, "cpu": cpu}
    last = next((line for line in reversed(ending.log.splitlines()) if line.strip()), "")
    said = f": {last.strip()[:300]}" if ending.how in ("signal", "exit") and last else ""
    return {
        "status": HOW[ending.how],
        "why": f"{ending.stage}: {ending.what}{said}",
        "log": ending.log,
        **measures,
        "cpu": {"total": ending.cpu},
    }


def cause_of(status: str, why: str) -> str:
    """What failures with the same cause have in common: the sentence without its names and numbers."""
    if status == "ok":
        return ""
    text = re.sub(r"(?<!\w)'[^']*'", "'…'", why.splitlines()[0] if why else "")
    text = re.sub(r"\b[0-9a-f]{32,}\b", "…", text)
    text = re.sub(r"(?<![\w.])(?<!SHA-)[-+]?\d[\d.,x]*(e[-+]?\d+)?\b", "N", text)
    text = re.sub(r"(/[\w.+-]+)+", "PATH", text)
    return f"{status}: {text}" if text else status


def stable(result: Mapping[str, Any]) -> Result:
    """A result without times, memory and whatever else may differ from run to run."""
    return {key: value for key, value in result.items() if key not in VOLATILE}
