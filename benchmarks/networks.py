"""Networks of any number of int8 operators, for measuring how cost grows: python benchmarks/networks.py KIND COUNT OUT

    plain    two thirds 1x1 CONV_2D with a scale per channel, one third ADD over two layers
    mixed    fourteen kinds in turns: convolutions, arithmetic, pooling, activations, QUANTIZE

All tensors are 1x8x8x32. Scales, zero points and weights are drawn from the seed, and no two operators share theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32

__all__ = ["KINDS", "network"]

SIZE, CHANNELS = 8, 32
SHAPE: Final = (1, SIZE, SIZE, CHANNELS)
NONE: Final = {"fused_activation_function": "NONE"}
PLAIN: Final = ("conv_2d", "conv_2d", "add")
MIXED: Final = (
    *("conv_2d", "add", "depthwise_conv_2d", "mul", "max_pool_2d", "hard_swish", "conv_2d", "sub"),
    *("average_pool_2d", "logistic", "quantize", "tanh", "leaky_relu", "relu"),
)


class Network:
    """Appends operators, each of which reads the result of the last one."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.ops: list[Op] = []
        self.inputs = [self._tensor("input")]
        self.values = list(self.inputs)

    def append(self, kind: str) -> None:
        operands: list[Value | None] = [self.values[-1]]
        result, attributes = self._tensor(f"{kind}_{len(self.ops)}"), _ATTRIBUTES.get(kind, {})
        if kind in ("add", "mul", "sub"):
            operands.append(self.values[max(0, len(self.values) - 3)])
        elif kind in ("conv_2d", "depthwise_conv_2d"):
            operands += self._weights(kind, result)
        elif kind in _FIXED:
            result.type = TensorType(SHAPE, _FIXED[kind](operands[0]))  # type: ignore[arg-type]
        version = {"version": _VERSIONS.get(kind, 2)}
        self.ops.append(Op(f"tfl.{kind}", operands, [result], dict(attributes), info=version))
        self.values.append(result)

    def _weights(self, kind: str, result: Value) -> list[Value]:
        depthwise = kind == "depthwise_conv_2d"
        shape = (1, 3, 3, CHANNELS) if depthwise else (CHANNELS, 1, 1, CHANNELS)
        scales = self.rng.uniform(0.002, 0.01, CHANNELS).astype(np.float32)
        zeros = np.zeros(CHANNELS, np.int64)
        weights = UniformQuantizedPerAxisType.of(i8, 3 if depthwise else 0, scales, zeros)
        source = self.values[-1].type.element
        assert isinstance(source, UniformQuantizedType)
        biases = UniformQuantizedPerAxisType.of(i32, 0, np.float32(source.scale) * scales, zeros)
        filled = self.rng.integers(-127, 128, shape, np.int8)
        return [
            _stored(filled, weights, f"{result.name}/weights"),
            _stored(self.rng.integers(-500, 500, CHANNELS, np.int32), biases, f"{result.name}/bias"),
        ]

    def _tensor(self, name: str) -> Value:
        scale, zero = float(np.float32(self.rng.uniform(0.02, 0.08))), int(self.rng.integers(-20, 20))
        return Value(TensorType(SHAPE, UniformQuantizedType.of(i8, scale, zero)), name)

    def module(self) -> Module:
        return Module([Function("main", self.inputs, [self.values[-1]], self.ops)])


def _stored(array: np.ndarray, element: ElementType, name: str) -> Value:
    return Value(TensorType(array.shape, element), name, buffer=Buffer.of(array))


_WINDOW: Final[Mapping[str, Any]] = {"padding": "SAME", "stride_w": 1, "stride_h": 1, **NONE}
_POOL: Final = {**_WINDOW, "filter_width": 3, "filter_height": 3}
_SUM: Final = {**NONE, "pot_scale_int16": False}
_ATTRIBUTES: Final[Mapping[str, Mapping[str, Any]]] = {
    "conv_2d": _WINDOW,
    "depthwise_conv_2d": {**_WINDOW, "depth_multiplier": 1},
    **dict.fromkeys(("add", "sub"), _SUM),
    "mul": NONE,
    **dict.fromkeys(("max_pool_2d", "average_pool_2d"), _POOL),
    "leaky_relu": {"alpha": 0.125},
}
_VERSIONS: Final = {"conv_2d": 3, "depthwise_conv_2d": 3, "hard_swish": 1}
"""The first that takes int8, where that is not 2."""
_FIXED: Final[Mapping[str, Callable[[Value], ElementType]]] = {
    "logistic": lambda _: UniformQuantizedType.of(i8, 1 / 256, -128),
    "tanh": lambda _: UniformQuantizedType.of(i8, 1 / 128, 0),
    **dict.fromkeys(("max_pool_2d", "average_pool_2d"), lambda x: x.type.element),
}
"""Kinds whose kernels ask for certain parameters of the result, given the operand."""

KINDS: Final[Mapping[str, tuple[str, ...]]] = {"plain": PLAIN, "mixed": MIXED}


def network(kind: str, count: int, seed: int = 0) -> bytes:
    """The file of a network of so many operators."""
    made = Network(seed)
    for number in range(count):
        made.append(KINDS[kind][number % len(KINDS[kind])])
    return bytes(tflq.write(made.module()))


if __name__ == "__main__":
    Path(sys.argv[3]).write_bytes(network(sys.argv[1], int(sys.argv[2])))
