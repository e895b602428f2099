"""Schemes of weights alone: dynamic, weight-only, float16.

Weights can be rounded by what they are multiplied with on samples, which is kept where it is better on samples held
back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from tflq.base.files import FilePath
from tflq.dialects.tfl import fused_activation, op_name, without_activation
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from tflq.dialects.tfl.movement import Reshape
from tflq.formats.sources import read
from tflq.ir.module import Module
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, f16, f32, i2, i4, i8
from tflq.numerics.ranges import (
    GPTQ,
    block_scales,
    bounds,
    clips,
    compensated_weights,
    error_of_products,
    stored_weights,
)
from tflq.tools.quantize.calibration.collecting import Factor, second_moments
from tflq.tools.quantize.preparing import spread_constants
from tflq.tools.quantize.recipe import WEIGHT_SCHEMES, Choices, Settings
from tflq.tools.quantize.report import STAYS_FLOAT, QuantizedRow
from tflq.tools.samples.reading import Spans

AXES: Final = {Conv2D: (1, 0), FullyConnected: (1, 0), DepthwiseConv2D: (1, 3), TransposeConv: (1, 0)}
"""The operand with the weights of each operator, and their axis of output channels."""
NOT_4_BITS: Final = (DepthwiseConv2D, TransposeConv)
"""Operators whose weights have 8 bits where fewer are asked for: no kernel takes fewer bits of them."""
_DYNAMIC_CONVOLUTION: Final = 4
"""The fewest bits that CONV_2D takes where it quantizes its input: it reads int2 as if it were int8."""
STORAGES: Final = {2: i2, 4: i4, 8: i8}
_BLOCKS_NOTE: Final = "of blocks the reference kernel gives zeros; XNNPACK computes them"
_LARGEST_HALF: Final = float(np.finfo(np.float16).max)


def quantize_weights(module: Module, chosen: Choices, moments: Mapping[Value, Moments]) -> list[QuantizedRow]:
    """Gives constant weights of operators fewer bits, each by its scheme. moments: of what weights are multiplied with,
    where they are to be rounded by it. Returns the rows of the operators whose scheme is of weights alone, or, where
    that holds for the whole network, of all."""
    rows: list[QuantizedRow] = []
    for function in module.functions:
        work = _Weights(moments)
        for op in list(function.ops):
            work.ops.append(op)
            settings = chosen.of(op.results)
            if settings.scheme in WEIGHT_SCHEMES:
                rows.append(work.quantize(op, settings))
            elif not chosen.static:
                rows.append(_row(op, why=STAYS_FLOAT))
        function.ops = work.ops
    return rows


def _row(op: Op, why: str = "", types: str = "", note: str = "") -> QuantizedRow:
    name = op.result.name if op.results else ""
    return QuantizedRow(op.short_name, name, not why, types=types, why=why, note=note)


class _Weights:
    """The operators of one function, on weights with fewer bits. Constants that several operators read stay shared."""

    def __init__(self, moments: Mapping[Value, Moments]) -> None:
        self.moments = moments
        self.ops: list[Op] = []
        self.halves: dict[Value, Value] = {}
        self.stored: dict[tuple[object, ...], tuple[Value, str]] = {}
        self.real: dict[Value, Value] = {}

    def quantize(self, op: Op, settings: Settings) -> QuantizedRow:
        """Gives the last operator other weights, where it has some."""
        return self._halves(op) if settings.scheme == "float16" else self._integers(op, settings)

    def _halves(self, op: Op) -> QuantizedRow:
        places = [place for place, value in enumerate(op.operands) if value is not None and is_constant_float(value)]
        for place in places:
            weights = op.operands[place]
            assert weights is not None
            if weights not in self.halves:
                self.halves[weights] = _half(weights)
            op.operands[place] = self._dequantized(self.halves[weights], op, weights)
        return _row(op, "" if places else "it has no constant floats", "f16" if places else "")

    def _integers(self, op: Op, settings: Settings) -> QuantizedRow:
        place_and_axis = next((at for kind, at in AXES.items() if isinstance(op, kind)), None)
        if place_and_axis is None:
            return _row(op, f"there are no weights of {op.short_name} to quantize")
        place, axis = place_and_axis
        weights = op.operands[place]
        if weights is None or not is_constant_float(weights):
            return _row(op, "its weights are not constant floats")
        if not np.isfinite(weights.array).all():
            return _row(op, f"its weights '{weights.name}' hold NaN or infinity")
        bits = 8 if isinstance(op, NOT_4_BITS) else settings.bits
        if isinstance(op, Conv2D) and settings.scheme == "dynamic":
            bits = max(bits, _DYNAMIC_CONVOLUTION)
        blocks = settings.blocks if isinstance(op, FullyConnected) else 0
        if blocks and weights.array.shape[-1] % blocks:
            return _row(op, f"its rows of {weights.array.shape[-1]} weights do not divide into blocks of {blocks}")
        if settings.scheme == "weight-only":
            stored, note = self._stored(weights, axis, bits, blocks, settings.weight_method, apart=True)
            op.operands[place] = self._dequantized(stored, op, weights)
        else:
            stored, note = self._stored(weights, axis, bits, blocks, settings.weight_method, apart=False)
            op.operands[place] = stored
            if isinstance(op, FullyConnected):
                op.attributes = {**op.attributes, "asymmetric_quantize_inputs": not blocks}
        row = _row(op, types=f"qi{bits}/blocks of {blocks}" if blocks else f"qi{bits}", note=note)
        if blocks and settings.scheme == "dynamic":
            self._set_apart(op)
        return row

    def _stored(
        self, weights: Value, axis: int, bits: int, blocks: int, method: str, *, apart: bool
    ) -> tuple[Value, str]:
        """Weights with fewer bits, and what is to be said of them, once for all operators that ask for the same. apart:
        whether blocks are rows of their own."""
        key = weights, axis, bits, blocks, method, apart
        if key not in self.stored:
            seen = self.moments.get(weights)
            self.stored[key] = (
                _blocks(weights, bits, blocks, method, seen, apart=apart)
                if blocks
                else _channels(weights, axis, bits, method, seen)
            )
        return self.stored[key]

    def _set_apart(self, op: Op) -> None:
        """Makes the activation of the last operator one of its own: the optimized kernel for blocks drops it."""
        activation = fused_activation(op)
        if activation == "NONE":
            return
        result = op.result
        product = Value(result.type, f"{result.name}/product")
        op.attributes = without_activation(op)
        self.ops[-1] = op.copy_with(results=[product])
        self.ops.append(Op(op_name(activation), [product], [result], {}, op.location))

    def _dequantized(self, stored: Value, op: Op, weights: Value) -> Value:
        """Weights of fewer bits, made floats again in the shape that they had, under their old name."""
        if stored not in self.real:
            real = Value(TensorType(stored.type.shape, f32), weights.name)
            kind = "float16" if stored.type.element == f16 else f"int{stored.type.storage.bits}"
            stored.name = f"{weights.name}/{kind}"
            self.ops.insert(-1, Op(Dequantize.op_name, [stored], [real], {}, op.location))
            if stored.type.shape != weights.type.shape:
                real = self._in_rows(real, weights.array.shape, op)
            self.real[stored] = real
        return self.real[stored]

    def _in_rows(self, blocks: Value, shape: tuple[int, ...], op: Op) -> Value:
        """Blocks, each a row of its own, as the rows that they are of."""
        rows = Value(TensorType(shape, f32), blocks.name)
        blocks.name = f"{rows.name}/blocks"
        sizes = constant(np.array(shape, np.int32), name=f"{rows.name}/shape")
        self.ops.insert(-1, Op(Reshape.op_name, [blocks, sizes], [rows], {"new_shape": shape}, op.location))
        return rows


def is_constant_float(value: Value) -> bool:
    return value.is_constant and value.type.element == f32 and value.array.size > 0


def _half(weights: Value) -> Value:
    """A constant in float16, rounded to nearest even; what is too large for that becomes the largest."""
    with np.errstate(over="ignore"):
        halves = np.clip(weights.array, -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16)
    return constant(halves, f16, weights.name)


def _channels(weights: Value, axis: int, bits: int, method: str, moments: Moments | None) -> tuple[Value, str]:
    """Weights with a scale for each index of an axis, and what is to be said of them."""
    others = tuple(place for place in range(weights.array.ndim) if place != axis)
    scales = clips(weights.array, others, bits, method) / bounds(bits)[1]
    kind = UniformQuantizedPerAxisType.of(STORAGES[bits], axis, scales.reshape(-1))
    array, note = stored_weights(weights.array, kind.scales.reshape(scales.shape), bits), ""
    if method == GPTQ:
        array, note = rounded(weights.array, kind.scales, array, moments, bits)
    return _stored(weights, array, kind), note


def _blocks(
    weights: Value, bits: int, blocks: int, method: str, moments: Moments | None, *, apart: bool
) -> tuple[Value, str]:
    """Weights with a scale for each block of a row, and what is to be said of them. apart: each block is a row, of
    float32 scales, as DEQUANTIZE takes it. Else files have the scales in a tensor of float16, as kernels take them."""
    rows, columns = weights.array.shape
    parts = weights.array.reshape(rows, columns // blocks, blocks)
    scales = clips(parts, (2,), bits, method) / bounds(bits)[1]
    scales = scales.astype(np.float32) if apart else block_scales(scales)
    array, notes = stored_weights(parts, scales, bits).reshape(rows, columns), [] if apart else [_BLOCKS_NOTE]
    if method == GPTQ:
        array, note = rounded(weights.array, np.repeat(scales[..., 0], blocks, axis=1), array, moments, bits)
        notes.append(note)
    if apart:
        each = UniformQuantizedPerAxisType.of(STORAGES[bits], 0, scales.reshape(-1))
        return _stored(weights, array.reshape(-1, blocks), each), "; ".join(notes)
    kind = UniformQuantizedSubChannelType.of(STORAGES[bits], (0, 1), (1, blocks), scales[..., 0].astype(np.float32))
    stored = _stored(weights, array, kind)
    named = constant(scales[..., 0], f16, f"{weights.name}/scales")
    details = {"scales": named, "zero_points": None, "block_size": blocks}
    raw = {"min": None, "max": None, "scale": None, "zero_point": None, "quantized_dimension": 0}
    stored.info = {"quantization": {**raw, "details": ("BlockwiseQuantization", details)}}
    return stored, "; ".join(notes)


def _stored(
    weights: Value, array: np.ndarray, kind: UniformQuantizedPerAxisType | UniformQuantizedSubChannelType
) -> Value:
    stored = constant(array, kind.storage, weights.name)
    stored.type = TensorType(array.shape, kind)
    return stored


# Rounding by what weights are multiplied with.


ROUNDED_BY_GPTQ: Final = "rounded by gptq, which is better on samples held back"
NOT_BETTER: Final = "rounded to nearest: gptq is not better on samples held back"
NOT_SEEN: Final = "rounded to nearest: gptq is for FULLY_CONNECTED and 1×1 CONV_2D that run on the samples"


class Moments(NamedTuple):
    """Σ x xᵀ of the numbers x that weights are multiplied with, on the samples that the weights are rounded by.

    validation: the same sums on the samples that are held back.
    """

    fitted: np.ndarray
    validation: np.ndarray


Placed = dict[tuple[int, int], Moments]
"""The moments of weights, by the function and the place of the weights among its tensors."""


def moments_of(source: FilePath, samples: Spans) -> Placed:
    """The moments of all constant weights of FULLY_CONNECTED and 1×1 CONV_2D that run on samples, two of each entry at
    least. Of weights that several operators or signatures have these are added."""
    module = read(source)
    places = [span.entry.places(module) for span in samples.each]
    spread_constants(module, integers=True)
    moments, known = dict[Buffer | None, Moments](), dict[tuple[int, int], Buffer | None]()
    for span, at in zip(samples.each, places, strict=True):
        ops = module.functions[span.entry.function].ops
        products = [product for op in ops if (product := _product(op, at)) is not None]
        factors = list(dict.fromkeys(factor for _, factor in products))
        arrays = (([sample[input_.name] for input_ in span.entry.in_run_order] for sample in p) for p in span.parts())
        sums = [second_moments(source, span.entry.key, factors, each) for each in arrays]
        of_factor = dict(zip(factors, map(Moments, *sums), strict=True))
        for weights, factor in products:
            shared, each = weights.buffer, of_factor[factor]
            moments[shared] = Moments(*map(np.add, moments[shared], each)) if shared in moments else each
            known[at[weights]] = shared
    return {place: moments[shared] for place, shared in known.items()}


def _product(op: Op, places: Mapping[Value, tuple[int, int]]) -> tuple[Value, Factor] | None:
    """The constant weights of an operator, and what they are multiplied with; None if it does not multiply matrices."""
    if not isinstance(op, (Conv2D, FullyConnected)):
        return None
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    if not weights.is_constant or op.input not in places:
        return None
    at, shape = places[op.input], weights.array.shape
    if isinstance(op, FullyConnected):
        return weights, Factor(at, shape[-1])
    if shape[1:] != (1, 1, (op.input.type.shape or (None,))[-1]):
        return None
    return weights, Factor(at, shape[-1], (op.stride_h, op.stride_w))


def rounded(
    weights: np.ndarray, scales: np.ndarray, nearest: np.ndarray, moments: Moments | None, bits: int
) -> tuple[np.ndarray, str]:
    """Stored weights whose products are nearer on the samples held back, or `nearest`, and which of them they are.
    weights: channels along the first axis, of the scales [channels], or of one for each weight."""
    if moments is None:
        return nearest, NOT_SEEN
    rows, column = weights.reshape(len(weights), -1), scales.reshape(len(weights), -1)
    compensated = compensated_weights(rows, column, moments.fitted, bits)
    plain, better = (
        error_of_products(rows - column.astype(np.float64) * stored, moments.validation)
        for stored in (nearest.reshape(rows.shape), compensated)
    )
    return (compensated.reshape(nearest.shape), ROUNDED_BY_GPTQ) if better < plain else (nearest, NOT_BETTER)
