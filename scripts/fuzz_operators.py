"""Single operators as text, for `scripts/fuzz.py --forms`: any of TFLite's, on operands of drawn types and shapes.

Changes of valid models rarely reach what an operator does with operands that it does not expect. Here types are mostly
alike, and shapes mostly those that its family takes; operands that are indices hold small numbers.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(ROOT),) if path not in sys.path]

from tflq.dialects.declare import Attribute, Operator, Slot  # noqa: E402
from tflq.formats.flatbuffer.layout import TFLITE  # noqa: E402
from tflq.ir.index import DIALECTS  # noqa: E402
from tflq.ir.ops import op_class  # noqa: E402

QUANTIZED: Final = tuple(
    f"!quant.uniform<{parts}>"
    for parts in """
    i8:f32, 0.5; i8:f32, 0.25:3; u8:f32, 0.5:128; i16:f32, 0.5; i16:f32, 0.5:7; i32:f32, 0.125; i64:f32, 0.5;
    i4:f32, 0.5; u4:f32, 0.5; i2:f32, 0.5; u16:f32, 0.5; i8:f32, 1.0e-30; i8<-127:127>:f32, 0.5
    """.strip().split(";")
    for parts in [parts.strip()]
)
PLAIN: Final = """
    i1 i4 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32 f64 complex<f32> !tfl.string !tfl.resource
""".split()
SHAPES: Final = """
    . 1 3 4 5 0 ? 2x3 3x3 1x1 2x0 ?x3 2x2x3 1x4x4x3 1x4x4x2 1x1x1x1 1x3x3x3 1x4x4x4x2 2x3x4x5x6x7
