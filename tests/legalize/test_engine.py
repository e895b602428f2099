"""What the engine leaves behind is the integer form."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret

import tflq
from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import lower
from tflq.formats.options import Options
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedType, f32, f64, i8, i32
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.transforms.pass_manager import verify_stage

Q8 = UniformQuantizedType.of(i8, 0.5)
FULLY_CONNECTED = {
    "fused_activation_function": "NONE",
    "weights_format": "DEFAULT",
    "keep_num_dims": False,
    "asymmetric_quantize_inputs": False,
    "quantized_bias_type": "FLOAT32",
}


def legalized(inputs: list[Value], ops: list[Op]) -> Function:
    module, _ = legalize(Module([Function("main", inputs, [op.result for op in ops], ops)]), Policy())
    verify_stage(module, "integer", "legalization")
    return module.main


def test_a_hybrid_operator_keeps_weights_that_an_integer_one_shares() -> None:
    weights = const(np.arange(12).reshape(3, 4), Q8, "w")
    stored, real = argument((1, 4), Q8, "stored"), argument((1, 4), f32, "real")
    ops = [
        Op("tfl.fully_connected", [x, weights, None], [argument((1, 3), x.type.element, name)], FULLY_CONNECTED)
        for x, name in ((stored, "a"), (real, "b"))
    ]
    main = legalized([stored, real], ops)
    hybrid = next(op for op in main.ops if op.name == "tfl.fully_connected")
    assert hybrid.operand(1) is weights


def test_a_result_without_a_rank_stays_without() -> None:
    x, axes = argument((2, 3), Q8), const(np.asarray([0, 1]), i32, "axes")
    result = Value(TensorType(None, UniformQuantizedType.of(i8, 0.25)), "y")
    main = legalized([x], [Op("tfl.mean", [x, axes], [result], {"keep_dims": False})])
    assert main.outputs == [result]
    assert result.type.shape is None


def test_an_operator_computed_in_float_reads_what_lost_its_rank() -> None:
    x, axes = argument((2, 3), Q8), const(np.asarray([0, 1]), i32, "axes")
    inner = Value(TensorType(None, UniformQuantizedType.of(i8, 0.25)), "inner")
    outer = Value(TensorType(None, Q8), "outer")
    mean = Op("tfl.mean", [x, axes], [inner], {"keep_dims": False})
    main = legalized([x], [mean, Op("tfl.cumsum", [inner, axes], [outer], {"exclusive": False, "reverse": False})])
    assert "quant.dcast" in [op.name for op in main.ops]


@pytest.mark.parametrize(("element", "total"), [(i8, [127, -4, 3, -128]), (Q8, [127, -7, 5, -128])])
def test_plain_integers_beside_quantized_ones_stand_for_themselves(element: ElementType, total: list[int]) -> None:
    plain, quantized = argument((4,), i8, "plain"), argument((4,), Q8, "quantized")
    add = Op("tfl.add", [plain, quantized], [argument((4,), element, "sum")], {"fused_activation_function": "NONE"})
    module = Module([Function("main", [plain, quantized], [add.result], [add])])
    inputs = [np.asarray(v, np.int8) for v in ([127, -3, 0, -128], [127, -1, 5, -128])]
    converted, _ = lower(module, Options())
    (found,) = interpret(tflq.write(converted), [inputs])[0]
    assert found.tolist() == total


def test_what_has_no_one_type_in_float_is_refused() -> None:
    plain, quantized = argument((4,), f64, "plain"), argument((4,), Q8, "quantized")
    add = Op("tfl.add", [plain, quantized], [argument((4,), Q8, "sum")], {"fused_activation_function": "NONE"})
    with pytest.raises(UnsupportedError, match="ADD takes tensors of one type, and not all of these are quantized"):
        legalized([plain, quantized], [add])
