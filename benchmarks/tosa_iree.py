"""MLIR text of converted networks, compiled by IREE for the CPU, against the interpreter's reference kernels.

    python benchmarks/tosa_iree.py MODEL.tflite ... [--batch N]

Per network: the seconds of converting and of compiling, and the largest difference of any output on random, all-minimum
and all-maximum inputs. Needs `pip install '.[verify,bench]'`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tosa_accuracy import Case, run_original

import tflq

FLAGS = (
    "--iree-input-type=tosa",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--batch", type=int, help="bind an open batch to this; it stays open otherwise")
    arguments = parser.parse_args()
    print(f"{'network':44} {'convert':>8} {'compile':>8} {'elements':>9} {'differing':>9} {'largest':>8}")
    for model in arguments.models:
        print(f"{model.stem[:44]:44} {measure(model, arguments.batch)}", flush=True)


def measure(model: Path, batch: int | None) -> str:
    cases = run_original(model)
    if not cases:
        return "the interpreter does not run it"
    with tempfile.TemporaryDirectory() as folder:
        text, compiled = Path(folder, "model.mlir"), Path(folder, "model.vmfb")
        start = time.perf_counter()
        try:
            tflq.convert(model, text, batch=batch)
        except tflq.UnsupportedError as error:
            return f"refused: {(error.reasons or [str(error)])[0]}"
        converted = time.perf_counter()
        tool = Path(sys.executable).with_name("iree-compile")
        run = subprocess.run([tool, *FLAGS, text, "-o", compiled], capture_output=True, text=True, check=False)
        if run.returncode:
            return f"not compiled: {(run.stderr.strip().splitlines() or ['?'])[0][-200:]}"
        done = time.perf_counter()
        elements, differing, largest = compare(compiled, cases)
    return f"{converted - start:8.2f} {done - converted:8.1f} {elements:9} {differing:9} {largest:8g}"


def compare(compiled: Path, cases: list[Case]) -> tuple[int, int, float]:
    """Elements of all outputs, how many differ, and by how much at most."""
    from iree import runtime

    config = runtime.Config("local-task")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.mmap(context.instance, str(compiled)))
    module = context.modules.module
    entry = module[next(name for name in module.vm_module.function_names if not name.startswith("__"))]
    elements, differing, largest = 0, 0, 0.0
    for inputs, outputs in cases:
        found = entry(*(a.view(np.int8) if a.dtype == np.uint8 else a for a in inputs))
        results = found if isinstance(found, (tuple, list)) else [found]
        for result, want in zip(results, outputs, strict=True):
            have = np.asarray(result.to_host())
            have = have.view(want.dtype) if want.dtype == np.uint8 else have
            gap = np.abs(have.astype(np.float64) - want.astype(np.float64))
            elements, differing = elements + gap.size, differing + int(np.count_nonzero(gap))
            largest = max(largest, float(gap.max(initial=0)))
    return elements, differing, largest


if __name__ == "__main__":
    main()
