"""Sweeps of parts put together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tflq.errors import OptionError, Reason
from tflq.sweep.fingerprint import MACHINE
from tflq.sweep.result import Key, key_of, part_of
from tflq.sweep.same import differences
from tflq.sweep.store import FILES, Store, expected_keys, read_results, read_settings

__all__ = ["merge"]

PARTS = ("shard", "only")
"""Settings that parts may have of their own."""


def merge(folders: Sequence[Path], into: Path, *, force: bool = False) -> None:
    """Puts the results of several sweeps, and what their failures left, into one folder.

    What of the whole sweep is missing is said by the settings there, and by the summary.

    OptionError if they were made with different settings or versions, or have results of the same model and target.
    """
    settings = [read_settings(folder) for folder in folders]
    for folder, given in zip(folders[1:], settings[1:], strict=True):
        if differing := differences(settings[0], given, {*PARTS, *MACHINE}):
            what = f"its options or versions are not those of {folders[0]}, {', '.join(differing)}"
            remedy = "sweep all parts with the same options and versions"
            raise OptionError(Reason(what, str(folder), remedy=remedy))
    parts = [_Part(folder, given) for folder, given in zip(folders, settings, strict=True)]
    _check_apart(parts)
    whole = {part: settings[0][part] for part in ("settings", "fingerprint")}
    whole["settings"] = {**whole["settings"], "shard": None}
    jobs = list(dict.fromkeys((id, target) for given in settings for id, target in given.get("jobs", ())))
    whole |= {"sources": settings[0]["sources"], "jobs": jobs, "incomplete": list(_incomplete(parts, jobs))}
    inputs = [folder / name for folder in folders for name in FILES]
    with Store(into) as store:
        store.put(whole, (result for folder in folders for result in read_results(folder)), inputs=inputs, force=force)
        for folder in folders:
            for result in read_results(folder):
                left = folder / result.get("artifacts", "-")
                if "artifacts" in result and left.is_dir():
                    shutil.copytree(left, into / result["artifacts"], dirs_exist_ok=True)


class _Part:
    """One of the sweeps that are put together."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.shard: Sequence[int] | None = settings["settings"].get("shard")
        self.keys = [key_of(result) for result in read_results(folder)]
        self.missing = {*expected_keys(settings)} - {*self.keys}


def _check_apart(parts: Sequence[_Part]) -> None:
    seen: dict[Key, Path] = {}
    for part in parts:
        for id, target in part.keys:
            if (id, target) in seen:
                raise OptionError(f"{id} [{target}] is in both {seen[id, target]} and {part.folder}")
            seen[id, target] = part.folder


def _incomplete(parts: Sequence[_Part], jobs: Sequence[Key]) -> Iterator[str]:
    """Sentences on parts that are not among these, and on those that were interrupted."""
    given = {tuple(part.shard) for part in parts if part.shard is not None}
    for count in sorted({count for _, count in given}):
        for number in range(1, count + 1):
            if (number, count) in given:
                continue
            missing = sum(part_of(id, count) == number for id, _ in jobs)
            if missing or not jobs:
                of = f", with {missing} of {len(jobs)} results" if jobs else ""
                yield f"part {number}/{count} is not among them{of}: merge it, too"
    for part in parts:
        if part.missing:
            whole = len(part.keys) + len(part.missing)
            yield f"{part.folder} lacks {len(part.missing)} of {whole} results: go on with that sweep by --resume"
