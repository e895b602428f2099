"""Spectra whose parts are read: RFFT2D of rows, then COMPLEX_ABS, REAL or IMAG, as products with the Fourier matrix.

    re = x C^T,  C[k, n] = cos(2 pi k n / N);   im = x S^T,  S[k, n] = -sin(2 pi k n / N)
    |z| = sqrt(re re + im im)

TOSA has no complex numbers, and its RFFT2D is an extension. Rows are read up to the length of the transform, and end in
zeros where they are shorter. RESHAPE between the two operators is done on what the latter makes.
Source: kernels/rfft2d.cc, complex_support.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.matmul import FullyConnected
from tflq.dialects.tfl.movement import Reshape
from tflq.dialects.tfl.signal import RFFT2D, ComplexAbs, Imag, Real
from tflq.dialects.tfl.unary import Sqrt
from tflq.ir.core import Function, Module, Op, Value, constant
from tflq.ir.rewriting import stand_for
from tflq.ir.types import TensorType, f32
from tflq.passes.dce import DeadCodeElimination

__all__ = ["Spectra", "fourier"]

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
        modified = [_rewrite(function) for function in module.functions]
        if any(modified):
            DeadCodeElimination().run(module)
        return PassResult(module, any(modified))


def fourier(length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and negative sines, [length // 2 + 1, size]: zeros from `length` on."""
    steps = np.outer(np.arange(length // 2 + 1), np.arange(size)) % length
    angles = steps * (2 * np.pi / length)
    angles_read = np.arange(size) < length
    return (np.cos(angles) * angles_read).astype(np.float32), (-np.sin(angles) * angles_read).astype(np.float32)


def _rewrite(function: Function) -> bool:
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
