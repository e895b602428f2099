"""Fresh processes whose threads convert, verify, read and write at once give what one thread gives, and so afterwards.

    python scripts/threads.py [--processes 200] [--workers 2]
    python scripts/threads.py --python python3.13t --processes 20     in another Python, such as one without a lock

Each process has 2, 4, 8 or 16 threads, which begin with the same import. Every second one changes threads as often as
Python can. A process does its jobs, and once more one after another; what differs from one thread is listed. `verify`
is left out without an interpreter.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
NPU: Final = str(ROOT / "rules" / "npu_example.toml")
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "integer": {},
    "kernels": {"target": "kernels"},
    "npu": {"target": NPU},
    "float32": {"mac": "float32"},
    "kernels, float32": {"target": "kernels", "mac": "float32"},
    "npu, float32": {"target": NPU, "mac": "float32"},
    "tosa": {"format": "tosa"},
    "mlir": {"format": "mlir"},
}
"""Every format and target, and both ways to multiply and add."""
THREADS: Final = (2, 4, 8, 16)
VERIFIED: Final = ("add_per_axis", "cnn_int8")
Job = tuple[str, str]
"""What is done, and with which model."""


def jobs(models: Sequence[str], start: int = 0, count: int | None = None, *, verified: bool = True) -> list[Job]:
    """What one process does: of each model every form, or `count` of the forms from `start` on; it is read and written;
    some are verified."""
    kinds = [*FORMS]
    kinds = [kinds[(start + i) % len(kinds)] for i in range(len(kinds) if count is None else count)]
    found = [(kind, model) for model in models for kind in (*kinds, "write")]
    found += [("verify", model) for model in models if verified and Path(model).stem in VERIFIED]
    return found[start % len(found) :] + found[: start % len(found)]


def done(job: Job) -> str:
    """What a job gives: a digest of all bytes, or a verdict."""
    import tflq

    kind, model = job
    try:
        if kind == "verify":
            found = tflq.verify(model, tflq.convert(model).files[""], seeds=1)
            return f"equal {found.equal}, {sorted((entry, name) for entry, name in found.outputs)}"
        if kind == "write":
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder, "out.tflite")
                tflq.write(tflq.read(model), out)
                return hashlib.sha256(out.read_bytes()).hexdigest()
        files = tflq.convert(model, **FORMS[kind]).files
    except tflq.TflqError as error:
        return f"{type(error).__name__}: {error}"
    return hashlib.sha256(b"".join(key.encode() + bytes(data) for key, data in sorted(files.items()))).hexdigest()


def child(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a process gives: of the threads, and afterwards of one; whether the interpreter's lock is on."""
    if asked["often"]:
        sys.setswitchinterval(1e-6)
    work: list[Job] = [(kind, model) for kind, model in asked["jobs"]]
    first: list[str] = []
    if asked["threads"] > 1:
        with ThreadPoolExecutor(asked["threads"]) as pool:
            first = list(pool.map(done, work))
    locked: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return {
        "threads": first,
        "afterwards": [done(job) for job in work],
        "locked": locked(),
    }


def answer(python: str, work: Sequence[Job], threads: int, *, often: bool = False) -> dict[str, Any]:
    """What a fresh process gives. RuntimeError with what it printed if it fails or takes ten minutes."""
    asked = json.dumps({"jobs": work, "threads": threads, "often": often})
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run(
        [python, str(Path(__file__).resolve()), "--child"],
        input=asked,
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"a process with {threads} threads ended with {run.returncode}:\n{run.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def differences(
    python: str,
    models: Sequence[str],
    processes: int,
    *,
    count: int | None = None,
    verified: bool = True,
    at_once: int = 2,
) -> list[str]:
    """What processes give that one thread does not; a line for each."""
    every = jobs(models, verified=verified)
    alone = dict(zip(every, answer(python, every, 1)["afterwards"], strict=True))

    def one(number: int) -> list[str]:
        work = jobs(models, number, count, verified=verified and number % 4 == 0)
        threads = THREADS[number % len(THREADS)]
        try:
            found = answer(python, work, threads, often=bool(number // len(THREADS) % 2))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return [f"process {number}: {error}"]
        return [
            f"process {number}, {threads} threads, {when}: {kind} of {Path(model).stem}: {given}, "
            f"alone {alone[kind, model]}"
            for when in ("threads", "afterwards")
            for (kind, model), given in zip(work, found[when], strict=True)
            if given != alone[kind, model]
        ]

    with ThreadPoolExecutor(at_once) as pool:
        return [line for lines in pool.map(one, range(processes)) for line in lines]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=sorted(map(str, (ROOT / "models").glob("*.tflite"))))
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--forms", type=int, help="forms of each model in a process (default: all)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the processes")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(child(json.load(sys.stdin))))
        return 0
    verified = arguments.python == sys.executable and find_spec("ai_edge_litert") is not None
    if not verified:
        print("no interpreter for TFLite models: nothing is verified")
    found = differences(
        arguments.python,
        arguments.models,
        arguments.processes,
        count=arguments.forms,
        verified=verified,
        at_once=arguments.workers,
    )
    print(*found, sep="\n", end="\n" if found else "")
    wrong = len({line.split(",")[0].split(":")[0] for line in found})
    print(f"{wrong} of {arguments.processes} processes differ from one thread, {len(arguments.models)} models each")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
