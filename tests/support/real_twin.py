"""What a model computes of real values: the same operators on floats, run by the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import tflq
from tflq.dialects.builder import Emitter
from tflq.dialects.tfl.stablehlo import StablehloConvolution
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Value, constant
from tflq.ir.types import QuantizedType, TensorType, f32, parameters
from tflq.legalize.stablehlo_contractions import Contractions, spread

_CASTS = ("tfl.quantize", "tfl.dequantize", "tfl.densify")


def real_values(value: Value, stored: np.ndarray) -> np.ndarray:
    """The floats that a tensor's stored integers stand for."""
    if not value.type.quantized:
        return stored
    scale, zero = parameters(value.type)
    return ((stored.astype(np.int64) - zero) * scale.astype(np.float64)).astype(np.float32)


def quantized(value: Value, real: np.ndarray) -> np.ndarray:
    """Stored integers of real values, rounded half away from zero, saturated; what is not a number is zero."""
    element: QuantizedType = value.type.element  # type: ignore[assignment]
    scale, zero = parameters(value.type)
    with np.errstate(all="ignore"):
        steps = np.nan_to_num(real.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30) / scale
    rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps) + zero
    return np.clip(rounded, element.storage_min, element.storage_max).astype(np.int64)


def float_twin(model: bytes) -> bytes:
    """The model on float tensors; casts between quantized and float tensors are left out."""
    module = tflq.read(model)
    for function in module.functions:
        _casts(function)
        for value in dict.fromkeys(_values(function)):
            if value.type.quantized:
                if value.is_constant:
                    value.buffer = Buffer.of(real_values(value, value.array))
                    value._array = None
                value.type = TensorType(value.type.shape, f32)
                value.info = {k: v for k, v in value.info.items() if k == "is_variable"}
        _convolutions(function)
    return bytes(write(Module(module.functions)))


def _casts(function: Function) -> None:
    """Drops what does nothing to real values, and gives CONV_2D the bias that its kernel wants."""
    for op in [op for op in function.ops if op.name in _CASTS]:
        function.ops.remove(op)
        function.replace({op.result: op.operand(0)})
    for op in function.ops:
        if op.name == "tfl.conv_2d" and op.optional(2) is None:
            op.operands[2:] = [constant(np.zeros((op.result.type.shape or (0,))[-1] or 0, np.float32), name="bias")]


def _convolutions(function: Function) -> None:
    """Has builtins in the place of STABLEHLO_CONVOLUTION, which has no kernel."""
    for op in [op for op in function.ops if isinstance(op, StablehloConvolution)]:
        emitted, at = Emitter(), function.ops.index(op)
        made = spread(op, Contractions(emitted), op.lhs, op.rhs, op.output.type)
        function.ops[at : at + 1] = emitted.ops
        function.replace({op.output: made})


def _values(function: Function) -> Iterator[Value]:
    yield from function.values()
    yield from function.inputs


def largest_difference(values: Sequence[Value], real: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> float:
    """How far results are from the real ones: in counts where they are quantized, else 0 or infinite."""
    worst = 0.0
    for value, r, g in zip(values, real, got, strict=True):
        if value.type.quantized:
            worst = max(worst, float(np.abs(quantized(value, r) - g.astype(np.int64)).max(initial=0)))
        elif value.type.storage.is_float:
            worst = max(worst, 0.0 if np.allclose(r, g, rtol=1e-4, atol=1e-5, equal_nan=True) else np.inf)
        else:
            worst = max(worst, 0.0 if np.array_equal(r, g) else np.inf)
    return worst
