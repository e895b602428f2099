"""What users of converters ask for, one test each: what they asked is in the test's name."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret, one_op
from support.peer import STORAGES, assert_exact, image, parameters, q, weights

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Metadata, Module, Signature
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i16, i32, i64, ui8

CONV = {
    "stride_w": 1,
    "stride_h": 1,
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
    "fused_activation_function": "NONE",
    "padding": "SAME",
}


def leaky(x: Value, y: Value) -> Op:
    return Op("tfl.leaky_relu", [x], [y], {"alpha": 0.25}, info={"version": 2})


def chain(storage: ScalarType = i8, shape: tuple[int | None, ...] = (2, 8)) -> Module:
    """LEAKY_RELU and LOGISTIC."""
    out = {"i8": q(i8, 1 / 256, -128), "ui8": q(ui8, 1 / 256, -128), "i16": q(i16, 1 / 32768)}[storage.name]
    scale = 0.1 / 3 if storage.bits == 8 else 0.001 / 3
    x, m = argument(shape, q(storage, scale, 3), "x"), argument(shape, q(storage, scale * 0.7, -5), "m")
    y = argument(shape, out, "y")
    logistic = Op("tfl.logistic", [m], [y], {}, info={"version": 3})
    return Module([Function("main", [x], [y], [leaky(x, m), logistic])])


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_rounding_matches_the_runtime_at_every_tie(storage: ScalarType) -> None:
    """QUANTIZE from half the scale: every second value is a tie."""
    x = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)[None]
    operand, result = argument(x.shape, q(storage, 0.125, 1)), argument(x.shape, q(storage, 0.25, -2), "y")
    assert_exact(one_op("tfl.quantize", [operand], [result], {}, 3), [[x]])


@pytest.mark.parametrize("format", ["tflite", "tosa"])
def test_uint8_tensors_stay_uint8_for_the_caller(format: str) -> None:
    module = tflq.convert(bytes(write(chain(ui8))), format=format).module
    assert module.main.inputs[0].type.storage is ui8
    assert module.main.outputs[0].type.storage is ui8


def test_dynamic_batch_without_wrong_shapes() -> None:
    model = bytes(write(chain(shape=(None, 8))))
    conversion = tflq.convert(model)
    for batch in (1, 4, 7):
        x = np.arange(batch * 8).astype(np.int8).reshape(batch, 8)
        (want,), (got,) = interpret(model, [[x]])[0], interpret(conversion.data, [[x]])[0]
        assert got.shape == want.shape == (batch, 8)
        np.testing.assert_array_equal(got, want)
    bound = tflq.convert(model, format="tosa", batch=4)
    assert [v.type.shape for v in (*bound.module.main.inputs, *bound.module.main.outputs)] == [(4, 8), (4, 8)]


def test_per_axis_weights() -> None:
    scales = (0.0173 * np.linspace(0.3, 2, 4)).astype(np.float32)
    x = q(i8, 0.0371, 9)
    kernel = UniformQuantizedPerAxisType.of(i8, 0, scales.astype(np.float64), 0)
    wide = UniformQuantizedPerAxisType.of(i32, 0, (np.float32(x.scale) * scales).astype(np.float64), 0)
    bias = const(np.asarray([300, -70, 2000, 0]), wide, "b")
    result = argument((1, 6, 7, 4), q(i8, 0.09, -4), "y")
    assert_exact(one_op("tfl.conv_2d", [image(x), weights(kernel, (4, 3, 3, 3)), bias], [result], CONV, 3))


def test_int16_by_8() -> None:
    x, kernel = q(i16, 0.000371), q(i8, 0.0173)
    bias = const(np.asarray([300, -70, 2000, 0]), UniformQuantizedType.of(i64, 6.4e-6), "b")
    result = argument((1, 6, 7, 4), q(i16, 0.0009), "y")
    assert_exact(one_op("tfl.conv_2d", [image(x), weights(kernel, (4, 3, 3, 3)), bias], [result], CONV, 3))


def test_errors_name_the_operator_and_the_reason() -> None:
    x = image(UniformQuantizedPerAxisType.of(i8, 3, np.asarray([0.05, 0.03, 0.021]), 0))
    y, z = image(q(i8, 0.04), name="y"), image(q(i8, 0.09), name="z")
    model = one_op("tfl.pow", [x, y], [z], {})
    with pytest.raises(tflq.UnsupportedError) as refusal:
        tflq.convert(model, fallback="error")
    remedy = "without --fallback error it is computed in float"
    for word in ("operator 0 (POW)", "tensor 'z'", "tensor 'x' is quantized per axis", remedy):
        assert word in str(refusal.value)


def test_no_redundant_dequantize_and_quantize() -> None:
    """A pair that changes nothing goes; two readers share one DEQUANTIZE."""
    x, y = argument((2, 8), q(i8, 0.05, 3), "x"), argument((2, 8), q(i8, 0.05, 3), "y")
    real = argument((2, 8), f32, "real")
    pair = [Op("tfl.dequantize", [x], [real], {}, info={"version": 3}), Op("tfl.quantize", [real], [y], {})]
    made = tflq.convert(bytes(write(Module([Function("main", [x], [y], pair)])))).module
    assert not {op.name for op in made.ops()} - {"tfl.cast", "tfl.reshape"}
    assert len(list(made.ops())) <= 1

    x = argument((3, 4), UniformQuantizedPerAxisType.of(i8, 1, np.asarray([0.05, 0.03, 0.02, 0.01]), 0), "x")
    results = [argument((3, 4), q(i8, 0.05, 3), name) for name in "ab"]
    ops = [
        Op(f"tfl.{name}", [x, x], [y], {"fused_activation_function": "NONE"}, info={"version": 2})
        for name, y in zip(("add", "mul"), results, strict=True)
    ]
    made = tflq.convert(bytes(write(Module([Function("main", [x], results, ops)])))).module
    casts = [op for op in made.ops() if op.name == "tfl.cast" and op.operands[0] in made.main.inputs]
    assert len(casts) <= 1


def test_signatures_metadata_and_subgraphs_are_kept() -> None:
    functions = []
    for name in ("serve", "train"):
        function = chain().main
        function.name = name
        functions.append(function)
    signatures = [Signature(f.name, i, [("in", f.inputs[0])], [("out", f.outputs[0])]) for i, f in enumerate(functions)]
    notes = [Metadata("notes", Buffer.of(np.frombuffer(b"as they were", np.uint8)))]
    model = bytes(write(Module(functions, signatures, notes, "a description")))
    made = tflq.read(tflq.convert(model).data)
    assert [f.name for f in made.functions] == ["serve", "train"]
    assert [(s.key, s.function) for s in made.signatures or ()] == [("serve", 0), ("train", 1)]
    metadata = {m.name: bytes(m.buffer.data) for m in made.metadata or ()}
    assert metadata.keys() == {"notes", "tflq.kernel_set"}
    assert metadata["notes"] == b"as they were"
    assert made.description == "a description"


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.0039215689, 1.1754944e-38, 3.0e38])
def test_scales_are_kept_to_the_last_bit(scale: float) -> None:
    x, y = argument((2, 8), q(i8, scale, 3), "x"), argument((8, 2), q(i8, scale, 3), "y")
    perm = const(np.asarray([1, 0]), i32, "perm")
    main = tflq.read(tflq.convert(one_op("tfl.transpose", [x, perm], [y], {}, 2)).data).main
    for value in (*main.inputs, *main.outputs):
        assert parameters(value) == (float(np.float32(scale)), 3)


def test_the_first_bad_layer_is_found() -> None:
    model, other = chain(), chain()
    other.main.ops[0].attributes = {"alpha": 0.5}
    result = tflq.verify(bytes(write(model)), bytes(write(other)), layers=True)
    assert result.verdict == "differs"
    assert result.layers is not None
    assert result.layers.diverging[0].tensor == "m"
