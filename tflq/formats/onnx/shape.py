"""Operators that read or make shapes, where these are known only when the model runs.

Sources: kernels/shape.cc, rank.cc, fill.cc, range.cc.
"""

from __future__ import annotations

from tflq.base.errors import Refused
from tflq.dialects.tfl.shape import Fill, Range, Rank, Shape
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.context import Onnx, OnnxTensor, cheapest, lowering
from tflq.ir.ops import Value
from tflq.ir.types import i64


@lowering(Shape)
def shape(op: Shape, t: Onnx) -> Value:
    tensor = t.tensor(op.input)
    x = tensor.get(t, cheapest(tensor)._replace(first=False))
    return t.cast(t.emit(onnx.Shape, [x]), op.output.type.storage)


@lowering(Rank)
def rank(op: Rank, t: Onnx) -> Value:
    return t.constant(len(op.input.type.dims), op.output.type.storage)


@lowering(Fill)
def fill(op: Fill, t: Onnx) -> OnnxTensor:
    """EXPAND of the value, without dims."""
    sizes = t.integers(op.dims, i64)
    return t.moved(op.value, lambda x: t.emit(onnx.Expand, [t.reshape(x, ()), sizes]), op.output)


@lowering(Range)
def range_(op: Range, t: Onnx) -> Value:
    storage = op.output.type.storage
    if storage.is_float:
        raise Refused("RANGE of floats, which the kernel adds up")
    operands = [t.reshape(t.value(v), ()) for v in (op.start, op.limit, op.delta)]
    return t.emit(onnx.Range, operands, op.output.type)
