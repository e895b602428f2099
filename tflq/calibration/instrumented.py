"""Text as a model to run: a TFLite file made of it, in which the points of `quant.stats_ref` are tensors with names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tflq.dialects.regions import StatsRef
from tflq.formats import read, write
from tflq.ir.core import Module, Value
from tflq.legalize.annotations import drop_annotations
from tflq.passes.regions.ranges import same_value
from tflq.select.naming import NameTensors


def as_file(path: str | os.PathLike[str], folder: str) -> tuple[str, Mapping[str, str] | None]:
    """The TFLite file to run for a model, and the keys of its points by the names of tensors there; None without
    points. A file of TFLite is the file itself; one is made of text, in a folder. Errors as of `tflq.read`."""
    if Path(path).suffix != ".mlir":
        return os.fspath(path), None
    module = read(path)
    points = _points(module)
    drop_annotations(module)
    NameTensors().run(module)
    made = os.path.join(folder, "instrumented.tflite")
    write(module, made)
    kept = {value for function in module.functions for value in function.values()}
    names = {next(v for v in values if v in kept).name: key for key, values in points.items()}
    return made, names or None


def _points(module: Module) -> dict[str, list[Value]]:
    """By the key of each point the values that are its value: one of them stays when the points go."""
    return {
        op.stats_key: [op.result, op.arg, same_value(op.arg)]
        for function in module.functions
        for op in function.ops
        if isinstance(op, StatsRef)
    }
