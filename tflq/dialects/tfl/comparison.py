"""Comparisons, logic, choices of elements, and bits of integers."""

from __future__ import annotations

from typing import ClassVar, Final

from tflq.dialects.declare import INTEGER, QUANTIZED, Operator, Trait, Types, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, agree, product
from tflq.dialects.parameters import Misreads, QuantizedTogether, SameScale
from tflq.dialects.tfl import Needs
from tflq.dialects.traits import (
    Broadcasts,
    Elementwise,
    MovesElements,
    SameElementType,
    SetsElementType,
    SizedBy,
    Unquantized,
)
from tflq.ir.ops import Value
from tflq.ir.types import i1, i8, i32, i64, ui8


class Comparison(Operator):
    """Two tensors, compared element by element."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result(i1)
    traits = (
        SetsElementType(output, i1),
        QuantizedTogether(lhs, rhs),
        SameElementType(lhs, rhs, unless_quantized=True),
        Broadcasts(lhs, rhs, output),
    )


class Equal(Comparison, name="tfl.equal", newest=5):
    """lhs = rhs. Source: kernels/comparisons.cc."""


class NotEqual(Comparison, name="tfl.not_equal", newest=4):
    """lhs ≠ rhs. Source: kernels/comparisons.cc."""


class Greater(Comparison, name="tfl.greater", newest=2):
    """lhs > rhs. Source: kernels/comparisons.cc."""


class GreaterEqual(Comparison, name="tfl.greater_equal", newest=3):
    """lhs ≥ rhs. Source: kernels/comparisons.cc."""


class Less(Comparison, name="tfl.less", newest=3):
    """lhs < rhs. Source: kernels/comparisons.cc."""


class LessEqual(Comparison, name="tfl.less_equal", newest=2):
    """lhs ≤ rhs. Source: kernels/comparisons.cc."""


class _Logical(Operator):
    """Two truth values, combined."""

    lhs: Value = operand(i1)
    rhs: Value = operand(i1)
    output: Value = result(i1)
    traits = (SetsElementType(output, i1), Broadcasts(lhs, rhs, output), Unquantized("its tensors are truth values"))


class LogicalAnd(_Logical, name="tfl.logical_and"):
    """Whether both are true. Source: kernels/logical.cc."""


class LogicalOr(_Logical, name="tfl.logical_or"):
    """Whether one is true. Source: kernels/logical.cc."""


class LogicalNot(Operator, name="tfl.logical_not"):
    """Whether it is false. Source: kernels/elementwise.cc."""

    input: Value = operand(i1)
    output: Value = result(i1)
    traits = (Unquantized("its tensors are truth values"), Elementwise(input, output))


class Choice(Operator):
    """One of two elements by a condition. Of one element each, the result is left the rank that it states."""

    condition: Value = operand(i1)
    on_true: Value = operand()
    on_false: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameScale(on_true, on_false, output),
        SameElementType(on_true, on_false, output),
        Misreads("copied"),
        MovesElements(on_true, on_false),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        operands, declared = [self.condition, self.on_true, self.on_false], self.output.type.shape
        if declared is not None and all(product(shape) == 1 for shape in (declared, *map(site.dims, operands))):
            return (1,) * len(declared)
        return self.chosen(site)

    def chosen(self, site: DeclaredShapes) -> Dims:
        """The shape of more elements, or of a result that states none."""
        raise NotImplementedError


class Select(Choice, name="tfl.select", newest=4):
    """on_true where the condition holds, else on_false; all of one shape, or a condition of rows. Source:
    kernels/select.cc."""

    versions = (Needs(3, rank=5),)

    def chosen(self, site: DeclaredShapes) -> Dims:
        """A scalar condition chooses all, a vector chooses rows."""
        dims, condition = site.common([self.on_true, self.on_false]), site.dims(self.condition)
        if len(condition) > 1:
            return site.common([self.on_true, self.on_false, self.condition])
        for length, rows in zip(condition, dims[:1], strict=False):
            agree(length, rows, "the condition's length and the rows that it chooses from")
        return dims


class SelectV2(Choice, name="tfl.select_v2", newest=2):
    """on_true where the condition holds, else on_false; operands broadcast. Source: kernels/select.cc."""

    traits = (
        *Choice.traits,
        Broadcasts(Choice.condition, Choice.on_true, Choice.on_false, Choice.output, strict=False),
    )

    def chosen(self, site: DeclaredShapes) -> Dims:
        return site.broadcast([self.condition, self.on_true, self.on_false])


class Where(Operator, name="tfl.where", newest=2):
    """The indices of the elements that are true. Source: kernels/where.cc."""

    condition: Value = operand()
    output: Value = result(i64)
    traits = (SetsElementType(output, i64), SizedBy(condition))
    versions = (Needs(2, condition, i8), Needs(2, condition, ui8), Needs(2, condition, i32), Needs(2, condition, i64))

    def infer(self, site: DeclaredShapes) -> Dims:
        """One row for each true element."""
        elements = site.array(self.condition)
        return (None if elements is None else int((elements != 0).sum()), len(site.dims(self.condition)))


# Bits of integers.


_BITS: Final = Types(INTEGER, i1, QUANTIZED)


class BitwiseXor(Operator, name="tfl.bitwise_xor"):
    """Bits that differ. Source: kernels/bitwise_xor.cc."""

    lhs: Value = operand(_BITS)
    rhs: Value = operand(_BITS)
    output: Value = result()
    traits = (SameElementType(lhs, rhs, output), Broadcasts(lhs, rhs, output), Misreads("result type"))


class RightShift(Operator, name="tfl.right_shift"):
    """lhs shifted right by rhs bits; the sign stays. Source: kernels/right_shift.cc."""

    lhs: Value = operand(_BITS)
    rhs: Value = operand(_BITS)
    output: Value = result()
    traits = (Broadcasts(lhs, rhs, output), Misreads("result type"))
