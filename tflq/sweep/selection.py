"""Which of a sweep's models and targets are done: some by name, those that failed before, or one part of several."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tflq.errors import OptionError
from tflq.sweep.models import Model
from tflq.sweep.result import Key, key_of
from tflq.sweep.store import read_results

__all__ = ["jobs_of", "read_shard"]

Job = tuple[Model, str]


def jobs_of(
    models: Iterable[Model],
    targets: Sequence[str],
    *,
    only: Sequence[str] = (),
    failed_from: Path | None = None,
    shard: tuple[int, int] | None = None,
) -> list[Job]:
    """Each model under each of its targets, or of the sweep's if it names none, in order.

    only: patterns of ids, or words in them. failed_from: the folder of a sweep; what was as expected there is left out.
    shard: the part i of n; a model is always in the same part.
    OptionError if nothing is left by `only`.
    """
    tests: list[Callable[[Key], bool]] = []
    if only:
        tests.append(lambda key: any(pattern in key[0] or fnmatchcase(key[0], pattern) for pattern in only))
    if failed_from is not None:
        failed = {key_of(result) for result in read_results(failed_from) if not result["expected"]}
        tests.append(failed.__contains__)
    if shard is not None:
        part, parts = shard
        tests.append(lambda key: zlib.crc32(key[0].encode()) % parts == part - 1)
    jobs = [(model, target) for model in models for target in dict.fromkeys(model.targets or targets)]
    found = [(model, target) for model, target in jobs if all(test((model.id, target)) for test in tests)]
    if only and not any(tests[0]((model.id, target)) for model, target in jobs):
        raise OptionError(f"no model's id matches {', '.join(only)}")
    return found


def read_shard(text: str) -> tuple[int, int]:
    """The part of a sweep that "i/n" names: 1/4 to 4/4. OptionError if it names none."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise OptionError(f"'{text}' is no part of a sweep: 1/4 is the first of four")
    return int(match[1]), int(match[2])
