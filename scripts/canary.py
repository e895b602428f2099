"""Which kernel set each interpreter is, or which of its operators agree with none: a new release is seen here first.

    python scripts/canary.py [NAME...] [--count 20] [--seed 0] [--environments FOLDER]

NAME is an interpreter: ai-edge-litert at the lower bound of pyproject.toml ("oldest"), the newest, the nightly, or that
of tensorflow-cpu; without one, all. Each is in an environment of its own, which stays: delete it for newer ones.
One that cannot be installed is skipped, with a message.

Models of one operator are drawn as tests/matrix draws them, with many scales on ties. Each is converted under every
kernel set, and tflq's evaluator computes the results. The original runs in each interpreter, on reference kernels and
by default. Exit code 1: results of an operator are those of no set, a released interpreter is not the newest released
set, or no interpreter could be installed.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from matrix.draw import Case  # noqa: E402
from matrix.run import case_of  # noqa: E402
from support.reference import evaluated  # noqa: E402

import tflq  # noqa: E402
from scripts.kernel_sets import Interpreter, difference  # noqa: E402
from scripts.oldest import oldest  # noqa: E402
from scripts.target_running import installed  # noqa: E402
from tflq.legalize.deciding import Policy  # noqa: E402
from tflq.legalize.engine import legalize  # noqa: E402
from tflq.numerics.kernel_sets import DEFAULT, NAMES, NEWEST, kernel_set  # noqa: E402

RELEASED: Final[Mapping[str, str]] = {
    "oldest": next(line for line in oldest() if line.startswith("ai-edge-litert==")),
    "newest": "ai-edge-litert",
    "tensorflow": "tensorflow-cpu",
}
INTERPRETERS: Final[Mapping[str, str]] = {**RELEASED, "nightly": "ai-edge-litert-nightly"}
"""The package of each."""
FAMILIES: Final[Mapping[str, str]] = {"reference": "reference", "default": "xnnpack"}
"""The family of kernel sets of a resolver, as `NEWEST` names it."""
KNOWN: Final = {("tensorflow", "default"): ("BATCH_MATMUL", "MEAN", "SUM")}
"""Operators of an interpreter that are left out, since its delegate is older than that of xnnpack-2.3: it drops a zero
point of BATCH_MATMUL's second operand, and means and sums add theirs after they round (docs/kernel-sets.md)."""
GENERATORS: Final = (
    "binary", "relu", "leaky_relu", "prelu", "hard_swish", "softmax", "logistic_tanh", "quantize", "division",
    "comparison", "conv_2d", "depthwise_conv_2d", "transpose_conv", "fully_connected", "batch_matmul", "pool", "reduce",
    "resize", "unary", "squared_difference",
)  # fmt: skip
"""Of tests/matrix: quantized operators, one a model."""
LIMIT: Final = 60.0
"""Seconds of a model."""


class Sample(NamedTuple):
    """A model, its inputs, and its results: a file by kernel set, None where that set's arithmetic is not known."""

    name: str
    operator: str
    model: Path
    inputs: Path
    results: Mapping[str, Path | None]


class Answer(NamedTuple):
    """An interpreter's kernels on the models: how many ran; how many differ from each set; and by operator how many of
    those that agree with no set."""

    ran: int
    differing: Counter[str]
    new: Counter[str]

    @property
    def sets(self) -> list[str]:
        """The sets from which no model differs: those of this machine, where there are such."""
        names = [name for name, count in self.differing.items() if not count]
        arm64 = platform.machine().lower() in ("aarch64", "arm64")
        return [name for name in names if ("arm64" in name) == arm64] or names


def family(resolver: str) -> list[str]:
    """The kernel sets of a resolver's kernels."""
    return [name for name in NAMES if (kernel_set(name).delegated is not None) == (resolver == "default")]


def samples(folder: Path, count: int, seed: int) -> Iterator[Sample]:
    """The models that all sets compute in integers, of `count` of each generator."""
    for generator in GENERATORS:
        for number in range(count):
            case = case_of(generator, number, seed)
            static = not case.more and case.batches[0] and case.reference == "BUILTIN_REF" and not case.tolerance
            if static and case.twin is None and case.exact is None:
                sample = sample_of(case, folder, f"{generator}-{seed}-{number}")
                if sample is not None:
                    yield sample


