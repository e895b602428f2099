"""Read mutated models: each gives a module or InvalidModelError, never anything else.

    python scripts/fuzz.py                                 20,000 mutants of ten models
    python scripts/fuzz.py --count 600 --seed 7            fewer, from another seed
    python scripts/fuzz.py --only 1234 --save x            the mutant of one number again, saved
    python scripts/fuzz.py --forms --count 30000 --seed 3  drawn models, converted to every form
    python scripts/fuzz.py --c --count 5000                mutants, converted to C, which must compile without a warning

Half of the mutants are changed byte by byte (1 to 64 bytes changed, inserted, deleted, or the end cut off), half by
the schema (indices, shapes, types, scales, attributes, lengths) and encoded again. With `--forms`, files are drawn by
structure (`fuzz_models.py`), and each is converted to every form (`fuzz_forms.py`): only a `TflqError` may end that.
File N of a seed is the same in every run. A worker process runs them under a memory limit; one that dies or hangs is
replaced, and its file reported. A module that was read must also hold what it promises: constants can be read, and it
can be written and read again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.fuzz_forms import compile_as_c, convert_all, place_of  # noqa: E402
from scripts.fuzz_mutants import is_tosa, mutant  # noqa: E402
from tflq.base.errors import InvalidModelError, UnsupportedError  # noqa: E402
from tflq.formats.tflite.reader import read  # noqa: E402
from tflq.formats.tflite.writer import write  # noqa: E402
from tflq.formats.tosa.read import read_tosa  # noqa: E402
from tflq.formats.tosa.write import tosa_bytes  # noqa: E402
from tflq.ir.module import Module  # noqa: E402

SECONDS = 5
SPARE_MEMORY = 200 << 20
ADDRESS_SPACE = 6 << 30
MOST_SEED_BYTES = 1 << 20
SEEDS = 10
MOST_LISTED = 3


def seed_models() -> list[Path]:
    """Ten models: those of the project, then small ones of the corpus, spread over its folders."""
    own = sorted((ROOT / "models").glob("*.tflite"))
    corpus = Path(os.environ.get("TFLQ_CORPUS", ROOT.parent / "shared"))
    wanted = (
        "zoo/*/*lstm*",
        "zoo/*/pretrainedResnet*int8*",
        "zoo/*/*composite*",
        "zoo/*/gather_string*",
        "zoo/*/person*",
    )
    others = [path for pattern in wanted for path in sorted(corpus.glob(f"{pattern}.tflite"))]
    spread = [*own[2:5], *own[-1:], *own[::4], *others]
    return [path for path in dict.fromkeys(spread) if path.stat().st_size <= MOST_SEED_BYTES][:SEEDS]


def examine(data: bytes) -> str:
    """What happens to one file: "refused" or "accepted". Any other exception is the finding."""
    reader, writer = (read_tosa, tosa_bytes) if is_tosa(data) else (read, write)
    try:
        module: Module = reader(data)
    except InvalidModelError:
        return "refused"
    except UnsupportedError:
        if reader is read:
            raise
        return "refused"
    for op in module.ops():
        for value in op.operands:
            if value is not None and value.is_constant and value.type.storage.numpy and "sparsity" not in value.info:
                _ = value.array
    reader(writer(module))
    return "accepted"


@dataclass
class Job:
    """The files that one process examines: mutants of the models at `paths`, or with `forms` drawn ones. to_c: they are
    converted to C."""

    paths: list[str]
    seed: int
    start: int
    stop: int
    forms: bool = False
    to_c: bool = False

    def examine(self, data: bytes) -> tuple[Counter[str], list[str]]:
        """How many conversions of a file had which end, and what is wrong."""
        return convert_all(data) if self.forms else compile_as_c(data) if self.to_c else examine_once(data)

    def file(self, number: int) -> bytes:
        """File `number` of the seed."""
        if self.forms:
            from scripts.fuzz_models import drawn

            return drawn(self.seed, number)
        return mutant([Path(path).read_bytes() for path in self.paths], self.seed, number)


@dataclass
class Outcome:
    """The result of a run. `failures` are pairs of a number and a finding."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0

    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, counts: dict[str, int], findings: list[str], seconds: float) -> None:
        """Counts a result; the first findings of each kind are printed as they come."""
        self.counts.update(counts)
        self.slowest = max(self.slowest, seconds)
        for finding in findings:
            self.failures.append((number, finding))
            self.kinds[kind_of(finding)] += 1
            if self.kinds[kind_of(finding)] <= MOST_LISTED:
                print(f"file {number}: {finding}", file=sys.stderr, flush=True)


