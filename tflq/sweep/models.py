"""A model of a sweep: where it comes from, and what is expected of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tflq.sweep.status import ACCEPTED, Status

__all__ = ["Expectation", "Model", "as_expected", "expectation_for"]


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
    inputs: an .npz file of arrays to run it on, beside the made ones.
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
        """What results say of it."""
        return {"place": self.place, "source": self.source}


def expectation_for(model: Model, target: str) -> Expectation | None:
    """The first expectation that concerns a model under a target."""
    return next((e for e in model.expect if e.concerns(model.id, target)), None)


def as_expected(status: Status, expectation: Expectation | None) -> bool:
    return status in ACCEPTED if expectation is None else status == expectation.status
