"""Spectra whose parts are read: RFFT2D of rows, then COMPLEX_ABS, REAL or IMAG, as products with the Fourier matrix.

    re = x C^T,  C[k, n] = cos(2 pi k n / N);   im = x S^T,  S[k, n] = -sin(2 pi k n / N)
    |z| = sqrt(re re + im im)

TOSA has no complex numbers, and its RFFT2D is an extension. Rows are read up to the length of the transform, and end in
zeros where they are shorter. RESHAPE between the two operators is done on what the latter makes.
Source: kernels/rfft2d.cc, complex_support.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.tfl.movement import Reshape
from tflq.dialects.tfl.signal import RFFT2D, ComplexAbs, Real
from tflq.ir.core import Function, Module, Op, Value, constant
from tflq.ir.types import Shape, TensorType, f32
from tflq.passes.dce import DeadCodeElimination

__all__ = ["Spectra", "fourier"]

_READERS = frozenset({"tfl.complex_abs", "tfl.real", "tfl.imag"})
_NONE = {"fused_activation_function": "NONE"}
_LINEAR = {
    **_NONE,
    "weights_format": "DEFAULT",
    "keep_num_dims": True,
    "asymmetric_quantize_inputs": False,
    "quantized_bias_type": "FLOAT32",
}


@dataclass(frozen=True)
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


@dataclass
class _Writer:
    """Ops that take the place of one."""

    replaced: Op
    ops: list[Op] = field(default_factory=list)

    def emit(self, name: str, operands: list[Value | None], shape: Shape, options: Mapping[str, Any]) -> Value:
        result = Value(TensorType(shape, f32))
        self.ops.append(Op(f"tfl.{name}", operands, [result], dict(options), self.replaced.location))
        return result


def _rewrite(function: Function) -> bool:
    ops: list[Op] = []
    modified = False
    for op in function.ops:
        made = _parts(op) if op.name in _READERS else None
        modified |= made is not None
        ops += [op] if made is None else made
    function.ops = ops
    return modified


def _parts(op: Op) -> list[Op] | None:
    """What computes the part of a spectrum that an op reads; None if it is not one of rows."""
    source, reshapes = op.operand(0).producer, []
    while source is not None and isinstance(source, Reshape):
        reshapes.append(source)
        source = source.operand(0).producer
    if source is None or not isinstance(source, RFFT2D):
        return None
    x, size = source.operand(0), source.operand(1)
    lengths = size.array.reshape(-1).tolist() if size.is_constant else []
    shape = x.type.shape
    if not shape or x.type.element != f32 or len(lengths) != 2 or lengths[0] != 1:
        return None
    if len(shape) < 2 or shape[-2] != 1 or shape[-1] is None or lengths[1] < 1:
        return None
    cosines, sines = fourier(lengths[1], shape[-1])
    out = (*shape[:-1], len(cosines))
    writer = _Writer(op)

    def part(matrix: np.ndarray) -> Value:
        return writer.emit("fully_connected", [x, constant(matrix), None], out, _LINEAR)

    if isinstance(op, ComplexAbs):
        squares = [writer.emit("mul", [p, p], out, _NONE) for p in (part(cosines), part(sines))]
        total = writer.emit("add", [*squares], out, {**_NONE, "pot_scale_int16": False})
        value = writer.emit("sqrt", [total], out, {})
    else:
        value = part(cosines if isinstance(op, Real) else sines)
    for reshape in reversed(reshapes):
        value = writer.emit("reshape", [value, *reshape.operands[1:]], reshape.result.type.shape, reshape.attributes)
    last = writer.ops[-1]
    last.results = [op.result]
    op.result.producer = last
    return writer.ops
