"""Tensors without dims keep that: as constants, arguments, results, states, and in the QDQ form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, edge_inputs, one_op
from support.on_onnx import assert_same, file_of, function_of, need_onnx, run_file

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, ScalarType, UniformQuantizedType, f32, i1, i8, i16, i32, i64, resource, ui8

NONE: Final = {"fused_activation_function": "NONE"}
WIDE: Final = {"multiplier": np.asarray([1 << 30], np.int32), "shift": np.asarray([31], np.int8)}
PLAIN: Final = {"input_zp": 0, "output_zp": 0, "rounding_mode": "SINGLE_ROUND", "scale32": True, "per_channel": False}
MASKS: Final = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"), 0) | {
    "shrink_axis_mask": 1,
    "offset": False,
}

Row = tuple[str, Sequence[Value], Sequence[tuple[ElementType, tuple[int, ...]]], dict[str, Any]]


def c(element: ScalarType, number: Any) -> Value:
    return const(np.asarray(number), element)


def x(element: ElementType, *shape: int) -> Value:
    return argument(shape, element)


CASES: Final[list[Row]] = [
    *((f"tosa.{n}", [x(e), c(e, 3)], [(e, ())], {}) for n in ("add", "maximum") for e in (i32, i64)),
    *((f"tfl.{n}", [x(e), c(e, 3)], [(e, ())], NONE) for n in ("add", "mul") for e in (i32, i64)),
    ("tosa.mul", [x(i32), c(i32, 3)], [(i32, ())], {"shift": 5}),
    ("tosa.mul", [c(i16, 300), x(i16)], [(i32, ())], {"shift": 0}),
    ("tosa.rescale", [x(i32)], [(i8, ())], WIDE | PLAIN),
    ("tosa.rescale", [x(i32)], [(i32, ())], WIDE | PLAIN),
    ("ext.rescale_f64", [x(i32)], [(i8, ())], {"scale": np.asarray([1e-6]), "output_zp": 3}),
    ("ext.rescale_i64", [x(i64)], [(i32, ())], WIDE),
    ("ext.rounding_divide_by_pot", [x(i64)], [(i32, ())], {"exponent": 33}),
    ("tosa.table", [x(i8), c(i8, np.arange(256) % 100)], [(i8, ())], {}),
    ("tosa.clz", [x(i32)], [(i32, ())], {}),
    ("tosa.clamp", [x(i8)], [(i8, ())], {"min_val": -3, "max_val": 100}),
    *(("tosa.identity", [c(e, 5)], [(e, ())], {}) for e in (i8, ui8, i16, i32, i64, f32, i1)),
    ("tosa.select", [x(i1), c(i32, 7), x(i32)], [(i32, ())], {}),
    ("tosa.select", [x(i1), c(i8, 7), c(i8, -9)], [(i8, ())], {}),
    ("tosa.equal", [x(i8), c(i8, 1)], [(i1, ())], {}),
    ("tosa.reshape", [x(i8, 1, 1)], [(i8, ())], {}),
    ("tfl.pack", [x(i32), c(i32, 4), c(i32, -1)], [(i32, (3,))], {"axis": 0, "values_count": 3}),
    ("tfl.pack", [c(i8, 4), x(i8)], [(i8, (2,))], {"axis": -1, "values_count": 2}),
    ("tfl.unpack", [x(i16, 2)], [(i16, ()), (i16, ())], {"axis": 0, "num": 2}),
    ("tfl.gather", [x(i8, 3, 4), c(i32, 2)], [(i8, (4,))], {"axis": 0, "batch_dims": 0}),
    ("tfl.gather", [x(i8, 5), c(i32, 2)], [(i8, ())], {"axis": 0, "batch_dims": 0}),
    ("tfl.gather_nd", [x(i8, 3, 4), c(i32, [2, 1])], [(i8, ())], {}),
    ("tfl.strided_slice", [x(i32, 4), c(i32, [1]), c(i32, [2]), c(i32, [1])], [(i32, ())], MASKS),
    *(
        (f"tfl.{n}", [x(i32, 3, 4), c(i32, [0, 1])], [(i32, ())], {"keep_dims": False})
        for n in ("sum", "reduce_max", "reduce_prod")
    ),
    ("tfl.reduce_any", [x(i1, 3), c(i32, 0)], [(i1, ())], {"keep_dims": False}),
    ("tfl.squeeze", [x(i8, 1, 1)], [(i8, ())], {"squeeze_dims": (0, 1)}),
    ("tfl.expand_dims", [x(i8), c(i32, 0)], [(i8, (1,))], {}),
    ("tfl.broadcast_to", [x(i8), c(i32, [2, 3])], [(i8, (2, 3))], {}),
    ("tfl.cast", [x(i32)], [(i64, ())], {}),
    ("tfl.cast", [x(f32)], [(i32, ())], {}),
    ("tosa.argmax", [x(i8, 7)], [(i32, ())], {"axis": 0}),
    ("tfl.concatenation", [x(i8, 0), x(i8, 1)], [(i8, (1,))], {"axis": 0} | NONE),
    ("tosa.arithmetic_right_shift", [x(i32), c(i32, 3)], [(i32, ())], {"round": True}),
    ("tosa.pad", [x(i8, 3)], [(i8, (5,))], {"padding": (1, 1), "pad_const": 1}),
    ("ext.table_2d", [x(i8), x(i8), c(i8, np.arange(1 << 16) % 251 - 125)], [(i8, ())], {}),
    ("ext.truncate", [x(f32)], [(i8, ())], {}),
    ("quant.dcast", [x(UniformQuantizedType.of(i8, 0.1, 3))], [(f32, ())], {}),
    ("quant.qcast", [x(f32)], [(UniformQuantizedType.of(i8, 0.1, 3), ())], {"rounding": "half_away"}),
]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n][0]}-{n}")
def test_as_evaluated(number: int) -> None:
    need_onnx()
    name, operands, results, attributes = CASES[number]
    function = function_of(name, operands, [argument(shape, e, "y") for e, shape in results], attributes)
    assert_same(function, edge_inputs(function.inputs))


Q: Final = UniformQuantizedType.of(i8, 0.1, 3)


@pytest.mark.parametrize("form", ["onnx", "qdq"])
@pytest.mark.parametrize("name", ["mul", "mean"])
def test_quantized_scalars(name: str, form: str) -> None:
    """A constant beside an input without dims, and a mean of all elements."""
    need_onnx()
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    others: dict[str, tuple[dict[str, Any], list[Value]]] = {
        "mul": (NONE, [x(Q), const(np.asarray(40), Q)]),
        "mean": ({"keep_dims": False}, [x(Q, 6), c(i32, [0])]),
    }
    attributes, operands = others[name]
    model = one_op(f"tfl.{name}", operands, [argument((), Q, "y")], attributes, version=2)
    result = tflq.verify(model, tflq.convert(model, format=form).data, max_lsb=int(form == "qdq"))
    assert result.passed, result.verdict


def counter() -> Module:
    """A variable that grows by the input in each run, by TFLite's operators; the result is what it was."""
    handle, was, more = (argument((), e, n) for e, n in ((resource, "handle"), (i32, "was"), (i32, "more")))
    by = argument((), i32, "by")
    ops = [
        Op("tfl.var_handle", [], [handle], {"container": "", "shared_name": "count"}),
        Op("tfl.read_variable", [handle], [was]),
        Op("tfl.add", [was, by], [more], dict(NONE)),
        Op("tfl.assign_variable", [handle, more], []),
    ]
    return Module([Function("main", [by], [was], ops)])


@pytest.mark.parametrize("given", [False, True])
def test_a_counter_in_a_variable(given: bool) -> None:
    need_onnx()
    data, by = file_of(counter(), given=given), np.asarray(3, np.int32)
    state = np.asarray(0, np.int32)
    for step in range(3):
        was, state = run_file(data, {"by": by, "count": state})
        assert (was.shape, state.shape) == ((), ())
        assert int(was) == 3 * step


def test_a_first_value_without_dims() -> None:
    """Of an initializer, and in the metadata."""
    need_onnx()
    import onnx

    was = argument((), i32, "was")
    ops = [
        Op("tosa.variable", [c(i32, 7)], [], {"name": "count"}),
        Op("tosa.variable_read", [], [was], {"name": "count"}),
        Op("tosa.variable_write", [c(i32, 9)], [], {"name": "count"}),
    ]
    module = Module([Function("main", [], [was], ops)])
    model = onnx.load_from_string(file_of(module))
    assert [list(tensor.dims) for tensor in model.graph.initializer if tensor.name == "count"] == [[]]
    stated = {prop.key: prop.value for prop in onnx.load_from_string(file_of(module, given=True)).metadata_props}
    assert stated["tflq.start"] == '{"count":7}'
