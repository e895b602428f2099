"""Runs a case: the original with the reference kernels, the conversion with all, and says what differs."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

import numpy as np
from support.harness import edge_inputs, interpret

import tflq
from matrix.draw import GENERATORS, Case, Draw
from tflq.dialects.effects import callees, entry_functions
from tflq.dialects.tfl.casts import Dequantize
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import parameters
from tflq.transforms.source import extract


@dataclass
class Outcome:
    """`kind` is "ok", "skipped" or what is wrong; `detail` says more."""

    kind: str
    detail: str = ""


def case_of(name: str, number: int, seed: int = 0) -> Case:
    """The case of a number; the same in every run."""
    return GENERATORS[name](Draw([seed, *name.encode(), number]))


def results_of(case: Case, batches: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """What the kernels make of a case, or what is exact, or, rounded and saturated, what its float twin does."""
    if case.exact is not None:
        return [case.exact(arrays) for arrays in batches]
    if case.twin is None:
        return interpret(case.model, batches, case.reference)
    main = tflq.read(case.model).main
    reals = [[_real(v, a) for v, a in zip(main.inputs, arrays, strict=True)] for arrays in batches]
    return [
        [_stored(v, a) for v, a in zip(main.outputs, arrays, strict=True)]
        for arrays in interpret(case.twin, reals, case.reference)
    ]


def _real(value: Value, stored: np.ndarray) -> np.ndarray:
    if not value.type.quantized:
        return stored
    scale, zero = parameters(value.type)
    return (stored.astype(np.int32) - zero).astype(np.float32) * scale


def _stored(value: Value, real: np.ndarray) -> np.ndarray:
    if not value.type.quantized:
        return real
    scale, zero = parameters(value.type)
    storage = value.type.storage
    counts = np.nan_to_num(real.astype(np.float64) / scale, nan=0.0, posinf=1e9, neginf=-1e9)
    rounded = np.sign(counts) * np.floor(np.abs(counts) + 0.5) + zero
    return np.clip(rounded, storage.minimum, storage.maximum).astype(storage.dtype)


def run(case: Case, resolvers: tuple[str, ...] = ()) -> Outcome:
    """Converts and compares; `resolvers` beside the reference kernels are run, too."""
    runs = [case.batches, *case.more]
    try:
        wanted = [results_of(case, batches) for batches in runs]
    except RuntimeError as error:
        return Outcome("skipped", str(error))
    try:
        conversion = tflq.convert(case.model, **case.conversion)
    except tflq.TflqError as error:
        return Outcome(f"refused ({type(error).__name__})", str(error))
    except Exception as error:  # noqa: BLE001 what it is for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(f"raised {type(error).__name__}", f"{error!r} at {place.filename}:{place.lineno}")
    paths = [row for row in conversion.report.rows if row.path == "float"]
    if case.integer and paths:
        return Outcome("float path", "; ".join(f"{row.reason}" for row in paths))
    strict = case.integer and case.conversion.get("target", "integer") == "integer"
    if strict and (kept := _quantized_inside(conversion.module) or _disagreement(conversion.module)):
        return Outcome("not strict", kept)
    for resolver in ("BUILTIN_REF", *(resolvers if case.everywhere else ())):
        for batches, want in zip(runs, wanted, strict=True):
            try:
                got = interpret(conversion.data, batches, resolver)
            except RuntimeError as error:
                return Outcome(f"does not run in {resolver}", str(error))
            if difference := _difference(want, got, case.tolerance):
                return Outcome(f"differs in {resolver}", difference)
    original, converted = tflq.read(case.model), conversion.module
    if difference := _interface_difference(original, tflq.read(conversion.data)):
        return Outcome("interface differs", difference)
    for index in entry_functions(original)[1:]:
        batches = edge_inputs(converted.functions[index].inputs)
        want, got = (interpret(alone(data, index), batches) for data in (case.model, conversion.data))
        if difference := _difference(want, got, 0):
            return Outcome(f"function {index} differs", difference)
    return Outcome("ok")


def alone(data: bytes, index: int) -> bytes:
    """The file of one entry of a model: its function, and those that it calls."""
    module = tflq.read(data)
    key = next((s.key for s in module.signatures or () if s.function == index), None)
    return bytes(write(extract(module, key or "") if key or not index else Module([module.functions[index]])))


def _interface_difference(original: Module, converted: Module) -> str:
    """The first entry whose key, names, types or shapes are others."""
    for index in entry_functions(original):
        a, b = (_edges(module, index) for module in (original, converted))
        if a != b:
            return f"entry {index}: {a} became {b}"
    return ""


def _edges(module: Module, index: int) -> list[object]:
    function = module.functions[index]
    edges: list[object] = [(v.name, v.type) for v in (*function.inputs, *function.outputs)]
    for s in module.signatures or ():
        if s.function == index:
            edges += [s.key, *((name, v.name, v.type) for name, v in (*(s.inputs or ()), *(s.outputs or ())))]
    return edges


def _quantized_inside(module: Module) -> str:
    """A quantized tensor, if there is one, that is no argument or result of an entry, nor stored weights of a float
    kernel."""
    entries = entry_functions(module)
    weights = {op.input for op in module.ops() if isinstance(op, Dequantize) and op.input.is_constant}
    for index, function in enumerate(module.functions):
        edge = {*function.inputs, *function.outputs} if index in entries else set()
        for value in function.values():
            if value.type.quantized and value not in edge and value not in weights:
                return f"'{value.name}' {value.type} in function {index}"
    return ""


def _disagreement(module: Module) -> str:
    """A call that gives or takes another type than the function called, if there is one."""
    for op in module.ops():
        for index in callees(op):
            function = module.functions[index]
            given = op.operands[1:] if op.name == "tfl.if" else op.operands
            taken = () if index == op.attributes.get("cond_subgraph_index") else op.results
            for outer, inner in (*zip(given, function.inputs), *zip(taken, function.outputs)):  # noqa: B905
                if outer and outer.type.element != inner.type.element:
                    return f"{op.name}: '{outer.name}' {outer.type} and '{inner.name}' {inner.type} of function {index}"
    return ""


def _difference(want: list[list[np.ndarray]], got: list[list[np.ndarray]], tolerance: int) -> str:
    for batch, (ws, gs) in enumerate(zip(want, got, strict=True)):
        for index, (w, g) in enumerate(zip(ws, gs, strict=True)):
            if w.shape != g.shape or w.dtype != g.dtype:
                return f"output {index}: {w.dtype}{w.shape} became {g.dtype}{g.shape}"
            wrong = ~((w == g) | ((w != w) & (g != g)))
            if tolerance:
                wrong &= np.abs(w.astype(np.float64) - g.astype(np.float64)) > tolerance
            if wrong.any():
                at = np.unravel_index(int(np.argmax(wrong)), w.shape) if w.shape else ()
                most = np.abs(w.astype(np.float64) - g.astype(np.float64))[wrong].max()
                place = f"output {index}, batch {batch}, at {tuple(map(int, at))}: {w[at]} became {g[at]}"
                return f"{place}; {wrong.sum()} of {w.size} differ, by up to {most:g}"
    return ""
