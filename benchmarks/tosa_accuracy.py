"""TOSA against TFLite: converted models on the TOSA reference model, compared with the interpreter's reference kernels.

    python benchmarks/tosa_accuracy.py CORPUS/ops CORPUS/zoo [--tools tflq,peer] [--match NAME] [--json OUT.json]

Per model, in processes of their own: the converter (tflq, or the peer, tosa-converter-for-tflite), tosa-opt's strict
validation of what it made, the reference model. A folder of one-operator models holds recorded arrays beside each
(`sK_inJ`, `sK_refJ`); other models run in the interpreter on random inputs and on the edges of the range.

A row of the table is a family: how many models are exact, at most 1, 2 to 15, 16 or more counts off, how many the
converter refused, and how many failed: it left operators that are none of TOSA's, made what is not valid, or what does
not run. Floats are exact if they are equal; else a count is 1/255 of the largest magnitude, and below 1/100 of one a
model is "near".

Needs `pip install '.[verify,tosa,bench]'`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import tosa_reference_model

import tflq

CONTEXT = multiprocessing.get_context("fork")
CLASSES = ("exact", "near", "1", "2-15", ">=16", "refused", "failed")
OPTIONAL = ["doubleround", "int16", "int4", "variable", "controlflow"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--tools", default="tflq", help="tflq, peer (tosa-converter-for-tflite) or both: tflq,peer")
    parser.add_argument("--match", default="", help="only models whose path holds this")
    parser.add_argument("--json", type=Path, help="write every model's outcome")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=600)
    arguments = parser.parse_args()
    tools = arguments.tools.split(",")
    models = [p for folder in arguments.folders for p in sorted(folder.rglob("*.tflite")) if arguments.match in str(p)]
    jobs = [(tool, model) for model in models for tool in tools]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda job: _in_a_child(*job, timeout=arguments.timeout), jobs))
    rows = [{"tool": t, "model": str(m), "family": _family(m), **o} for (t, m), o in zip(jobs, outcomes, strict=True)]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    _print(rows, tools)


def _family(model: Path) -> str:
    """The operator of a one-operator model, else the folder."""
    if not model.with_suffix(".npz").exists():
        return f"network: {model.parent.name}"
    return re.sub(r"(_(i8|u8|i16|i4|s8|pc|f32|bcast|relu\w*|same|valid)\b.*|_.*)$", "", model.stem)


def _in_a_child(tool: str, model: Path, *, timeout: float) -> dict[str, Any]:
    """The outcome from a forked process, which may crash or take too long."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=_send, args=(sender, tool, model))
    child.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            return {"class": "failed", "why": f"no answer in {timeout:g} s"}
        found: dict[str, Any] = receiver.recv()
    except EOFError:
        child.join()
        return {"class": "failed", "why": f"the process ended with {child.exitcode}"}
    else:
        return found
    finally:
        child.kill()
        child.join()


def _send(sender: Connection, tool: str, model: Path) -> None:
    try:
        sender.send(measure(tool, model))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
        sender.send({"class": "failed", "why": f"{type(error).__name__}: {error}"[:300]})


def measure(tool: str, model: Path) -> dict[str, Any]:
    """The outcome for one model: its class and why, or "skipped" where the interpreter cannot run the original."""
    cases = _recorded(model) or run_original(model)
    if not cases:
        return {"class": "skipped", "why": "the interpreter does not run the original"}
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "out.tosa")
        refused = (_ours if tool == "tflq" else _peer)(model, made)
        if refused is not None:
            return refused
        invalid = _validate(made)
        if invalid:
            return {"class": "failed", "why": f"not valid: {invalid}"}
        return _compare(made.read_bytes(), cases)


def _ours(model: Path, made: Path) -> dict[str, Any] | None:
    try:
        module = tflq.read(model)
        keys = [s.key for s in module.signatures or () if s.key]
        open_dims = any(None in (v.type.shape or ()) for v in module.main.inputs)
        report = tflq.convert(
            model, made, batch=1 if open_dims else None, signature=keys[0] if len(keys) > 1 else None
        ).report
    except tflq.UnsupportedError as error:
        return {"class": "refused", "why": (error.reasons or [str(error)])[0][:300]}
    needs = report.requirements
    made.with_suffix(".needs").write_text(
        json.dumps({"profiles": sorted(needs.profiles), "extensions": sorted(needs.extensions)})
    )
    return None


