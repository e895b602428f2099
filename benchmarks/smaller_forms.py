"""What the smaller forms of selection are worth: operators and run time of converted networks, written by the book and
with each form.

    python benchmarks/smaller_forms.py MODEL.tflite ... [--mac integer|float32] [--repeat N]

    tables     elementwise arithmetic of one or two 8-bit tensors is a table (`select/tabulate.py`)
    division   RESCALE is a division in int32 where that is proven (`select/requantize.py`)
    clamps     bounds by SUB with RELU instead of MAXIMUM and MINIMUM
    words      the high word of int64 by TRANSPOSE and GATHER of a row instead of GATHER along the last dim
    sharing    equal ops, one CAST of many users among them, are one

A row per model: by the book, with all forms but one, with all. Every conversion runs on the same inputs and must give the
same outputs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measure import repeated
from run_time import interpreter

import tflq
from tflq.ir.core import Module, Value
from tflq.passes.contract import PassResult
from tflq.passes.cse import CommonSubexpressionElimination
from tflq.select import highword, requantize
from tflq.select.lowering import Kernels
from tflq.select.tabulate import Tabulate

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


def _nothing(self: object, module: Module) -> PassResult:
    return PassResult(module, modified=False)


def _clamped_by_the_book(
    k: Kernels, x: Value, low: np.ndarray, high: np.ndarray, least: int, most: int, offset: int = 0
) -> Value:
    storage = x.type.storage
    x = k.minimum(x, k.constant(requantize.squeezed(high), storage))
    x = k.maximum(x, k.constant(requantize.squeezed(low), storage))
    return k.add(x, k.constant(offset, storage)) if offset else x


def measured(model: Path, mac: str, forms: Sequence[str], repeat: int) -> tuple[int, float, list[np.ndarray]]:
    """Operators, milliseconds and outputs of the model converted without these forms."""
    with without(forms):
        data = tflq.convert(model, mac=mac).data
    runner = interpreter(data)
    seconds = repeated(runner.invoke, repeat)
    outputs = [runner.get_tensor(d["index"]).copy() for d in runner.get_output_details()]
    return len(runner._get_ops_details()), seconds * 1e3, outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--mac", default="integer", choices=("integer", "float32"))
    parser.add_argument("--repeat", type=int, default=11)
    arguments = parser.parse_args()
    columns = {"book": FORMS, **{f"all but {form}": (form,) for form in FORMS}, "all": ()}
    print(f"{'model':40} " + " ".join(f"{name:>20}" for name in columns))
    for model in arguments.models:
        found = {name: measured(model, arguments.mac, off, arguments.repeat) for name, off in columns.items()}
        for name, (_, _, outputs) in found.items():
            for want, got in zip(found["all"][2], outputs, strict=True):
                if not np.array_equal(want, got, equal_nan=want.dtype.kind == "f"):
                    raise SystemExit(f"{model}: '{name}' gives other outputs")
        print(f"{model.stem[:40]:40} " + " ".join(f"{n:9} {ms:7.2f} ms" for n, ms, _ in found.values()), flush=True)


if __name__ == "__main__":
    main()
