"""The declared operators: every op of the integer form has an evaluator and a lowering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import pytest

from tflq.analysis.evaluate.registry import evaluator, running
from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.parameters import MultiplyAccumulate, SameScale
from tflq.dialects.tfl.convolution import Conv2D
from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tosa.movement import VariableRead
from tflq.formats.flatbuffer.layout import enum, options_of, table
from tflq.formats.tflite.lowering.lowering import lowering
from tflq.ir.ops import Op, Value, dialect, op_class, op_names
from tflq.ir.types import TensorType, i8

INTEGER_FORM = op_names("tosa") | op_names("ext")


def of_integer_form(names: Iterable[str]) -> set[str]:
    return {n for n in names if n.startswith(("tosa.", "ext."))}


def test_declared_ops_are_those_with_an_evaluator() -> None:
    assert of_integer_form(evaluator.names()) == INTEGER_FORM - running.names()


def test_ops_that_run_functions_or_have_a_state_are_evaluated_apart() -> None:
    assert running.names() == {
        *("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.select_and_scatter"),
        *("func.call", "func.call_indirect", "linalg.generic", "tensor.generate", "tensor.pad"),
        *("tosa.cond_if", "tosa.while_loop"),
        *("tosa.variable", "tosa.variable_read", "tosa.variable_write"),
    }


def test_declared_ops_are_those_with_a_lowering() -> None:
    """All but the declaration of a variable, whose initial value `tosa.raising` writes by a function."""
    assert of_integer_form(lowering.names()) == INTEGER_FORM - {"tosa.variable"}


def test_casts_and_fake_quantization_of_quant_are_evaluated() -> None:
    quant = dialect("quant")
    assert quant is not None
    computed = {*quant.families["quant"], "const_fake_quant", "const_fake_quant_per_axis"}
    assert {f"quant.{n}" for n in computed} == {n for n in evaluator.names() if n.startswith("quant.")}


@pytest.mark.parametrize("name", ["arith", "math", "tensor", "linalg", "shape", "func", "tf"])
def test_every_op_of_the_core_dialects_and_of_tf_is_evaluated(name: str) -> None:
    """But for what ends a body or stands for a place in one, which are evaluated with it."""
    within = {"tensor.yield", "linalg.yield", "linalg.index"}
    assert op_names(name) - within <= set(evaluator.names()) | running.names()


def test_evaluators_of_tfl_are_of_declared_operators() -> None:
    assert {n for n in evaluator.names() if n.startswith("tfl.")} <= op_names("tfl")


DIALECTS = ("tfl", "quant", "tosa", "ext", "arith", "math", "tensor", "linalg", "shape", "func", "tf")


def classes(name: str) -> list[type[Operator]]:
    found = dialect(name)
    assert found is not None
    return found.classes()


@pytest.mark.parametrize("name", DIALECTS)
def test_every_op_has_a_docstring(name: str) -> None:
    for declared in classes(name):
        assert declared.__doc__, declared


@pytest.mark.parametrize("name", DIALECTS)
def test_names_are_told_from_each_other_and_only_the_last_is_variadic(name: str) -> None:
    for declared in classes(name):
        slots = (*declared.operand_slots, *declared.result_slots)
        assert len({slot.name for slot in slots}) == len(slots), declared.op_name
        assert not any(slot.variadic for slot in (*declared.operand_slots[:-1], *declared.result_slots[:-1]))
        assert len({len(slot.types) for slot in slots} - {1}) <= 1, f"{declared.op_name}: alternatives differ in number"


@pytest.mark.parametrize(
    ("member", "where"), [("filter", "operands"), ("output", "results"), ("stride_h", "attributes")]
)
def test_members_are_views(member: str, where: str) -> None:
    """Assigning to one would hide what the op has."""
    op = Op("tfl.conv_2d", [value(), value()], [value()], {"stride_h": 2})
    with pytest.raises(AttributeError, match=rf"'{member}' of tfl\.conv_2d is read from its {where}"):
        setattr(op, member, 3)


def test_an_op_with_a_declared_name_is_of_its_class() -> None:
    op = Op("tfl.conv_2d", [value(), value()], [Value(TensorType((1,), i8), "y")], {"stride_h": 2})
    assert isinstance(op, Conv2D)
    assert op.filter is op.operands[1]
    assert op.bias is None
    assert op.output is op.results[0]
    assert (op.stride_h, op.dilation_h_factor, op.padding) == (2, 1, "SAME")
    with pytest.raises(ValueError, match=r"tfl\.add is not declared by Conv2D"):
        Conv2D("tfl.add", [], [])
    assert type(Op("none.such", [], [])) is Op


def test_a_required_operand_that_is_left_out() -> None:
    op = Op("tfl.conv_2d", [value(), None], [value()])
    assert isinstance(op, Conv2D)
    with pytest.raises(ValueError, match=r"tfl\.conv_2d has no operand 'filter'"):
        _ = op.filter


def test_variadic_operands_are_a_list() -> None:
    op = Op("tfl.concatenation", [value(), value(), value()], [value()], {"axis": 0})
    assert isinstance(op, Concatenation)
    assert op.values == op.operands


@pytest.mark.parametrize("builtin", enum("BuiltinOperator").values)
def test_every_builtin_is_declared_with_the_attributes_of_its_options(builtin: str) -> None:
    """And their defaults are the schema's: what an op without the attribute is written with."""
    declared = op_class(f"tfl.{builtin.lower()}")
    assert declared is not None
    member = options_of(builtin)
    fields = [f for f in (table(member).fields if member else ()) if f.kind != "union_type"]
    assert list(declared.attribute_slots) == [f.name for f in fields]
    for field in fields:
        default = declared.attribute_slots[field.name].default
        expected: object = field.default
        if field.kind == "enum":
            expected = enum(field.type).names.get(int(field.default or 0))
        assert default == expected, f"{declared.op_name}.{field.name}"


