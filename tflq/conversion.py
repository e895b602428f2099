"""The main job: read → legalize → simplify → select → write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Literal

from tflq.errors import TflqError, UnsupportedError
from tflq.flatbuffer.reader import read
from tflq.flatbuffer.writer import write
from tflq.ir.core import Module
from tflq.ir.forms import Form
from tflq.legalize import legalize
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.contract import Pass, Pipeline, verify_stage
from tflq.passes.cse import CommonSubexpressionElimination
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.fold import Fold
from tflq.report import Report
from tflq.select import select
from tflq.select.edges import trim_edges
from tflq.select.legality import check
from tflq.select.lowering import Mac
from tflq.select.tabulate import Tabulate

__all__ = ["Conversion", "convert"]

Fallback = Literal["float", "error"]
Semantics = Literal["interpreter", "real"]
Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO


@dataclass(frozen=True)
class Conversion:
    """What a conversion gave: the `module` on the target's kernels, its bytes (`data`) and the `report`."""

    module: Module
    report: Report

    @cached_property
    def data(self) -> bytes:
        """The converted model as a TFLite file; made when first asked for."""
        return bytes(write(self.module))


def convert(
    source: Source,
    destination: str | os.PathLike[str] | None = None,
    *,
    target: str = "integer",
    mac: Mac = "integer",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
    force: bool = False,
) -> Conversion:
    """Converts a TFLite model (a path, bytes or a binary file) to the integer form; writes it to `destination`, if
    given.

    target: what the result may hold; "integer" is every builtin on plain integer tensors.
    mac: multiply-accumulate as int8 BATCH_MATMUL ("integer"), or as float convolutions on integer values, proven
        exact ("float32").
    fallback: what happens to an operator without an integer rule: computed in "float", or an "error".
    semantics: "interpreter" reproduces the reference kernels to the last bit; "real" honours the quantization
        parameters and drops requantizations between float operators.
    force: replace an existing destination.

    InvalidModelError: the source is not a valid model. UnsupportedError: it cannot be converted as asked; lists every
    operator. TflqError: the destination exists already, or its suffix names no format. Nothing is written on an error.
    """
    _check_options(target, mac, fallback, semantics)
    if destination is not None:
        _check_destination(Path(destination), force)
    module, decisions = legalize(read(source), fallback=fallback == "float")
    verify_stage(module, "integer", "legalization")
    module = _run(module, "integer", *_simplification(semantics))
    module = _run(module, "integer", Tabulate(), DeadCodeElimination())
    module = select(module, mac=mac)
    trim_edges(module)
    verify_stage(module, "kernels", "selection")
    module = _run(module, "kernels", CommonSubexpressionElimination(), DeadCodeElimination())
    check(module, decisions, mac)
    report = Report.of(module, decisions)
    if destination is not None:
        write(module, destination)
    return Conversion(module, report)


def _simplification(semantics: Semantics) -> Sequence[Pass]:
    """Casts between neighbours cancelled, common ops shared, constants folded, dead ops dropped."""
    return (
        Canonicalize(real_semantics=semantics == "real"),
        CommonSubexpressionElimination(),
        Fold(),
        DeadCodeElimination(),
    )


def _run(module: Module, form: Form, *passes: Pass) -> Module:
    return Pipeline(passes, form).run(module).module


def _check_options(target: str, mac: str, fallback: str, semantics: str) -> None:
    for name, value, known in (
        ("mac", mac, ("integer", "float32")),
        ("fallback", fallback, ("float", "error")),
        ("semantics", semantics, ("interpreter", "real")),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r}: not one of {', '.join(known)}")
    if target != "integer":
        raise UnsupportedError(f"target {target!r} is not known; this version converts for target 'integer'")


def _check_destination(path: Path, force: bool) -> None:
    if path.suffix in (".tosa", ".mlir"):
        raise UnsupportedError(f"{path}: this version writes .tflite files, not {path.suffix}")
    if path.suffix != ".tflite":
        raise TflqError(f"{path}: the suffix says the format, and '{path.suffix}' names none; use .tflite")
    if path.exists() and not force:
        raise TflqError(f"{path}: exists already; give force (--force) to replace it")
    if not path.parent.is_dir():
        raise TflqError(f"{path}: there is no folder {path.parent}")
