"""The right results of a model of one quantized operator, and whether a kernel gives them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from support.harness import interpret

import tflq
from scripts.kernel_trials import Trial, bias_of, quantized_op, unit_of
from tflq.conversion.convert import lower
from tflq.dialects.declare import Operator, Trait, trait_of
from tflq.dialects.parameters import Unbounded
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, op_names
from tflq.ir.types import UniformQuantizedPerAxisType, parameters
from tflq.legalize import fallback
from tflq.targets.signature import parse_signature
from tflq.targets.target import Target

__all__ = ["Results", "agrees", "run"]

Results = list[list[np.ndarray]]
COUNTS = {8: 2, 16: 40, 32: 1 << 16}
"""How far rounding inside a kernel may lead, by bits of the result."""
NEAR = 0.98
"""The share of results that are as near as that."""
SEEN = 0.1
"""The least share of results that a model says something by."""
FLOAT = Target("float", {name.removeprefix("tfl."): (parse_signature("...; lowered"),) for name in op_names("tfl")})
"""A target without a kernel, hybrid ones included."""


def run(model: bytes, batches: list[list[np.ndarray]], *resolver: str) -> Results | None:
    """What the interpreter makes of a model; None if it refuses, or dies."""
    try:
        return interpret(model, batches, *resolver)
    except RuntimeError:
        return None


def _ideal(trial: Trial) -> Results | None:
    """Right results: those of the operator in float, between casts, or of a cast itself."""
    module = tflq.read(trial.model)
    op = quantized_op(module)
    assert op is not None
    if op.name in ("tfl.quantize", "tfl.dequantize"):
        return [[_cast(op.operand(0), op.result, *(arrays or [op.operand(0).array]))] for arrays in trial.batches]
    try:
        with patch("tflq.legalize.deciding.rules_of", lambda _: ()), patch.object(fallback, "trait_of", _unbounded):
            module, _ = lower(_scaled(module, op), Options(kernels=FLOAT))
    except tflq.TflqError:
        return None
    return run(bytes(write(module)), trial.batches)


def _unbounded(op: Op, kind: type[Trait]) -> Trait | None:
    """Every operator may leave the range of its result: QUANTIZE wraps what is far out of it."""
    return Unbounded() if kind is Unbounded else trait_of(op, kind)


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


def _scaled(module: Module, op: Operator) -> Module:
    """A bias of plain integers stands for them times the scales of input and weights."""
    place, _ = bias_of(op)
    bias = None if place < 0 else op.optional(place)
    if bias is None or bias.type.quantized or not bias.type.storage.is_integer:
        return module
    scales = unit_of(op, bias)
    if scales is not None:
        bias.type = bias.type.with_element(UniformQuantizedPerAxisType.of(bias.type.storage, 0, scales, 0))
    return module


def agrees(found: Results, trial: Trial) -> bool | None:
    """Whether nearly all elements are as near to the float operator's as rounding inside the kernel explains; None if
    nearly all are at the ends of the range, where others would be, too."""
    ideal, module = _ideal(trial), tflq.read(trial.model)
    if ideal is None:
        return False
    seen = [_inside(value, w, module) for ws in ideal for value, w in zip(module.main.outputs, ws, strict=True)]
    if sum(map(np.size, seen)) and np.concatenate(seen).mean() < SEEN:
        return None
    for ws, gs in zip(ideal, found, strict=True):
        for value, w, g in zip(module.main.outputs, ws, gs, strict=True):
            if w.shape != g.shape:
                return False
            off = np.abs(w.astype(np.float64) - g.astype(np.float64))
            near = (w == g) | (off <= _tolerance(value, w))
            if near.size and near.mean() < NEAR:
                return False
    return True


def _inside(value: Value, ideal: np.ndarray, module: Module) -> np.ndarray:
    """Which results are not at the ends of their type, or of those of an activation."""
    if not value.type.quantized or not ideal.size:
        return np.ones(ideal.size, bool)
    ends = [value.type.storage.minimum, value.type.storage.maximum]
    if any(op.attributes.get("fused_activation_function", "NONE") != "NONE" for op in module.ops()):
        ends += [ideal.min(), ideal.max()]
    return ~np.isin(ideal.ravel(), ends)


def _tolerance(value: Value, ideal: np.ndarray) -> np.ndarray | float:
    """For quantized results at most the share of their range that rounding explains; for float ones, of their size."""
    reals = ideal.astype(np.float64)
    if value.type.quantized:
        range = float(np.ptp(reals)) if reals.size else 0.0
        return min(COUNTS.get(value.type.storage.bits, 2), max(2.0, range / 20))
    return 1e-3 + 1e-3 * np.abs(reals)