""".split()
OF_INDICES: Final = ". 1 2 3 4 0 1x1 4x2 2x2 2x1".split()
FAMILIES: Final[Mapping[str, Mapping[str, str]]] = {
    "conv_2d": {"input": "1x4x4x3 ?x4x4x3", "filter": "4x3x3x3 4x1x1x3 3x1x1x1", "bias": "4 3 1"},
    "depthwise_conv_2d": {"input": "1x4x4x3 ?x4x4x3", "filter": "1x3x3x3 1x1x1x6", "bias": "3 6"},
    "transpose_conv": {"input": "1x4x4x3 ?x4x4x3", "filter": "4x3x3x3 4x2x2x3", "bias": "4"},
    "conv_3d": {"input": "1x4x4x4x2", "filter": "2x2x2x2x3", "bias": "3"},
    "conv_3d_transpose": {"input": "1x4x4x4x2", "filter": "2x2x2x3x2", "bias": "3"},
    "fully_connected": {"input": "2x3 1x4x4x3 ?x3", "weights": "4x3", "bias": "4"},
    "batch_matmul": {"lhs": "2x3 2x2x3 3x3", "rhs": "3x4 2x3x4 3x3"},
    "svdf": {"input": "2x3", "feature": "4x3", "time": "4x5", "bias": "4 2", "state": "2x20"},
    "rnn": {"input": "2x3", "weights": "4x3", "recurrent": "4x4", "bias": "4", "state": "2x4"},
    "average_pool_2d": {"input": "1x4x4x3 ?x4x4x3"},
    "max_pool_2d": {"input": "1x4x4x3 ?x4x4x3"},
    "l2_pool_2d": {"input": "1x4x4x3 ?x4x4x3"},
    "resize_bilinear": {"input": "1x4x4x3 ?x4x4x3"},
    "resize_nearest_neighbor": {"input": "1x4x4x3 ?x4x4x3"},
    "space_to_depth": {"input": "1x4x4x4"},
    "depth_to_space": {"input": "1x4x4x4"},
    "space_to_batch_nd": {"input": "4x4x4x3 4x4x3"},
    "batch_to_space_nd": {"input": "4x4x4x3 4x4x3"},
}
"""The shapes that an operator takes mostly."""
INDICES: Final = {
    "axis": ". 1",
    "depth": ". 1",
    "k": ". 1",
    "count": ". 1",
    "output_shape": "4 5",
    "size": "2",
    "perm": "1 2 4",
    "segments": "3 2 1",
    "block": "2 1",
    "paddings": "4x2 2x2 1x2",
    "crops": "2x2 1x2",
}
"""The shapes of operands of this name that are indices."""
_CONSTANT: Final = ("filter", "weights", "bias", "feature", "time", "recurrent")
"""Operands that are constants mostly."""


@cache
def _operators() -> list[type[Operator]]:
    kinds = (op_class(f"tfl.{name}") for names in DIALECTS["tfl"].values() for name in names.split())
    return [kind for kind in kinds if kind is not None and issubclass(kind, Operator)]


def operator(rng: random.Random) -> bytes:
    """A text with a function of one operator, and one of an addition that it may call."""
    kind = rng.choice(_operators())
    text = _Text(kind, rng)
    for place, slot in enumerate(_filled(kind.operand_slots, rng, left_out=True)):
        text.add_operand(place, slot)
    results = [text.type_of(slot, result=True) for slot in _filled(kind.result_slots, rng) if slot is not None]
    return text.function(results).encode()


def _filled(slots: Sequence[Slot], rng: random.Random, *, left_out: bool = False) -> list[Slot | None]:
    """A slot for each value; None for one that is left out."""
    filled: list[Slot | None] = []
    for slot in slots:
        if slot.variadic:
            filled += [slot] * rng.choice((1, 1, 2, 2, 3))
        elif not slot.optional or rng.random() < 0.5:
            filled.append(slot)
        elif left_out:
            filled.append(None)
    while filled and filled[-1] is None:
        filled.pop()
    return filled


class _Text:
    """The function of one operator, as it is put together."""

    def __init__(self, kind: type[Operator], rng: random.Random) -> None:
        self.kind = kind
        self.rng = rng
        self.shape = rng.choice(SHAPES)
        self.element = rng.choice(QUANTIZED if rng.random() < 0.75 else PLAIN)
        self.shapes = FAMILIES.get(kind.op_name[4:], {})
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.operands: list[tuple[str, str]] = []

    def add_operand(self, place: int, slot: Slot | None) -> None:
        """An argument, a constant, or nothing in that place."""
        name, rng = f"%v{place}", self.rng
        if slot is None:
            self.lines.append(f'{name} = "tfl.no_value"() {{value}} : () -> none')
            self.operands.append((name, "none"))
            return
        shape, element = self.type_of(slot)
        type, storage = _tensor(shape, element), _storage(element)
        often = 0.8 if slot.indices or slot.name in _CONSTANT else 0.3
        if "?" in shape or storage[0] in "!c" or rng.random() >= often:
            self.arguments.append(f"{name}: {type}")
        else:
            value = _nested([_number(storage, rng) for _ in range(_count(shape))], shape) or _number(storage, rng)
            constant = f"{{value = dense<{value}> : {_tensor(shape, storage)}}}"
            self.lines.append(f'{name} = "tfl.pseudo_const"() {constant} : () -> {type}')
        self.operands.append((name, type))

    def type_of(self, slot: Slot, *, result: bool = False) -> tuple[str, str]:
        """The shape and the element type of a value."""
        rng = self.rng
        if slot.indices and not result:
            shapes = INDICES[slot.name].split() if slot.name in INDICES and rng.random() < 0.85 else OF_INDICES
            return rng.choice(shapes), rng.choice(("i32", "i32", "i32", "i32", "i64", "i16", "ui8", QUANTIZED[5]))
        shape = self.shape if rng.random() < 0.7 else rng.choice(SHAPES)
        if result:
            shape = "*" if rng.random() < 0.6 else shape
        elif slot.name in self.shapes and rng.random() < 0.9:
            shape = rng.choice(self.shapes[slot.name].split())
        if slot.types and rng.random() < 0.75:
            name = rng.choice(sorted(slot.types[0].names))
            return shape, rng.choice(QUANTIZED) if name == "quantized" else name
        chance = rng.random()
        if chance < 0.62:
            return shape, self.element
        return shape, _along_axis(shape, rng) if chance < 0.75 else rng.choice(QUANTIZED if chance < 0.9 else PLAIN)

    def function(self, results: Sequence[tuple[str, str]]) -> str:
        """The text."""
        types = [_tensor(*result) for result in results]
        returned = f" -> ({', '.join(types)})" if types else ""
        names = ", ".join(f"%r{place}" for place in range(len(types)))
        operands, from_types = (
            (", ".join(each) for each in zip(*self.operands, strict=True)) if self.operands else ("", "")
        )
        options = ", ".join(filter(None, (_option(a, self.rng) for a in self.kind.attribute_slots.values())))
        line = f'"{self.kind.op_name}"({operands}) {{{options}}} : ({from_types}) -> ({", ".join(types)})'
        body = [*self.lines, f"{names} = {line}" if names else line]
        body.append(f"return {names} : {', '.join(types)}" if names else "return")
        called = '%0 = "tfl.stablehlo_add"(%a, %b) : (tensor<i8>, tensor<i8>) -> tensor<i8>\nreturn %0 : tensor<i8>'
        other = f"func.func @add(%a: tensor<i8>, %b: tensor<i8>) -> tensor<i8> {{\n{called}\n}}\n"
        lines = "\n".join(body)
        main = f"func.func @main({', '.join(self.arguments)}){returned} {{\n{lines}\n}}\n"
        return main + (other if "subgraph" in options else "")


def _option(attribute: Attribute, rng: random.Random) -> str:
    """An option with a value, or none."""
    default: Any = attribute.default
    words = _WORDS.get(attribute.key, ())
    if rng.random() < 0.03:
        return ""
    if isinstance(default, str):
        return f'{attribute.key} = "{rng.choice(words) if words else default}"'
    if isinstance(default, bool):
        return f"{attribute.key} = {rng.choice(('true', 'false'))}"
    if isinstance(default, int):
        return f"{attribute.key} = {rng.choice((0, 1, 1, 1, 2, 2, 3, -1, 5))}"
    if isinstance(default, float):
        return f"{attribute.key} = {rng.choice(('0.0', '1.0', '0.5', '-1.0', '1.0e30', '1.0e-30', '4.0'))}"
    if default is not None or rng.random() < 0.2:
        return attribute.key if default is None else ""
    numbers = [str(rng.choice((0, 1, 1, 2, 3, -1))) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
    return f"{attribute.key} = #tflq.tuple<[{', '.join(numbers)}]>"


_WORDS: Final[Mapping[str, Sequence[str]]] = {
    key: tuple(TFLITE.enum(enum).values)
    for key, enum in {
        "padding": "Padding",
        "fused_activation_function": "ActivationFunctionType",
        "reduce_function": "ReduceWindowFunction",
        "mode": "MirrorPadMode",
        "kernel_type": "LSTMKernelType",
        "weights_format": "FullyConnectedOptionsWeightsFormat",
        "comparison_direction": "StablehloComparisonDirection",
    }.items()
} | dict.fromkeys(("output_type", "out_type", "idx_out_type"), ("INT32", "INT64"))
"""The words of options."""


def _dims(shape: str) -> list[int]:
    return [int(dim) for dim in shape.split("x") if dim.isdigit()]


def _count(shape: str) -> int:
    return math.prod(_dims(shape))


def _tensor(shape: str, element: str) -> str:
    return f"tensor<{'' if shape == '.' else f'{shape}x'}{element}>"


def _along_axis(shape: str, rng: random.Random) -> str:
    """A type with scales along a dim; one of a single scale where there is no such dim."""
    dims = [] if "?" in shape or "*" in shape else _dims(shape)
    axes = [axis for axis, dim in enumerate(dims) if dim]
    if not axes:
        return rng.choice(QUANTIZED)
    axis, storage = rng.choice(axes), rng.choice(("i8", "i8", "i16", "i32", "u8", "i4"))
    numbers = ("0.5", "0.25") if storage == "i32" else ("0.5", "0.25", "0.5:1")
    return f"!quant.uniform<{storage}:f32:{axis}, {{{', '.join(rng.choice(numbers) for _ in range(dims[axis]))}}}>"


def _storage(element: str) -> str:
    """The type in which elements are stored."""
    if not element.startswith("!quant"):
        return element
    storage = element.partition("<")[2].partition(":")[0].partition("<")[0]
    return storage.replace("u", "ui")


def _number(storage: str, rng: random.Random) -> str:
    if storage == "i1":
        return rng.choice(("true", "false"))
    if "f" in storage:
        return rng.choice(("0.0", "1.0", "-1.0", "2.5"))
    return str(rng.choice((0, 0, 1, 1, 2, 3) if storage[0] == "u" else (0, 1, -1) if storage == "i2" else _SMALL))


_SMALL: Final = (0, 0, 1, 1, 2, 3, -1, -2, 4)


def _nested(numbers: Sequence[str], shape: str) -> str:
    """The elements of a constant as text; one for all that are alike, nothing if there are none."""
    if len({*numbers}) < 2:
        return numbers[0] if numbers else ""
    for dim in reversed(_dims(shape)):
        numbers = [f"[{', '.join(numbers[i : i + dim])}]" for i in range(0, len(numbers), dim)]
    return numbers[0]
