"""Models of sums, which tables of two operands compute where that is fastest."""

from __future__ import annotations

from collections.abc import Sequence

import tflq
from support.harness import argument
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedType, i8

ADD = {"fused_activation_function": "NONE", "pot_scale_int16": False}
Q8 = UniformQuantizedType.of(i8, 0.05, 3)


def sums(*scales: float, sizes: Sequence[int] = (), functions: int = 1, filler: int = 0) -> bytes:
    """Functions that add x to each of some tensors, with a scale of the result each, and a size."""
    made, signatures = [], []
    for number in range(functions):
        lengths = sizes or (64,) * len(scales)
        x = argument((1, 1), Q8, "x")
        others = [argument((1, n), Q8, f"y{i}") for i, n in enumerate(lengths)]
        results = [
            argument((1, n), UniformQuantizedType.of(i8, s, 1), f"z{i}")
            for i, (n, s) in enumerate(zip(lengths, scales, strict=True))
        ]
        ops = [Op("tfl.add", [x, y], [z], dict(ADD), info={"version": 2}) for y, z in zip(others, results, strict=True)]
        made.append(Function(f"f{number}", [x, *others], results, ops))
        inputs: list[tuple[str | None, Value]] = [(v.name, v) for v in (x, *others)]
        outputs: list[tuple[str | None, Value]] = [(v.name, v) for v in results]
        signatures.append(Signature(f"f{number}", number, inputs, outputs))
    return bytes(write(Module(made, signatures, description="-" * filler)))


def tables(model: bytes) -> int:
    """So many constants of 64 KiB are in a file."""
    buffers = {id(v.buffer): v.buffer for f in tflq.read(model).functions for v in f.values() if v.buffer is not None}
    return sum(buffer.data.size == 1 << 16 for buffer in buffers.values())
