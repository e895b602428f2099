"""What is sent to a child process, and what comes back: plain data, so that it can travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

__all__ = ["Ending", "Limits", "Settings", "Task"]

How = Literal["answer", "error", "timeout", "memory", "signal", "exit"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one try: seconds of wall time, and bytes of memory of its processes together."""

    seconds: float = 300.0
    bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same for all models of a sweep and changes results.

    seeds: sets of random inputs, beside the edges. xnnpack: verify with the interpreter's default kernels, too.
    max_lsb, atol, rtol: differences that are accepted, as by `tflq.verify`. time: measure what a run takes in both
        models, anew for each.
    convert: keywords of `tflq.convert` that change its result, where they are not as by default: {"mac": "float32"}.
        Rules are paths of files.
    """

    seeds: int = 2
    xnnpack: bool = True
    max_lsb: float = 0
    atol: float = 0.0
    rtol: float = 0.0
    convert: Mapping[str, Any] = field(default_factory=dict)
    time: bool = False

    @property
    def tolerance(self) -> dict[str, Any]:
        """As keywords of `tflq.verify`."""
        return {"max_lsb": self.max_lsb, "atol": self.atol, "rtol": self.rtol}

    @property
    def rules(self) -> tuple[str, ...]:
        """The files of a user's rules."""
        return tuple(map(str, self.convert.get("rules", ())))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Task:
    """One try of one model under one target.

    path: the model's file. sha256: what it should be; "" if it is not pinned.
    inputs: an .npz file, or "". cache: a folder for what runs found, or "".
    layers: find the first layer that differs, too.
    """

    id: str
    target: str
    path: str
    sha256: str = ""
    inputs: str = ""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    cache: str = ""
    layers: bool = False
    seconds: float = 300.0

    @property
    def files(self) -> tuple[str, ...]:
        """What it reads: the model, its inputs if it has some, files of rules."""
        return (self.path, *filter(None, [self.inputs]), *self.settings.rules)

    def moved(self, files: Sequence[str]) -> Task:
        """The same task where its `files` have these names."""
        path, *rest = files
        inputs = rest.pop(0) if self.inputs else ""
        convert = {**self.settings.convert, "rules": rest} if rest else self.settings.convert
        return replace(self, path=path, inputs=inputs, settings=replace(self.settings, convert=convert))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Task:
        return cls(**{**document, "settings": Settings(**document["settings"])})


@dataclass(frozen=True, slots=True)
class Ending:
    """How a try ended: with an `answer`, or how else.

    what: a sentence, if there is no answer. stage: where it was. log: the last of what its processes printed.
    seconds: wall time. cpu: seconds of all its processes. peak: bytes of resident memory, of all of them together.
    folder: where it left its files.
    """

    how: How
    answer: dict[str, Any] | None = None
    what: str = ""
    stage: str = ""
    log: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    folder: str = ""
