"""quant.qcast and quant.dcast on float builtins against the QUANTIZE and DEQUANTIZE reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, convert_and_compare, edge_inputs, interpret, one_op

from tflq.dialects.builder import Builder
from tflq.formats.tflite.lowering.engine import select
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i16, ui8

QuantizedType = UniformQuantizedType | UniformQuantizedPerAxisType

EDGES = (
    *(0.0, -0.0, 0.5, -0.5, 0.49999997, -0.49999997, 1.5, -1.5, 2.5, -2.5, 127.5, -128.5, 1e4, -1e4, 40000.5),
    *(
        2.0**22 + 0.5,
        2.0**23 + 1,
        2.0**30,
        2.0**31 - 128,
        2.0**31,
        -(2.0**31),
        -(2.0**31) - 256,
        3e9,
        -3e9,
        1e20,
        -1e20,
    ),
    *(np.inf, -np.inf, np.nan),
)
TYPES = [(i8, -5), (i8, 0), (i8, 5), (i8, -128), (i8, 127), (ui8, 0), (ui8, 3), (ui8, 255), (i16, 0)]


def _converted(name: str, shape: tuple[int, ...], element: QuantizedType) -> bytes:
    b = Builder()
    if name == "tfl.quantize":
        x = argument(shape, f32)
        result = b.scast(b.qcast(x, TensorType(shape, element)), TensorType(shape, element.storage))
    else:
        x = argument(shape, element)
        result = b.dcast(x)
    result.name = "y"
    return bytes(write(select(Module([Function("main", [x], [result], b.ops)]))))


def _kernel(name: str, shape: tuple[int, ...], element: QuantizedType) -> bytes:
    types = (f32, element) if name == "tfl.quantize" else (element, f32)
    return one_op(name, [argument(shape, types[0])], [argument(shape, types[1], "y")], {}, version=2)


def _same(name: str, x: np.ndarray, element: QuantizedType) -> None:
    want = interpret(_kernel(name, x.shape, element), [[x]])[0][0]
    model = _converted(name, x.shape, element)
    for resolver in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"):
        got = interpret(model, [[x]], resolver)[0][0]
        np.testing.assert_array_equal(got, want, err_msg=resolver)


@pytest.mark.parametrize(("storage", "zero_point"), TYPES)
@pytest.mark.parametrize("scale", [1.0, 0.1, 3.7e-3, 2e-37, 7e10])
def test_quantize(storage: ScalarType, zero_point: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    halves = (np.arange(-300, 300) + 0.5) * scale
    x = np.concatenate([np.asarray(EDGES) * scale, rng.normal(size=4000) * scale * 100, halves]).astype(np.float32)
    _same("tfl.quantize", x, UniformQuantizedType.of(storage, scale, zero_point))


@pytest.mark.parametrize(("storage", "zero_point"), TYPES)
@pytest.mark.parametrize("scale", [1.0, 0.1, 3.7e-3, 2e-37, 7e10])
def test_dequantize(storage: ScalarType, zero_point: int, scale: float) -> None:
    q = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)
    _same("tfl.dequantize", q, UniformQuantizedType.of(storage, scale, zero_point))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_axis(axis: int) -> None:
    shape = tuple(3 if i == axis else 11 + i for i in range(3))
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 100).astype(np.float32)
    x.reshape(-1)[: len(EDGES)] = EDGES
    for storage in (i8, ui8):
        element = UniformQuantizedPerAxisType.of(storage, axis, [1.0, 0.37, 2.2], [0, 5, 3])
        _same("tfl.quantize", x, element)
        q = rng.integers(storage.minimum, storage.maximum, shape, endpoint=True).astype(storage.dtype)
        _same("tfl.dequantize", q, element)


@pytest.mark.parametrize("name", ["relu", "max_pool_2d"])
def test_an_operator_between_casts_leaves_no_parameters(name: str) -> None:
    """The whole conversion, which checks that no tensor inside keeps any."""
    element = UniformQuantizedType.of(i8, 0.1, -3)
    x, y = argument((1, 3, 3, 2), f32), argument((1, 3, 3, 2), f32, "y")
    q, r = argument((1, 3, 3, 2), element, "q"), argument((1, 3, 3, 2), element, "r")
    window = {"filter_width": 2, "filter_height": 2, "stride_w": 1, "stride_h": 1}
    pool = {**window, "padding": "SAME", "fused_activation_function": "NONE"}
    ops = [
        Op("tfl.quantize", [x], [q], {}),
        Op("tfl." + name, [q], [r], {} if name == "relu" else pool),
        Op("tfl.dequantize", [r], [y], {}, info={"version": 2}),
    ]
    model = bytes(write(Module([Function("main", [x], [y], ops)])))
    assert convert_and_compare(model, edge_inputs([x])).report.counts["integer"] == 3
