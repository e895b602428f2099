"""Batch normalization: a multiplication and an addition of a number per channel, after a product with constant weights,
become part of the weights and the bias, as in TensorFlow Lite's converter. weights · m and bias · m + a are rounded
to float32 after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import f32

_Product: TypeAlias = Conv2D | DepthwiseConv2D | FullyConnected


def _weights(product: _Product) -> tuple[Value, int]:
    """The weights, and their dim of output channels."""
    if isinstance(product, FullyConnected):
        return product.weights, 0
    return product.filter, 3 if isinstance(product, DepthwiseConv2D) else 0


def is_foldable(op: Op, chained: Value | None) -> bool:
    """Whether an op multiplies by or adds a constant per channel, directly after a product whose weights and bias are
    constant, or after such a multiplication. `chained`: the operand by which the chain comes to the op."""
    product = None if chained is None else chained.producer
    if product is None or not isinstance(op, (Mul, Add)):
        return False
    if isinstance(op, Add) and isinstance(product, Mul):
        operands = (value for value in product.reads if not value.is_constant)
        chained = next(operands, None)
        return is_foldable(product, chained) and _numbers(op, product.result, _product_of(chained)) is not None
    if _product_of(chained) is None or (isinstance(op, Mul) and op.fused_activation_function != "NONE"):
        return False
    return _numbers(op, chained, product) is not None


def _product_of(value: Value | None) -> _Product | None:
    """The op that gives a value, if it is a product with constant weights and without an activation."""
    op = None if value is None else value.producer
    if not isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected)) or op.fused_activation_function != "NONE":
        return None
    if len(op.results) != 1 or (isinstance(op, FullyConnected) and op.weights_format != "DEFAULT"):
        return None
    (weights, _), bias = _weights(op), op.bias
    if not all(value.type.element == f32 for value in (op.input, weights, *([bias] if bias else []), op.result)):
        return None
    return op if weights.is_constant and (bias is None or bias.is_constant) else None


def _numbers(op: Op, chained: Value | None, product: Op | None) -> np.ndarray | None:
    """The other operand of an op, if it is a constant number for each channel; else None."""
    others = [value for value in op.operands if value is not chained]
    if not isinstance(product, _Product) or len(others) != 1 or others[0] is None or not others[0].is_constant:
        return None
    array, (weights, axis) = others[0].array, _weights(product)
    channels, rank = weights.array.shape[axis], product.result.type.rank
    per_channel = array.size == 1 or array.shape[-1:] == (channels,) == (array.size,)
    if array.dtype != np.float32 or not per_channel or rank is None or array.ndim > rank:
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def folded(ops: Sequence[Op]) -> list[Op]:
    """A chain that starts with a product and a multiplication, folded, with the addition after them."""
    product, *rest = ops
    if not isinstance(product, _Product) or not rest or not is_foldable(rest[0], product.result):
        return list(ops)
    scaled = rest.pop(0)
    if not isinstance(scaled, Mul):
        return list(ops)
    (weights, axis), bias = _weights(product), product.bias
    shape = [-1 if i == axis else 1 for i in range(weights.array.ndim)]
    scale = _numbers(scaled, product.result, product)
    assert scale is not None
    last: Op = scaled
    activation = "NONE"
    added = None if bias is None else bias.array * scale
    if rest and isinstance(rest[0], Add) and (shift := _numbers(rest[0], scaled.result, product)) is not None:
        added = shift if added is None else added + shift
        activation, last = rest[0].fused_activation_function, rest.pop(0)
    operands: list[Value | None] = [product.input, constant(weights.array * scale.reshape(shape), name=weights.name)]
    if added is not None:
        operands.append(
            constant(np.ascontiguousarray(added), name=bias.name if bias is not None else _other(last).name)
        )
    attributes = {**product.attributes, "fused_activation_function": activation}
    results = list(last.results)
    return [Op(product.name, operands, results, attributes, last.location, info=product.info), *rest]


def _other(op: Op) -> Value:
    """The constant operand of an op."""
    return next(value for value in op.reads if value.is_constant)
