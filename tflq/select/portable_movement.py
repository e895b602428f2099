"""Elements moved on targets that restrict plain builtins: of float twins, where there are any (`portable`).

PACK, UNPACK     RESHAPE and CONCATENATION; SPLIT and RESHAPE
RESIZE           GATHER of rows, then of columns
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.movement import Concatenation, Moved, Pack, PadV2, Reshape, Split, Unpack
from tflq.dialects.tosa.movement import Resize
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape, f32, i32
from tflq.numerics.convolution import float_nearest_index, nearest_index
from tflq.numerics.float_basics import EXACT
from tflq.select.lowering import BYTES, JOINED, Kernels, Twin, centred, integers_of, moved, twin_of
from tflq.select.movement import joined
from tflq.select.resize import interpolated, resized_dims


def moved_elements(op: Moved | Gather, k: Kernels) -> Value | None:
    """An op that only moves elements, on the twin of its first operand."""
    first, *others = op.operands
    assert first is not None
    twin = k.twins.get(k.value(first))
    if twin is None or any(v is not None and not v.is_constant for v in others):
        return None
    result, attributes = Value(op.result.type.with_element(f32)), dict(op.attributes)
    if isinstance(op, Reshape) and op.shape is not None:
        attributes["new_shape"] = op.shape.array  # tf2onnx reads it
    k.ops.append(Op(op.name, [twin.value, *others], [result], attributes, op.location))
    return integers_of(k, Twin(result, twin.offset), op.result.type.storage)


def concatenation(op: Concatenation, k: Kernels) -> Value | None:
    """Of twins, if any operand has one."""
    if op.fused_activation_function != "NONE":
        return None
    xs = [k.value(v) for v in op.reads]
    return joined(k, xs, op.axis) if len(xs) > JOINED or any(x in k.twins for x in xs) else None


def pack(op: Pack, k: Kernels) -> Value | None:
    """Operands with a dim of 1 more, joined."""
    xs = [k.value(v) for v in op.reads]
    rank = len(xs[0].type.shape or ())
    shapes = [_with_one(x, op.axis % (rank + 1)) for x in xs]
    if not all(map(_foldable, shapes)):
        return None
    wide = [_reshaped(k, x, shape) for x, shape in zip(xs, shapes, strict=True)]
    return wide[0] if len(wide) == 1 else joined(k, wide, op.axis % (rank + 1))


def _with_one(x: Value, axis: int) -> Shape:
    shape = x.type.shape or ()
    return (*shape[:axis], 1, *shape[axis:])


def _reshaped(k: Kernels, x: Value, shape: Shape) -> Value:
    return moved(k, x, lambda v, _: k.reshape(v, shape or ()))


def _foldable(shape: Shape) -> bool:
    """Whether RESHAPE can state a shape."""
    return shape is not None and shape.count(None) <= 1


def unpack(op: Unpack, k: Kernels) -> list[Value] | None:
    """Parts, each without the dim."""
    x, shapes = k.value(op.input), [v.type.shape for v in op.outputs]
    if not all(map(_foldable, shapes)):
        return None
    parts = _parts(k, x, len(shapes), op.axis % len(x.type.shape or (0,)))
    return [_reshaped(k, part, shape) for part, shape in zip(parts, shapes, strict=True)]


def split(op: Split, k: Kernels) -> list[Value] | None:
    """Of the twin."""
    x = k.value(op.input)
    if x not in k.twins or not op.axis.is_constant:
        return None
    return _parts(k, x, len(op.outputs), int(op.axis.array.reshape(())) % len(x.type.shape or (0,)))


def _parts(k: Kernels, x: Value, count: int, axis: int) -> list[Value]:
    """Equal parts of a tensor, of its twin if it has one."""
    twin = k.twins.get(x)
    if twin is None:
        return k.split(x, count, axis)
    return [integers_of(k, Twin(v, twin.offset), x.type.storage) for v in k.split(twin.value, count, axis)]


def resize(op: Resize, k: Kernels) -> Value | None:
    x = k.value(op.input)
    shape, sizes = op.input.type.shape or (), op.output.type.shape or ()
    if x.type.storage not in BYTES or None in (*shape[1:3], *sizes[1:3]):
        return None
    return _nearest(op, k, x) if op.mode == "NEAREST_NEIGHBOR" else _bilinear(op, k, x)


def _nearest(op: Resize, k: Kernels, x: Value) -> Value | None:
    """Rows, then columns, by GATHER, unless the builtin takes these elements without options: others are not alike."""
    twin, dims = k.twins.get(x), resized_dims(op)
    indices = [nearest_index(d.steps, d.size, d.out) for d in dims]
    plain = (float_nearest_index(d.size, d.out, False, False) for d in dims)
    if twin is None or all(map(np.array_equal, indices, plain)):
        return None
    value = twin.value
    for dim, index in zip(dims, indices, strict=True):
        value = k.gather(value, k.constant(index), dim.axis)
    return integers_of(k, Twin(value, twin.offset), op.output.type.storage)


def _bilinear(op: Resize, k: Kernels, x: Value) -> Value:
    """Rows in float32, then columns; these in int32 where sums may reach 2^24."""
    rows, columns = resized_dims(op)
    largest = max(-x.type.storage.minimum, x.type.storage.maximum)
    to = f32 if largest * rows.steps.n * columns.steps.n < EXACT else i32
    value = interpolated(k, centred(k, x, 0), rows)
    return k.cast(interpolated(k, value, columns, to), op.output.type.storage)


def pad(op: PadV2, k: Kernels) -> Value | None:
    x = k.value(op.input)
    if x.type.storage not in BYTES or not (op.paddings.is_constant and op.value.is_constant):
        return None
    twin = twin_of(k, x) or Twin(k.cast(x, f32), 0)
    around = int(op.value.array.reshape(())) - twin.offset
    return integers_of(k, Twin(k.padv2(twin.value, op.paddings.array, around), twin.offset), x.type.storage)
