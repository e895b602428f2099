"""Tasks that are sent to child processes, and what comes back: plain data."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

import tflq
import tflq.verification
from tflq.caches import DiskCache
from tflq.files import file_errors
from tflq.verification.worker import receive, send

How = Literal["answer", "error", "timeout", "memory", "signal", "exit"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one try: seconds of wall time, and bytes of memory of its processes together."""

    seconds: float = 300.0
    bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that are the same for all models of a sweep and change results.

    seeds: sets of random inputs, in addition to the edges. xnnpack: verify with the interpreter's default kernels, too.
    max_lsb, atol, rtol: differences that are accepted, as by `tflq.verify`. time: measure what a run takes in both
        models, anew for each.
    convert: keywords of `tflq.convert` that change its result, those that differ from the default: {"mac": "float32"}.
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
        """The files that it reads: the model, its inputs if there are any, and rules."""
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
    """How a try ended: with an `answer`, or in another way.

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


# Lines of JSON, from process to process and into files.


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the data, even where the system takes only a part at a time."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


class Lines:
    """Turns what comes through a pipe into messages: each is a line of JSON."""

    def __init__(self) -> None:
        self._rest = b""

    def messages(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that this piece of data completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


# What a result rests on: versions, the machine, and the settings of the sweep.


MACHINE = ("cpu", "platform", "python")
"""Parts that times depend on; results do not."""


def fingerprint(settings: Settings) -> dict[str, Any]:
    """tflq's version and commit ("" outside a checkout), interpreter, resolver, CPU, seeds and the like."""
    from tflq.verification.runner import interpreter_name

    return {
        "tflq": tflq.__version__,
        "commit": _commit(),
        "interpreter": interpreter_name(),
        "resolver": "reference",
        "tosa": _version("tosa-tools"),
        "numpy": _version("numpy"),
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "cpu": cpu_name(),
        **settings.to_json(),
        "convert": by_content(settings.convert),
    }


def by_content(convert: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a conversion as JSON has them; files of rules by name and content, wherever they are."""
    options: dict[str, Any] = json.loads(json.dumps(convert))
    if "rules" in options:
        options["rules"] = [_file(Path(path)) for path in options["rules"]]
    return options


def _file(path: Path) -> str:
    with file_errors(path):
        return f"{path.name} (SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]})"


@cache
def _commit() -> str:
    """The commit of the checkout that tflq runs from, with a + if files of the package differ from it."""
    root = Path(tflq.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "tflq", "schema", "rules")
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()  # noqa: S603


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def cpu_name() -> str:
    """The CPU as the system names it, else its architecture."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# What runs found, kept by content: the same bytes on the same inputs in the same interpreter give the same. A key also
# has the versions of the interpreter, numpy and TOSA's tools, the CPU (float kernels are chosen by it), and the source
# of the package that verifies.


MOST: Final = 2 << 30  # bytes of a folder


class Cache:
    """JSON documents."""

    def __init__(self, folder: Path) -> None:
        self._entries = DiskCache(folder, MOST)

    def get(self, key: str) -> dict[str, Any] | None:
        data = self._entries.get(f"{surroundings()} {key}")
        document: dict[str, Any] | None = None if data is None else json.loads(data)
        return document

    def put(self, key: str, document: dict[str, Any]) -> None:
        self._entries.put(f"{surroundings()} {key}", json.dumps(document).encode())


class Originals:
    """Outputs of one model, by kernels, entry and inputs: `tflq.verification.inputs.Recorded`."""

    def __init__(self, folder: Path, model: str) -> None:
        """model: the SHA-256 of the file."""
        self._entries = DiskCache(folder, MOST)
        self._model = model
        self.hits = 0
        """How many outputs were found."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        data = self._entries.get(self._key(kernels, entry, inputs))
        if data is None:
            return None
        _, outputs = receive(io.BytesIO(data))
        self.hits += 1
        return outputs

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        stream = io.BytesIO()
        send(stream, {}, outputs)
        self._entries.put(self._key(kernels, entry, inputs), stream.getvalue())

    def _key(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> str:
        stream = io.BytesIO()
        send(stream, {"kernels": kernels, "entry": entry}, inputs)
        return f"{surroundings()} {self._model} {hashlib.sha256(stream.getbuffer()).hexdigest()}"


@cache
def surroundings() -> str:
    """A digest of what results rest on besides the models, the inputs and the options."""
    digest = hashlib.sha256(f"{cpu_name()}\n".encode())
    for name in ("ai-edge-litert", "tensorflow", "numpy", "tosa-tools"):
        digest.update(f"{name} {_version(name) or '-'}\n".encode())
    for path in sorted(Path(tflq.verification.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
