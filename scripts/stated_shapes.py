"""Convert models whose stated shapes are opened, closed, unranked or changed at random: none may end in a bug.

    python scripts/stated_shapes.py --count 2000           models/, the samples of the coverage table, and the corpus
    python scripts/stated_shapes.py --match dequantize     only models whose name contains this
    python scripts/stated_shapes.py --only 1234 --save x   one mutant again, saved

A mutant is converted in several ways (`WAYS`). Each must end in a file that gives what the interpreter makes of the
mutant, if it runs, or in InvalidModelError or UnsupportedError with a sentence that names a tensor or an operator.
Mutant N of a seed is the same in every run. A worker process converts and runs; one that dies is replaced.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from tflq.dialects.effects import entry_functions  # noqa: E402
from tflq.formats.flatbuffer.codec import decode, encode  # noqa: E402
from tflq.transforms.shape_inference import Inference, stored_shape  # noqa: E402

SECONDS = 15
MOST_BYTES = 1 << 20
WAYS: Mapping[str, Mapping[str, Any]] = {
    "integer": {},
    "kernels": {"target": "kernels"},
    "float32": {"mac": "float32"},
    "device": {"target": str(ROOT / "rules" / "npu_example.toml")},
    "variables": {"state": "variables"},
    "real": {"semantics": "real"},
    "batch": {"batch": 2},
    "tosa": {"format": "tosa"},
    "mlir": {"format": "mlir"},
}
UNCOMPARED = ("batch", "real")
"""Ways whose results need not be the mutant's."""
NAMES = re.compile(r"tensor|operator|input|output|result|subgraph|function|'")
"""What a message has that says where."""
KINDS = ("open", "open", "open", "open as 1", "close", "unrank", "scalar", "zero", "other", "rank")
GROUPS = ("batch", "one", "one", "inputs", "outputs", "inner", "some", "every")

Tree = dict[str, Any]


def seeds(match: str = "") -> dict[str, Callable[[], bytes]]:
    """Names of models, and what loads each."""
    from tflq.tools.coverage.table import samples

    found: dict[str, Callable[[], bytes]] = {name: lambda data=data: data for name, data in samples()}  # type: ignore[misc]
    corpus = Path(os.environ.get("TFLQ_CORPUS", ROOT.parent / "shared"))
    for path in (*sorted((ROOT / "models").glob("*.tflite")), *sorted(corpus.rglob("*.tflite"))):
        if path.stat().st_size <= MOST_BYTES:
            found[str(path)] = path.read_bytes
    return {name: load for name, load in found.items() if match in name}