Put = Callable[[dict[str, Any]], None]


def work(job: Job, put: Put) -> None:
    """Examine files one by one, in this process; say each number before and each result after."""
    for number in range(job.start, job.stop):
        put({"number": number})
        started = time.perf_counter()
        data = job.file(number)
        counts, findings = job.examine(data)
        seconds = time.perf_counter() - started
        put({"number": number, "counts": counts, "findings": findings, "seconds": seconds})


def examine_once(data: bytes) -> tuple[Counter[str], list[str]]:
    """`examine`, with limits of time and memory."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"over {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        result, findings = examine(data), []
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
        result, findings = "failed", [f"{type(error).__name__}: {error} at {place_of(error)}"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > 4 * len(data) + SPARE_MEMORY:
        findings.append(f"memory: {grown >> 20} MiB for a file of {len(data)} bytes")
    return Counter({result: 1}), findings


def run(paths: list[Path], seed: int, numbers: range, *, forms: bool = False, to_c: bool = False) -> Outcome:
    """Examine files in child processes; one that dies is replaced."""
    outcome = Outcome()
    begin = numbers.start
    while begin < numbers.stop:
        begin = _child(Job([str(path) for path in paths], seed, begin, numbers.stop, forms, to_c), outcome)
    return outcome


def _child(job: Job, outcome: Outcome) -> int:
    """Run one child as far as it gets; the number to go on with."""
    command = [sys.executable, __file__, "--worker", json.dumps(vars(job))]
    started = job.start
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child:
            for message in map(json.loads, child.stdout or ()):
                started = message["number"]
                if "counts" in message:
                    outcome.add(**message)
        if child.returncode == 0:
            return job.stop
        errors.seek(0)
        last = errors.read().strip().splitlines()[-1:]
    outcome.add(started, {"died": 1}, [f"process ended with {child.returncode}: {''.join(last)}"], 0)
    return started + 1


def _work_as_child(job: Job) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    work(job, lambda message: print(json.dumps(message), flush=True))


def kind_of(finding: str) -> str:
    """The exception of a finding, and its place."""
    error, _, place = finding.partition(": ")[2].rpartition(" at ")
    return f"{error.partition(':')[0]} at {place}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forms", action="store_true", help="draw models by structure and convert each to every form")
    parser.add_argument("--c", action="store_true", help="convert mutants to C, and compile it with all warnings")
    parser.add_argument("--only", type=int, help="make one file and say what happens to it")
    parser.add_argument("--save", type=Path, help="with --only: where to write the file")
    parser.add_argument("--models", type=Path, nargs="+", help="mutate these instead")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work_as_child(Job(**json.loads(options.worker)))
        return 0
    paths = [] if options.forms else options.models or seed_models()
    if options.only is not None:
        job = Job([str(p) for p in paths], options.seed, 0, 0, options.forms, options.c)
        data = job.file(options.only)
        if options.save:
            options.save.write_bytes(data)
        print(job.examine(data))
        return 0
    numbers = range(options.start, options.start + options.count)
    outcome = run(paths, options.seed, numbers, forms=options.forms, to_c=options.c)
    print(json.dumps({**outcome.counts, "slowest_s": round(outcome.slowest, 3), "models": [p.name for p in paths]}))
    for kind, count in outcome.kinds.most_common():
        print(f"{count} × {kind}")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
