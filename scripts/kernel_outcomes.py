"""What the models of one operator give in the interpreter, and on int8 and per-layer kernels in place of others."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import tflq
from scripts.kernel_ideal import agrees, run
from scripts.kernel_table import Key, Sample, holds, signature_of
from scripts.kernel_trials import WEIGHTS, Trial, quantized_op, trials
from tflq.conversion.convert import lower
from tflq.dialects.declare import Operator
from tflq.dialects.effects import is_hybrid
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, parameters, ui8
from tflq.targets.target import Target, Verdict

__all__ = ["Outcome", "measure"]


class Outcome(NamedTuple):
    """What happened to a model, and whether it gives the same as int8 and per layer."""

    operator: str
    key: Key
    sample: Sample
    unsigned: bool | None
    uniform: bool | None


def measure(unit: str, count: int) -> list[Outcome]:
    """The outcome of each model of a unit that is of one quantized operator, not computed in float."""
    return [found for trial in trials(unit, count) if (found := _outcome(trial)) is not None]


def _tried(trial: Trial) -> tuple[Module, Operator] | None:
    try:
        module = tflq.read(trial.model)
    except tflq.InvalidModelError:  # some generators draw what no file may hold
        return None
    op = quantized_op(module)
    return None if op is None else (module, op)


def _outcome(trial: Trial) -> Outcome | None:
    if (read := _tried(trial)) is None:
        return None
    _, op = read
    if is_hybrid(op):
        return None
    name, key, kept = op.name.removeprefix("tfl."), signature_of(op), holds(op)
    if (found := run(trial.model, trial.batches)) is None:
        return Outcome(name, key, Sample(False, False, kept), None, None)
    everywhere = run(trial.model, trial.batches, "AUTO") is not None
    right = agrees(found, trial)
    if right is None:
        return None
    unsigned = uniform = None
    if any(v.type.quantized and v.type.storage == ui8 for v in op.tensors):
        unsigned = _survives(replace(trial, model=_symmetric(trial.model)), _probe("unsigned", name))
    if any(isinstance(v.type.element, UniformQuantizedPerAxisType) for v in op.tensors):
        uniform = _survives(replace(trial, model=_equal_scales(trial.model)), _probe("uniform", name))
    return Outcome(name, key, Sample(right, everywhere, kept), unsigned, uniform)


class _Probe(Target):
    """A target that has every kernel, but on int8 and per layer only, with weights of zero point 0."""

    def judge(self, op: Op) -> Verdict:
        bad = any(
            v.type.quantized and (v.type.storage == ui8 or isinstance(v.type.element, UniformQuantizedPerAxisType))
            for v in op.tensors
        )
        return Verdict(not bad and not any(parameters(w.type)[1].any() for w in _weights(op)), "")


def _weights(op: Op) -> list[Value]:
    """The quantized weights of an op."""
    assert isinstance(op, Operator)
    pairs = zip(op.operand_slots, op.operands, strict=False)
    return [v for slot, v in pairs if v is not None and v.type.quantized and slot.name in WEIGHTS]


def _probe(kind: str, name: str) -> Target:
    """A target on which a kernel takes other storage by a rescale."""
    chosen = {kind: frozenset({name})}
    none: frozenset[str] = frozenset()
    return _Probe("probe", {name: ()}, unsigned=chosen.get("unsigned", none), uniform=chosen.get("uniform", none))


def _survives(trial: Trial, target: Target) -> bool | None:
    """Whether the model gives the same on int8 or per-layer kernels; None if it is right on none of the two, or does
    not come to them."""
    want = run(trial.model, trial.batches)
    if want is None or not agrees(want, trial):
        return None
    try:
        module, report = lower(tflq.read(trial.model), Options(kernels=target))
    except tflq.TflqError:
        return None
    if report.counts["kept"] != len(report.rows):
        return None
    got = run(bytes(write(module)), trial.batches)
    if got is None or not agrees(got, trial):
        return None
    return all(np.array_equal(w, g) for ws, gs in zip(want, got, strict=True) for w, g in zip(ws, gs, strict=True))


def _symmetric(model: bytes) -> bytes:
    """The model with uint8 weights of zero point 128."""
    module = tflq.read(model)
    for weights in (w for op in module.ops() for w in _weights(op)):
        element = weights.type.element
        if isinstance(element, UniformQuantizedType) and element.storage == ui8:
            weights.type = weights.type.with_element(element.replace(zero_point=128))
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
