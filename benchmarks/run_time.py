"""Run time of converted networks against their originals, in the interpreter (one thread; optimized kernels, or with
XNNPACK, as the default resolver has it).

    python benchmarks/run_time.py MODEL.tflite | FOLDER ... [--mac integer float32] [--target kernels] [--repeat N]
                                                            [--xnnpack]

One row per model: operators and milliseconds per inference before and after, and the ratio, for each form of
multiply-accumulate; last, the ratios' median and greatest. All run in turns in one process per model: if the
interpreter aborts, that ends one row.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from measure import in_turns

import tflq
from tflq.tools.verify.inputs import generated_inputs
from tflq.tools.verify.runner import Resolver
from tflq.tools.verify.worker import RESOLVERS, describe, load


class Row(NamedTuple):
    """Operators and seconds of the original and of each conversion."""

    operators: list[int]
    seconds: list[float]


def interpreter(model: bytes, resolver: Resolver = "optimized") -> Any:
    """The model on random inputs, run once."""
    _, kind, resolvers = load()
    opened = kind(
        model_content=model, experimental_op_resolver_type=getattr(resolvers, RESOLVERS[resolver]), num_threads=1
    )
    opened.allocate_tensors()
    details = opened.get_input_details()
    _, arrays = next(generated_inputs([(detail["name"], describe(detail)) for detail in details], 1, None))
    for detail, array in zip(details, arrays, strict=True):
        opened.set_tensor(detail["index"], array)
    opened.invoke()
    return opened


def measured(model: Path, macs: Sequence[str], target: str | None, repeat: int, resolver: Resolver) -> Row | str:
    """The figures of a model, or why there are none."""
    original = model.read_bytes()
    try:
        runners = [interpreter(original, resolver)]
    except (RuntimeError, ValueError, TypeError) as error:
        return f"does not run: {str(error).splitlines()[0][:80]}"
    try:
        conversions = [tflq.convert(original, mac=mac, target=target).data for mac in macs]
    except tflq.TflqError as error:
        return f"not converted: {str(error).splitlines()[0][:80]}"
    runners += [interpreter(data, resolver) for data in conversions]
    operators = [interpreter(data)._get_ops_details() for data in (original, *conversions)]  # a delegate's are one
    return Row([len(found) for found in operators], in_turns([m.invoke for m in runners], repeat))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--mac", nargs="+", default=["integer", "float32"])
    parser.add_argument("--target", help="keep what this target keeps")
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--xnnpack", action="store_true", help="with the default resolver and its delegate")
    arguments = parser.parse_args()
    resolver: Resolver = "default" if arguments.xnnpack else "optimized"
    columns = (f"{mac + ' ops':>12} {'ms':>8} {'ratio':>6}" for mac in arguments.mac)
    print(f"{'model':44} {'ops':>5} {'ms':>8} " + " ".join(columns))
    ratios: list[list[float]] = []
    for model in (
        m for given in arguments.models for m in (sorted(given.rglob("*.tflite")) if given.is_dir() else [given])
    ):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            job = pool.submit(measured, model, arguments.mac, arguments.target, arguments.repeat, resolver)
            try:
                row = job.result()
            except BrokenProcessPool:
                row = "the interpreter aborts"
        if isinstance(row, str):
            print(f"{model.name[:44]:44} {row}", flush=True)
            continue
        base, *seconds = row.seconds
        ratios.append([s / base for s in seconds])
        cells = (f"{n:12} {s * 1e3:8.2f} {s / base:6.2f}" for n, s in zip(row.operators[1:], seconds, strict=True))
        print(f"{model.name[:44]:44} {row.operators[0]:5} {base * 1e3:8.2f} " + " ".join(cells), flush=True)
    for mac, found in zip(arguments.mac, zip(*ratios, strict=True), strict=False):
        print(f"{mac}: {len(found)} models, ratio {statistics.median(found):.2f} (median), {max(found):.2f} (greatest)")


if __name__ == "__main__":
    main()
