"""What the smaller forms of selection are worth: operators and run time of converted networks, written by the book and
with each form.

    python benchmarks/smaller_forms.py MODEL.tflite ... [--mac integer|float32] [--repeat N]

    tables     elementwise arithmetic of one or two 8-bit tensors is a table (`transforms/tabulate.py`)
    division   RESCALE is a division in int32 where that is proven (`formats/tflite/lowering/rescale.py`)
    clamps     bounds by SUB with RELU instead of MAXIMUM and MINIMUM
    words      the high word of int64 by TRANSPOSE and GATHER of a row instead of GATHER along the last dim
    sharing    equal ops, one CAST of many users among them, are one

A row per model: by the book, with all forms but one, with all. Every conversion runs on the same inputs and must give
the same outputs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measure import in_turns
from run_time import interpreter

import tflq
from tflq.formats.tflite.lowering import rescale as requantize
from tflq.formats.tflite.lowering import shifts as highword
from tflq.formats.tflite.lowering.lowering import Tflite
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.transforms.canonicalize import CommonSubexpressionElimination
from tflq.transforms.pass_manager import PassResult
from tflq.transforms.tabulate import Tabulate

FORMS = ("tables", "division", "clamps", "words", "sharing")


@contextmanager
def without(forms: Sequence[str]) -> Iterator[None]:
    """Selection with these forms switched off."""
    with ExitStack() as stack:
        for form in forms:
            for place, name, replacement in _switches(form):
                stack.enter_context(patch.object(place, name, replacement))
        yield


def _switches(form: str) -> list[tuple[Any, str, Any]]:
    return {
        "tables": [(Tabulate, "run", _nothing)],
        "division": [(requantize, "divide", lambda *_: None), (requantize, "_by_division", lambda *_: None)],
        "clamps": [(requantize, "clamped", _clamped_by_the_book)],
        "words": [(highword, "flat", lambda _: False), (requantize, "restore", lambda _k, x, _shape: x)],
        "sharing": [(CommonSubexpressionElimination, "run", _nothing)],
    }[form]


def _nothing(_: object, module: Module) -> PassResult:
    return PassResult(module, modified=False)


def _clamped_by_the_book(
    k: Tflite, x: Value, low: np.ndarray, high: np.ndarray, _least: int, _most: int, offset: int = 0
) -> Value:
    storage = x.type.storage
    x = k.minimum(x, k.constant(requantize.squeezed(high), storage))
    x = k.maximum(x, k.constant(requantize.squeezed(low), storage))
    return k.add(x, k.constant(offset, storage)) if offset else x


def variants(model: Path, mac: str) -> dict[str, Any]:
    """An interpreter for each column's conversion, run once; all have given the same outputs."""
    columns = {"book": FORMS, **{f"all but {form}": (form,) for form in FORMS}, "all": ()}
    found = {}
    for name, off in columns.items():
        with without(off):
            found[name] = interpreter(tflq.convert(model, mac=mac).data)
    for name, runner in found.items():
        for detail, other in zip(found["all"].get_output_details(), runner.get_output_details(), strict=True):
            if found["all"].get_tensor(detail["index"]).tobytes() != runner.get_tensor(other["index"]).tobytes():
                raise SystemExit(f"{model}: '{name}' gives another '{detail['name']}'")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--mac", default="integer", choices=("integer", "float32"))
    parser.add_argument("--repeat", type=int, default=11)
    arguments = parser.parse_args()
    print(f"{'model':32}" + "".join(f"{name:>20}" for name in ("book", *(f"all but {f}" for f in FORMS), "all")))
    for model in arguments.models:
        runners = variants(model, arguments.mac)
        times = in_turns([runner.invoke for runner in runners.values()], arguments.repeat)
        counts = [len(runner._get_ops_details()) for runner in runners.values()]
        print(
            f"{model.stem[:31]:32}" + "".join(f"{n:9} {t * 1e3:7.2f} ms" for n, t in zip(counts, times, strict=True)),
            flush=True,
        )


if __name__ == "__main__":
    main()
