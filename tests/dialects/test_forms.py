"""Which ops and types are legal in each form, and what is said of one that is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from tflq.base.errors import VerificationError
from tflq.dialects.builder import Builder
from tflq.dialects.forms import ModuleForm, stays_quantized_reason, verify_form
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value, constant, op_names
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i1, i8, i16, i32, i64, ui8
from tflq.numerics.fixed_point import Multiplier
from tflq.transforms.pass_manager import Pass, PassResult, Pipeline

Q8 = UniformQuantizedType.of(i8, 0.5)
PLACE = Location("m.tflite", 0, 7, "CONV_2D", "features")


def value(element: ScalarType | UniformQuantizedType, *shape: int, name: str = "") -> Value:
    return Value(TensorType(shape or (1, 4), element), name)


def module(*ops: Op) -> Module:
    made = {v for op in ops for v in op.results}
    inputs = [v for op in ops for v in op.operands if v is not None and v not in made and v.buffer is None]
    return Module([Function("main", list(dict.fromkeys(inputs)), list(ops[-1].results), list(ops))])


def refusal(form: ModuleForm, *ops: Op) -> str:
    """The first line of what the verifier says of the ops."""
    with pytest.raises(VerificationError) as caught:
        verify_form(module(*ops), form)
    return str(caught.value).splitlines()[0]


def op(name: str, operands: list[Value | None], result: Value, **attributes: Any) -> Op:
    return Op(name, operands, [result], attributes, PLACE)


def add(**changes: Any) -> Op:
    return op("tosa.add", [value(i32), value(i32)], value(i32), **changes)


def rescale() -> Op:
    b = Builder()
    b.location = PLACE
    b.rescale(value(i32), Multiplier(1 << 30, 0), i8)
    return b.ops[0]


def builder_ops() -> list[Op]:
    """One op of each method of the builder."""
    b = Builder()
    x, y, image = value(i32), value(i32), value(i8, 1, 4, 4, 2)
    filters, bias = constant(np.zeros((3, 1, 1, 2), np.int8)), constant(np.zeros(3, np.int32))
    b.rescale(x, Multiplier(1 << 30, 0), ui8)
    b.rescale(value(i64), (np.full(4, 1 << 30), np.zeros(4)), i16)
    b.cast(x, i8)
    b.table(value(i8), np.zeros(256, np.int32))
    b.table(value(i16), np.zeros(513, np.int16))
    b.table(value(i16), np.zeros(1 << 16, np.int16))
    for binary in (b.add, b.sub, b.mul, b.maximum, b.minimum, b.arithmetic_right_shift, b.logical_left_shift):
        binary(x, y)
    for compared in (b.equal, b.greater, b.greater_equal):
        b.select(compared(x, y), x, y)
    b.clz(x)
    b.clamp(x, -5, 5)
    b.identity(x)
    b.conv2d(image, filters, bias, (1, 4, 4, 3))
    b.conv2d(image, constant(np.zeros((1, 1, 2, 1), np.int8)), bias, (1, 4, 4, 2), depthwise=True)
    b.reshape(x, (None, 2))
    b.transpose(x, (1, 0))
    b.concat([x, y, x], 0)
    for kind in ("sum", "max", "min"):
        b.reduce(kind, x, 1)
    b.scast(b.qcast(b.dcast(value(Q8)), TensorType((1, 4), Q8)), TensorType((1, 4), i8))
    return b.ops


def test_what_the_builder_emits_is_legal() -> None:
    ops = builder_ops()
    verify_form(module(*ops), "integer")
    assert {o.name for o in ops} <= op_names("tosa") | op_names("ext") | op_names("quant")


def test_a_message_shows_place_reason_and_op() -> None:
    with pytest.raises(VerificationError) as caught:
        verify_form(module(add(), op("tosa.add", [value(i32), value(i64)], value(i32))), "integer")
    first, *context = str(caught.value).splitlines()
    assert first == (
        "m.tflite: subgraph 0, operator 7 (CONV_2D), tensor 'features': 'tosa.add': "
        "'input2' is i64, not i32 like the other values of one type"
    )
    assert [line.startswith("> ") for line in context if "tosa.add" in line] == [False, True]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (op("tosa.frobnicate", [value(i32)], value(i32)), "the dialect 'tosa' does not declare this op"),
        (op("math.round", [value(f32)], value(f32)), "the integer form has ops of tfl, quant, tosa, ext only"),
        (op("tosa.add", [value(i32)], value(i32)), "it has 1 operand, not 2"),
        (op("tosa.add", [value(i32), None], value(i32)), "operand 'input2' is left out and not optional"),
        (Op("tosa.clz", [value(i32)], [], {}, PLACE), "it has 0 results, not 1"),
        (op("tosa.add", [value(i16), value(i16)], value(i16)), "'input1' is i16, not i32, i64"),
        (op("tosa.equal", [value(i32), value(i32)], value(i8)), "'output' is i8, not i1"),
        (op("tosa.concat", [value(i8), value(i8), value(i16)], value(i8), axis=0), "'inputs' is i16, not i8"),
        (op("tosa.clz", [value(Q8)], value(i32)), "'input' is !quant.uniform<i8:f32, 0.5>, not i32"),
        (op("tosa.table", [value(i8), value(i8, 256)], value(i8)), "operand 'table' is not a constant"),
        (add(shift=0), "attribute 'shift' is not declared; it has none"),
        (op("quant.dcast", [value(Q8)], value(f32), axis=0), "attribute 'axis' is not declared; it has none"),
        (op("quant.ecast", [value(Q8)], value(f32)), "the dialect 'quant' does not declare this op"),
        (op("quant.dcast", [value(i8)], value(f32)), "'input' is i8, not quantized"),
    ],
)
def test_integer_form_refuses(broken: Op, reason: str) -> None:
    assert refusal("integer", broken).partition(f"'{broken.name}': ")[2].startswith(reason)


def test_the_alternative_that_fits_furthest_is_named() -> None:
    table = constant(np.zeros(513, np.int16))
    said = refusal("integer", op("tosa.table", [value(i16), table], value(i16)))
    assert said.endswith("'output' is i16, not i32")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("multiplier", [1 << 30]),
        ("multiplier", np.asarray([1 << 30], np.int64)),
        ("multiplier", np.asarray([[1 << 30]], np.int32)),
        ("shift", 31),
        ("input_zp", True),
        ("input_zp", np.int32(3)),
        ("scale32", 1),
        ("rounding_mode", "HALF_UP"),
        ("rounding_mode", ["SINGLE_ROUND"]),
        ("input_range", (0,)),
        ("input_range", (0, 1.5)),
    ],
)
def test_attribute_of_another_type(name: str, wrong: object) -> None:
    broken = rescale()
    broken.attributes[name] = wrong
    assert f"attribute '{name}' is " in refusal("integer", broken)


def test_attribute_left_out() -> None:
    broken = rescale()
    del broken.attributes["shift"]
    assert refusal("integer", broken).endswith("it has no attribute 'shift'")


def test_attribute_that_may_be_left_out() -> None:
    for limits in ((-5, 5), [-5, 5]):
        legal = rescale()
        legal.attributes["input_range"] = limits
        verify_form(module(legal), "integer")


def test_a_size_that_is_not_known() -> None:
    part = op("tosa.slice", [value(i8)], value(i8), start=(0, 1), size=(None, 2))
    verify_form(module(part), "integer")
    part.attributes["start"] = (None, 1)
    assert "attribute 'start' is (None, 1), not int[]" in refusal("integer", part)


def test_a_type_seen_before_does_not_hide_one_that_is_wrong() -> None:
    verify_form(module(add()), "integer")
    assert "'output' is i64" in refusal("integer", add(), op("tosa.add", [value(i32), value(i32)], value(i64)))


def relu(operand: Value, result: Value) -> Op:
    return op("tfl.relu", [operand], result)


def test_operators_of_tflite_are_plain() -> None:
    verify_form(module(relu(value(f32), value(f32))), "integer")
    verify_form(module(op("tfl.gather", [value(i8), value(i32)], value(i8), axis=0)), "integer")
    assert "operand 0 ('x') is quantized" in refusal("integer", relu(value(Q8, name="x"), value(i8)))
    assert "result 0 ('y') is quantized" in refusal("integer", relu(value(i8), value(Q8, name="y")))


def test_kept_operators_keep_their_types() -> None:
    kept = {name for name in op_names("tfl") if stays_quantized_reason(Op(name, [], [])) is not None}
    assert {"tfl.custom", "tfl.while", "tfl.svdf"} <= kept
    assert "tfl.stablehlo_reduce" not in kept
    verify_form(module(op("tfl.custom", [value(Q8), None, value(f32)], value(Q8))), "integer")


def weights() -> Value:
    made = constant(np.zeros((3, 4), np.int8), name="w")
    made.type = made.type.with_element(Q8)
    return made


def test_hybrid_operators_have_quantized_constants() -> None:
    hybrid = op("tfl.fully_connected", [value(f32), weights(), None], value(f32))
    verify_form(module(hybrid), "integer")
    hybrid.operands[1] = value(Q8, name="w")
    assert "operand 1 ('w') is quantized" in refusal("integer", hybrid)
    integers = op("tfl.fully_connected", [value(i8), weights(), None], value(i8))
    assert "operand 1 ('w') is quantized" in refusal("integer", integers)
    assert "operand 0 ('w') is quantized" in refusal("integer", op("tfl.dequantize", [weights()], value(f32)))


def test_quantized_arguments_and_results_need_no_op() -> None:
    argument = value(Q8)
    verify_form(Module([Function("main", [argument], [argument], [])]), "integer")


@pytest.mark.parametrize("form", ["tfl", "kernels"])
def test_forms_of_tflite(form: ModuleForm) -> None:
    verify_form(module(op("tfl.conv_2d", [value(Q8), weights()], value(Q8))), form)
    verify_form(module(op("tfl.pack", [value(i8)] * 3, value(i8))), form)
    foreign = refusal(form, op("ml.add", [value(i8)] * 2, value(i8)))
    if form == "tfl":  # text has ops of other dialects, too
        verify_form(module(add()), form)
        assert foreign.endswith("only; run the pass that lowers ml first")
    else:
        assert refusal(form, add()).endswith("the kernels form has ops of tfl only")
        assert foreign.endswith("the kernels form has ops of tfl only")
    assert refusal(form, op("tfl.relu", [value(i8)] * 2, value(i8))).endswith("it has 2 operands, not 1")
    few = op("tfl.conv_2d", [value(i8)], value(i8))
    assert refusal(form, few).endswith("it has 1 operand, not 2 to 3")
    missing = op("tfl.conv_2d", [None, value(i8)], value(i8))
    assert refusal(form, missing).endswith("operand 'input' is left out and not optional")
    assert refusal(form, op("tfl.frobnicate", [value(i8)], value(i8))).endswith("does not declare this op")


def test_a_declaration_has_no_body_to_verify() -> None:
    declared = Module([Function("f", [], [], [add(shift=1)], info={"declaration": True})])
    verify_form(declared, "integer")


@dataclass(frozen=True)
class Compare(Pass):
    """Makes every result a truth value."""

    name: ClassVar[str] = "compare"

    def run(self, module: Module) -> PassResult:
        for op in module.ops():
            op.result.type = op.result.type.with_element(i1)
        return PassResult(module, True)


def test_a_pipeline_stays_in_its_form() -> None:
    assert Pipeline([Compare()]).run(module(add())).modified
    with pytest.raises(VerificationError, match=r"pass 'compare' left invalid IR: .*'tosa.add': 'output' is i1"):
        Pipeline([Compare()], "integer").run(module(add()))


class Stumbles(Pass):
    """Fails as code does that is given invalid IR."""

    name: ClassVar[str] = "stumbles"

    def run(self, module: Module) -> PassResult:
        raise KeyError(f"shape of {module.main.name}")


Compare.__module__ = Stumbles.__module__ = "tflq.transforms"  # tflq's own: a fault of a user's pass is told as such


def test_passes_of_a_form_are_verified_together() -> None:
    with pytest.raises(VerificationError, match="pass 'compare', pass 'compare' left invalid IR"):
        Pipeline([Compare(), Compare()], "integer", each=False).run(module(add()))
    with pytest.raises(VerificationError, match="pass 'compare' left invalid IR") as raised:
        Pipeline([Compare(), Stumbles()], "integer", each=False).run(module(add()))
    assert isinstance(raised.value.__context__.__context__, KeyError)  # type: ignore[union-attr]
    with pytest.raises(KeyError, match="shape of"):
        Pipeline([Stumbles()], "integer", each=False).run(module(add()))
