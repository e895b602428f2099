"""Bits of integers."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand, result
from tflq.dialects.inference import Dims, Stated, agree
from tflq.dialects.traits.kernels import Misreads
from tflq.dialects.traits.memory import View
from tflq.dialects.traits.quantization import ParametersUnread
from tflq.dialects.traits.types import Broadcasts, SameElementType
from tflq.ir.core import Value

__all__ = ["Bitcast", "BitwiseXor", "RightShift"]


class BitwiseXor(Operator, name="tfl.bitwise_xor"):
    """Bits that differ. Source: kernels/bitwise_xor.cc."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits = (SameElementType(lhs, rhs, output), Broadcasts(lhs, rhs, output), Misreads("result type"))


class RightShift(Operator, name="tfl.right_shift"):
    """lhs shifted right by rhs bits; the sign stays. Source: kernels/right_shift.cc."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits = (Broadcasts(lhs, rhs, output), Misreads("result type"))


class Bitcast(Operator, name="tfl.bitcast"):
    """The same bytes as another type. Source: kernels/bitcast.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (View(input), ParametersUnread(input, output))

    def infer(self, site: Stated) -> Dims:
        """Between widths the last dim appears or goes."""
        dims = site.dims(self.input)
        before, after = self.input.type.storage.bits, self.result.type.storage.bits
        if before > after:
            return (*dims, before // after)
        if before < after:
            agree(dims[-1] if dims else None, after // before, "last dim")
            return dims[:-1]
        return dims
