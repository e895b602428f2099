"""The float network of a quantized one: python benchmarks/float_network.py MODEL.tflite OUT.tflite

The same graph as it was before quantization: every quantized tensor is float32, weights and biases are dequantized,
QUANTIZE and DEQUANTIZE are casts from float32 to float32. Its time is what the machine takes for the network in
float32.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tflq
from tflq.dialects.tfl.casts import Cast, Dequantize, Quantize
from tflq.dialects.tfl.state import state_version
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32

__all__ = ["float_network"]

_Quantized = UniformQuantizedType | UniformQuantizedPerAxisType


def float_network(path: Path) -> bytes:
    """The file with float32 in the place of every quantized tensor."""
    module = tflq.read(path)
    for function in module.functions:
        _make_float(function)
    return bytes(tflq.write(Module([*module.functions], signatures=module.signatures)))


def _make_float(function: Function) -> None:
    for value in function.values():
        if isinstance(value.type.element, _Quantized):
            if value.is_constant:
                value.buffer, value._array = Buffer.of(_real(value)), None
            value.type = TensorType(value.type.shape, f32)
    function.tensors = []
    function.ops = [_of_floats(op) for op in function.ops]


def _of_floats(op: Op) -> Op:
    """The op in the version that its types need."""
    cast = isinstance(op, (Quantize, Dequantize)) and op.input.type.element == op.output.type.element
    made = Op(Cast.op_name if cast else op.name, op.operands, op.results, {} if cast else op.attributes)
    state_version(made)
    return made


def _real(value: Value) -> np.ndarray:
    """What a quantized constant stands for."""
    element, array = value.type.element, value.array.astype(np.float32)
    if isinstance(element, UniformQuantizedType):
        return (array - np.float32(element.zero_point)) * np.float32(element.scale)
    assert isinstance(element, UniformQuantizedPerAxisType)
    shape = [-1 if axis == element.axis else 1 for axis in range(array.ndim)]
    scales, zeros = (np.asarray(v, np.float32).reshape(shape) for v in (element.scales, element.zero_points))
    return np.asarray((array - zeros) * scales, np.float32)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(float_network(Path(sys.argv[1])))
