"""Sweeps of parts put together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tflq.errors import OptionError, Reason
from tflq.sweep.fingerprint import MACHINE
from tflq.sweep.result import Key, key_of
from tflq.sweep.same import differences
from tflq.sweep.store import Store, read_results, read_settings

__all__ = ["merge"]

PARTS = ("shard", "only")
"""Settings that parts may have of their own."""


def merge(folders: Sequence[Path], into: Path, *, force: bool = False) -> None:
    """Puts the results of several sweeps, and what their failures left, into one folder.

    OptionError if they were made with different settings or versions, or have results of the same model and target.
    """
    settings = [read_settings(folder) for folder in folders]
    for folder, given in zip(folders[1:], settings[1:], strict=True):
        if differing := differences(settings[0], given, {*PARTS, *MACHINE}):
            what = f"its options or versions are not those of {folders[0]}, {', '.join(differing)}"
            remedy = "sweep all parts with the same options and versions"
            raise OptionError(Reason(what, str(folder), remedy=remedy))
    for folder in folders:
        if into.exists() and os.path.samefile(folder, into):
            raise OptionError(f"{into} is one of the sweeps to merge: give another folder")
    with Store(into) as store:
        whole = {part: settings[0][part] for part in ("settings", "fingerprint")}
        whole["settings"] = {**whole["settings"], "shard": None}
        store.begin({**whole, "sources": settings[0]["sources"]}, resume=False, force=force)
        seen: dict[Key, int] = {}
        for number, folder in enumerate(folders):
            for result in read_results(folder):
                if (other := seen.setdefault(key_of(result), number)) != number:
                    both = f"{folders[other]} and {folder}"
                    raise OptionError(f"{result['id']} [{result['target']}] is in both {both}")
                left = folder / result.get("artifacts", "-")
                if "artifacts" in result and left.is_dir():
                    shutil.copytree(left, into / result["artifacts"], dirs_exist_ok=True)
                store.append(result)
