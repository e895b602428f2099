"""Models in runtimes, each of which is in an environment of its own that is made when it is first asked for.

A runtime runs in a process that may die of a model (target_worker.py); target_tools.toml says what is installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

ROOT: Final = Path(__file__).resolve().parent.parent
TOOLS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "target_tools.toml").read_text(encoding="utf-8")
)
ENVIRONMENTS: Final = ROOT / "build" / "runtimes"
WORKER: Final = Path(__file__).with_name("target_worker.py")
REFERENCE: Final = "reference"
"""The interpreter's reference kernels, in the environment of this process."""


class Job(NamedTuple):
    """A model, a file of this suffix, and the inputs of runs that follow each other, by name, in the model's order."""

    model: bytes
    suffix: str
    runs: Sequence[Mapping[str, np.ndarray]]


class Outcome(NamedTuple):
    """The outputs of each run, and the processor's seconds of the fastest of several more; None if there were none."""

    runs: list[list[np.ndarray]]
    seconds: float | None


class Difference(NamedTuple):
    """Elements that differ, of how many, and by how much at most."""

    wrong: int
    elements: int
    apart: float


def packages(tool: str) -> Sequence[str]:
    """What is installed for a tool."""
    listed: Sequence[str] = TOOLS[tool]["packages"]
    return listed


def environment(tool: str, folder: Path = ENVIRONMENTS) -> Path | None:
    """The Python of a tool's environment, as `installed` returns it."""
    return installed(folder / tool, packages(tool))


def installed(place: Path, wanted: Sequence[str]) -> Path | None:
    """The Python of an environment that has these packages, created if it is not there; None, with a message, if they
    cannot be installed."""
    python, stamp, text = place / "bin" / "python", place / "packages.txt", "\n".join(wanted)
    if stamp.exists() and stamp.read_text() == text:
        return python
    venv.create(place, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
        print(f"SKIPPED {place.name}: {' '.join(wanted)} cannot be installed here: {reason}", file=sys.stderr)
        return None
    stamp.write_text(text)
    return python


def outcomes(tool: str, python: Path, jobs: Sequence[Job], *, timed: int = 0) -> list[Outcome | str]:
    """What a tool makes of each model, or why it makes nothing of it.

    timed: how many more runs the fastest is taken of. A model that ends the process is the first that left nothing;
    those after it run in another one.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, job in enumerate(jobs):
            (folder / f"{number}{job.suffix}").write_bytes(job.model)
            arrays = {f"{i} {key}": array for i, run in enumerate(job.runs) for key, array in run.items()}
            np.savez(folder / f"{number}.in.npz", **arrays)
        left = [f"{number}{job.suffix}" for number, job in enumerate(jobs)]
        while left:
            left = _run(tool, python, folder, left, timed)
        return [_outcome(folder, number) for number in range(len(jobs))]


def _run(tool: str, python: Path, folder: Path, files: Sequence[str], timed: int) -> list[str]:
    """Runs models; those that are left to run in another process."""
    command = [str(python), str(WORKER), tool, str(folder), str(timed), *files]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    rest = [file for file in files if not any((folder / file).with_suffix(kind).exists() for kind in (".npz", ".txt"))]
    if rest and done.returncode == 0:
        raise RuntimeError(f"{tool} left models out")
    if rest == files and "import" in done.stderr:
        raise RuntimeError(f"{tool} does not run: {done.stderr.strip().splitlines()[-1]}")
    if rest:
        (folder / rest[0]).with_suffix(".txt").write_text("the process ends")
    return rest[1:]


def _outcome(folder: Path, number: int) -> Outcome | str:
    reason = folder / f"{number}.txt"
    if reason.exists():
        return reason.read_text().replace(str(folder), "")
    runs: dict[str, list[np.ndarray]] = {}
    with np.load(folder / f"{number}.npz") as file:
        seconds = float(file["seconds"]) if "seconds" in file else None
        for key in file.files:
            if key != "seconds":
                runs.setdefault(key.partition(" ")[0], []).append(file[key])
    return Outcome(list(runs.values()), seconds)


def differing(want: Outcome, got: Outcome, *, signless: bool = False) -> Difference | str:
    """Results beside those of the reference kernels, or how they cannot be compared. signless: the tool's integers have
    no sign, so that uint8 comes back as int8."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for wanted, found in zip(want.runs, got.runs, strict=True):
        if [array.shape for array in found] != [array.shape for array in wanted]:
            return f"other shapes: {', '.join(str(array.shape) for array in found)}"
        pairs += [(w, g.view(w.dtype) if signless else g) for w, g in zip(wanted, found, strict=True)]
    wrong = sum(int((w != g).sum()) for w, g in pairs)
    with np.errstate(invalid="ignore"):
        gaps = [np.abs(w.astype(np.float64) - g.astype(np.float64)) for w, g in pairs]
    apart = max((float(gap.max(initial=0)) for gap in gaps), default=0.0)
    return Difference(wrong, sum(w.size for w, _ in pairs), apart)


def words(reason: str, most: int) -> str:
    """A tool's message on one line, as far as it fits."""
    return " ".join("".join(c if " " <= c <= "~" else " " for c in reason).split())[:most].rstrip()