def _peer(model: Path, made: Path) -> dict[str, Any] | None:
    text = made.with_suffix(".mlir")
    run = subprocess.run(
        [_tool("tosa-converter-for-tflite"), "--text", str(model), "-o", str(text)],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode or not text.exists():
        return {"class": "refused", "why": (run.stderr.strip().splitlines() or ["error"])[-1][-300:]}
    left = re.findall(r'= "?(tfl\.\w+)', text.read_text())
    if left:
        return {"class": "failed", "why": f"left in the output: {', '.join(sorted(set(left)))[:200]}"}
    options = f"--tosa-serialize=tosa-flatbuffer-filename={made}"
    run = subprocess.run(
        [_tool("tosa-opt"), str(text), "--tosa-convert-integer-type-to-signless", options, "-o", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode or not made.exists():
        return {"class": "failed", "why": (run.stderr.strip().splitlines() or ["not serialized"])[0][-300:]}
    return None


def _tool(name: str) -> str:
    own = Path(tosa_reference_model.__file__).parents[1] / "bin" / name
    if own.exists():  # what is on the path is a script that starts it
        return str(own)
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not installed: pip install '.[tosa,bench]'")
    return found


def _validate(made: Path) -> str:
    """What tosa-opt's strict validation says of a file; for our own, with the profiles and extensions that we say."""
    needs = made.with_suffix(".needs")
    wanted = (
        json.loads(needs.read_text()) if needs.exists() else {"profiles": ["pro_int", "pro_fp"], "extensions": OPTIONAL}
    )
    target = f"profiles={','.join(wanted['profiles'])} extensions={','.join(wanted['extensions'])} level=8k"
    empty = made.with_suffix(".empty")
    empty.write_text("module {}")
    run = subprocess.run(
        [
            _tool("tosa-opt"),
            f"--tosa-deserialize=tosa-flatbuffer-filename={made}",
            f"--tosa-attach-target={target} specification_version=1.0",
            "--tosa-validate=strict-op-spec-alignment",
            *("-o", "/dev/null", str(empty)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return (errors or run.stderr.strip().splitlines() or ["invalid"])[0][-300:] if run.returncode else ""


Case = tuple[list[np.ndarray], list[np.ndarray]]


def _recorded(model: Path) -> list[Case]:
    """The inputs and reference outputs recorded beside a one-operator model."""
    path = model.with_suffix(".npz")
    if not path.exists():
        return []
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    cases = []
    for seed in range(3):
        kind = "ref" if f"s{seed}_ref0" in arrays else "opt"
        inputs = [arrays[f"s{seed}_in{i}"] for i in range(64) if f"s{seed}_in{i}" in arrays]
        outputs = [arrays[f"s{seed}_{kind}{i}"] for i in range(64) if f"s{seed}_{kind}{i}" in arrays]
        if outputs:
            cases.append((inputs, outputs))
    return cases


def run_original(model: Path) -> list[Case]:
    """Random, all-minimum and all-maximum inputs and what the reference kernels make of them, from another process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "cases.npz")
        program = "import sys; sys.path.insert(0, sys.argv[1]); import tosa_accuracy as t; t.interpret(*sys.argv[2:])"
        command = [sys.executable, "-c", program, str(Path(__file__).parent), str(model), str(out)]
        subprocess.run(command, capture_output=True, check=False)
        if not out.exists():
            return []
        with np.load(out) as data:
            inputs, outputs = (
                [[data[f"{c}_{side}{i}"] for i in range(64) if f"{c}_{side}{i}" in data.files] for c in range(3)]
                for side in ("in", "out")
            )
    return [(i, o) for i, o in zip(inputs, outputs, strict=True) if o]


def interpret(model: str, out: str) -> None:
    """Runs a model's first signature, or its first subgraph, in the interpreter; writes inputs and outputs."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_path=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1)
    interpreter.allocate_tensors()
    arrays: dict[str, np.ndarray] = {}
    rng = np.random.default_rng(7)
    for case in range(3):
        interpreter.reset_all_variables()
        for i, detail in enumerate(interpreter.get_input_details()):
            value = _made(detail["shape"], np.dtype(detail["dtype"]), case, rng)
            arrays[f"{case}_in{i}"] = value
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        for i, detail in enumerate(interpreter.get_output_details()):
            arrays[f"{case}_out{i}"] = interpreter.get_tensor(detail["index"])
    np.savez(out, **arrays)


def _made(shape: np.ndarray, dtype: np.dtype, case: int, rng: np.random.Generator) -> np.ndarray:
    if dtype.kind == "f":
        low, high = -1.0, 1.0
        return (rng.uniform(low, high, shape) if case == 0 else np.full(shape, (low, high)[case - 1])).astype(dtype)
    if dtype.kind == "b" or dtype.itemsize > 2:
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    return (
        rng.integers(info.min, info.max, shape, endpoint=True)
        if case == 0
        else np.full(shape, (info.min, info.max)[case - 1])
    ).astype(dtype)


def _compare(file: bytes, cases: Sequence[Case]) -> dict[str, Any]:
    worst, near = 0.0, False
    for inputs, outputs in cases:
        narrow = [a.astype(np.int32) if a.dtype == np.int64 else a for a in inputs]
        try:
            got, status = tosa_reference_model.run(file, [np.ascontiguousarray(a) for a in narrow])
        except ValueError as error:
            return {"class": "failed", "why": f"the reference model: {error}"}
        if status.name != "TOSA_VALID" or len(got) != len(outputs):
            return {"class": "failed", "why": f"the reference model: {status.name}, {len(got)} outputs"}
        for have, want in zip(got, outputs, strict=True):
            if have.size != want.size:
                return {"class": "failed", "why": f"shape {have.shape} instead of {want.shape}"}
            counts, inexact = _counts(have.reshape(want.shape), want)
            worst, near = max(worst, counts), near or inexact
    if worst == 0:
        return {"class": "near" if near else "exact", "worst": 0}
    return {"class": "1" if worst <= 1 else "2-15" if worst < 16 else ">=16", "worst": worst}


def _counts(have: np.ndarray, want: np.ndarray) -> tuple[float, bool]:
    """The largest difference in counts, and whether floats differ at all."""
    if want.dtype.kind == "f":
        if np.array_equal(have, want, equal_nan=True):
            return 0.0, False
        with np.errstate(all="ignore"):
            gap = np.abs(have.astype(np.float64) - want)
        finite = np.isfinite(want)
        unit = max(float(np.abs(want[finite]).max(initial=0)), 1e-30) / 255
        gap = np.where(np.isnan(have) == np.isnan(want), np.where(finite, gap, have != want), np.inf)
        counts = float(np.nan_to_num(gap, nan=0.0, posinf=1e9).max(initial=0)) / unit
        return (0.0 if counts < 0.01 else float(np.ceil(counts))), True
    same_width = have.dtype.itemsize == want.dtype.itemsize and have.dtype.kind in "iu" and want.dtype.kind in "iu"
    seen = have.view(want.dtype) if same_width else have
    return float(np.abs(seen.astype(np.int64) - want.astype(np.int64)).max(initial=0)), False


def _print(rows: list[dict[str, Any]], tools: Sequence[str]) -> None:
    for tool in tools:
        table: dict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row["tool"] == tool and row["class"] != "skipped":
                table[row["family"]][row["class"]] += 1
                table["all networks" if row["family"].startswith("network") else "all operators"][row["class"]] += 1
        print(f"\n{tool}\n{'family':28}", *(f"{name:>8}" for name in CLASSES))
        for family, counts in sorted(table.items(), key=lambda item: (item[0].startswith("all"), item[0])):
            print(f"{family:28}", *(f"{counts[name] or '-':>8}" for name in CLASSES))
    for row in rows:
        if row["tool"] == "tflq" and row["class"] not in ("exact", "skipped"):
            print(f"{row['class']:8} {row['model']}: {row.get('why', row.get('worst'))}")


if __name__ == "__main__":
    main()
