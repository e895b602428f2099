"""Feed mutated models to the readers: each must give a module or `InvalidModelError`, in bounded time and memory.

A TOSA graph may be refused by `UnsupportedError` as well.

    python scripts/fuzz.py --count 20000            the models of the project, and the corpus if it is there
    python scripts/fuzz.py --models a.tosa b.tosa   TOSA graphs, or other TFLite models
    python scripts/fuzz.py --only 1234 --save x     the mutant of one number again, saved

Half of the mutants are changed byte by byte (1 to 64 bytes changed, inserted, deleted, or the end cut off), half by
the schema (indices, shapes, types, scales, attributes, lengths) and encoded again. Mutant N of a seed is the same in
every run. A worker process runs them under a memory limit; one that dies or hangs is replaced, and its mutant reported.
An accepted module must also hold what it promises: constants can be read, and it can be written and read again.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tflq.errors import InvalidModelError, UnsupportedError  # noqa: E402
from tflq.flatbuffer.codec import decode, encode  # noqa: E402
from tflq.flatbuffer.layout import TFLITE, TOSA, Schema  # noqa: E402
from tflq.flatbuffer.reader import read  # noqa: E402
from tflq.flatbuffer.writer import write  # noqa: E402
from tflq.ir.core import Module  # noqa: E402
from tflq.tosa.read import read_tosa  # noqa: E402
from tflq.tosa.write import tosa_bytes  # noqa: E402

SECONDS = 5
SPARE_MEMORY = 200 << 20
ADDRESS_SPACE = 4 << 30
MOST_SEED_BYTES = 1 << 20
SEEDS = 10

Tree = dict[str, Any]

INTEGERS = (-(1 << 31), -129, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 127, 255, 256, 65536, (1 << 31) - 1)
FLOATS = (
    0.0,
    -0.0,
    -1.0,
    1.0,
    1e-45,
    1e-40,
    1e-38,
    1e-7,
    0.5,
    255.0,
    1e7,
    3.4e38,
    float("inf"),
    float("-inf"),
    float("nan"),
)


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


def mutant(models: list[bytes], seed: int, number: int) -> bytes:
    """Mutant `number`: always the same bytes for the same models and seed."""
    rng = random.Random(f"{seed}:{number}")  # noqa: S311
    data = rng.choice(models)
    return mutate_bytes(data, rng) if rng.random() < 0.5 else mutate_fields(data, rng)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change, insert or delete 1 to 64 bytes, mostly where the structure is; or cut the end off."""
    out = bytearray(data)
    kind = rng.choice(("change", "change", "change", "bits", "insert", "delete", "cut", "words"))
    if kind == "cut":
        return bytes(out[: rng.randrange(len(out))])
    structure = min(len(out), 4096)
    for _ in range(rng.choice((1, 1, 2, 4, 16, 64))):
        near = rng.random() < 0.5
        place = (
            rng.randrange(structure) + (len(out) - structure if rng.random() < 0.5 else 0)
            if near
            else rng.randrange(len(out))
        )
        place = min(place, len(out) - 1)
        if kind == "change":
            out[place] = rng.randrange(256)
        elif kind == "bits":
            out[place] ^= 1 << rng.randrange(8)
        elif kind == "insert":
            out[place:place] = rng.randbytes(rng.choice((1, 2, 4)))
        elif kind == "delete" and len(out) > 16:
            del out[place : place + rng.choice((1, 2, 4))]
        elif kind == "words":
            word = rng.choice(INTEGERS) & 0xFFFFFFFF
            at = min(place & ~3, len(out) - 4)
            out[at : at + 4] = word.to_bytes(4, "little")
    return bytes(out)


def mutate_fields(data: bytes, rng: random.Random) -> bytes:
    """Change one to four fields of the decoded model, anywhere in it, by type."""
    schema = TOSA if _is_tosa(data) else TFLITE
    tree = copy.deepcopy(decode(data, schema=schema))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_fields(schema, schema.root, tree))
        holder, layout_field = rng.choice(_balanced(places, rng))
        holder[layout_field.name] = _changed(schema, holder[layout_field.name], layout_field, rng)
    return encode(tree, schema=schema)


def _is_tosa(data: bytes) -> bool:
    return data[4:8] == TOSA.identifier


def _fields(schema: Schema, name: str, tree: Tree) -> Iterator[tuple[Tree, Any]]:
    for item in schema.table(name).fields:
        if item.kind == "union_type":
            continue
        value = tree[item.name]
        yield tree, item
        if value is None:
            continue
        if item.kind == "table":
            yield from _fields(schema, item.type, value)
        elif item.kind == "union":
            yield from _fields(schema, *value)
        elif item.kind == "tables":
            for element in value:
                yield from _fields(schema, item.type, element)


def _balanced(places: list[tuple[Tree, Any]], rng: random.Random) -> list[tuple[Tree, Any]]:
    """All places with one field name, so that rare fields are hit as often as frequent ones; set ones first."""
    names = sorted({item.name for holder, item in places if rng.random() < 0.1 or _is_set(holder[item.name])})
    name = rng.choice(names or sorted({item.name for _, item in places}))
    found = [(holder, item) for holder, item in places if item.name == name]
    return [place for place in found if place[0][name] is not None] or found


def _is_set(value: Any) -> bool:
    return bool(value.size) if isinstance(value, np.ndarray) else bool(value)


