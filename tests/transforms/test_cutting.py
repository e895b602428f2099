"""Models cut at tensors, and before custom operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, in_child

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i8, i32, resource

MODELS = Path(__file__).parents[2] / "models"
Q8 = UniformQuantizedType.of(i8, 0.05, -3)
ADD, TAIL = "functional_1/add_1/Add", "StatefulPartitionedCall_1:0"


def tensors(model: bytes, names: list[str], image: np.ndarray) -> list[np.ndarray]:
    """What the reference kernels give for tensors of a network of one input."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    options = {"experimental_op_resolver_type": OpResolverType.BUILTIN_REF, "experimental_preserve_all_tensors": True}
    runner = Interpreter(model_content=model, **options)
    runner.allocate_tensors()
    runner.set_tensor(runner.get_input_details()[0]["index"], image)
    runner.invoke()
    places = {d["name"]: d["index"] for d in runner.get_tensor_details()}
    return [runner.get_tensor(places[name]) for name in names]


def value(name: str, element: UniformQuantizedType | ScalarType = Q8) -> Value:
    return Value(TensorType((2, 3), element), name)


def two_heads(*, custom: bool = True) -> Module:
    """x -> relu "a" -> custom "b" -> relu "c"; x -> relu "d"."""
    x, a, b, c, d = argument((2, 3), Q8, "x"), *map(value, "abcd")
    ops = [
        Op("tfl.relu", [x], [a], {}),
        Op("tfl.custom", [a], [b], {"custom_code": "Mine"}) if custom else Op("tfl.relu6", [a], [b], {}),
        Op("tfl.relu", [b], [c], {}),
        Op("tfl.relu", [x], [d], {}),
    ]
    signatures = [
        Signature("all", 0, [("x", x)], [("c", c), ("d", d)]),
        Signature("one", 0, [("x", x)], [("d", d)]),
    ]
    return Module([Function("main", [x], [c, d], ops)], signatures)


def dropped(signature: str, output: str) -> str:
    """The warning for a signature of which an output is gone."""
    why = f"because '{output}' is behind the cut"
    return f"signature '{signature}' is dropped, {why}; run the model by its inputs and outputs"


def names(model: bytes) -> list[str]:
    return [v.name for v in tflq.read(model).main.outputs]


@pytest.mark.parametrize("options", [{}, {"target": "kernels"}], ids=str)
def test_the_cut_tensor_is_an_output_with_its_quantization_and_value(options: dict[str, str]) -> None:
    source = (MODELS / "cnn_int8.tflite").read_bytes()
    made = tflq.convert(source, cut=[ADD], **options)  # type: ignore[arg-type]
    (out,) = tflq.read(made.data).main.outputs
    assert out.name == ADD
    assert out.type == next(v.type for op in tflq.read(source).ops() for v in op.results if v.name == ADD)
    assert made.report.warnings == [dropped("serving_default", "output_0")]
    assert len(made.data) < len(tflq.convert(source, **options).data)  # type: ignore[arg-type]
    for (image,) in edge_inputs(tflq.read(source).main.inputs):
        want, got = (in_child(tensors, model, [ADD], image) for model in (source, made.data))
        np.testing.assert_array_equal(got[0], want[0])


def test_outputs_that_do_not_depend_on_the_cut_stay_and_come_first() -> None:
    conversion = tflq.convert(bytes(write(two_heads(custom=False))), cut=["b", "a"])
    assert names(conversion.data) == ["d", "b", "a"]
    assert [s.key for s in conversion.module.signatures or ()] == ["one"]
    assert names(tflq.convert(bytes(write(two_heads(custom=False))), cut=["a"]).data) == ["d", "a"]


def test_an_output_may_be_named_to_keep_it() -> None:
    model = bytes(write(two_heads(custom=False)))
    conversion = tflq.convert(model, cut=["c", "d"])
    assert names(conversion.data) == ["c", "d"]
    assert len(conversion.module.signatures or ()) == 2


def test_before_custom_operators() -> None:
    conversion = tflq.convert(bytes(write(two_heads())), cut_before_custom=True)
    assert names(conversion.data) == ["d", "a"]
    assert all(op.name != "tfl.custom" for op in conversion.module.ops())
    assert conversion.report.warnings == [dropped("all", "c")]


def test_without_custom_operators_nothing_is_cut_and_a_warning_says_so() -> None:
    model = bytes(write(two_heads(custom=False)))
    conversion = tflq.convert(model, cut_before_custom=True)
    assert conversion.data == tflq.convert(model).data
    assert conversion.report.warnings == [
        "nothing is cut off, because the model has no custom operator; leave --cut-before-custom out"
    ]


def test_of_one_of_several_signatures() -> None:
    conversion = tflq.convert(MODELS / "two_signatures.tflite", cut=["Mean"])
    first, second = conversion.module.functions[:2]
    assert [v.name for v in first.outputs] == ["Mean"]
    assert [v.name for v in second.outputs] == ["PartitionedCall_1:0"]
    assert [(s.key, s.function) for s in conversion.module.signatures or ()] == [("embed", 1)]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ("functional_1/add_1/Ad", "no operator gives a tensor .*did you mean 'functional_1/add_1/Add'"),
        ("nonsense", "no operator gives a tensor 'nonsense'; `tflq inspect --ir` shows the names"),
        ("serving_default_image:0", "is an input: there is nothing before it"),
    ],
)
def test_what_cannot_be_cut(cut: str, message: str) -> None:
    source = tflq.read(MODELS / "cnn_int8.tflite")
    cut = source.main.inputs[0].name if "serving" in cut else cut
    with pytest.raises(tflq.OptionError, match=message):
        tflq.convert(MODELS / "cnn_int8.tflite", cut=[cut])


def test_a_model_of_which_nothing_is_left() -> None:
    x, y = argument((2, 3), Q8, "x"), value("y")
    module = Module([Function("main", [x], [y], [Op("tfl.custom", [x], [y], {"custom_code": "Mine"})])])
    with pytest.raises(tflq.UnsupportedError, match="no output would be left"):
        tflq.convert(bytes(write(module)), cut_before_custom=True)


def test_state_written_behind_the_cut_and_read_before_it() -> None:
    handle = Value(TensorType((), resource), "handle")
    x, now, a, b = argument((2, 3), i32, "x"), *(value(name, i32) for name in ("now", "a", "b"))
    ops = [
        Op("tfl.var_handle", [], [handle], {"container": "", "shared_name": "state"}),
        Op("tfl.read_variable", [handle], [now], {}),
        Op("tfl.add", [x, now], [a], {"fused_activation_function": "NONE", "pot_scale_int16": False}),
        Op("tfl.mul", [a, const(np.asarray(2), i32, "two")], [b], {"fused_activation_function": "NONE"}),
        Op("tfl.assign_variable", [handle, b], [], {}),
    ]
    model = bytes(write(Module([Function("main", [x], [b], ops)])))
    with pytest.raises(tflq.UnsupportedError, match=r"ASSIGN_VARIABLE.*writes state that is read before the cut"):
        tflq.convert(model, cut=["a"])
    assert names(tflq.convert(model, cut=["b"]).data) == ["b"]
