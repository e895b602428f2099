"""The process in which another interpreter runs models; it may die of one.

    PYTHON interpreter_worker.py

Run as a script in an environment that has numpy and ai-edge-litert or tensorflow, and nothing of tflq. A line of input
is a JSON object: `model`, a file; `inputs`, an .npz whose arrays are "RUN PLACE"; `outputs`, the .npz to write;
`resolver`, "reference" or "default"; `threads`. A line of output is empty, or the reason why not.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

RESOLVERS: Final = {"reference": "BUILTIN_REF", "default": "AUTO"}


def interpreter(model: str, resolver: str, threads: int) -> Any:
    """The interpreter of a model, whose tensors are allocated."""
    try:
        from ai_edge_litert import interpreter as module

        resolvers = module.OpResolverType
    except ImportError:
        from tensorflow import lite as module

        resolvers = module.experimental.OpResolverType
    kind = getattr(resolvers, RESOLVERS[resolver])
    opened = module.Interpreter(model, experimental_op_resolver_type=kind, num_threads=threads)
    opened.allocate_tensors()
    return opened


def run(job: dict[str, Any]) -> None:
    """Runs a model on each set of inputs, its variables reset before."""
    opened = interpreter(job["model"], job["resolver"], job["threads"])
    results = {}
    with np.load(job["inputs"], allow_pickle=True) as arrays:
        for number in sorted({int(key.split()[0]) for key in arrays}):
            opened.reset_all_variables()
            for place, detail in enumerate(opened.get_input_details()):
                opened.set_tensor(detail["index"], arrays[f"{number} {place}"])
            opened.invoke()
            for place, detail in enumerate(opened.get_output_details()):
                results[f"{number} {place}"] = opened.get_tensor(detail["index"])
    np.savez(job["outputs"], **results)


def main() -> None:
    for line in sys.stdin:
        answer = ""
        try:
            run(json.loads(line))
        except Exception as error:  # noqa: BLE001 it is the answer
            answer = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(answer, flush=True)


if __name__ == "__main__":
    main()