def _changed(schema: Schema, value: Any, item: Any, rng: random.Random) -> Any:
    if item.kind == "scalar":
        return _number(item.scalar, rng)
    if item.kind == "enum":
        return rng.choice(list(schema.enum(item.type).values))
    if item.kind == "string":
        return rng.choice((None, "", "x", "ünï", "a" * 300))
    if item.kind in ("vector", "enums"):
        return _changed_vector(value, item, rng)
    if item.kind == "union":
        return _changed_union(schema, item, rng)
    if item.kind == "strings" and value and rng.random() < 0.3:
        return (*value[:-1], rng.choice(("", "x", "a" * 300)))
    if item.kind in ("tables", "strings") and value:
        return _changed_list(list(value), rng)
    return None if rng.random() < 0.5 else value


def _number(scalar: str, rng: random.Random) -> Any:
    if scalar == "bool":
        return rng.random() < 0.5
    if scalar.startswith("float"):
        return rng.choice(FLOATS)
    limits = np.iinfo(scalar)
    return int(np.clip(rng.choice(INTEGERS), limits.min, limits.max))


def _changed_vector(value: Any, item: Any, rng: random.Random) -> Any:
    if value is None or rng.random() < 0.1:
        return () if rng.random() < 0.5 else None
    if item.kind == "enums":
        return tuple(value)[1:]
    if len(value) > 4096 or isinstance(value, np.ndarray):
        return np.asarray(value)[: rng.choice((0, 1, len(value) // 2, max(len(value) - 1, 0)))]
    values = list(value)
    change = rng.random()
    if change < 0.6 and values:
        values[rng.randrange(len(values))] = _number(item.scalar, rng)
    elif change < 0.8:
        values.insert(rng.randrange(len(values) + 1), _number(item.scalar, rng))
    elif change < 0.95 and values:
        del values[rng.randrange(len(values))]
    elif values:
        values *= 1500 // len(values) + 1  # long vectors are decoded in another way
    return tuple(values)


def _changed_union(schema: Schema, item: Any, rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return None
    member = rng.choice([name for name in schema.union(item.type).values if name != "NONE"])
    defaults: Tree = {f.name: f.default for f in schema.table(member).fields if f.kind != "union_type"}
    for f in schema.table(member).fields:
        if f.kind == "enum":
            defaults[f.name] = schema.enum(f.type).names[int(f.default or 0)]
    return (member, defaults)


def _changed_list(values: list[Any], rng: random.Random) -> list[Any]:
    place, change = rng.randrange(len(values)), rng.random()
    if change < 0.3:
        del values[place]
    elif change < 0.6:
        values.append(copy.deepcopy(values[place]))
    else:
        other = rng.randrange(len(values))
        values[place], values[other] = values[other], values[place]
    return values


def examine(data: bytes) -> str:
    """What happens to one file: "refused" or "accepted". Any other exception is the finding."""
    reader, writer = (read_tosa, tosa_bytes) if _is_tosa(data) else (read, write)
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
class Outcome:
    """What a run found. `failures` are (number, what)."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, number: int, result: str, seconds: float) -> None:
        clean = result in ("refused", "accepted")
        self.counts[result if clean else "failed"] += 1
        self.slowest = max(self.slowest, seconds)
        if not clean:
            self.failures.append((number, result))


def work(models: list[bytes], seed: int, numbers: range, put: Callable[[Tree], None]) -> None:
    """Examine mutants one by one, in this process; say each number before and each result after."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"over {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    for number in numbers:
        put({"number": number})
        data = mutant(models, seed, number)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
        started = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            result = examine(data)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
            result = f"{type(error).__name__}: {error} at {_place(error)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.perf_counter() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > 4 * len(data) + SPARE_MEMORY:
            result = f"memory: {grown >> 20} MiB for a file of {len(data)} bytes"
        put({"number": number, "result": result, "seconds": seconds})


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "tflq" in f.filename]
    return ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[-2:])


def run(paths: list[Path], seed: int, numbers: range) -> Outcome:
    """Examine mutants in child processes; one that dies is replaced."""
    outcome = Outcome()
    begin = numbers.start
    while begin < numbers.stop:
        begin = _child(paths, seed, range(begin, numbers.stop), outcome)
    return outcome


def _child(paths: list[Path], seed: int, numbers: range, outcome: Outcome) -> int:
    """Run one child as far as it gets; the number to go on with."""
    job = json.dumps({"paths": [str(p) for p in paths], "seed": seed, "start": numbers.start, "stop": numbers.stop})
    command = [sys.executable, __file__, "--worker", job]
    started = numbers.start
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child:
            for message in map(json.loads, child.stdout or ()):
                started = message["number"]
                if "result" in message:
                    outcome.add(started, message["result"], message["seconds"])
        if child.returncode == 0:
            return numbers.stop
        errors.seek(0)
        last = errors.read().strip().splitlines()[-1:]
    outcome.counts["died"] += 1
    outcome.failures.append((started, f"process ended with {child.returncode}: {''.join(last)}"))
    return started + 1


def _work_as_child(job: Tree) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))
    models = [Path(p).read_bytes() for p in job["paths"]]
    work(models, job["seed"], range(job["start"], job["stop"]), lambda m: print(json.dumps(m), flush=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="make one mutant and say what happens to it")
    parser.add_argument("--save", type=Path, help="with --only: where to write the mutant")
    parser.add_argument("--models", type=Path, nargs="+", help="mutate these instead")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work_as_child(json.loads(options.worker))
        return 0
    paths = options.models or seed_models()
    if options.only is not None:
        data = mutant([p.read_bytes() for p in paths], options.seed, options.only)
        if options.save:
            options.save.write_bytes(data)
        print(examine(data))
        return 0
    outcome = run(paths, options.seed, range(options.start, options.start + options.count))
    print(json.dumps({**outcome.counts, "slowest_s": round(outcome.slowest, 3), "models": [p.name for p in paths]}))
    for number, what in outcome.failures[:50]:
        print(f"mutant {number}: {what}")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
