"""Converts models to C, compiles them with every warning as an error, runs them beside the interpreter and prints what
became of each: equal, different, refused and why.

    scripts/c_matrix.py FOLDER... [--cc "gcc -O1"] [--sanitize] [--seeds 2] [--data blob]
    scripts/c_matrix.py FOLDER... --kernel-set optimized-2.3

For another kernel set, which the interpreter may not be, the self-test alone runs: it compares with tflq's evaluator.

docs/guide/c.md says what must hold.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import tflq
from tflq.base.errors import TflqError

WARNINGS = (
    "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wcast-align -Werror".split()
)
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all"


def outcome(model: Path, folder: Path, options: argparse.Namespace) -> tuple[str, str]:
    """What became of a model, in a word, and details."""
    source = folder / "m.c"
    try:
        choices = {"data": options.data} if options.data else {}
        tflq.convert(
            model, source, choices=choices, **({"kernel_set": options.kernel_set} if options.kernel_set else {})
        )
    except TflqError as error:
        return "refused", str(error)
    compiler, tested = options.cc.split(), "int main(" in source.read_text()
    sources = [source, *folder.glob("*_data.c")]
    command = [*compiler, *WARNINGS, "-o", folder / "m", *sources]
    command += ["-DM_MAIN", "-lm"] if tested else ["-c"] if len(sources) < 2 else ["-fsyntax-only"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    if checked.returncode:
        return "does not compile", next((x for x in checked.stderr.splitlines() if "error" in x), checked.stderr[:300])
    if tested and subprocess.run([folder / "m"], capture_output=True, check=False).returncode:
        return "self-test fails", ""
    if options.kernel_set:
        named = f"kernels: {options.kernel_set}" in source.read_text()
        return ("equal" if tested and named else "not tested"), "by its self-test"
    cc = f"{options.cc} {SANITIZE}" if options.sanitize else options.cc
    try:
        result = tflq.verify(model, source, seeds=options.seeds, interface=False, timeout=300, cc=cc)
    except TflqError as error:
        return "not verified", str(error)
    if result.incomparable:
        return "original does not run", str(result.incomparable[0])
    if result.failures:
        return "does not run", str(result.failures[0])
    if not result.runs:
        return "not compared", str(result.uncompared[:1] or result.notes[:1])
    inexact = "NOT bit-exact" in source.with_suffix(".h").read_text()
    differing = sum(apart.differing for run in result.runs for _, apart in run.outputs)
    word = "announced" if inexact else "differs" if differing else "equal"
    return word, f"{differing} differ of {sum(apart.elements for run in result.runs for _, apart in run.outputs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--cc", default="gcc -O1")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data")
    parser.add_argument("--kernel-set")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    models = [m for f in options.folders for m in (sorted(f.rglob("*.tflite")) if f.is_dir() else [f])]
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for model in models:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                word, details = outcome(model, Path(folder), options)
            except Exception as error:  # noqa: BLE001 - a defect, and the others go on
                word, details = (
                    "crash",
                    f"{type(error).__name__}: {error} ({traceback.extract_tb(error.__traceback__)[-1]})",
                )
        counts[word] += 1
        if word == "refused":
            reasons[re.sub(r"'[^']*'|/\S+|\d+", "_", details)[:160]] += 1
        if not (options.quiet and word in ("equal", "refused")):
            print(f"{word:16} {time.perf_counter() - start:6.1f} s  {model.name}: {details[:300]}", flush=True)
    print(dict(counts))
    for reason, count in reasons.most_common():
        print(f"{count:4} {reason}")


if __name__ == "__main__":
    main()
