"""`rules/kernels.toml`: which quantized kernels the interpreter gets right, measured.

    python scripts/make_data.py kernels [--count 80] [--jobs 2] [--partial FILE] [--operator NAME ...]
    python scripts/make_data.py kernels --limits               only zero points and scales, of the table as it is

Models of one operator (kernel_trials.py) run in the interpreter, in a child process that may die, with the reference
kernels and with the optimized ones. A signature (builtin, element types) is listed if nearly every model of it that
keeps some constraints runs, and its results are those of the operator in float between DEQUANTIZE and QUANTIZE, but for
rounding inside the kernel. Constraints are those that best tell right models from wrong ones.

Operators that compute in float on quantized constants are not listed: they are kept on every target that does not list
them itself, where the interpreter has a kernel (legalize/caveats.py).

`unsigned` and `uniform`: the kernels whose uint8 and per-axis models (with equal scales) give the same results after
the exact rescale to int8 and per-layer, in every model that is right before and after it.

Then each line is narrowed to the zero points and scales that its kernel takes (kernel_limits.py).

With --partial what was measured is kept in a file, and a run that was ended goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scripts.kernel_limits import narrowed
from scripts.kernel_outcomes import Outcome, measure
from scripts.kernel_table import Key, Sample, lines_of, rescaled, text_of
from scripts.kernel_trials import units

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "rules" / "kernels.toml"


def main(arguments: Sequence[str] = ()) -> None:
    """Measures, and writes the table."""
    parser = argparse.ArgumentParser(
        "make_data.py kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=80, help="models of each generator")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--operator", nargs="*", default=[""], help="only units whose names contain one of these, and print the table"
    )
    parser.add_argument("--partial", type=Path, help="a file of what was measured, read and appended to")
    parser.add_argument("--limits", action="store_true", help="narrow the lines of the table that there is")
    a = parser.parse_args(arguments)
    if a.limits:
        known_table = tomllib.loads(TABLE.read_text())
        kernels = {n: [lines] if isinstance(lines, str) else lines for n, lines in known_table["kernels"].items()}
        TABLE.write_text(text_of(narrowed(kernels), known_table["rescale"]))
        return
    wanted = [unit for unit in units() if any(name in unit for name in a.operator)]
    known = _known(a.partial, a.count)
    with ProcessPoolExecutor(a.jobs, get_context("spawn")) as pool:
        pending = {pool.submit(measure, unit, a.count): unit for unit in wanted if unit not in known}
        for future in as_completed(pending):
            unit = pending[future]
            known[unit] = future.result()
            print(unit, file=sys.stderr, flush=True)
            if a.partial is not None:
                with a.partial.open("a") as file:
                    file.write(json.dumps([unit, a.count, list(map(_flat, known[unit]))]) + "\n")
    samples, shifts = _gathered(known[unit] for unit in wanted)
    text = text_of(narrowed(lines_of(samples)), rescaled(shifts))
    if any(a.operator):
        print(text)
    else:
        TABLE.write_text(text)


def _known(path: Path | None, count: int) -> dict[str, list[Outcome]]:
    if path is None or not path.exists():
        return {}
    rows = map(json.loads, path.read_text().splitlines())
    return {unit: list(map(_outcome_of, outcomes)) for unit, of, outcomes in rows if of == count}


def _flat(outcome: Outcome) -> list[Any]:
    return [*outcome[:2], astuple(outcome.sample), *outcome[3:]]


def _outcome_of(row: list[Any]) -> Outcome:
    operator, key, sample, unsigned, uniform = row
    return Outcome(operator, tuple(key), Sample(*sample), unsigned, uniform)


def _gathered(
    units: Iterable[list[Outcome]],
) -> tuple[dict[str, dict[Key, list[Sample]]], dict[str, dict[str, list[bool]]]]:
    samples: dict[str, dict[Key, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    shifts: dict[str, dict[str, list[bool]]] = {"unsigned": defaultdict(list), "uniform": defaultdict(list)}
    for found in chain.from_iterable(units):
        samples[found.operator][found.key].append(found.sample)
        for kind, answer in (("unsigned", found.unsigned), ("uniform", found.uniform)):
            if answer is not None:
                shifts[kind][found.operator].append(answer)
    return samples, shifts
