"""How many models, converted under the name of a kernel set, equal their original in an interpreter that has it.

    python scripts/kernel_sets.py NAME FOLDER... [--form integer float32 portable] [--python PYTHON] [--seeds 3]
                                  [--threads 1 4] [--only TEXT] [--limit SECONDS] [--json FILE]

NAME is a kernel set. Each model of the folders is converted under it, and runs in the interpreter here, on reference
kernels and by default; where kernels are left in it, only on those that the original runs on. Its original runs in that
of PYTHON, by default this one: on the reference kernels, or by default where NAME is a set of XNNPACK's. PYTHON may be
several words, such as those of an emulator. Inputs are those of the .npz beside a model ("in0", or "s0_in0" of
several), or else drawn as `tflq verify` draws them.

It prints how many are equal in every bit, and lists the others with what the set warns of. For a set of XNNPACK's, it
also prints how many originals that run on the reference kernels, too, have other results there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from scripts.interpreter_worker import RESOLVERS  # noqa: E402
from tflq.numerics.kernel_sets import kernel_set  # noqa: E402
from tflq.tools.verify.inputs import generated_inputs  # noqa: E402

FORMS: Final[Mapping[str, dict[str, Any]]] = {
    "integer": {},
    "float32": {"mac": "float32"},
    "portable": {"target": "portable"},
}


class Interpreter:
    """A process that runs models, and is started again if it dies."""

    def __init__(self, python: str, limit: float) -> None:
        self._words = [*shlex.split(python), str(ROOT / "scripts" / "interpreter_worker.py")]
        self._limit = limit
        self._process: subprocess.Popen[str] | None = None

    def run(self, model: Path, inputs: Path, outputs: Path, resolver: str, threads: int) -> str:
        """Empty, or the reason why not."""
        job = {"model": str(model), "inputs": str(inputs), "outputs": str(outputs), "resolver": resolver}
        text = json.dumps({**job, "threads": threads}) + "\n"
        line = self._answer(text) or self._answer(text)  # a process may die of the model before, when it frees it
        return line.strip() if line else "the interpreter died"

    def _answer(self, text: str) -> str:
        """A line, or nothing if the process dies."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
        return line

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def samples(model: Path, seeds: int) -> list[list[np.ndarray]]:
    """The sets of inputs of a model: those beside it, or drawn."""
    beside = model.with_suffix(".npz")
    if beside.exists():
        with np.load(beside) as arrays:
            sets: defaultdict[int, dict[int, np.ndarray]] = defaultdict(dict)
            for key in arrays:
                if found := re.fullmatch(r"(?:s(\d+)_)?in(\d+)", key):
                    sets[int(found[1] or 0)][int(found[2])] = arrays[key]
        return [[arrays[place] for place in sorted(arrays)] for _, arrays in sorted(sets.items())]
    from ai_edge_litert.interpreter import Interpreter as Opened
    from ai_edge_litert.interpreter import OpResolverType

    opened = Opened(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    side = []
    for detail in opened.get_input_details():
        parameters = {key: value.tolist() for key, value in detail["quantization_parameters"].items() if key[-1] == "s"}
        shape, dtype = [int(v) for v in detail["shape"]], np.dtype(detail["dtype"]).name
        side.append((detail["name"], {"dtype": dtype, "shape": shape, **parameters}))
    return [arrays for _, arrays in generated_inputs(side, seeds, None)][:seeds]


def prepared(model: str, folder: str, name: str, form: str, seeds: int) -> list[str]:
    """Writes the inputs and the conversion of a model; what its report warns of that kernels' arithmetic is not known,
    and how many operators stay with kernels."""
    sets = samples(Path(model), seeds)
    arrays = {f"{run} {place}": array for run, row in enumerate(sets) for place, array in enumerate(row)}
    np.savez(Path(folder) / "inputs.npz", **arrays)
    conversion = tflq.convert(model, kernel_set=name, **FORMS[form])
    (Path(folder) / "converted.tflite").write_bytes(conversion.data)
    return [
        f"{row.opcode}: {row.warning or row.reason}"
        for row in conversion.report.rows
        if row.warning or row.path != "integer"
    ]


def _in_child(connection: Any, arguments: tuple[Any, ...]) -> None:
    try:
        connection.send((None, prepared(*arguments)))
    except Exception as error:  # noqa: BLE001 it is the answer
        connection.send((f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", []))


def prepare(*arguments: Any, limit: float) -> tuple[str | None, list[str]]:
    """`prepared` in a process of its own; a reason, if it fails."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(theirs, arguments))
    child.start()
    theirs.close()
    answer: tuple[str | None, list[str]] = ("the process died, or took too long", [])
    try:
        if ours.poll(limit):
            answer = ours.recv()
    except EOFError:
        pass
    child.kill()
    child.join()
    ours.close()
    return answer


def difference(first: Path, second: Path) -> str:
    """How outputs differ; empty if they are equal in every bit, where a NaN equals a NaN."""
    with np.load(first, allow_pickle=True) as a, np.load(second, allow_pickle=True) as b:
        for key in a:
            x, y = a[key], b[key]
            if x.shape != y.shape or x.dtype != y.dtype:
                return f"output {key} is {y.dtype} {y.shape} instead of {x.dtype} {x.shape}"
            unequal = x != y if x.dtype.kind not in "fc" else (x != y) & ~(np.isnan(x) & np.isnan(y))
            if unequal.any():
                most = np.abs(x.astype(np.float64) - y.astype(np.float64))[unequal].max()
                return f"{int(unequal.sum())} of {x.size} elements of output {key} differ, by {most:g} at most"
    return ""


def outcome(
    model: Path, folder: Path, there: Interpreter, here: Interpreter, options: argparse.Namespace
) -> dict[str, Any]:
    """The outcome of a model by form: equal, a difference, or why it does not run."""
    resolver = "default" if kernel_set(options.name).delegated is not None else "reference"
    result: dict[str, Any] = {}
    for form in options.form:
        error, warnings = prepare(str(model), str(folder), options.name, form, options.seeds, limit=options.limit)
        if error is not None:
            result[form] = {"outcome": "refused", "why": error}
            continue
        why, inputs, converted = "", folder / "inputs.npz", folder / "converted.tflite"
        for threads in options.threads:
            why = there.run(model, inputs, folder / "there.npz", resolver, threads)
            if why:
                result[form] = {"outcome": "original does not run", "why": why}
                break
            # what is left to kernels computes what runs it: then only the original's own kernels can be equal
            for kernels in (resolver,) if warnings else RESOLVERS:
                why = here.run(converted, inputs, folder / "here.npz", kernels, threads)
                if why and here.run(model, inputs, folder / "original.npz", kernels, threads):
                    why = ""  # these kernels lack operators of the model, whatever becomes of it
                elif not why:
                    why = difference(folder / "there.npz", folder / "here.npz")
                if why:
                    break
            if why:
                result[form] = {"outcome": "differs", "why": f"{threads} threads: {why}", "warnings": warnings}
                break
        else:
            result[form] = {"outcome": "equal", "warnings": warnings}
    if resolver == "default" and any("warnings" in row for row in result.values()):
        result["original"] = {"outcome": _against_reference(model, folder, there)}
    return result


def _against_reference(model: Path, folder: Path, there: Interpreter) -> str:
    """How an original's results by default, which are there, compare with those on the reference kernels."""
    if there.run(model, folder / "inputs.npz", folder / "reference.npz", "reference", 1):
        return "does not run on the reference kernels"
    apart = difference(folder / "reference.npz", folder / "there.npz")
    return "has other results on the reference kernels" if apart else "is the same on the reference kernels"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--form", nargs="+", choices=FORMS, default=["integer", "float32"])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    models = sorted(path for folder in options.folders for path in folder.rglob("*.tflite"))
    models = [path for path in models if options.only in str(path)]
    results, counts = {}, Counter[tuple[str, str]]()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Interpreter(options.python, options.limit)) as there,
        closing(Interpreter(sys.executable, options.limit)) as here,
    ):
        for model in models:
            results[str(model)] = outcome(model, Path(folder), there, here, options)
            for form, row in results[str(model)].items():
                counts[form, row["outcome"]] += 1
                if "why" in row:
                    why = f"{model.name} {form}: {row['outcome']}: {row['why']}"
                    print(why, *row.get("warnings", [])[:3], sep="\n    ")
            sys.stdout.flush()
    for (form, word), count in sorted(counts.items()):
        print(f"{options.name} {form}: {count} of {len(models)} {word}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
