"""Products of matrices."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, INT, OneOf, Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.sizes import matrix_product
from tflq.dialects.traits.elements import Role
from tflq.dialects.traits.operands import ConstantOperands
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, i64, ui8

__all__ = ["MatMul"]


class MatMul(Operator, name="tosa.matmul"):
    """Products of the last two dims. output[..., m, n] = sum over k of (input1[..., m, k] - a_zp) * (input2[..., k, n]
    - b_zp); the dims before the last two broadcast."""

    __slots__ = ()
    F = OneOf(FLOAT)
    input1: Value = operand(OneOf(i8, ui8, i16), F)
    input2: Value = operand(OneOf(i8, ui8, i16), F)
    output: Value = result(OneOf(i32, i64), F)
    a_zp: int = attribute(INT)
    b_zp: int = attribute(INT)
    traits = (Role("accumulator"), ConstantOperands(a_zp=input1, b_zp=input2))

    def infer(self, site: Stated) -> Dims:
        return matrix_product(site.dims(self.input1), site.dims(self.input2))
