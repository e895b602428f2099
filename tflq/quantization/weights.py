"""Schemes of weights alone: dynamic, weight-only, float16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from tflq.errors import OptionError, Reason, nearest
from tflq.ir.core import Module, Op, Value, constant
from tflq.ir.types import AnyQuantizedType, UniformQuantizedPerAxisType, f16, f32, i8
from tflq.passes.regions.lookup import quantized_constant
from tflq.passes.regions.ranges import Range, parameters
from tflq.passes.regions.tensor_constraints import matcher
from tflq.quantization.report import ASKED, QuantizedRow

WEIGHT_SCHEMES: Final = ("dynamic", "weight-only", "float16")
_AXES: Final = {Conv2D: (1, 0), FullyConnected: (1, 0), DepthwiseConv2D: (1, 3), TransposeConv: (1, 0)}
"""The operand with the weights of each operator, and their axis of output channels."""
_LARGEST_HALF: Final = float(np.finfo(np.float16).max)


def quantize_weights(module: Module, scheme: str, keep_float: Sequence[str]) -> list[QuantizedRow]:
    """Gives constant weights of operators fewer bits, by a scheme. OptionError for a pattern that fits no operator's
    result."""
    fits = [matcher(pattern) for pattern in keep_float]
    names = [value.name for op in module.ops() for value in op.results if value.name]
    for pattern, fit in zip(keep_float, fits, strict=True):
        if not any(map(fit, names)):
            remedy = nearest(pattern, names) or "see `tflq inspect` for names"
            raise OptionError(Reason(f"no operator makes a tensor '{pattern}'", value=pattern, remedy=remedy))
    rows: list[QuantizedRow] = []
    for function in module.functions:
        work = _Weights(scheme)
        for op in list(function.ops):
            work.ops.append(op)
            kept = any(fit(value.name) for fit in fits for value in op.results if value.name)
            rows.append(work.quantize(op) if not kept else _row(op, why=ASKED))
        function.ops = work.ops
    return rows


def _row(op: Op, why: str = "", types: str = "") -> QuantizedRow:
    name = op.results[0].name if op.results else ""
    return QuantizedRow(op.short_name, name, not why, types=types, why=why)


class _Weights:
    """The operators of one function, on weights with fewer bits. Constants that several operators read stay shared."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self.ops: list[Op] = []
        self.made: dict[tuple[Value, int | None], Value] = {}

    def quantize(self, op: Op) -> QuantizedRow:
        """Gives the last operator other weights, where it has some."""
        return self._halves(op) if self.scheme == "float16" else self._integers(op)

    def _halves(self, op: Op) -> QuantizedRow:
        places = [place for place, value in enumerate(op.operands) if value is not None and _is_float(value)]
        for place in places:
            weights = op.operands[place]
            assert weights is not None
            op.operands[place] = self._dequantized(weights, None, op)
        return _row(op, "" if places else "it has no constant floats", "f16" if places else "")

    def _integers(self, op: Op) -> QuantizedRow:
        found = next((at for kind, at in _AXES.items() if isinstance(op, kind)), None)
        if found is None:
            return _row(op, f"there are no weights of {op.short_name} to quantize")
        place, axis = found
        weights = op.operands[place]
        if weights is None or not _is_float(weights):
            return _row(op, "its weights are not constant floats")
        if self.scheme == "dynamic" and isinstance(op, TransposeConv):
            return _row(op, "the interpreter has no kernel for it with weights of 8 bits")
        if self.scheme == "weight-only":
            op.operands[place] = self._dequantized(weights, axis, op)
        else:
            op.operands[place] = self._stored(weights, axis)
            if isinstance(op, FullyConnected):
                op.attributes = {**op.attributes, "asymmetric_quantize_inputs": True}
        return _row(op, types="qi8")

    def _dequantized(self, weights: Value, axis: int | None, op: Op) -> Value:
        """Weights of fewer bits, made floats again."""
        key = weights, axis
        if key not in self.made:
            stored = _half(weights) if self.scheme == "float16" else _stored(weights, axis or 0)
            real = Value(weights.type)
            real.name, stored.name = weights.name, f"{weights.name}/{'float16' if self.scheme == 'float16' else 'int8'}"
            self.ops.insert(-1, Op(Dequantize.op_name, [stored], [real], {}, op.location))
            self.made[key] = real
        return self.made[key]

    def _stored(self, weights: Value, axis: int) -> Value:
        key = weights, axis
        if key not in self.made:
            self.made[key] = _stored(weights, axis)
        return self.made[key]


def _is_float(value: Value) -> bool:
    return value.is_constant and value.type.element == f32 and value.array.size > 0


def _half(weights: Value) -> Value:
    """A constant in float16, rounded to nearest even; what is too large for that becomes the largest."""
    with np.errstate(over="ignore"):
        return constant(np.clip(weights.array, -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16), f16)


def _stored(weights: Value, axis: int) -> Value:
    """Weights in 8 bits, with a scale for each index of an axis: the largest magnitude is 127."""
    others = tuple(place for place in range(weights.array.ndim) if place != axis)
    low, high = weights.array.min(axis=others), weights.array.max(axis=others)
    seen = Range(f32, low.astype(np.float64), high.astype(np.float64), axis, exact=True)
    stored = quantized_constant(weights, parameters(seen, AnyQuantizedType(i8, f32, -127, 127), 0))
    assert stored is not None
    kind = stored.type.element
    assert isinstance(kind, UniformQuantizedPerAxisType)
    stored.type = stored.type.with_element(replace(kind, storage_min=i8.minimum))  # a file has no place for -127
    return stored
