"""Batch normalization behind a product with constant weights, a multiplication and an addition of a number per channel,
as part of the weights and the bias.

Source: TensorFlow Lite's converter, which folds so. weights · m and bias · m + a are rounded to float32 after each
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tfl.matmul import FullyConnected
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import f32

__all__ = ["folded", "is_foldable"]

_CHANNELS: Final = {Conv2D: 0, DepthwiseConv2D: 3, FullyConnected: 0}
"""The dim of the weights that is that of the output channels."""


def is_foldable(op: Op, chained: Value | None) -> bool:
    """Whether an op, which a chain comes to by an operand, multiplies by or adds a constant per channel, directly
    behind a product whose weights and bias are constant, or behind such a multiplication."""
    product = None if chained is None else chained.producer
    if product is None or not isinstance(op, (Mul, Add)):
        return False
    if isinstance(op, Add) and isinstance(product, Mul):
        operands = (value for value in product.operands if value is not None and not value.is_constant)
        chained = next(operands, None)
        return is_foldable(product, chained) and _numbers(op, product.result, _product_of(chained)) is not None
    if _product_of(chained) is None or (isinstance(op, Mul) and op.fused_activation_function != "NONE"):
        return False
    return _numbers(op, chained, product) is not None


def _product_of(value: Value | None) -> Op | None:
    """The op that gives a value, if it is a product with constant weights and nothing behind it yet."""
    op = None if value is None else value.producer
    if type(op) not in _CHANNELS or op is None or op.attributes.get("fused_activation_function", "NONE") != "NONE":
        return None
    if op.attributes.get("weights_format", "DEFAULT") != "DEFAULT" or len(op.results) != 1:
        return None
    weights, bias = op.operand(1), op.optional(2)
    parts = [value for value in (op.operand(0), weights, bias, op.result) if value is not None]
    if not all(value.type.element == f32 for value in parts):
        return None
    return op if weights.is_constant and (bias is None or bias.is_constant) else None


def _numbers(op: Op, chained: Value | None, product: Op | None) -> np.ndarray | None:
    """The other operand of an op, a number for each channel; None if it is anything else."""
    others = [value for value in op.operands if value is not chained]
    if product is None or len(others) != 1 or others[0] is None or not others[0].is_constant:
        return None
    array, weights = others[0].array, product.operand(1).array
    channels, rank = weights.shape[_CHANNELS[type(product)]], product.result.type.rank  # type: ignore[index]
    per_channel = array.size == 1 or array.shape[-1:] == (channels,) == (array.size,)
    if array.dtype != np.float32 or not per_channel or rank is None or array.ndim > rank:
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def folded(ops: Sequence[Op]) -> list[Op]:
    """A chain whose first op is a product and whose second a multiplication, folded with the addition behind it."""
    product, *rest = ops
    if type(product) not in _CHANNELS or not rest or not is_foldable(rest[0], product.result):
        return list(ops)
    if not isinstance(rest[0], Mul):
        return list(ops)
    weights, bias = product.operand(1), product.optional(2)
    axis = _CHANNELS[type(product)]  # type: ignore[index]
    shape = [-1 if i == axis else 1 for i in range(weights.array.ndim)]
    scale, activation = _numbers(rest[0], product.result, product), "NONE"
    assert scale is not None
    added = None if bias is None else bias.array * scale
    last = rest.pop(0)
    shift = _numbers(rest[0], last.result, product) if rest and rest[0].name == Add.op_name else None
    if shift is not None:
        added = shift if added is None else added + shift
        last = rest.pop(0)
        activation = last.attributes.get("fused_activation_function", "NONE")
    made: list[Value | None] = [product.operand(0), constant(weights.array * scale.reshape(shape), name=weights.name)]
    if added is not None:
        made.append(constant(np.ascontiguousarray(added), name=bias.name if bias is not None else _other(last).name))
    attributes = {**product.attributes, "fused_activation_function": activation}
    results = list(last.results)
    return [Op(product.name, made, results, attributes, last.location, info=product.info), *rest]


def _other(op: Op) -> Value:
    """The constant operand of an op."""
    return next(value for value in op.operands if value is not None and value.is_constant)