def mutant(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The model with other stated shapes, and what was changed."""
    tree = copy.deepcopy(decode(data))
    done = [_change(tree, rng) for _ in range(rng.choice((1, 1, 2, 3)))]
    return encode(tree), "; ".join(done)


def _change(tree: Tree, rng: random.Random) -> str:
    graph = rng.choice(tree["subgraphs"])
    empty = {i for i, b in enumerate(tree["buffers"] or ()) if b["data"] is None or not len(b["data"])}
    tensors = [i for i, t in enumerate(graph["tensors"] or ()) if t["buffer"] in empty]
    if not tensors:
        return "nothing"
    group = rng.choice(GROUPS)
    inputs, outputs = ([i for i in graph[key] if i in tensors] for key in ("inputs", "outputs"))
    edges = {*inputs, *outputs}
    chosen = {
        "batch": tensors,
        "one": [rng.choice(tensors)],
        "inputs": inputs,
        "outputs": outputs,
        "inner": [i for i in tensors if i not in edges],
        "some": [i for i in tensors if rng.random() < 0.3],
        "every": tensors,
    }[group]
    kind = "open" if group == "batch" else rng.choice(KINDS)
    which = _first_dim if group == "batch" or rng.random() < 0.3 else _some_dims(rng)
    for i in chosen:
        _restate(graph["tensors"][i], kind, which, rng)
    return f"{kind} {group}"


def _first_dim(_: int) -> set[int]:
    return {0}


def _some_dims(rng: random.Random) -> Callable[[int], set[int]]:
    return lambda rank: {d for d in range(rank) if rng.random() < 0.5}


def _restate(tensor: Tree, kind: str, which: Callable[[int], set[int]], rng: random.Random) -> None:
    shape = [] if tensor["shape"] is None else [int(d) for d in tensor["shape"]]
    dims = which(len(shape))
    signature = None
    if kind in ("open", "open as 1"):
        signature = [-1 if i in dims else d for i, d in enumerate(shape)]
        shape = [1 if i in dims and kind == "open as 1" else d for i, d in enumerate(shape)]
    elif kind == "close":
        pass
    elif kind in ("unrank", "scalar"):
        shape = []
    elif kind == "zero":
        shape = [0 if i in dims else d for i, d in enumerate(shape)]
    elif kind == "other":
        shape = [rng.choice((1, 2, d + 1)) if i in dims else d for i, d in enumerate(shape)]
    else:
        shape = [1, *shape] if rng.random() < 0.5 else shape[1:]
    tensor["shape"], tensor["shape_signature"] = tuple(shape), None if signature is None else tuple(signature)
    tensor["has_rank"] = kind != "unrank"


def draw(loads: Sequence[tuple[str, Callable[[], bytes]]], seed: int, number: int) -> tuple[str, bytes, bytes, str]:
    """Name, original and mutant of a number, and what was changed."""
    rng = random.Random(f"{seed}:{number}")  # noqa: S311
    name, load = rng.choice(loads)
    data = load()
    changed, what = mutant(data, rng)
    return name, data, changed, what


def examine(original: bytes, data: bytes, ways: Sequence[str], say: Callable[[str], None]) -> dict[str, str]:
    """What each way of converting gives: "refused", "equal", "not run", or what is wrong."""
    found: dict[str, str] = {}
    converted: dict[str, Any] = {}
    for way in ways:
        try:
            converted[way] = tflq.convert(data, **WAYS[way])
            _ = converted[way].files
        except tflq.VerificationError as error:
            found[way] = f"VerificationError: {_first_line(error)}"
            converted.pop(way, None)
        except tflq.TflqError as error:
            found[way] = "refused" if NAMES.search(str(error)) else f"says not where: {error}"
            converted.pop(way, None)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            found[way] = f"{type(error).__name__} at {_place(error)}: {_first_line(error)}"
            converted.pop(way, None)
    runs: list[Any] | None = None
    for way, conversion in converted.items():
        if conversion.format != "tflite" or way in UNCOMPARED:
            found[way] = "converted"
            continue
        if runs is None:
            say("original")
            runs = _original(data) if _fits(data) else []
        say(way)
        found[way] = _compared(runs, original, conversion, way)
    return found


def _compared(runs: list[Any], original: bytes, conversion: Any, way: str) -> str:
    if not runs:
        return "not run"
    resolver, wanted = runs[0], runs[1:]
    for sizes, inputs, want in wanted:
        try:
            got = _run(conversion.data, resolver, sizes, inputs)[1]
        except Exception as error:  # noqa: BLE001
            return f"does not run: {str(error)[:200]}"
        if problem := _difference(want, got):
            if conversion.report.warnings or conversion.report.counts["float"]:
                return "warned"
            if _base_differs(original, way, resolver):
                return "differs as the original"
            return f"differs: {problem}"
    return "equal"


@cache
def _base_differs(original: bytes, way: str, resolver: str) -> bool:
    """Whether the unchanged model differs, too."""
    try:
        converted = tflq.convert(original, **WAYS[way])
        sizes, inputs, want = _original(original)[1]
        return bool(_difference(want, _run(converted.data, resolver, sizes, inputs)[1]))
    except Exception:  # noqa: BLE001
        return True


def _fits(data: bytes) -> bool:
    """Whether the sizes that a file gives open dims fit each other. Some kernels run where they do not."""
    module = tflq.read(data)
    inputs = [v for index in entry_functions(module) for v in module.functions[index].inputs]
    return not Inference(module, {v: stored_shape(v) for v in inputs}).misfits


def _original(data: bytes) -> list[Any]:
    """Resolver, then sizes, inputs and outputs of each run; nothing if no interpreter runs the model."""
    for resolver in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        try:
            runs: list[Any] = [(None, *_run(data, resolver, None, None))]
        except Exception:  # noqa: BLE001, S112
            continue
        with suppress(Exception):
            runs.append((2, *_run(data, resolver, 2, None)))
        return [resolver, *runs]
    return []


def _run(data: bytes, resolver: str, size: int | None, inputs: Any) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of a run with the open dims of all inputs so many times as large, or with the shapes stated.
    Inputs that are not open in the same dims, or that have scales along one, are not resized."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType[resolver], num_threads=1)
    details = interpreter.get_input_details()
    outer = [*details, *interpreter.get_output_details()]
    if size is not None:
        dims = {tuple(np.flatnonzero(d["shape_signature"] < 0)) for d in details}
        if dims == {()} or len(dims) > 1 or any(len(d["quantization_parameters"]["scales"]) > 1 for d in outer):
            raise ValueError("not to be resized")
        for d in details:
            if (d["shape_signature"] < 0).any():
                pairs = zip(d["shape"], d["shape_signature"], strict=True)
                interpreter.resize_tensor_input(d["index"], [int(n) * size if s < 0 else int(s) for n, s in pairs])
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    if inputs is None:
        rng = np.random.default_rng(0)
        inputs = [_input(d, rng) for d in details]
    for d, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(d["index"], array.reshape(d["shape"]))
    interpreter.invoke()
    return inputs, [interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()]


def _input(detail: Mapping[str, Any], rng: np.random.Generator) -> np.ndarray:
    shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, 2, shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.itemsize < 4 and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, endpoint=True), dtype)
    return np.asarray(rng.integers(0, 2, shape), dtype)


def _difference(want: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> str:
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        if w.shape != g.shape or w.dtype != g.dtype:
            return f"output {i} is {g.dtype} {g.shape}, not {w.dtype} {w.shape}"
        if not np.array_equal(w, g, equal_nan=w.dtype.kind == "f"):
            if w.dtype.kind in "iu" and np.abs(w.astype(np.int64) - g.astype(np.int64)).max() <= 1:
                continue
            if w.dtype.kind == "f" and np.allclose(w, g, rtol=1e-4, atol=1e-4, equal_nan=True):
                continue
            return f"output {i} differs"
    return ""


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "tflq" in f.filename]
    return ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[-2:])


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:400]


def work(job: Tree) -> None:
    """Examines mutants one by one; says each number before and each result after."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    loads = list(seeds(job["match"]).items())

    def put(message: Tree) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def too_long(*_: object) -> None:
        raise TimeoutError(f"over {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    for number in range(job["start"], job["stop"]):
        name, original, data, what = draw(loads, job["seed"], number)
        put({"number": number, "stage": "convert", "name": name, "what": what})
        signal.alarm(SECONDS)
        try:
            result = examine(original, data, job["ways"], lambda s, n=number: put({"number": n, "stage": s}))  # type: ignore[misc]
        except TimeoutError as error:
            result = {"all": str(error)}
        finally:
            signal.alarm(0)
        put({"number": number, "name": name, "what": what, "results": result})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", default="", help="only models whose name contains this")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS))
    parser.add_argument("--only", type=int, help="make one mutant and say what happens to it")
    parser.add_argument("--save", type=Path, help="with --only: where to write the mutant")
    parser.add_argument("--examples", type=int, default=4, help="mutants listed per finding")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.worker:
        work(json.loads(a.worker))
        return 0
    if a.only is not None:
        name, original, data, what = draw(list(seeds(a.match).items()), a.seed, a.only)
        if a.save:
            a.save.write_bytes(data)
        print(name, what, json.dumps(examine(original, data, a.ways, lambda _: None), indent=1), sep="\n")
        return 0
    counts, groups = Counter[str](), dict[str, list[str]]()
    for number, name, what, results in run(a.seed, range(a.start, a.start + a.count), a.match, a.ways):
        for way, result in results.items():
            clean = result in CLEAN
            counts[result if clean else "failed"] += 1
            if not clean:
                groups.setdefault(re.sub(r"'[^']*'|\d+", "_", result)[:160], []).append(
                    f"{number} {way}: {Path(name).name} ({what}): {result}"
                )
    print(json.dumps(counts))
    for key, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{len(found)} × {key}")
        for line in found[: a.examples]:
            print(f"    {line[:500]}")
    return int(bool(groups))


CLEAN = ("refused", "equal", "not run", "converted", "warned", "differs as the original", "original dies")


def run(seed: int, numbers: range, match: str, ways: Sequence[str]) -> Iterator[tuple[int, str, str, dict[str, str]]]:
    """Number, model, change and results of each mutant, made in child processes; one that dies is replaced."""
    begin = numbers.start
    while begin < numbers.stop:
        job = {"seed": seed, "start": begin, "stop": numbers.stop, "match": match, "ways": list(ways)}
        last: Tree = {"number": begin, "stage": "convert", "name": "", "what": ""}
        with tempfile.TemporaryFile("w+") as errors:
            command = [sys.executable, __file__, "--worker", json.dumps(job)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child:
                watch = Timer(2 * SECONDS, child.kill)
                watch.start()
                for message in map(json.loads, child.stdout or ()):
                    watch.cancel()
                    watch = Timer(2 * SECONDS, child.kill)
                    watch.start()
                    last = {**last, **message}
                    if "results" in message:
                        yield message["number"], message["name"], message["what"], message["results"]
                        begin = message["number"] + 1
                watch.cancel()
            if child.returncode == 0:
                return
        stage = last.get("stage", "")
        dead = "original dies" if stage == "original" else f"the process dies at {stage} with {child.returncode}"
        yield last["number"], last["name"], last["what"], {stage: dead}
        begin = last["number"] + 1


if __name__ == "__main__":
    sys.exit(main())
