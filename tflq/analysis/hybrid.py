"""The distance of operators on floats from hybrid kernels, which take float activations and quantized weights.

Such a kernel rounds activations to 8 bits as it runs, by a scale per row of the input or per item of the batch. A form
without such kernels keeps them float, which is nearer to the real value. An activation is rounded by half a step of
1/127 of the largest at most, twice that if the range is not symmetric; a product is then so far off as the weights
that meet it add up to.

Sources: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, batch_matmul.cc, svdf.cc, basic_rnn.cc,
embedding_lookup.cc, internal/portable_tensor_utils.cc.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tflq.dialects.tfl.convolution import BatchMatMul, Conv2D, DepthwiseConv2D, FullyConnected
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedSubChannelType, parameters, ui8

HALF_STEP: Final = 1 / 254
STEP: Final = 1 / 127
REMEDY: Final = "allow for the difference, or quantize the activations as well, which makes both exact"
_ROUNDED: Final = (
    "the interpreter's kernel rounds the activations that meet '{}' to 8 bits as it runs, but {} do not: "
    "their products are up to {:.3g} times the largest activation apart"
)
BLOCKS: Final = (
    "the interpreter's reference kernel finds no scale of '{}' and gives only the bias; others, and this, take the "
    "scale per block"
)
BLOCKS_REMEDY: Final = "do not compare this with the reference kernels"


def rounding(op: Op, name: str, weights: np.ndarray, axis: int, floats: str) -> str:
    """The sentence that says how far an operator on floats is from its hybrid kernel. name, weights: of an operand, as
    real numbers, whose dim `axis` counts the results; floats: what computes it on floats."""
    sums = np.abs(weights).sum(tuple(a for a in range(weights.ndim) if a != axis % weights.ndim))
    step = STEP if getattr(op, "asymmetric_quantize_inputs", False) else HALF_STEP
    return _ROUNDED.format(name, floats, float(sums.max(initial=0)) * step)


def rounding_of(op: Op, floats: str) -> str:
    """The sentence of `rounding` for an operator with one operand of weights; empty if its hybrid kernel rounds
    nothing."""
    if not isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected, BatchMatMul)):
        return ""
    axis = (-2 if op.adj_y else -1) if isinstance(op, BatchMatMul) else -isinstance(op, DepthwiseConv2D)
    _, weights, *_ = op.present_operands
    return rounding(op, weights.name, as_read(weights), axis, floats)


def table_as_read(table: Value) -> np.ndarray:
    """A quantized table, float32[rows, ...], as EMBEDDING_LOOKUP reads it: each row, or block of one, from the start of
    a byte on. A row that begins within a byte of int4 or int2 has elements of the row before it."""
    element, stored = table.type.element, np.ascontiguousarray(table.array)
    blocks = isinstance(element, UniformQuantizedSubChannelType)
    length = element.block_sizes[-1] if blocks else math.prod(stored.shape[1:])  # type: ignore[union-attr]
    per_byte = max(8 // table.type.storage.bits, 1)
    if not stored.size or length % per_byte == 0 or stored.size % length:
        return as_read(table)
    starts = np.arange(0, stored.size, length) // per_byte * per_byte
    read = stored.reshape(-1)[starts[:, None] + np.arange(length)].reshape(stored.shape)
    return read.astype(np.float32) * parameters(table.type)[0]


def rows_misread(ids: Value, table: Value) -> bool:
    """Whether EMBEDDING_LOOKUP may give rows of a constant table in which elements of others show."""
    expected, read = as_read(table), table_as_read(table)
    wrong = (expected != read).reshape(len(expected), -1).any(1) if expected.size else np.zeros(len(expected), bool)
    return bool((wrong[ids.array] if ids.is_constant else wrong).any())


def as_read(weights: Value) -> np.ndarray:
    """The numbers that a kernel reads from a quantized constant: stored * scale in float32, per layer, axis or block.

    The kernel ignores zero points and reads bytes of uint8 as int8.
    """
    stored = np.ascontiguousarray(weights.array)
    scale, _ = parameters(weights.type)
    return (stored.view(np.int8) if weights.type.storage == ui8 else stored).astype(np.float32) * scale