def sample_of(case: Case, folder: Path, name: str) -> Sample | None:
    """The files of a case, and its results under each set; None if it has no integer form that the evaluator takes."""
    module = tflq.read(case.model)
    try:
        rows = legalize(module, Policy(fallback=False))[1]
        differing = {each for row in rows for each in row.differs_under} | {DEFAULT}
        forms = {each: legalize(module, Policy(fallback=False, kernel_set=kernel_set(each))) for each in differing}
        arrays = {each: named(evaluated(form, case.batches)) for each, (form, _) in forms.items()}
    except (tflq.TflqError, NotImplementedError):
        return None
    files: dict[str, Path | None] = {}
    for each, (_, rows) in forms.items():
        files[each] = None if any(row.warning for row in rows) else folder / f"{name}.{each}.npz"
        np.savez(files[each] or folder / "unknown.npz", **arrays[each])
    model, inputs = folder / f"{name}.tflite", folder / f"{name}.npz"
    model.write_bytes(case.model)
    np.savez(inputs, **named(case.batches))
    opcode = rows[0].op.name.removeprefix("tfl.").upper()
    return Sample(name, opcode, model, inputs, {each: files.get(each, files[DEFAULT]) for each in NAMES})


def named(runs: Sequence[Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays as interpreter_worker.py names them."""
    return {f"{run} {place}": array for run, row in enumerate(runs) for place, array in enumerate(row)}


def answer(python: Path, resolver: str, models: Sequence[Sample], folder: Path) -> Answer:
    """An interpreter's results on the models, beside those of the sets."""
    names, outputs = family(resolver), folder / "outputs.npz"
    ran, differing, new = 0, Counter(dict.fromkeys(names, 0)), Counter[str]()
    with closing(Interpreter(str(python), LIMIT)) as interpreter:
        for sample in models:
            if interpreter.run(sample.model, sample.inputs, outputs, resolver, 1):
                continue
            ran += 1
            known = {name: file for name in names if (file := sample.results[name]) is not None}
            whys = {file: difference(file, outputs) for file in set(known.values())}
            differing.update(name for name, file in known.items() if whys[file])
            if len(known) == len(names) and all(whys.values()):
                new[sample.operator] += 1
                print(f"    {sample.name} ({sample.operator}), {resolver}: {next(iter(whys.values()))}")
    return Answer(ran, differing, new)


def verdict(name: str, resolver: str, found: Answer) -> tuple[str, bool]:
    """An interpreter's sets, or why it is none, and whether that is as expected."""
    if found.new:
        listed = ", ".join(f"{operator} ({count})" for operator, count in sorted(found.new.items()))
        return f"new, models that agree with no set: {listed}", False
    if not found.ran:
        return "no model runs", False
    if not found.sets:
        closest, count = min(found.differing.items(), key=lambda each: each[1])
        return f"a mixture of sets: {count} models differ from {closest}, the closest", False
    expected = NEWEST[FAMILIES[resolver]]
    of_machine = [each for each in found.sets if each.startswith(expected)]
    if name in RELEASED and not of_machine:
        return f"{', '.join(found.sets)} instead of {expected}", False
    return ", ".join(found.sets), True


def version(python: Path, package: str) -> str:
    """The version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package.partition('==')[0]!r}))"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def separated(models: Sequence[Sample]) -> str:
    """How many models tell sets apart, and the pairs that none does."""
    pairs, telling = Counter[tuple[str, str]](), 0
    for sample in models:
        unequal = [
            (a, b)
            for resolver in FAMILIES
            for a, b in combinations(family(resolver), 2)
            if (first := sample.results[a]) and (second := sample.results[b]) and difference(first, second)
        ]
        pairs.update(unequal)
        telling += bool(unequal)
    every = [pair for resolver in FAMILIES for pair in combinations(family(resolver), 2)]
    missing = [" and ".join(pair) for pair in every if not pairs[pair]]
    text = f"{len(models)} models of {len({s.operator for s in models})} operators, {telling} tell sets apart"
    return text + (f"; none tells apart {', '.join(missing)}" if missing else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*INTERPRETERS, []], metavar="NAME")
    parser.add_argument("--count", type=int, default=20, help="models of each generator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "canary")
    options = parser.parse_args(arguments)
    chosen = {name: INTERPRETERS[name] for name in options.names or INTERPRETERS}
    pythons = {name: installed(options.environments / name, [package]) for name, package in chosen.items()}
    lines, fine = [], any(pythons.values())
    with tempfile.TemporaryDirectory() as place:
        models = list(samples(Path(place), options.count, options.seed))
        print(separated(models), flush=True)
        for name, python in pythons.items():
            if python is None:
                lines.append((name, chosen[name], "", "skipped: it cannot be installed"))
                continue
            for resolver in FAMILIES:
                known = KNOWN.get((name, resolver), ())
                found = answer(python, resolver, [m for m in models if m.operator not in known], Path(place))
                text, expected = verdict(name, resolver, found)
                text += f" but {', '.join(known)}" if known else ""
                fine &= expected
                package = f"{chosen[name].partition('==')[0]} {version(python, chosen[name])}"
                lines.append((name, package, resolver, f"{text}  ({found.ran} models ran)"))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, [*widths, 0], strict=True)).rstrip())
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
