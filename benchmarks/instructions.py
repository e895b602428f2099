"""Instructions of conversions and of a process' start, held to a budget.

    python benchmarks/instructions.py [MODEL...] [--write]

Times differ from run to run by more than a change that slows every conversion by 3 %; what valgrind's cachegrind counts
differs by less than 1 %. A conversion's count is the mean of some in a process that has made each once. The start's
is that of `tflq convert` with all that it imports, beyond `import numpy, click` and a conversion.

The counts of each build of Python are in instructions.toml: the same code takes 9 to 17 % fewer on an optimised one.
Without `--write`, the exit code is 1 if a count is more than 3 % above its budget. Without valgrind nothing is counted,
and on a build that has no budget nothing is compared, which is said aloud.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from claims import Build, Claim, networks, table

ROOT: Final = Path(__file__).resolve().parents[1]
BUDGETS: Final = ROOT / "benchmarks" / "instructions.toml"
START: Final = "start of a process"
SMALL: Final = "cnn_int8"
MODELS: Final = (SMALL, "mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq")
FORMS: Final = ("tflite", "tosa", "float32", "onnx")
"""The suffixes of results, and `--mac float32`."""
MOST: Final = 1.03
"""Times its budget, what a count may be."""
REPEAT: Final = {"tflite": 11, "tosa": 11, "float32": 1, "onnx": 1}
"""Conversions that a count is the mean of: the collector searches what they left behind with every eleventh. Those that
search for lines take three times as long, and what the collector adds is less of them."""
MILLION: Final = 1_000_000
COUNTING: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
"""Callgrind, which follows calls too, gives the same count in twice the time."""
LEFT_OUT: Final = ("PYTHONDONTWRITEBYTECODE", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables of the environment that a process counted does not see: it keeps bytecode, and prints as in a pipe. Where
the width of a terminal is stated, as pytest's import of readline does, it loads rich, which is a third of its start."""
PROGRAM: Final = """
import sys, tflq
for form in sys.argv[3:]:
    if form == "float32":
        tflq.convert(sys.argv[1], sys.argv[2] + "tflite", mac="float32", force=True)
    else:
        tflq.convert(sys.argv[1], sys.argv[2] + form, force=True)
"""


def counted(arguments: Sequence[str]) -> int:
    """Instructions of a process of Python. RuntimeError with its output if it fails."""
    command = [sys.executable, *arguments]
    env = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    env |= {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}  # idle threads of BLAS spin as long as they like
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)  # leaves bytecode behind
    run = subprocess.run([*COUNTING, *command], cwd=ROOT, env=env, capture_output=True, text=True)
    lines = [line for line in run.stderr.splitlines() if "I   refs:" in line]
    if run.returncode or not lines:
        raise RuntimeError(f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr}")
    return int(lines[0].split()[-1].replace(",", ""))


def counts(names: Sequence[str], forms: Sequence[str] = FORMS) -> Iterator[tuple[str, int]]:
    """The count of each conversion, by model and form; with `SMALL` also that of the start."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path in networks(names).items():
            if path is None:
                continue
            program = ["-c", PROGRAM, str(path), f"{folder}/out."]
            once = counted([*program, *forms])
            of = {form: (counted([*program, *forms, *[form] * REPEAT[form]]) - once) // REPEAT[form] for form in forms}
            yield from ((f"{name} to {form}", count) for form, count in of.items())
            if name == SMALL and "tflite" in of:
                whole = counted(["-m", "tflq", "convert", str(path), f"{folder}/out.tflite", "--force"])
                yield START, whole - of["tflite"] - counted(["-c", "import numpy, click"])


def budget(build: Build) -> Mapping[str, int]:
    """The counts that are noted for a build of Python, by case; empty where there are none."""
    rows = tomllib.loads(BUDGETS.read_text(encoding="utf-8")).get("build", ())
    return next((row["counts"] for row in rows if Build(**row["of"]) == build), {})


def claims(names: Sequence[str] = MODELS, forms: Sequence[str] = FORMS) -> Iterator[Claim]:
    """Each count against its budget."""
    build = Build.here()
    if shutil.which("valgrind") is None:
        print("SKIPPED: no valgrind, which counts instructions", flush=True)
        return
    noted = budget(build)
    if not noted:
        print(f"SKIPPED: {BUDGETS.name} has no budget for {build}", flush=True)
    for case, count in counts(names, forms):
        most = round(noted[case] * MOST / MILLION, 1) if case in noted else None
        yield Claim("instructions", case, count / MILLION, most, "M", str(build))


def write(found: Sequence[Claim]) -> None:
    """Notes the counts of this build; those of others, and of what was not counted, stay."""
    begin, _, _ = BUDGETS.read_text(encoding="utf-8").partition("[[build]]")
    rows = tomllib.loads(BUDGETS.read_text(encoding="utf-8")).get("build", ())
    builds = {Build(**row["of"]): row["counts"] for row in rows}
    here = builds.setdefault(Build.here(), {})
    here |= {claim.case: round((claim.figure or 0) * MILLION) for claim in found}
    text = begin
    for build, cases in builds.items():
        text += f"[[build]]\nof = {build.toml()}\n\n[build.counts]\n"
        text += "".join(f'"{case}" = {count:_}\n' for case, count in sorted(cases.items())) + "\n"
    BUDGETS.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help=f"by name; {', '.join(MODELS)} if none is given")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="of the results; all by default")
    parser.add_argument("--write", action="store_true", help="note the counts as the budget of this build of Python")
    arguments = parser.parse_args()
    found = list(claims(arguments.models, arguments.forms))
    print(table(found), end="")
    if arguments.write:
        write(found)
        return 0
    return int(any(claim.verdict == "NOT MET" for claim in found))


if __name__ == "__main__":
    sys.exit(main())
