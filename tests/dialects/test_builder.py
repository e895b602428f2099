"""Emitters: the declaration of an op says its result's type; what the emitters of dialects add."""

from __future__ import annotations

import numpy as np
import pytest
from support.one_op import arg

from tflq.dialects.builder import Builder, Emitter
from tflq.dialects.declare import Operator
from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tosa.elementwise import Add, BitwiseXor, Equal, IntDiv, LogicalNot, Select
from tflq.dialects.tosa.movement import ArgMax
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.formats.tosa.lowering.context import TosaBuilder
from tflq.ir.types import ScalarType, f32, i1, i8, i32, i64


@pytest.mark.parametrize(
    ("kind", "operands", "made"),
    [
        (Add, (i64, i64), i64),  # a type variable
        (IntDiv, (i32, i32), i32),
        (Equal, (i8, i8), i1),
        (LogicalNot, (i1,), i1),
        (Select, (i1, f32, f32), f32),  # of the second operand
        (SelectV2, (i1, i8, i8), i8),  # by a trait
    ],
)
def test_the_declaration_says_the_element_type(
    kind: type[Operator], operands: tuple[ScalarType, ...], made: ScalarType
) -> None:
    result = Emitter().emit(kind, [arg((2, 3), element) for element in operands])
    assert (result.type.shape, result.type.element) == ((2, 3), made)


def test_a_stated_element_type_holds() -> None:
    assert Emitter().emit(ArgMax, [arg((2, 3), i8)], i64, axis=1).type.element == i64


def test_short_names_are_ops_of_that_name() -> None:
    a, b = arg((2, 3), i32), arg((3,), i32)
    for builder in (Builder(), KernelBuilder()):
        for name in ("add", "sub", "mul", "maximum", "minimum", "equal", "greater", "greater_equal"):
            made = getattr(builder, name)(a, b)
            assert made.producer.short_name == name
            assert made.type.shape == (2, 3)
            assert made.type.element == (i1 if name in ("equal", "greater", "greater_equal") else i32)


def test_tosa_gives_operands_equal_ranks() -> None:
    t = TosaBuilder()
    made = t.emit(BitwiseXor, [arg((2, 3), i8), arg((3,), i8)])
    assert [v.type.shape for v in made.producer.operands] == [(2, 3), (1, 3)]  # type: ignore[union-attr]
    assert t.clamp(arg((2,), f32), -1, 1).producer.attributes == {"min_val": -1.0, "max_val": 1.0}  # type: ignore[union-attr]


def test_a_row_of_equal_numbers_is_a_scalar() -> None:
    k = KernelBuilder()
    assert k.row(np.asarray([3, 3])).type.shape == ()
    assert k.row([3, 4], i64).type.shape == (2,)
