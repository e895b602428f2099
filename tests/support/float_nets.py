"""Small networks of floats, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

import tflq
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32

SIZE: Final = 8


def dense(weights: np.ndarray, x: Value, y: Value, name: str) -> Op:
    """y = weights · x, with a bias of zeros."""
    bias = constant(np.zeros(len(weights), np.float32), name="bias")
    operands: list[Value | None] = [x, constant(weights, name=f"{name}/weights"), bias]
    attributes = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    return Op("tfl.fully_connected", operands, [y], attributes)


def net(seed: int = 0, *, last: str = "tfl.tanh", signature: bool = True) -> Module:
    """Two products with a RELU between, and an activation at the end: x, first, positive, second, y."""
    rng = np.random.default_rng(seed)
    first, second = (rng.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2))
    x, a, b, c, y = (Value(TensorType((1, SIZE), f32), name) for name in ("x", "first", "positive", "second", "y"))
    ops = [
        dense(first, x, a, "first"),
        Op("tfl.relu", [a], [b], {}),
        dense(second, b, c, "second"),
        Op(last, [c], [y], {}),
    ]
    signatures = [Signature("serve", 0, [("given", x)], [("made", y)])] if signature else None
    return Module([Function("main", [x], [y], ops)], signatures)


def signatures(size: int = SIZE) -> Module:
    """Two products of the same weights, each with a signature: "xy" and "ab", whose input is `given`."""
    weights = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    functions, entries, first = [], [], None
    for place, names in enumerate(("xy", "ab")):
        x, y = (Value(TensorType((1, size), f32), name) for name in names)
        product = dense(weights, x, y, f"{names}/product")
        first = first or product
        for one, other in zip(product.operands[1:], first.operands[1:], strict=True):
            assert one is not None
            assert other is not None
            one.buffer = other.buffer
        functions.append(Function(names, [x], [y], [product]))
        entries.append(Signature(names, place, [("given", x)], [("made", y)]))
    return Module(functions, entries)


def written(folder: Path, module: Module, name: str = "model.tflite") -> Path:
    path = folder / name
    tflq.write(module, path)
    return path


def samples(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, SIZE)).astype(np.float32)
