"""A float network before it is quantized: ranges that samples show are stated, and stored constants become floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tflq.analysis.statistics import Method, Statistics, observed_range
from tflq.base.errors import OptionError, Reason
from tflq.dialects.regions import Stats
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.movement import Densify
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.rewriting import insert_after, remove_ops
from tflq.ir.types import CalibratedQuantizedType, TensorType, is_float
from tflq.tools.quantize.calibration.calibrate import digests, points_of
from tflq.tools.quantize.recipe import STATIC, Choices
from tflq.tools.quantize.regions.lookup import real_constant
from tflq.tools.quantize.regions.ranges import set_plain_types

_LARGEST: Final = 2.0**100
"""A tensor with larger numbers, such as a mask of the least float32, stays float: products of its scale overflow in
kernels, and that of ADD then ends the process."""
_APART: Final = 0.01
"""Of a range: by how much a recorded one may differ from it without a word."""
_SPREADS: Final = (Dequantize, Densify)
"""Operators that make floats of constants as a file stores them."""


# Ranges that samples show.


def state_ranges(
    module: Module, seen: Sequence[Statistics], chosen: Choices, widened: Mapping[str, float]
) -> list[str]:
    """Puts a `quant.stats` with its range behind each float value of the statistics. A range that the file records of
    such a value, or of a constant, no longer counts. widened: by how much the ranges of tensors are wider than seen, by
    name.

    Returns what to warn of: recorded ranges that differ. OptionError if no value is in the statistics, if one is of
    another model, or in several runs.
    """
    stale, used, differing = dict[str, Value](), set[str](), list[str]()
    for function in module.functions:
        known = digests(function)
        behind: dict[Value, Op] = {}
        set_plain_types(value for value in function.tensors if value.is_constant)
        for value, key in points_of(function, known).items():
            points = [each.points[key] for each in seen if key in each.points]
            fitting = [point for point in points if point.digest in ("", known[value])]
            if not fitting:
                stale.update({key: value} if points else {})
                continue
            if len(fitting) > 1:
                what = f"{len(fitting)} statistics have ranges of '{key}'"
                remedy = "join those of one signature: tflq calibrate merge"
                raise OptionError(Reason(what, tensor=key, value=key, remedy=remedy))
            used.add(key)
            (point,) = fitting
            settings = chosen.of([value])
            levels = STATIC.get(settings.scheme, STATIC["int8"])
            ends = observed_range(point, Method.of(settings.range), key, levels)
            recorded = set_plain_types([value]).get(value)
            if isinstance(recorded, CalibratedQuantizedType) and ends is not None and _differ(recorded, ends):
                differing.append(
                    f"'{key}' {recorded.minimum:g} to {recorded.maximum:g}, not {ends[0]:g} to {ends[1]:g}"
                )
            if ends is not None and max(map(abs, ends)) <= _LARGEST and not _is_stored(value):
                stats = {"layerStats": np.array(ends, np.float32) * np.float32(widened.get(value.name, 1.0))}
                behind[value] = Op(Stats.op_name, [value], [Value(value.type)], stats)
        insert_after(module, function, behind)
    if others := [key for key in stale if key not in used]:
        what = f"the statistics of '{others[0]}' are of another model"
        remedy = "calibrate anew; --resume keeps what still holds"
        raise OptionError(Reason(what, tensor=others[0], value=others[0], remedy=remedy))
    if not used:
        remedy = "calibrate the model that is quantized"
        raise OptionError(Reason("the statistics have none of the model's tensors", remedy=remedy))
    return _recorded(differing)


def _differ(recorded: CalibratedQuantizedType, ends: tuple[float, float]) -> bool:
    apart = max(abs(recorded.minimum - ends[0]), abs(recorded.maximum - ends[1]))
    return apart > _APART * max(ends[1] - ends[0], recorded.maximum - recorded.minimum)


def _recorded(differing: Sequence[str]) -> list[str]:
    if not differing:
        return []
    others = f" (and those of {len(differing) - 1} other tensors)" if len(differing) > 1 else ""
    return [f"the file records other ranges than the samples show, which count: {differing[0]}{others}"]


# Constants that a file stores as float16, as integers, or sparse.


def _is_stored(value: Value) -> bool:
    """Whether a value is a constant but for its form in the file."""
    op = value.producer
    return isinstance(op, _SPREADS) and (op.input.is_constant or _is_stored(op.input))


def spread_constants(module: Module, *, integers: bool) -> None:
    """Makes DEQUANTIZE and DENSIFY of constants constants of float32, under their names. integers: also those of
    quantized constants, which otherwise say how these are quantized."""
    buffers: dict[tuple[Buffer | None, TensorType], Buffer] = {}
    for function in module.functions:
        spread = {op for op in function.ops if isinstance(op, _SPREADS) and _spread(op, function, integers, buffers)}
        remove_ops(function, spread)


def _spread(
    op: Dequantize | Densify,
    function: Function,
    integers: bool,
    buffers: dict[tuple[Buffer | None, TensorType], Buffer],
) -> bool:
    """Makes the result of an operator a constant, if its input is one. Returns whether it is. buffers: of the results,
    by what they are made of."""
    source, result = op.input, op.result
    if not source.is_constant or result in function.outputs or not is_float(result.type.element):
        return False
    real = (real_constant(source) if integers else None) if source.type.quantized else source
    if real is None:
        return False
    key = source.buffer, source.type
    if key not in buffers:
        buffers[key] = Buffer.of(real.array.astype(result.type.storage.dtype))
    result.buffer, result.producer = buffers[key], None
    return True
