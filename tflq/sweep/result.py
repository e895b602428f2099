"""One line of results: what became of a model under a target."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, Final

from tflq.sweep.models import Model, as_expected, expectation_for
from tflq.sweep.status import Status
from tflq.sweep.task import Ending

__all__ = [
    "RESULT_FORMAT",
    "RESULT_VERSION",
    "Key",
    "Result",
    "cause_of",
    "from_ending",
    "key_of",
    "new_result",
    "part_of",
    "shared_prefix",
    "stable",
]

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


def part_of(id: str, count: int) -> int:
    """Which of so many parts of a sweep a model is in, from 1; it is always the same."""
    return zlib.crc32(id.encode()) % count + 1


def new_result(model: Model, target: str, found: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> Result:
    """The line of a model under a target; `found` holds its status and what was measured."""
    expectation = expectation_for(model, target)
    status: Status = found["status"]
    where = model.to_json() | found.get("model", {})
    return {
        "format": RESULT_FORMAT,
        "version": RESULT_VERSION,
        "id": model.id,
        "target": target,
        "status": status,
        "expected": as_expected(status, expectation),
        "expectation": expectation and {"status": expectation.status, "reason": expectation.reason},
        "why": found.get("why", ""),
        "cause": cause_of(status, found.get("why", "")),
        **{key: value for key, value in found.items() if key not in ("status", "why")},
        "model": where,
        "fingerprint": {**fingerprint, "model": where.get("sha256", "")},
    }


def from_ending(ending: Ending) -> Result:
    """What a try found, whichever way it ended."""
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
    """What failures of one cause have in common: the sentence without its names and numbers."""
    if status == "ok":
        return ""
    text = re.sub(r"(?<!\w)'[^']*'", "'…'", why.splitlines()[0] if why else "")
    text = re.sub(r"\b[0-9a-f]{32,}\b", "…", text)
    text = re.sub(r"(?<![\w.])(?<!SHA-)[-+]?\d[\d.,x]*(e[-+]?\d+)?\b", "N", text)
    text = re.sub(r"(/[\w.+-]+)+", "PATH", text)
    return f"{status}: {text}" if text else status


def stable(result: Mapping[str, Any]) -> Result:
    """A result without times, memory and what else another run of the same may have different."""
    return {key: value for key, value in result.items() if key not in VOLATILE}
