"""Jobs as plain data: tasks that are sent to child processes, what comes back, and the line of results: what became of
a model under a target.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np

from tflq.base.caches import DiskCache
from tflq.base.documents import DocumentError, parse_json
from tflq.base.files import PACKAGE, file_errors
from tflq.base.version import __version__
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.tools.verify.worker import receive, send

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
        """The tolerances, as arguments of `verify`."""
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
        """A copy of the task where its `files` have these names."""
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
    """End of a try: with an `answer`, or in another way.

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
    """Turns what comes through a pipe into messages: each is a line of JSON, of a kind that `base.documents` checks."""

    def __init__(self, kind: Any) -> None:
        self._rest = b""
        self._kind = kind

    def messages(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that this piece of data completes. DocumentError for what is none."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [parse_json(line, self._kind) for line in lines]


# What a result rests on: versions, the machine, and the settings of the sweep.


MACHINE = ("cpu", "platform", "python")
"""Parts that times depend on; results do not."""


def fingerprint(settings: Settings) -> dict[str, Any]:
    """tflq's version and commit ("" outside a checkout), interpreter, kernel set, CPU, seeds and the like."""
    from tflq.tools.verify.runner import interpreter_name

    return {
        "tflq": __version__,
        "commit": _commit(),
        "interpreter": interpreter_name(),
        "kernel_set": settings.convert.get("kernel_set", DEFAULT_SET),
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
    root = Path(PACKAGE).parent
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
    """JSON documents of a kind that `tflq.base.documents` checks: what is of another is a miss."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self._entries = DiskCache(folder, MOST)
        self._kind = kind

    def get(self, key: str) -> dict[str, Any] | None:
        data = self._entries.get(f"{surroundings()} {key}")
        document: dict[str, Any] | None = None
        with suppress(DocumentError):
            document = None if data is None else parse_json(data, self._kind)
        return document

    def put(self, key: str, document: dict[str, Any]) -> None:
        self._entries.put(f"{surroundings()} {key}", json.dumps(document).encode())


class Originals:
    """Outputs of one model, by kernels, entry and inputs: `tflq.tools.verify.inputs.Recorded`."""

    def __init__(self, folder: Path, model: str) -> None:
        """model: the SHA-256 of the file."""
        self._entries = DiskCache(folder, MOST)
        self._model = model
        self.hits = 0
        """Number of outputs that were in the cache."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        data = self._entries.get(self._key(kernels, entry, inputs))
        if data is None:
            return None
        try:
            _, outputs = receive(io.BytesIO(data))
        except (EOFError, ValueError):
            return None
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
    for path in sorted(Path(PACKAGE, "tools", "verify").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# What can become of a model under a target.


Status = Literal[
    "ok",  # converted, and equal to the original
    "differs",  # the converted model gives something else, or does not run
    "refused",  # it cannot be converted as asked: `reasons` says why
    "invalid",  # not a valid model
    "incomparable",  # converted, but the interpreter has other kernels than the result reproduces
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
"""The statuses that are expected, unless a model says otherwise."""

COMPARED: Final[frozenset[Status]] = frozenset({"ok", "differs"})
"""Of both models, results were compared."""

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
    return shard is None or zlib.crc32(id.encode("utf-8", "surrogateescape")) % shard[1] + 1 == shard[0]


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
    where = {"place": model.place, "source": model.source} | outcome.get("model", {})
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
    """The result of a try, however it ended."""
    measures = {"seconds": ending.seconds, "peak_bytes": ending.peak}
    if ending.answer is not None:
        cpu = {**ending.answer.get("cpu", {}), "total": ending.cpu}
        return {"status": "internal-error", "why": "", **ending.answer, **measures, "cpu": cpu}
    last = next((line for line in reversed(ending.log.splitlines()) if line.strip()), "")
    last_line = f": {last.strip()[:300]}" if ending.how in ("signal", "exit") and last else ""
    return {
        "status": HOW[ending.how],
        "why": f"{ending.stage}: {ending.what}{last_line}",
        "log": ending.log,
        **measures,
        "cpu": {"total": ending.cpu},
    }


def cause_of(status: str, why: str) -> str:
    """Common text of failures with the same cause: the sentence without its names and numbers."""
    if status == "ok":
        return ""
    text = re.sub(r"(?<!\w)'[^']*'", "'…'", why.splitlines()[0] if why else "")
    text = re.sub(r"\b[0-9a-f]{32,}\b", "…", text)
    text = re.sub(r"(?<![\w.])(?<!SHA-)[-+]?\d[\d.,x]*(e[-+]?\d+)?\b", "…", text)
    text = re.sub(r"\b\w+://\S*[^\s:;,.]", "URL", text)
    text = re.sub(r"(/[\w.+-]+)+", "PATH", text)
    return f"{status}: {text}" if text else status
