"""`parse(print(m)) == m`, for everything that the IR holds."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tflq.base.errors import ParseError
from tflq.ir.module import Function, Metadata, Module, Signature, difference
from tflq.ir.ops import Buffer, Location, Op, Value, constant
from tflq.ir.text.parse_types import TypeParser
from tflq.ir.text.parser import parse_module
from tflq.ir.text.print_types import type_text
from tflq.ir.text.printer import print_module
from tflq.ir.types import (
    AnyQuantizedType,
    CalibratedQuantizedType,
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i4,
    i8,
    i16,
    string,
    ui8,
    ui16,
)

CORPUS = Path(os.environ.get("TFLQ_CORPUS") or Path(__file__).resolve().parents[3] / "shared")


def comes_back(module: Module) -> str:
    text = print_module(module)
    again = parse_module(text)
    assert difference(module, again) is None
    assert print_module(again) == text
    return text


def holding(*values: Value | None, **op: Any) -> Module:
    """A module whose one op reads the values."""
    result = Value(TensorType((), f32), "out")
    return Module([Function("main", [], [result], [Op("tfl.custom", list(values), [result], **op)])])


TYPES: list[tuple[ElementType, str]] = [
    (UniformQuantizedType.of(i8, 0.5, 3), "!quant.uniform<i8:f32, 0.5:3>"),
    (UniformQuantizedType.of(i8, 0.1), "!quant.uniform<i8:f32, 0.1>"),
    (UniformQuantizedType.of(ui8, 1e-20, 255), "!quant.uniform<u8:f32, 1.0e-20:255>"),
    (UniformQuantizedType.of(i8, 0.0, 4), "!quant.uniform<i8:f32, 0.0:4>"),
    (UniformQuantizedType.of(i8, 3.59e-43), "!quant.uniform<i8:f32, 3.59e-43>"),
    (UniformQuantizedType.of(i8, math.inf, -3), "!quant.uniform<i8:f32, 0x7F800000:-3>"),
    (UniformQuantizedType.of(i8, math.inf, expressed=f16), "!quant.uniform<i8:f16, 0x7C00>"),
    (
        UniformQuantizedPerAxisType.of(i8, 1, [0.0, math.inf], [0, 7]),
        "!quant.uniform<i8:f32:1, {0.0, 0x7F800000:7}>",
    ),
    (UniformQuantizedType.of(i8, 3.0, -4, storage_min=-127), "!quant.uniform<i8<-127:127>:f32, 3.0:-4>"),
    (UniformQuantizedType.of(ui16, 1.23, 512, storage_max=1023), "!quant.uniform<u16<0:1023>:f32, 1.23:512>"),
    (UniformQuantizedType.of(i16, 0.1, expressed=f16), "!quant.uniform<i16:f16, 0.1>"),
    (UniformQuantizedType.of(i4, 2.0, expressed=bf16), "!quant.uniform<i4:bf16, 2.0>"),
    (UniformQuantizedPerAxisType.of(i8, 1, [2.0, 3.0], [10, 0]), "!quant.uniform<i8:f32:1, {2.0:10, 3.0}>"),
    (
        UniformQuantizedSubChannelType.of(i8, (0, 1), (1, 2), [[2.0, 3.0], [4.0, 5.0]], [[120, 127], [0, 1]]),
        "!quant.uniform<i8:f32:{0:1, 1:2}, {{2.0:120, 3.0:127}, {4.0, 5.0:1}}>",
    ),
    (UniformQuantizedType.of(i8, 0.1, expressed=f64), "!quant.uniform<i8:f64, 0.1>"),
    (
        UniformQuantizedPerAxisType.of(i8, 1, [0.1, 1 / 3], expressed=f64),
        "!quant.uniform<i8:f64:1, {0.1, 0.3333333333333333}>",
    ),
    (
        UniformQuantizedSubChannelType.of(i8, (0, 1), (1, 2), [[0.1, 0.2]], expressed=f64),
        "!quant.uniform<i8:f64:{0:1, 1:2}, {{0.1, 0.2}}>",
    ),
    (UniformQuantizedPerAxisType.of(i8, 0, [0.1, 2.0], expressed=f16), "!quant.uniform<i8:f16:0, {0.1, 2.0}>"),
    (CalibratedQuantizedType.of(f64, -0.1, 1e300), "!quant.calibrated<f64<-0.1:1.0e+300>>"),
    (AnyQuantizedType(i8, f32, -8, 7), "!quant.any<i8<-8:7>:f32>"),
    (AnyQuantizedType(i8, None, -128, 127), "!quant.any<i8>"),
    (CalibratedQuantizedType.of(f32, -0.998, 1.2321), "!quant.calibrated<f32<-0.998:1.2321>>"),
]


@pytest.mark.parametrize(("element", "text"), TYPES)
def test_type(element: ElementType, text: str) -> None:
    assert type_text(element) == text
    assert f"tensor<4x?x{text}>" in comes_back(
        holding(Value(TensorType((4, None), element), info={"is_variable": True}))
    )


def test_scales_have_the_precision_of_what_they_express() -> None:
    for expressed in (f16, f32, f64):
        assert UniformQuantizedPerAxisType.of(i8, 0, [0.1, 0.2], expressed=expressed).scales.dtype == expressed.dtype
        assert UniformQuantizedType.of(i8, 0.1, expressed=expressed).scale == float(expressed.dtype.type(0.1))
    assert UniformQuantizedPerAxisType.of(i8, 0, [0.1, 0.2], expressed=bf16).scales.dtype == np.float32


@pytest.mark.parametrize(("low", "high"), [(1.0, -1.0), (-0.1, -0.2), (float("nan"), 1.0)])
def test_a_calibrated_range_is_not_empty(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=r"calibrated range <.*> is empty"):
        CalibratedQuantizedType.of(f32, low, high)


@pytest.mark.parametrize(
    ("low", "high", "made"),
    [(0.0, 0.0, (-5e-7, 5e-7)), (1.0, 1.0, (0.0, 1.0)), (-2.0, -2.0, (-2.0, 0.0)), (0.0, 1e-45, (0.0, 1e-45))],
)
def test_a_range_of_one_number_is_widened(low: float, high: float, made: tuple[float, float]) -> None:
    assert CalibratedQuantizedType.of(f32, low, high) == CalibratedQuantizedType.of(f32, *made)
    text = f"!quant.calibrated<f32<{low}:{high:.50f}>>"
    assert TypeParser(text, "").type() == CalibratedQuantizedType.of(f32, *made)


@given(
    arrays.arrays(np.float32, st.integers(1, 20), elements=st.floats(2**-100, 2**100, width=32)),
    st.integers(-128, 127),
    st.integers(0, 3),
)
def test_scales_are_exact(scales: np.ndarray, zero_point: int, axis: int) -> None:
    element = UniformQuantizedPerAxisType.of(i8, axis, scales, zero_point)
    comes_back(holding(Value(TensorType(None, element), info={"is_variable": True})))


ATTRIBUTES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
        st.sampled_from([i8, f32, string, TensorType((2, None), i8), TensorType(None, f32)]),
        arrays.arrays(
            arrays.scalar_dtypes().filter(lambda d: d.isnative and d.kind in "biuf" and d.itemsize <= 8), (2, 3)
        ),
        st.floats(width=32).map(np.float32),
    ),
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), ATTRIBUTES, max_size=4))
def test_attributes(attributes: dict[str, Any]) -> None:
    comes_back(holding(attributes=attributes, info={"also": attributes}))


@given(
    st.sampled_from(["bool", "int8", "uint8", "int16", "int32", "int64", "uint32", "float16", "float32", "float64"]),
    st.data(),
)
def test_constants(dtype: str, data: st.DataObject) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))
    comes_back(holding(constant(data.draw(arrays.arrays(dtype, shape)), name="c")))


def test_large_constants_are_resources() -> None:
    values = np.random.default_rng(0).normal(size=(100, 7)).astype(np.float32)
    module = holding(constant(values))
    assert "dense_resource<c0> : tensor<100x7xf32>" in comes_back(module)
    elided = print_module(module, elide=True)
    assert "dense_resource<__elided__>" in elided
    assert "dialect_resources" not in elided
    with pytest.raises(ParseError, match="left out when this text was printed"):
        parse_module(elided)


def test_equal_elements_are_written_once() -> None:
    assert "dense<3> : tensor<1000xi32>" in comes_back(holding(constant(np.full(1000, 3, np.int32))))


@pytest.mark.parametrize("data", [[0x21, 0x0F], [0x21, 0xFF], [0x21]])
def test_packed_data_is_kept_whatever_its_padding(data: list[int]) -> None:
    comes_back(holding(Value(TensorType((3,), i4), buffer=Buffer(np.array(data, np.uint8)))))


def test_data_that_does_not_fit_its_type() -> None:
    raw = Buffer(np.arange(5, dtype=np.uint8))
    comes_back(
        holding(Value(TensorType((2,), string), buffer=raw), Value(TensorType((2, None), f32), buffer=Buffer(raw.data)))
    )


def test_bits_of_a_nan_and_of_a_boolean() -> None:
    nan = np.array([0x7FC00001, 0xFF800000, 0x80000000], np.uint32).view(np.float32)
    comes_back(holding(constant(nan), Value(TensorType((2,), i1), buffer=Buffer(np.array([2, 0], np.uint8)))))


def test_shared_buffers_stay_shared() -> None:
    outside, inside = Buffer.of(np.arange(4, dtype=np.int8)), Buffer.of(np.arange(100, dtype=np.int8))
    values = [Value(TensorType((4,), i8), n, buffer=outside) for n in "ab"]
    values += [Value(TensorType(s, i8), "c", buffer=inside) for s in ((100,), (10, 10))]
    module = holding(*values)
    module.buffers = [Buffer(np.zeros(0, np.uint8)), inside, Buffer(np.zeros(0, np.uint8))]
    module.metadata = [Metadata("m", inside), Metadata(None, Buffer.of(np.arange(3, dtype=np.uint8)))]
    comes_back(module)
    again = parse_module(print_module(module)).main.ops[0].operands
    assert len({value.buffer for value in again if value is not None}) == 2
    separate = holding(*(Value(v.type, v.name, buffer=Buffer(v.buffer.data)) for v in values if v.buffer is not None))
    assert "shares its buffer" in str(difference(holding(*values), separate))


def test_everything_else_a_module_holds() -> None:
    x = Value(TensorType((1, None), i8), "x", info={"shape_signature": (1, -1)}, buffer=Buffer(np.zeros(0, np.uint8)))
    state, scratch = (
        Value(TensorType((2,), f32), "state", info={"is_variable": True}),
        Value(TensorType((3,), f32), "s"),
    )
    scales = constant(np.ones(3, np.float32), name="scales")
    weights = Value(TensorType((3,), i8), "w", buffer=Buffer.of(np.arange(3, dtype=np.int8)), info={"by": [scales]})
    a, b = Value(TensorType(None, f32), 'a "quoted\\ näme\n'), Value(TensorType((), i1))
    location = Location("dir/file.tflite", 0, 7, "SVDF", "tensor (1)")
    op = Op("tfl.svdf", [x, None, weights, state], [a, b], {"rank": 1}, location, info={"version": 4})
    op.intermediates = [None, scratch, scratch]
    unnamed = Op("tfl.abs", [a], [Value(TensorType(None, f32))], location=Location("f", 0, 1, "", ""))
    main = Function("main", [x], [b, x, b], [op, unnamed], info={"debug": 3})
    main.tensors = [b, Value(TensorType((5,), f32), "unused"), x, scales, state, weights]
    others = [Function(name, [], [], []) for name in (None, "", "main", "a name")]
    signature = Signature("serve", 0, [("in", x)], [("out", b), (None, x)], {"n": 1})
    module = Module([main, *others], [signature, Signature(None, 1, None, [])], [], "what it is", 3)
    module.operator_codes = [{"builtin_code": 27, "version": 4}]
    module.buffers = [x.buffer] if x.buffer is not None else []
    module.info, module.source, module.warnings = {"more": None}, "a/b.tflite", ["odd"]
    comes_back(module)


def test_equality_is_structural() -> None:
    assert holding(constant(np.arange(3))) == holding(constant(np.arange(3)))
    assert holding(constant(np.arange(3))) != holding(constant(np.arange(4)))
    assert str(difference(holding(attributes={"a": 1}), holding(attributes={"a": True}))).endswith("a: 1 against True")
    assert "name 'n' against 'm'" in str(
        difference(holding(constant(np.arange(3), name="n")), holding(constant(np.arange(3), name="m")))
    )
    same = constant(np.arange(3))
    assert "different places" in str(difference(holding(same, same), holding(same, constant(np.arange(3)))))


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"NO CORPUS at {CORPUS}: set TFLQ_CORPUS to the folder of models")
@pytest.mark.parametrize("folder", ["zoo", "ops", "ops_unsupported"])
def test_models_come_back(folder: str) -> None:
    from tflq.formats.tflite.reader import read

    paths = sorted((CORPUS / folder).rglob("*.tflite"))
    assert paths, f"no models in {CORPUS / folder}"
    for path in paths:
        module = read(path)
        assert difference(module, parse_module(print_module(module))) is None, path


def test_an_op_shows_its_line() -> None:
    module = parse_module(
        """func.func @f(%x: tensor<2xi32>) -> tensor<2xi32> {
          %0 = "tosa.negate"(%x) {tflq.tensors = [{name = "a/b c"}]} : (tensor<2xi32>) -> tensor<2xi32>
          %1 = "tosa.add"(%0, %0) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
          return %1 : tensor<2xi32>
        }"""
    )
    first, second = module.main.ops
    assert repr(first) == '%b_c = "tosa.negate"(%arg0) : (tensor<2xi32>) -> tensor<2xi32> loc("a/b c")'
    assert str(second).startswith('%0 = "tosa.add"(%b_c, %b_c)')
