"""What one operator of each family becomes, as text: in the integer form, as kernels, and in TOSA.

A case is the source of one operator. `tests/golden/FAMILY.mlir` holds the text of all cases of a family; with
`python scripts/make_golden.py` they are written again, and what changed is read in the diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scripts.short_text import with_sums
from support.harness import argument, const
from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import integer_form
from tflq.formats.options import options_from_arguments
from tflq.formats.pipeline import narrowing, passes_of
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.text.printer import print_module
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    complex64,
    f32,
    i1,
    i8,
    i16,
    i32,
    resource,
    ui8,
)
from tflq.transforms.pass_manager import Pipeline

FOLDER = Path(__file__).resolve().parent.parent / "golden"


@dataclass
class Case:
    """One operator, its operands and results, and what is special about it."""

    title: str
    op: str
    operands: list[Value | None]
    results: list[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    graphs: list[Case] = field(default_factory=list)
    """The functions that it runs, of one operator each, by their numbers from 1 on."""
    intermediates: list[Value] = field(default_factory=list)

    def module(self) -> Module:
        """A model of this operator."""
        graphs = [case.function(f"graph{number}") for number, case in enumerate(self.graphs, 1)]
        return Module([self.function("main"), *graphs])

    def function(self, name: str) -> Function:
        """A function of this operator, on values of its own."""
        values = [v for v in (*self.operands, *self.results) if v]
        copies = {id(v): Value(v.type, v.name, info=dict(v.info)) if v.buffer is None else v for v in values}
        operands = [None if v is None else copies[id(v)] for v in self.operands]
        results = [copies[id(v)] for v in self.results]
        op = Op(self.op, operands, results, dict(self.attributes), intermediates=list(self.intermediates))
        inputs = [v for v in operands if v and v.buffer is None and not v.info.get("is_variable")]
        return Function(name, inputs, results, [op])


def q8(shape: tuple[int, ...], scale: float, zero: int = 0, name: str = "x") -> Value:
    return argument(shape, UniformQuantizedType.of(i8, scale, zero), name)


def q16(shape: tuple[int, ...], scale: float, name: str = "x") -> Value:
    return argument(shape, UniformQuantizedType.of(i16, scale), name)


def u8(shape: tuple[int, ...], scale: float, zero: int = 128, name: str = "x") -> Value:
    return argument(shape, UniformQuantizedType.of(ui8, scale, zero), name)


def of(shape: tuple[int, ...], element: ElementType, name: str = "x") -> Value:
    return argument(shape, element, name)


def weights(shape: tuple[int, ...], axis: int, name: str = "filter") -> Value:
    """int8 weights with a scale for each channel."""
    scales = 0.01 * (1 + np.arange(shape[axis]))
    stored = (np.arange(np.prod(shape)) * 37 % 255 - 127).reshape(shape)
    return const(stored, UniformQuantizedPerAxisType.of(i8, axis, scales), name)


def bias(channels: int, scale: float, storage: ScalarType = i32) -> Value:
    stored = np.arange(channels) * 1000 - 500
    return const(stored, UniformQuantizedPerAxisType.of(storage, 0, scale * (1 + np.arange(channels))), "bias")


def state(shape: tuple[int, ...], storage: ScalarType, scale: float, zero: int = 0, name: str = "state") -> Value:
    return Value(TensorType(shape, UniformQuantizedType.of(storage, scale, zero)), name, info={"is_variable": True})


def filled(shape: tuple[int, ...], storage: ScalarType, scale: float, name: str) -> Value:
    """A constant with one scale."""
    reach = min(storage.maximum, 3000)
    stored = (np.arange(np.prod(shape)) * 37 % (2 * reach + 1) - reach).reshape(shape)
    return const(stored, UniformQuantizedType.of(storage, scale), name)


def ints(*numbers: int) -> Value:
    return const(np.array(numbers), i32)


def _window(**more: Any) -> dict[str, Any]:
    return {"padding": "SAME", "stride_w": 2, "stride_h": 2, "filter_width": 3, "filter_height": 3} | more


def _lstm() -> list[Value | None]:
    """The operands of an LSTM of two cells, each gate with weights, recurrent weights and a bias."""
    return [
        q8((1, 2, 3), 0.05, 3),
        *(filled((2, 3), i8, 0.01, f"w{g}") for g in range(4)),
        *(filled((2, 2), i8, 0.02, f"r{g}") for g in range(4)),
        *[None] * 3,
        *(filled((2,), i32, 0.0005, f"b{g}") for g in range(4)),
        *[None] * 2,
        state((1, 2), i8, 0.0078, 4, "h"),
        state((1, 2), i16, 2.0**-11, name="c"),
        *[None] * 4,
    ]


_CONV = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU6"}
_IMAGE = (1, 4, 4, 2)
_RESULT = (1, 4, 4, 3)
CASES: dict[str, list[Case]] = {
    "activation": [
        Case("LOGISTIC, int8: a table", "tfl.logistic", [q8((1, 8), 0.1, 3)], [q8((1, 8), 1 / 256, -128)]),
        Case("LEAKY_RELU, int8", "tfl.leaky_relu", [q8((1, 8), 0.1, 3)], [q8((1, 8), 0.05, -9)], {"alpha": 0.2}),
        Case("RELU6, uint8, other scales", "tfl.relu6", [u8((1, 8), 0.1)], [u8((1, 8), 0.03, 0)]),
        Case("HARD_SWISH, int8", "tfl.hard_swish", [q8((1, 8), 0.05, -4)], [q8((1, 8), 0.04, -100)]),
        Case("TANH, int16", "tfl.tanh", [q16((1, 8), 1 / 4096)], [q16((1, 8), 1 / 32768)]),
    ],
    "arithmetic": [
        Case(
            "ADD, int8, three scales, fused RELU",
            "tfl.add",
            [q8((1, 8), 0.05, 3), q8((1, 8), 0.02, -20, "y")],
            [q8((1, 8), 0.06, -7)],
            {"fused_activation_function": "RELU"},
        ),
        Case("ADD, int16", "tfl.add", [q16((1, 8), 0.001), q16((1, 8), 0.003, "y")], [q16((1, 8), 0.004)]),
        Case(
            "ADD, int16, scales that are powers of two",
            "tfl.add",
            [q16((1, 8), 2.0**-12), q16((1, 8), 2.0**-10, "y")],
            [q16((1, 8), 2.0**-10)],
            {"pot_scale_int16": True},
        ),
        Case("SUB, broadcast", "tfl.sub", [q8((2, 8), 0.05, 3), q8((8,), 0.02, 5, "y")], [q8((2, 8), 0.06, -7)]),
        Case("MUL, uint8", "tfl.mul", [u8((1, 8), 0.05), u8((1, 8), 0.02, 3, "y")], [u8((1, 8), 0.01)]),
        Case("DIV, int8", "tfl.div", [q8((1, 8), 0.05, 3), q8((1, 8), 0.02, -2, "y")], [q8((1, 8), 0.1)]),
        Case("SQUARED_DIFFERENCE", "tfl.squared_difference", [q8((8,), 0.1), q8((8,), 0.1, 4)], [q8((8,), 0.2)]),
    ],
    "casts": [
        Case("QUANTIZE, int8 to int16", "tfl.quantize", [q8((1, 8), 0.1, 3)], [q16((1, 8), 0.001)]),
        Case("DEQUANTIZE, int8", "tfl.dequantize", [q8((1, 8), 0.1, 3)], [of((1, 8), f32)]),
    ],
    "comparison": [
        Case("LESS, int8, two scales", "tfl.less", [q8((8,), 0.1, 3), q8((8,), 0.07, -3, "y")], [of((8,), i1)]),
        Case("MAXIMUM, int8", "tfl.maximum", [q8((8,), 0.1, 3), q8((8,), 0.1, 3, "y")], [q8((8,), 0.1, 3)]),
    ],
    "state": [
        Case(
            "IF: ADD in one branch, SUB in the other",
            "tfl.if",
            [of((), i1, "condition"), q8((8,), 0.05, 3), q8((8,), 0.02, -20, "y")],
            [q8((8,), 0.06, -7)],
            {"then_subgraph_index": 1, "else_subgraph_index": 2},
            [
                Case(name, f"tfl.{name}", [q8((8,), 0.05, 3), q8((8,), 0.02, -20, "y")], [q8((8,), 0.06, -7)])
                for name in ("add", "sub")
            ],
        ),
        Case("READ_VARIABLE, int8", "tfl.read_variable", [of((), resource)], [q8((2, 4), 0.1, 3)]),
    ],
    "convolution": [
        Case(
            "CONV_2D, int8, scales per channel, RELU6",
            "tfl.conv_2d",
            [q8(_IMAGE, 0.05, 3), weights((3, 3, 3, 2), 0), bias(3, 0.0005)],
            [q8(_RESULT, 0.06, -128)],
            _CONV,
        ),
        Case(
            "DEPTHWISE_CONV_2D, int8",
            "tfl.depthwise_conv_2d",
            [q8(_IMAGE, 0.05, 3), weights((1, 3, 3, 2), 3), bias(2, 0.0005)],
            [q8(_IMAGE, 0.06, -4)],
            {**_CONV, "depth_multiplier": 1},
        ),
        Case(
            "TRANSPOSE_CONV, int8",
            "tfl.transpose_conv",
            [ints(1, 8, 8, 3), weights((3, 3, 3, 2), 0), q8(_IMAGE, 0.05, 3)],
            [q8((1, 8, 8, 3), 0.06, -4)],
            {"padding": "SAME", "stride_w": 2, "stride_h": 2},
        ),
    ],
    "gathering": [
        Case("GATHER, rows", "tfl.gather", [q8((4, 2), 0.1, 3), of((3,), i32)], [q8((3, 2), 0.1, 3)]),
        Case("GATHER_ND, rows", "tfl.gather_nd", [q8((4, 2), 0.1, 3), of((3, 1), i32)], [q8((3, 2), 0.1, 3)]),
    ],
    "indexing": [
        Case("ARG_MAX, int8", "tfl.arg_max", [q8((2, 8), 0.1, 3), ints(1)], [of((2,), i32)]),
    ],
    "joining": [
        Case(
            "CONCATENATION, int8, two scales",
            "tfl.concatenation",
            [u8((1, 4), 0.1), u8((1, 4), 0.05, 3, "y")],
            [u8((1, 8), 0.1)],
            {"axis": 1},
        ),
    ],
    "matmul": [
        Case(
            "FULLY_CONNECTED, int8",
            "tfl.fully_connected",
            [q8((2, 4), 0.05, 3), weights((3, 4), 0), bias(3, 0.0005)],
            [q8((2, 3), 0.06, -4)],
        ),
        Case(
            "BATCH_MATMUL, int8",
            "tfl.batch_matmul",
            [q8((2, 3, 4), 0.05, 3), q8((2, 4, 5), 0.02, -6, "y")],
            [q8((2, 3, 5), 0.1, 1)],
        ),
    ],
    "movement": [
        Case("RESHAPE", "tfl.reshape", [q8((2, 4), 0.1, 3), ints(8)], [q8((8,), 0.1, 3)]),
        Case(
            "PAD, int8: the zero point",
            "tfl.pad",
            [q8((4,), 0.1, 3), const(np.array([[1, 2]]), i32)],
            [q8((7,), 0.1, 3)],
        ),
    ],
    "normalization": [
        Case("SOFTMAX, int8", "tfl.softmax", [q8((1, 8), 0.1, 3)], [q8((1, 8), 1 / 256, -128)], {"beta": 1.0}),
        Case("LOG_SOFTMAX, int8", "tfl.log_softmax", [q8((1, 8), 0.1, 3)], [q8((1, 8), 16 / 256, 127)]),
    ],
    "pooling": [
        Case("AVERAGE_POOL_2D", "tfl.average_pool_2d", [q8(_IMAGE, 0.1, 3)], [q8((1, 2, 2, 2), 0.1, 3)], _window()),
        Case("MAX_POOL_2D", "tfl.max_pool_2d", [q8(_IMAGE, 0.1, 3)], [q8((1, 2, 2, 2), 0.1, 3)], _window()),
    ],
    "random": [
        Case("RANDOM_UNIFORM", "tfl.random_uniform", [ints(2, 4)], [of((2, 4), f32)], {"seed": 1, "seed2": 2}),
    ],
    "recurrent": [
        Case(
            "SVDF, int8, state of int16",
            "tfl.svdf",
            [
                q8((1, 3), 0.05, 7),
                filled((4, 3), i8, 0.01, "feature"),
                filled((4, 2), i16, 0.001, "time"),
                filled((2,), i32, 2e-5, "bias"),
                state((1, 8), i16, 0.0009),
            ],
            [q8((1, 2), 0.03, -5)],
            {"rank": 2, "fused_activation_function": "RELU"},
        ),
        Case(
            "UNIDIRECTIONAL_SEQUENCE_LSTM, int8, cell state of int16, two steps",
            "tfl.unidirectional_sequence_lstm",
            _lstm(),
            [q8((1, 2, 2), 0.0078, 4)],
            {"fused_activation_function": "TANH"},
            intermediates=[*(q16((0,), 0.0005, f"i{g}") for g in range(4)), q8((0,), 0.0078, 4, "hidden")],
        ),
    ],
    "reduction": [
        Case("MEAN, int8", "tfl.mean", [q8(_IMAGE, 0.1, 3), ints(1, 2)], [q8((1, 2), 0.05, -3)]),
        Case("SUM, int8", "tfl.sum", [q8((2, 8), 0.1, 3), ints(1)], [q8((2,), 0.3, -3)]),
        Case("REDUCE_MAX, int8", "tfl.reduce_max", [q8((2, 8), 0.1, 3), ints(1)], [q8((2,), 0.1, 3)]),
    ],
    "resize": [
        Case("RESIZE_BILINEAR", "tfl.resize_bilinear", [q8(_IMAGE, 0.1, 3), ints(8, 8)], [q8((1, 8, 8, 2), 0.1, 3)]),
    ],
    "shape": [
        Case("FILL, int8: stored integers", "tfl.fill", [ints(2, 4), q8((), 0.1, 3)], [q8((2, 4), 0.1, 3)]),
    ],
    "spectra": [
        Case("RFFT2D", "tfl.rfft2d", [of((1, 4, 4), f32), ints(4, 4)], [of((1, 4, 3), complex64)]),
    ],
    "stablehlo": [
        Case(
            "STABLEHLO_ADD, int8, three scales: the kernel adds stored integers",
            "tfl.stablehlo_add",
            [q8((8,), 0.05, 3), q8((8,), 0.02, -20, "y")],
            [q8((8,), 0.06, -7)],
        ),
    ],
    "unary": [
        Case("EXP, int8: a table", "tfl.exp", [q8((8,), 0.025, 3)], [q8((8,), 0.1, -128)]),
        Case("ABS, int8", "tfl.abs", [q8((8,), 0.1, 3)], [q8((8,), 0.1, -3)]),
        Case("RSQRT, int8", "tfl.rsqrt", [q8((8,), 0.1, -128)], [q8((8,), 0.05, -128)]),
        Case("SIN, int8: no kernel, the real function", "tfl.sin", [q8((8,), 0.025, 3)], [q8((8,), 1 / 127)]),
    ],
}


def text_of(case: Case) -> str:
    """The text of a case: the source, then each form."""
    parts = [f"// ===== {case.title}", with_sums(print_module(case.module()))]
    parts += ["// ----- integer form", with_sums(print_module(integer_form(case.module())))]
    for heading, format in (("kernels", "tflite"), ("TOSA", "tosa")):
        parts += [f"// ----- {heading}", with_sums(_lowered(case, format))]
    return "\n".join(parts) + "\n"


def _lowered(case: Case, format: Any) -> str:
    options = options_from_arguments(format, None)
    passes = [*narrowing(options, "tfl"), *passes_of(options, "tfl")]
    try:
        return print_module(Pipeline(passes, "tfl").run(case.module()).module)
    except UnsupportedError as error:
        return f"// {error}"


def texts_of() -> Iterator[tuple[Path, str]]:
    """Each file of golden text, and what it should hold."""
    for family, cases in CASES.items():
        yield FOLDER / f"{family}.mlir", "\n".join(map(text_of, cases))
