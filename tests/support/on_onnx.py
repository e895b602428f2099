"""Functions of the integer form as ONNX files, checked, and run in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from tflq.analysis.evaluate.registry import array_of, evaluate_function
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value

LEVELS: Final = ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL")
"""Optimizations of ONNX Runtime: none, those that every runtime has, all."""


def need_onnx() -> None:
    """Skips a test without the packages of the extra `onnx`."""
    for name in ("onnx.checker", "onnxruntime"):
        pytest.importorskip(name, reason="needs ONNX and its runtime: pip install '.[onnx]'")


def file_of(module: Module, function: int = 0, *, given: bool = False) -> bytes:
    """The file of an entry of a module in the integer form, which the checker accepts with all its checks."""
    import onnx

    from tflq.formats.onnx.engine import lower
    from tflq.formats.onnx.write import onnx_model

    model = onnx_model(lower(module, state_required=given), function)
    onnx.checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString()
    return data


def run_file(data: bytes, inputs: dict[str, np.ndarray], level: str = "ORT_ENABLE_ALL", threads: int = 1) -> list[Any]:
    """The results of a file, in its order."""
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    made: list[Any] = session.run(None, inputs)
    return made


def function_of(
    name: str, operands: Sequence[Value | None], results: Sequence[Value], attributes: dict[str, Any] | None = None
) -> Function:
    """A function of one op; operands without data are its arguments."""
    op = Op(name, list(operands), list(results), attributes or {})
    inputs = list(dict.fromkeys(v for v in operands if v is not None and not v.is_constant))
    for i, value in enumerate((*inputs, *results)):
        value.name = f"v{i}"
    return Function("main", inputs, list(results), [op])


def assert_same(function: Function, batches: Sequence[Sequence[np.ndarray]]) -> None:
    """On every batch and with all optimizations, what the function evaluates to."""
    data = file_of(Module([function]))
    for arrays in batches:
        env = evaluate_function(function, dict(zip(function.inputs, arrays, strict=True)))
        wanted = [array_of(v) if v.is_constant else env[v] for v in function.outputs]
        for level in LEVELS:
            made = run_file(data, {v.name: a for v, a in zip(function.inputs, arrays, strict=True)}, level)
            for want, got in zip(wanted, made, strict=True):
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                np.testing.assert_array_equal(got, want)
