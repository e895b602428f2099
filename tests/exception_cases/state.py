"""Recurrent operators, variables, and calls of functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from support.harness import argument, const
from support.recurrent import lstm_model, svdf_model

from exception_cases.case import Case, cases, per_layer
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, i1, i8, i16, resource

__all__: list[str] = []

_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"


def _steps(*shape: int) -> list[list[np.ndarray]]:
    return [[np.random.default_rng(n).integers(-128, 128, shape).astype(np.int8)] for n in range(3)]


@cases
def recurrent() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    yield Case(_LSTM, lstm_model(rng, cell_exponent=-8), "cell state of scale 2^-8", _steps(2, 3, 5))
    module = read(lstm_model(rng))
    weights = module.main.ops[0].operand(2)
    weights.type = weights.type.with_element(UniformQuantizedPerAxisType.of(i8, 0, np.linspace(0.01, 0.02, 6), 0))
    yield Case(_LSTM, bytes(write(module)), "weights per axis", _steps(2, 3, 5))
    module = read(lstm_model(rng))
    cell = module.main.ops[0].operand(19)
    cell.type = cell.type.with_element(per_layer(i16, 0.0006))
    yield Case(_LSTM, bytes(write(module)), "cell state of scale 0.0006", _steps(2, 3, 5), chance=True)
    module = read(svdf_model(rng))
    time = module.main.ops[0].operand(2)
    time.type = time.type.with_element(per_layer(i16, 0.001, 40))
    lowered = {"state": "variables"}
    yield Case("SVDF", bytes(write(module)), "time weights of zero point 40", _steps(2, 5), lowered)
    module = read(svdf_model(rng))
    result = module.main.ops[0].result
    result.type = result.type.with_element(per_layer(i8, 1e-15, 3))
    yield Case("SVDF", bytes(write(module)), "", _steps(2, 5), lowered)
    yield Case(_LSTM, lstm_model(rng), "state in variables", _steps(2, 3, 5), lowered, resets=[2])
    yield Case("SVDF", svdf_model(rng), "state in variables", _steps(2, 5), lowered, resets=[2])


@cases
def variables_and_calls() -> Iterator[Case]:
    x, held = argument((2, 3), per_layer(i8, 0.05, 3), "x"), argument((2, 3), per_layer(i8, 0.1, 3), "held")
    handle = _op("var_handle", [], [Value(TensorType((), resource), "v")], container="", shared_name="v")
    ops = [handle, _op("assign_variable", [handle.result, x], []), _op("read_variable", [handle.result], [held])]
    model = bytes(write(Module([Function("main", [x], [held], ops)])))
    yield Case("READ_VARIABLE", model, "written with scale 0.05", _steps(2, 3))
    fine, coarse = per_layer(i8, 0.05, 3), per_layer(i8, 0.1, -7)
    flag, x, y = argument((), i1, "flag"), argument((1, 3), fine, "x"), argument((1, 3), fine, "y")
    branch = _op("if", [flag, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    inner = [_same(fine, fine, "a"), _same(coarse, fine, "b")]
    model = bytes(write(Module([Function("main", [flag, x], [y], [branch]), *inner])))
    given = [[np.asarray(f), a[0]] for f in (True, False) for a in _steps(1, 3)]
    yield Case("IF", model, "a branch takes scale 0.1", given)


def _same(source: Any, target: Any, name: str) -> Function:
    x, y = argument((1, 3), source, f"{name}x"), argument((1, 3), target, f"{name}y")
    zero = const(np.asarray([[target.zero_point] * 3]), target, f"{name}0")
    fused = {"fused_activation_function": "NONE", "pot_scale_int16": False}
    return Function(name, [x], [y], [_op("add", [x, zero], [y], **fused)])


def _op(name: str, operands: list[Value | None], results: list[Value], **attributes: Any) -> Op:
    return Op(f"tfl.{name}", operands, results, attributes, info={"version": 1})
