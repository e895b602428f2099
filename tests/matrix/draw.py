"""Random models of one or a few operators: what a case is, and the draws its generators share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from support.harness import argument, const, edge_inputs, one_op

from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i32, ui8

T = TypeVar("T")


@dataclass
class Case:
    """A model, what to run it on, and what the conversion must keep to.

    `integer`: no operator may take the float path. `reference`: the kernels that run the original; `tolerance`: how far
    these may be off, if they are not the reference kernels. `everywhere`: all kernels agree on it. `twin`: the same
    operator on float tensors, for what has no quantized kernel; `exact` computes the real results from the inputs,
    already rounded, for what must equal them. `conversion` are options for `tflq.convert`; `more` are runs after a
    resize, each with its own batches. `stateful`: what a run gives depends on those before it.
    """

    model: bytes
    batches: list[list[np.ndarray]]
    text: str
    integer: bool = True
    reference: str = "BUILTIN_REF"
    tolerance: int = 0
    everywhere: bool = True
    twin: bytes | None = None
    exact: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None
    conversion: dict[str, Any] = field(default_factory=dict)
    more: list[list[list[np.ndarray]]] = field(default_factory=list)
    stateful: bool = False


GENERATORS: dict[str, Callable[[Draw], Case]] = {}
"""By name: what draws one case."""


def generator(name: str) -> Callable[[Callable[[Draw], Case]], Callable[[Draw], Case]]:
    """Registers a generator."""

    def register(function: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        GENERATORS[name] = function
        return function

    return register


class Draw:
    """A source of random parameters: mostly ordinary ones, sometimes at an edge."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.rng = np.random.default_rng(list(seed))
        self.on_tie = False
        """Whether a scale is such that numbers lie on ties. A case has more random inputs then, since few meet one."""

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def one(self, *options: T) -> T:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def dims(self, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
        return tuple(self.whole(low, high) for _ in range(rank))

    def scale(self, low: float = -10, high: float = 2) -> float:
        """A power of two to some real exponent, sometimes a whole one, seldom far away."""
        exponent = self.rng.uniform(low, high)
        if self.chance(0.15):
            exponent = round(exponent)
        elif self.chance(0.08):
            exponent = self.rng.uniform(-26, 12)
        return float(np.float32(2.0**exponent))

    def zero_point(self, storage: ScalarType) -> int:
        if storage.bits > 8:
            return 0
        return self.one(
            storage.minimum, storage.maximum, 0, (storage.minimum + storage.maximum + 1) // 2,
            self.whole(storage.minimum, storage.maximum), self.whole(storage.minimum, storage.maximum),
        )  # fmt: skip

    def quantized(self, storage: ScalarType, scale: float | None = None) -> UniformQuantizedType:
        return UniformQuantizedType.of(storage, self.scale() if scale is None else scale, self.zero_point(storage))

    def storage(self, *options: ScalarType) -> ScalarType:
        return self.one(*(options or (i8, ui8, i16)))

    def integers(
        self, storage: ScalarType, shape: Sequence[int], low: int | None = None, high: int | None = None
    ) -> np.ndarray:
        low, high = storage.minimum if low is None else low, storage.maximum if high is None else high
        kind = self.whole(0, 9)
        if kind == 0:
            return np.full(shape, self.one(low, high), storage.dtype)
        if kind == 1:
            return self.rng.choice(np.asarray([low, high], storage.dtype), tuple(shape))
        return self.rng.integers(low, high, tuple(shape), storage.dtype, endpoint=True)

    def activation(self) -> str:
        if self.chance(0.03):
            return self.one("TANH", "SIGN_BIT")  # which the quantized kernels disregard
        return self.one("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")

    def near(self, scale: float, unit: float | None = None) -> float:
        """A scale mostly within a factor of 16 of another one, so that results fill their range. unit: what a kernel
        divides by the scale, such as a product of two scales, if it is another number.

        In half of the draws the scale is the unit (as float32) times a power of two, or a third of that. Numbers lie
        on ties there: products in float32 and in double differ, and so do one rounding and two.
        """
        exponent = self.rng.uniform(-12, 12) if self.chance(0.15) else self.rng.uniform(-3, 3)
        part = exponent % 1  # of a draw that is there, so that the others stay the same
        if part < 1 / 2:
            self.on_tie = True
            third = 3 if unit is None and part > 1 / 4 else 1  # a float32 and its double have the same half
            unit = float(np.float32(scale if unit is None else unit)) / third
            scale, exponent = unit, round(exponent + math.log2(scale / unit))
        return float(np.clip(np.float32(scale * 2.0**exponent), 1e-30, 1e30))

    def mac(self) -> dict[str, Any]:
        return {"mac": self.one("integer", "integer", "float32")}


def ints(*values: int) -> Value:
    """A constant vector of int32."""
    return const(np.asarray(values, np.int32), i32, "")


def describe(value: Value | None) -> str:
    """A value's type, as failures are listed with it."""
    if value is None:
        return "-"
    element, shape = value.type.element, "x".join("?" if d is None else str(d) for d in value.type.shape or ())
    text = str(value.type.storage)
    if isinstance(element, UniformQuantizedType):
        text += f":{element.scale:.4g}:{element.zero_point}"
    elif isinstance(element, UniformQuantizedPerAxisType):
        text += f":{element.scales.min():.4g}..{element.scales.max():.4g}"
    return f"{'const ' if value.is_constant else ''}[{shape}]{text}"


def known(draw: Draw, value: Value) -> Value:
    """A constant in the place of an input: what the conversion may compute itself."""
    storage, shape = value.type.storage, [d or 0 for d in value.type.shape or ()]
    array = draw.rng.normal(0, 4, shape) if storage.is_float else draw.integers(storage, shape)
    return const(array, value.type.element)


def single(
    draw: Draw,
    name: str,
    operands: Sequence[Value | None],
    results: Sequence[Value],
    attributes: dict[str, Any],
    version: int = 1,
    *,
    batched: bool = False,
    spatial: bool = False,
    **more: Any,
) -> Case:
    """The case of one operator. `batched`: the first dim of inputs and results may be left open; `spatial`: height and
    width, too.
    """
    if draw.chance(0.08):
        operands = [v if v is None or v.buffer else known(draw, v) for v in operands]
    inputs = [v for v in operands if v is not None and v.buffer is None]
    open_ended = batched and inputs and draw.chance(0.25) and all(v.type.rank for v in (*inputs, *results))
    whole: dict[Value, tuple[int | None, ...]] = {}
    sizes: tuple[int, ...] = (3, draw.whole(4, 20), draw.whole(4, 20)) if spatial and draw.chance(0.4) else (3,)
    sizes = sizes[: min((v.type.rank or 0) - 1 for v in (*inputs, *results))] if open_ended else ()
    if open_ended:
        for opened in (*inputs, *results):
            whole[opened] = opened.type.shape or ()
            opened.type = TensorType(
                (*(None,) * len(sizes), *(opened.type.shape or ())[len(sizes) :]), opened.type.element
            )
    for i, value in enumerate(operands):
        if value is not None:
            value.name = f"in{i}"
    for i, result in enumerate(results):
        result.name = f"out{i}"
    model = one_op("tfl." + name, operands, results, attributes, version)
    text = f"{name}({', '.join(map(describe, operands))}) -> {', '.join(map(describe, results))} {attributes}"
    case = Case(model, edge_inputs(inputs, draw.whole(0, 1 << 30), 24 if draw.on_tie else 2), text, **more)
    if open_ended:
        stated = [argument(whole[v], v.type.element) for v in inputs]
        larger = [argument((*sizes, *whole[v][len(sizes) :]), v.type.element) for v in inputs]
        case.batches = edge_inputs(stated, draw.whole(0, 1 << 30))
        case.more = [edge_inputs(larger, draw.whole(0, 1 << 30))]
    return case


def model_of(inputs: Sequence[Value], outputs: Sequence[Value], ops: Sequence[Op]) -> bytes:
    """The file of one function."""
    return bytes(write(Module([Function("main", list(inputs), list(outputs), list(ops))])))


def out_size(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    """The dim that a window gives."""
    reach = (kernel - 1) * dilation + 1
    return math.ceil(size / stride) if padding == "SAME" else math.ceil((size - reach + 1) / stride)
