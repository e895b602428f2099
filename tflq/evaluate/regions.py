"""Evaluators of fake quantization."""

from __future__ import annotations

import numpy as np

from tflq.dialects.quant.regions import ConstFakeQuant, ConstFakeQuantPerAxis
from tflq.dialects.tf import FakeQuantWithMinMaxArgs, FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel
from tflq.evaluate.registry import evaluator
from tflq.ir.types import f32
from tflq.numerics.fake_quant import simulated


@evaluator(ConstFakeQuant, ConstFakeQuantPerAxis)
def _const_fake_quant(op: ConstFakeQuant | ConstFakeQuantPerAxis, x: np.ndarray) -> np.ndarray:
    """As TensorFlow's ops, which take float32. With `is_signed` the steps are the same."""
    if op.inputs.type.element != f32:
        raise NotImplementedError(f"{op.name} of {op.inputs.type} has no evaluator")
    low, high = np.asarray(op.min, np.float32), np.asarray(op.max, np.float32)
    if isinstance(op, ConstFakeQuantPerAxis):
        shape = [-1 if axis == op.axis else 1 for axis in range(x.ndim)]
        low, high = low.reshape(shape), high.reshape(shape)
    return simulated(x, low, high, op.num_bits, narrow_range=op.narrow_range)


@evaluator(FakeQuantWithMinMaxArgs)
def _args(op: FakeQuantWithMinMaxArgs, x: np.ndarray) -> np.ndarray:
    return simulated(x, op.min, op.max, op.num_bits, narrow_range=op.narrow_range)


@evaluator(FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel)
def _vars(op: FakeQuantWithMinMaxVars, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A range for each index of the last dim broadcasts."""
    return simulated(x, low, high, op.num_bits, narrow_range=op.narrow_range)
