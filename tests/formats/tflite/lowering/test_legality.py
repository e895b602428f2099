"""What a converted module may hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument

from tflq.base.errors import TflqError, UnsupportedError
from tflq.base.files import resource
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.movement import Reshape
from tflq.dialects.tosa import elementwise as tosa
from tflq.formats.tflite.lowering.engine import check
from tflq.formats.tflite.lowering.lowering import KernelBuilder
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value
from tflq.ir.types import SCALARS, TensorType, UniformQuantizedType, f32, i8, i16, i32, i64, ui8
from tflq.targets.target import load_rules
from tflq.transforms.pass_manager import Decision

QUANTIZED = UniformQuantizedType.of(i8, 0.5, 3)
SHAPE = (2, 3)


def _place(opcode: str, operator: int = 0) -> Location:
    return Location("m.tflite", 0, operator, opcode, "t")


def _module(k: KernelBuilder, inputs: list[Value], outputs: list[Value]) -> Module:
    for op in k.ops:
        op.location = _place("ADD")
    return Module([Function("main", inputs, outputs, k.ops)])


def _decision(name: str, path: str) -> Decision:
    return Decision(Op(name, [], [], {}, _place("ADD")), path)


def test_every_signature_is_of_known_types() -> None:
    for section, lines in json.loads(Path(resource("rules/integer.json")).read_text()).items():
        kernels = load_rules()[section]
        for name in lines:
            assert kernels._signatures(name)


@pytest.mark.parametrize(
    ("name", "element", "legal"), [("add", i32, True), ("add", i8, False), ("mul", ui8, False), ("sub", i16, False)]
)
def test_types(name: str, element: object, legal: bool) -> None:
    k, x = KernelBuilder(), argument(SHAPE, SCALARS[str(element)])
    y = getattr(k, name)(x, x)
    module = _module(k, [x], [y])
    if legal:
        check(module, [])
    else:
        with pytest.raises(UnsupportedError, match=rf"tfl.{name} on \({element}, {element}\)") as caught:
            check(module, [])
        assert len(caught.value.reasons) == 1


def test_one_variable_is_one_type() -> None:
    k = KernelBuilder()
    x, y = argument(SHAPE, i32), argument(SHAPE, i64)
    made = k.emit(Add, [x, y], x.type)
    with pytest.raises(UnsupportedError):
        check(_module(k, [x, y], [made]), [])


def test_many_operands_and_optional_ones() -> None:
    k = KernelBuilder()
    xs = [argument(SHAPE, i8) for _ in range(5)]
    joined = k.concatenation(xs, 0)
    check(_module(k, xs, [k.emit(Reshape, [joined], joined.type)]), [])
    mixed = KernelBuilder()
    made = mixed.concatenation([xs[0], argument(SHAPE, i16)], 0)
    with pytest.raises(UnsupportedError):
        check(_module(mixed, xs, [made]), [])


def test_float_only_where_the_report_says_so() -> None:
    k, x = KernelBuilder(), argument(SHAPE, f32)
    module = _module(k, [x], [k.mul(x, x)])
    check(module, [_decision("tfl.exp", "float")])
    check(module, [_decision("tfl.exp", "kept")])
    check(module, [_decision("tfl.quantize", "integer")])
    check(module, [_decision("tfl.conv_2d", "integer")], "float32")
    with pytest.raises(UnsupportedError):
        check(module, [_decision("tfl.conv_2d", "integer")])
    with pytest.raises(UnsupportedError):
        check(module, [_decision("tfl.exp", "integer")])


def test_parameters_on_inputs_and_outputs_only() -> None:
    k, x = KernelBuilder(), argument(SHAPE, QUANTIZED)
    inner = k.emit(Cast, [x], TensorType(SHAPE, QUANTIZED))
    y = k.emit(Cast, [inner], TensorType(SHAPE, QUANTIZED))
    with pytest.raises(UnsupportedError, match="quantization parameters"):
        check(_module(k, [x], [y]), [])
    check(_module(k, [x], [inner, y]), [])
    check(_module(k, [x], [y]), [_decision("tfl.custom", "kept")])


def test_an_op_of_another_form_is_not_legal() -> None:
    k, x = KernelBuilder(), argument(SHAPE, i32)
    made = k.emit(tosa.Add, [x, x], x.type)
    with pytest.raises(UnsupportedError, match=r"tosa\.add"):
        check(_module(k, [x], [made]), [])


def test_a_bad_rules_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"integer": {"add": "T T -> T; T = i33"}}')
    k, x = KernelBuilder(), argument(SHAPE, i32)
    made = k.add(x, k.constant(np.asarray(1)))
    assert made.producer is not None
    with pytest.raises(TflqError, match=r"mine\.json, section integer, kernel add.*i33"):
        load_rules(path)["integer"].admit(made.producer)
    path.write_text("{")
    load_rules.cache_clear()
    with pytest.raises(TflqError, match=r"mine\.json"):
        load_rules(path)
