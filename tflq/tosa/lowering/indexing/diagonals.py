"""MATRIX_DIAG and MATRIX_SET_DIAG: SELECT by a constant mask. Kernels: matrix_diag.cc, matrix_set_diag.cc."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.indexing import MatrixDiag, MatrixSetDiag
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i1
from tflq.tosa.lowering.known import dims_of
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import reshaped
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(MatrixDiag)
def matrix_diag(op: MatrixDiag, t: Tosa) -> Value:
    """The last dim on a diagonal, stored zeros elsewhere."""
    x = narrow(op.input, t)
    shape = dims_of(x)
    if not shape or shape[-1] is None:
        raise Refused("its operand's last dim is not known")
    zero = t.constant(np.asarray(-t.offset(op.input)), x.type.storage)
    return t.select(t.constant(np.eye(shape[-1], dtype=bool), i1), reshaped(t, x, (*shape, 1)), zero)


@lowering(MatrixSetDiag)
def matrix_set_diag(op: MatrixSetDiag, t: Tosa) -> Value:
    """The operand with another diagonal."""
    x, diagonal = narrow(op.input, t), narrow(op.diagonal, t)
    (*_, rows, columns), (*outer, _) = dims_of(x), dims_of(diagonal)
    if rows is None or columns is None:
        raise Refused("its operand's last two dims are not known")
    place = (*outer, rows, 1) if rows <= columns else (*outer, 1, columns)
    return t.select(t.constant(np.eye(rows, columns, dtype=bool), i1), reshaped(t, diagonal, place), x)