def test_ext_ops_say_what_they_compute() -> None:
    assert all(
        "output" in (declared.__doc__ or "") or declared.op_name == "ext.truncate" for declared in classes("ext")
    )


def test_alternative_signatures() -> None:
    declared = op_class("tosa.table")
    (x, entries), (y,) = declared.operand_slots, declared.result_slots
    assert entries.constant
    assert x.types[0].names == {"i8", "ui8"}
    assert [t.names for t in y.types][1] == {"i32"}
    assert entries.types[0] is y.types[0], "one variable"


def test_kinds_of_attributes() -> None:
    kinds = {a.key: (str(a.kind), a.required) for a in op_class("tosa.rescale").attribute_slots.values()}
    assert kinds["multiplier"] == ("i32[]", True)
    assert kinds["rounding_mode"] == ("SINGLE_ROUND/DOUBLE_ROUND", True)
    assert kinds["input_range"] == ("int[2]", False)


def test_an_attribute_with_the_name_of_something_else() -> None:
    op = Op("tosa.variable_read", [], [value()], {"name": "state"})
    assert op.name == "tosa.variable_read"
    assert isinstance(op, VariableRead)
    assert op.variable == "state"


def test_traits() -> None:
    assert Conv2D.has(MultiplyAccumulate)
    assert not Conv2D.has(SameScale)
    found = Conv2D.trait(MultiplyAccumulate)
    assert found is not None
    assert found.axis == 0


@pytest.mark.parametrize("name", ["tosa.nothing", "tfl.nothing", "nowhere.round", "", "tosa"])
def test_what_is_not_declared(name: str) -> None:
    assert op_class(name) is None


def test_what_operators_share_comes_first() -> None:
    """What a class without a name declares is declared by each class that it is the base of."""

    class _Shared(Operator):
        """What both have."""

        x: Value = operand()
        y: Value = result()
        traits: ClassVar[tuple[Trait, ...]] = (SameScale(x, y),)

    class _More(_Shared, name="test.more"):
        """With one more operand."""

        z: Value | None = operand(optional=True)
        size: int = attribute(default=3)

    assert [slot.name for slot in _More.operand_slots] == ["x", "z"]
    assert [slot.index for slot in _More.operand_slots] == [0, 1]
    assert [slot.name for slot in _More.result_slots] == ["y"]
    assert _More.has(SameScale)
    made = _More("test.more", [value(), value()], [value()])
    assert made.z is made.operands[1]
    assert made.size == 3


def test_a_class_is_declared_once() -> None:
    with pytest.raises(ValueError, match=r"tfl\.conv_2d is declared twice"):

        class _Again(Operator, name="tfl.conv_2d"):
            """Another one."""


def value() -> Value:
    return Value(TensorType((1, 1, 1, 1), i8), "x")
