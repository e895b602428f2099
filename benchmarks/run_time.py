"""Run time of converted networks against their originals, in the interpreter (optimized kernels, no delegate, one
thread).

    python benchmarks/run_time.py MODEL.tflite ... [--mac integer float32] [--target kernels] [--repeat N]

One row per model: operators and milliseconds per inference before and after, and the ratio, for each form of
multiply-accumulate.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import repeated

import tflq


def interpreter(model: Path | bytes) -> Any:
    """The model on random inputs, run once."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    given = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    made = Interpreter(**given, experimental_op_resolver_type=kind, num_threads=1)
    made.allocate_tensors()
    rng = np.random.default_rng(0)
    for detail in made.get_input_details():
        dtype = np.dtype(detail["dtype"])
        shape = detail["shape"]
        if dtype.kind == "f":
            values = rng.uniform(-1, 1, shape).astype(dtype)
        else:
            values = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        made.set_tensor(detail["index"], values)
    made.invoke()
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--mac", nargs="+", default=["integer", "float32"])
    parser.add_argument("--target", help="keep what this target keeps")
    parser.add_argument("--repeat", type=int, default=11)
    arguments = parser.parse_args()
    print(
        f"{'model':44} {'ops':>5} {'ms':>8} "
        + " ".join(f"{m + ' ops':>12} {'ms':>8} {'ratio':>6}" for m in arguments.mac)
    )
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            try:
                before = interpreter(model)
            except (RuntimeError, ValueError) as error:
                print(f"{model.name[:44]:44} does not run: {str(error).splitlines()[0][:80]}")
                continue
            base = repeated(before.invoke, arguments.repeat)
            row = f"{model.name[:44]:44} {len(before._get_ops_details()):5} {base * 1e3:8.2f} "
            for mac in arguments.mac:
                out = Path(folder) / f"{mac}.tflite"
                tflq.convert(model, out, mac=mac, target=arguments.target, force=True)
                after = interpreter(out)
                seconds = repeated(after.invoke, arguments.repeat)
                row += f"{len(after._get_ops_details()):12} {seconds * 1e3:8.2f} {seconds / base:6.1f} "
            print(row, flush=True)


if __name__ == "__main__":
    main()
