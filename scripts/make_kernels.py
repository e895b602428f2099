"""Rebuild `rules/kernels.toml`: which quantized kernels the interpreter gets right, measured.

    python scripts/make_kernels.py [--count 80] [--jobs 2] [--partial FILE] [--operator NAME ...]

Models of one operator (kernel_trials.py) run in the interpreter, in a child process that may die, with the reference
kernels and with the optimized ones. A signature (builtin, element types) is listed if nearly every model of it that
keeps some constraints runs, and its results are those of the operator in float between DEQUANTIZE and QUANTIZE, but for
rounding inside the kernel. It needs a constraint if the models that break that one alone are wrong.

`unsigned` and `uniform`: the kernels whose uint8 and per-axis models (with equal scales) give the same results after
the exact rescale to int8 and per-layer, in every model.

With --partial what was measured is kept in a file, and a run that was ended goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from harness import interpret  # noqa: E402

import tflq  # noqa: E402
from scripts.kernel_table import Key, Sample, signature_of, table  # noqa: E402
from scripts.kernel_trials import WEIGHTS, Trial, quantized_op, slots, trials, units  # noqa: E402
from tflq.flatbuffer.writer import write  # noqa: E402
from tflq.ir.core import Module, Op, Value  # noqa: E402
from tflq.ir.dialects import op_names  # noqa: E402
from tflq.ir.parameters import parameters  # noqa: E402
from tflq.ir.types import (  # noqa: E402
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    ui8,
)
from tflq.legalize import fallback  # noqa: E402
from tflq.legalize.rule import RULES  # noqa: E402
from tflq.pipelines import to_tflite  # noqa: E402
from tflq.targets import INTEGER, Target, Verdict  # noqa: E402

COUNTS = {8: 2, 16: 40, 32: 1 << 16}
"""How far rounding inside a kernel may lead, by bits of the result."""
Outcome = tuple[bool, bool, bool | None, bool | None]
"""Right, everywhere, and whether it survives as int8 and per layer."""


class _Probe(Target):
    """A target that has every kernel, but on int8 and per layer only, with weights of zero point 0."""

    def judge(self, op: Op) -> Verdict:
        bad = any(
            v.type.quantized and (v.type.storage == ui8 or isinstance(v.type.element, UniformQuantizedPerAxisType))
            for v in op.values
        )
        return Verdict(not bad and not any(parameters(w.type)[1].any() for w in _weights(op)), "")


def _weights(op: Op) -> list[Value]:
    """The quantized weights of an op."""
    pairs = zip(slots(op).operands, op.operands, strict=False)
    return [v for slot, v in pairs if v is not None and v.type.quantized and slot.name in WEIGHTS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=80, help="models of each generator")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--operator", nargs="*", default=[""], help="only units whose names contain one of these, and print the table"
    )
    parser.add_argument("--partial", type=Path, help="a file of what was measured, read and appended to")
    a = parser.parse_args()
    wanted = [unit for unit in units() if any(name in unit for name in a.operator)]
    known = _known(a.partial, a.count)
    with ProcessPoolExecutor(a.jobs, get_context("spawn")) as pool:
        pending = {pool.submit(measure, unit, a.count): unit for unit in wanted if unit not in known}
        for future in as_completed(pending):
            unit = pending[future]
            known[unit] = future.result()
            print(unit, file=sys.stderr, flush=True)
            if a.partial is not None:
                with a.partial.open("a") as file:
                    file.write(json.dumps([unit, a.count, known[unit]]) + "\n")
    text = table(*_gathered({unit: known[unit] for unit in wanted}, a.count))
    if any(a.operator):
        print(text)
    else:
        (ROOT / "rules" / "kernels.toml").write_text(text)
    return 0


def _known(path: Path | None, count: int) -> dict[str, list[Outcome | None]]:
    if path is None or not path.exists():
        return {}
    rows = map(json.loads, path.read_text().splitlines())
    return {unit: outcomes for unit, of, outcomes in rows if of == count}


def _gathered(
    measured: dict[str, list[Outcome | None]], count: int
) -> tuple[dict[str, dict[Key, list[Sample]]], dict[str, dict[str, list[bool]]]]:
    samples: dict[str, dict[Key, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    shifts: dict[str, dict[str, list[bool]]] = {"unsigned": defaultdict(list), "uniform": defaultdict(list)}
    for unit, outcomes in measured.items():
        for trial, outcome in zip(trials(unit, count), outcomes, strict=True):
            found = None if outcome is None else _tried(trial)
            if outcome is None or found is None:
                continue
            op = found[1]
            name = op.name.removeprefix("tfl.")
            right, everywhere, *answers = outcome
            samples[name][signature_of(op)].append(Sample(op, right, everywhere))
            for kind, answer in zip(shifts, answers, strict=True):
                if answer is not None:
                    shifts[kind][name].append(answer)
    return samples, shifts


def measure(unit: str, count: int) -> list[Outcome | None]:
    """The outcome of each model of a unit; None if it is none of one quantized operator."""
    return [_outcome(trial) for trial in trials(unit, count)]


def _tried(trial: Trial) -> tuple[Module, Op] | None:
    try:
        module = tflq.read(trial.model)
    except tflq.InvalidModelError:  # some generators draw what no file may hold
        return None
    op = quantized_op(module)
    return None if op is None else (module, op)


def _outcome(trial: Trial) -> Outcome | None:
    if (read := _tried(trial)) is None:
        return None
    module, op = read
    name = op.name.removeprefix("tfl.")
    try:
        found = interpret(trial.model, trial.batches)
    except RuntimeError:
        return False, False, None, None
    try:
        interpret(trial.model, trial.batches, "AUTO")
        everywhere = True
    except RuntimeError:
        everywhere = False
    right = _agrees(found, _ideal(trial, module, op), module)
    unsigned = uniform = None
    if any(v.type.quantized and v.type.storage == ui8 for v in op.values):
        unsigned = _survives(_symmetric(trial.model), trial, _probe("unsigned", name))
    if any(isinstance(v.type.element, UniformQuantizedPerAxisType) for v in op.values):
        uniform = _survives(_equal_scales(trial.model), trial, _probe("uniform", name))
    return right, everywhere, unsigned, uniform


def _probe(kind: str, name: str) -> Target:
    """A target on which a kernel takes other storage by a rescale."""
    chosen = {kind: frozenset({name})}
    none: frozenset[str] = frozenset()
    return _Probe("probe", {name: ()}, unsigned=chosen.get("unsigned", none), uniform=chosen.get("uniform", none))


def _survives(model: bytes, trial: Trial, target: Target) -> bool | None:
    """Whether the model gives the same on int8 or per-layer kernels; None if it does not come to them."""
    try:
        want = interpret(model, trial.batches)
        module, report = to_tflite(tflq.read(model), mac="integer", fallback=True, real_semantics=False, kernels=target)
        if report.counts["kept"] != len(report.rows):
            return None
        got = interpret(bytes(write(module)), trial.batches)
    except (RuntimeError, tflq.TflqError):
        return False
    return all(np.array_equal(w, g) for ws, gs in zip(want, got, strict=True) for w, g in zip(ws, gs, strict=True))


def _symmetric(model: bytes) -> bytes:
    """The model with uint8 weights of zero point 128."""
    module = tflq.read(model)
    for weights in (w for op in module.ops() for w in _weights(op)):
        element = weights.type.element
        if isinstance(element, UniformQuantizedType) and element.storage == ui8:
            weights.type = weights.type.with_element(replace(element, zero_point=128))
    return bytes(write(module))


def _equal_scales(model: bytes) -> bytes:
    """The model with the first scale and zero point of each per-axis tensor for all of its indices."""
    module = tflq.read(model)
    for function in module.functions:
        for value in function.values():
            element = value.type.element
            if isinstance(element, UniformQuantizedPerAxisType):
                scales = np.full_like(element.scales, element.scales[0])
                zero = int(element.zero_points[0])
                of = UniformQuantizedPerAxisType.of(element.storage, element.axis, scales, zero)
                value.type = value.type.with_element(of)
    return bytes(write(module))


def _ideal(trial: Trial, module: Module, op: Op) -> list[list[np.ndarray]] | None:
    """Right results: those of the operator in float, between casts, or of a cast itself."""
    if op.name in ("tfl.quantize", "tfl.dequantize"):
        return [[_cast(op.operand(0), op.result, *(arrays or [op.operand(0).array]))] for arrays in trial.batches]
    rules, named = dict(RULES), fallback._NOT_FINITE
    RULES.clear()
    fallback._NOT_FINITE = frozenset(op_names("tfl"))  # QUANTIZE wraps what is far out of range
    try:
        module, _ = to_tflite(_scaled(module, op), mac="integer", fallback=True, real_semantics=False, kernels=INTEGER)
        return interpret(bytes(write(module)), trial.batches)
    except (RuntimeError, tflq.TflqError):
        return None
    finally:
        RULES.update(rules)
        fallback._NOT_FINITE = named


def _cast(x: Value, y: Value, array: np.ndarray) -> np.ndarray:
    reals = array.astype(np.float64)
    if x.type.quantized:
        scale, zero = parameters(x.type)
        reals = (reals - zero) * scale
    if not y.type.quantized:
        return reals.astype(y.type.storage.dtype)
    scale, zero = parameters(y.type)
    storage = y.type.storage
    return np.clip(np.round(reals / scale) + zero, storage.minimum, storage.maximum).astype(storage.dtype)


def _scaled(module: Module, op: Op) -> Module:
    """A bias of plain integers stands for them times the scales of input and weights."""
    named = {slot.name: v for slot, v in zip(slots(op).operands, op.operands, strict=False)}
    bias, x, weights = named.get("bias"), named.get("input"), next((named[n] for n in WEIGHTS if n in named), None)
    if not (bias and x and weights and x.type.quantized and weights.type.quantized and bias.type.storage.is_integer):
        return module
    if not bias.type.quantized and isinstance(x.type.element, UniformQuantizedType):
        scales = np.float32(x.type.element.scale) * np.ravel(parameters(weights.type)[0])
        scales = np.resize(scales, (bias.type.shape or (1,))[0] or 1)
        bias.type = bias.type.with_element(UniformQuantizedPerAxisType.of(bias.type.storage, 0, scales, 0))
    return module


def _agrees(found: list[list[np.ndarray]], ideal: list[list[np.ndarray]] | None, module: Module) -> bool:
    """Whether nearly all elements are as near to the float operator's as rounding inside the kernel explains."""
    if ideal is None:
        return False
    for ws, gs in zip(ideal, found, strict=True):
        for value, w, g in zip(module.main.outputs, ws, gs, strict=True):
            if w.shape != g.shape:
                return False
            if w.dtype.kind not in "iu" or not value.type.quantized:
                if not np.allclose(w.astype(np.float64), g.astype(np.float64), rtol=1e-3, atol=1e-3):
                    return False
                continue
            storage = value.type.storage
            far = np.abs(w.astype(np.int64) - g.astype(np.int64)) > COUNTS.get(storage.bits, 2)
            if far.size and far.mean() > 0.02:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main())
