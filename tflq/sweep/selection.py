"""Which of a sweep's models and targets are done: some by name, those that failed before, or one part of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tflq.errors import OptionError
from tflq.sweep.models import Model
from tflq.sweep.result import Key, key_of, part_of
from tflq.sweep.store import read_results

__all__ = ["Job", "Selection", "jobs_of", "read_shard"]

Job = tuple[Model, str]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of the models and targets of a sweep.

    only: patterns of ids, or words in them; empty: all. failed_from: the folder of a sweep; what was as expected there
    is left out. shard: the part i of n; a model is always in the same part.
    """

    only: tuple[str, ...] = ()
    failed_from: Path | None = None
    shard: tuple[int, int] | None = None

    def test(self) -> Callable[[Key], bool]:
        """Whether something is selected. FileError if there is no sweep to look in."""
        failed = (
            {key_of(result) for result in read_results(self.failed_from) if not result["expected"]}
            if self.failed_from
            else None
        )

        def selected(key: Key) -> bool:
            if not self.names(key[0]) or (failed is not None and key not in failed):
                return False
            return self.shard is None or part_of(key[0], self.shard[1]) == self.shard[0]

        return selected

    def names(self, id: str) -> bool:
        """Whether `only` has this id."""
        return not self.only or any(pattern in id or fnmatchcase(id, pattern) for pattern in self.only)


def jobs_of(models: Sequence[Model], targets: Sequence[str], selection: Selection) -> list[Job]:
    """Each model under each of its targets, or of the sweep's if it names none, in order, of those that are selected.

    OptionError if `only` names none.
    """
    selected = selection.test()
    if not any(selection.names(model.id) for model in models):
        raise OptionError(f"no model's id matches {', '.join(selection.only)}")
    jobs = [(model, target) for model in models for target in dict.fromkeys(model.targets or targets)]
    return [(model, target) for model, target in jobs if selected((model.id, target))]


def read_shard(text: str) -> tuple[int, int]:
    """The part of a sweep that "i/n" names: 1/4 to 4/4. OptionError if it names none."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise OptionError(f"'{text}' is no part of a sweep: 1/4 is the first of four")
    return int(match[1]), int(match[2])
