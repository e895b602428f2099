"""Rows that a loop writes by SLICE and CONCATENATION, as DYNAMIC_UPDATE_SLICE.

    concatenation(slice(x, 0, [i, -1, ...]), row, slice(x, [i + 1, 0, ...], -1))
    → dynamic_update_slice(x, row, [i, 0, ...])

TensorFlow's converter writes the elements of a TensorList so, in the loops of recurrent layers. The sizes of both
slices depend on i, which no static shape can say; of the operator that takes their place they are known. Where i is no
row of x the slices fail, so that there is nothing to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.indexing import DynamicUpdateSlice
from tflq.dialects.tfl.movement import Concatenation, Reshape, Slice
from tflq.dialects.tfl.shape import RFFT2D, ComplexAbs, Imag, Real
from tflq.dialects.tfl.unary import Sqrt
from tflq.ir.core import Function, Module, Op, Value, constant
from tflq.ir.rewriting import stand_for
from tflq.ir.types import TensorType, f32
from tflq.passes.canonicalize import DeadCodeElimination


class RowUpdates(Pass):
    """Puts DYNAMIC_UPDATE_SLICE for rows written by slices and a concatenation, and drops the slices."""

    name: ClassVar[str] = "row-updates"

    def run(self, module: Module) -> PassResult:
        modified = [_rewrite(function) for function in module.functions]
        if any(modified):
            DeadCodeElimination().run(module)
        return PassResult(module, any(modified))


def _rewrite(function: Function) -> bool:
    ops: list[Op] = []
    for op in function.ops:
        found = _written(op)
        if found is None:
            ops.append(op)
            continue
        x, row, index, zeros = found
        start = Value(TensorType((1 + zeros.array.size,), index.type.element))
        options = {"axis": 0, "fused_activation_function": "NONE"}
        ops.append(Op(Concatenation.op_name, [index, zeros], [start], options, op.location))
        ops.append(Op(DynamicUpdateSlice.op_name, [x, row, start], op.results, {}, op.location))
    modified = len(ops) > len(function.ops)
    function.ops = ops
    return modified


def _written(op: Op) -> tuple[Value, Value, Value, Value] | None:
    """What is written to, the row, its index and the starts in other dims, if an op writes a row."""
    if not isinstance(op, Concatenation) or len(op.values) != 3 or op.fused_activation_function != "NONE":
        return None
    before, row, after = (v for v in op.tensors if v is not op.output)
    shape = row.type.shape
    if not shape or shape[0] != 1 or op.axis not in (0, -len(shape)):
        return None
    first, last = before.producer, after.producer
    if not isinstance(first, Slice) or not isinstance(last, Slice) or first.input is not last.input:
        return None
    x, width = first.input, last.size
    if len({v.type.element for v in (x, before, row, after, op.output)}) > 1:
        return None
    size, start = _head(first.size), _head(last.begin)
    if size is None or start is None or not _all(first.begin, 0) or not _all(start[1], 0):
        return None
    if not width.is_constant or width.array.flat[0] != -1:
        return None
    rests = np.ravel(size[1].array), np.ravel(width.array)[1:]
    if not all(_whole(rest, x.type.shape) for rest in rests):
        return None
    return (x, row, size[0], start[1]) if _follows(start[0], size[0]) else None


def _head(value: Value) -> tuple[Value, Value] | None:
    """A computed scalar and the constants behind it, if a vector is such a concatenation."""
    joined = value.producer
    if not isinstance(joined, Concatenation) or len(joined.values) != 2:
        return None
    head, rest = joined.values
    if head is None or rest is None or not rest.is_constant:
        return None
    return (head, rest) if head.type.shape == (1,) else None


def _all(value: Value, number: int) -> bool:
    return value.is_constant and bool((value.array == number).all())


def _whole(sizes: np.ndarray, shape: tuple[int | None, ...] | None) -> bool:
    """Whether sizes are those of all dims but the first: -1, or their own."""
    dims = (shape or ())[1:]
    return len(dims) == sizes.size and all(s in (-1, d) for s, d in zip(sizes.tolist(), dims, strict=True))


def _follows(value: Value, other: Value) -> bool:
    """Whether value = other + 1, both reshaped or not."""
    added = _scalar(value).producer
    if not isinstance(added, Add) or added.fused_activation_function != "NONE":
        return False
    pairs = (added.lhs, added.rhs), (added.rhs, added.lhs)
    return any(_scalar(a) is _scalar(other) and _all(b, 1) for a, b in pairs)


def _scalar(value: Value) -> Value:
    return value.producer.input if isinstance(value.producer, Reshape) else value


# Spectra whose parts are read: RFFT2D of rows, then COMPLEX_ABS, REAL or IMAG, as products with the Fourier matrix.
#
#     re = x C^T,  C[k, n] = cos(2 pi k n / N);   im = x S^T,  S[k, n] = -sin(2 pi k n / N)
#     |z| = sqrt(re re + im im)
#
# TOSA has no complex numbers, and its RFFT2D is an extension. Rows are read up to the length of the transform, and
# end in zeros where they are shorter. RESHAPE between the two operators is done on what the latter makes. Source:
# kernels/rfft2d.cc, complex_support.cc.


_NONE: Final = {"fused_activation_function": "NONE"}
_LINEAR: Final = {
    **_NONE,
    "weights_format": "DEFAULT",
    "keep_num_dims": True,
    "asymmetric_quantize_inputs": False,
    "quantized_bias_type": "FLOAT32",
}


class Spectra(Pass):
    """Puts float operators for the parts of spectra that are read, and drops the spectra."""

    name: ClassVar[str] = "spectra"

    def run(self, module: Module) -> PassResult:
        modified = [_spectra_rewrite(function) for function in module.functions]
        if any(modified):
            DeadCodeElimination().run(module)
        return PassResult(module, any(modified))


def fourier(length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and negative sines, [length // 2 + 1, size]: zeros from `length` on."""
    steps = np.outer(np.arange(length // 2 + 1), np.arange(size)) % length
    angles = steps * (2 * np.pi / length)
    angles_read = np.arange(size) < length
    return (np.cos(angles) * angles_read).astype(np.float32), (-np.sin(angles) * angles_read).astype(np.float32)


def _spectra_rewrite(function: Function) -> bool:
    ops: list[Op] = []
    modified = False
    for op in function.ops:
        made = _parts(op) if isinstance(op, (ComplexAbs, Imag, Real)) else None
        modified |= made is not None
        ops += [op] if made is None else made
    function.ops = ops
    return modified


def _parts(op: ComplexAbs | Imag | Real) -> list[Op] | None:
    """What computes the part of a spectrum that an op reads; None if it is not one of rows."""
    source, reshapes = op.input.producer, list[Reshape]()
    while isinstance(source, Reshape):
        reshapes.append(source)
        source = source.input.producer
    if not isinstance(source, RFFT2D):
        return None
    x = source.input
    lengths = source.length.array.reshape(-1).tolist() if source.length.is_constant else []
    shape = x.type.shape
    if not shape or x.type.element != f32 or len(lengths) != 2 or lengths[0] != 1:
        return None
    if len(shape) < 2 or shape[-2] != 1 or shape[-1] is None or lengths[1] < 1:
        return None
    cosines, sines = fourier(lengths[1], shape[-1])
    out = (*shape[:-1], len(cosines))
    b = Emitter()
    b.location = op.location

    def emit(kind: type[Operator], operands: Sequence[Value | None], **options: Any) -> Value:
        return b.emit(kind, operands, TensorType(out, f32), **options)

    def part(matrix: np.ndarray) -> Value:
        return emit(FullyConnected, [x, constant(matrix), None], **_LINEAR)

    if isinstance(op, ComplexAbs):
        squares = [emit(Mul, [p, p], **_NONE) for p in (part(cosines), part(sines))]
        value = emit(Sqrt, [emit(Add, squares, **_NONE, pot_scale_int16=False)])
    else:
        value = part(cosines if isinstance(op, Real) else sines)
    for reshape in reversed(reshapes):
        type = reshape.output.type.with_element(f32)
        value = b.emit(Reshape, [value, *reshape.operands[1:]], type, **reshape.attributes)
    stand_for(value, op.output)
    return b.ops
