"""Bounds of accumulators: what the least and greatest inputs make, and the cheaper forms that they prove."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument
from support.lowered import draw
from support.raised import assert_same, outputs_of

from tflq import convert, read
from tflq.formats.tosa.backend import Tosa
from tflq.formats.tosa.raising import note_bounds
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize

ONE = {"stride": (1, 1), "dilation": (1, 1), "input_zp": -3, "weight_zp": 0}


def scaled(x: ScalarType, name: str, shapes: tuple[tuple[int, ...], ...], **attributes: Any) -> Module:
    """An op on weights and a bias of 2 channels, and its RESCALE to int8."""
    acc = i64 if x == i16 else i32
    source, weights = argument(shapes[0], x), constant(draw(i8, shapes[1], 1, -128, 127))
    operands: list[Value | None] = [source, weights]
    if name != "matmul":
        operands.append(constant(np.asarray([100, -7], acc.dtype)))
    total, out = Value(TensorType(shapes[2], acc), "t0"), Value(TensorType(shapes[2], i8), "y")
    rescale = {
        "multiplier": np.asarray([1518500250 if acc == i32 else 23170], np.int32),
        "shift": np.asarray([44 if acc == i32 else 36], np.int8),
        "input_zp": 0,
        "output_zp": 5,
        "rounding_mode": "SINGLE_ROUND",
        "scale32": acc == i32,
        "per_channel": False,
    }
    ops = [
        Op(f"tosa.{name}", operands, [total], {**ONE, **attributes}, Location("", 0, 0, name, "")),
        Op("tosa.rescale", [total], [out], rescale, Location("", 0, 1, "rescale", "")),
    ]
    return Module([Function("main", [source], [out], ops)])


CASES: list[tuple[str, tuple[tuple[int, ...], ...], dict[str, Any]]] = [
    ("conv2d", ((1, 1, 1, 3), (2, 1, 1, 3), (1, 1, 1, 2)), {"pad": (0, 0, 0, 0)}),
    ("depthwise_conv2d", ((1, 1, 2, 2), (1, 2, 2, 1), (1, 1, 1, 2)), {"pad": (0, 0, 0, 0)}),
    ("transpose_conv2d", ((1, 1, 1, 3), (2, 1, 1, 3), (1, 1, 1, 2)), {"out_pad": (0, 0, 0, 0)}),
    ("matmul", ((1, 1, 3), (1, 3, 2), (1, 1, 2)), {"a_zp": -3, "b_zp": 0}),
]


@pytest.mark.parametrize(("name", "shapes", "attributes"), CASES, ids=[c[0] for c in CASES])
def test_bounds_are_reached(name: str, shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any]) -> None:
    module = scaled(i8, name, shapes, **attributes)
    layer, rescale = module.main.ops
    note_bounds(rescale)
    module.main.outputs = [layer.result]
    ends = itertools.product((-128, -3, 127), repeat=int(np.prod(shapes[0])))
    found = [outputs_of(module, [np.asarray(x, np.int8).reshape(shapes[0])])[0] for x in ends]
    low, high = rescale.attributes["input_range"]
    assert (low, high) == (np.min(found), np.max(found))


def test_bounds_prove_the_division() -> None:
    module = scaled(i8, "conv2d", ((1, 4, 4, 3), (2, 3, 3, 3), (1, 4, 4, 2)), pad=(1, 1, 1, 1))
    names = assert_same(module, [draw(i8, (1, 4, 4, 3))])
    assert "div" in names
    assert "bitcast" not in names


def test_48_bits_that_are_not_used_are_32() -> None:
    module = scaled(i16, "conv2d", ((1, 4, 4, 3), (2, 3, 3, 3), (1, 4, 4, 2)), pad=(1, 1, 1, 1), input_zp=0)
    assert_same(module, [draw(i16, (1, 4, 4, 3))])
    sums = [op for op in module.main.ops if op.name == "tfl.batch_matmul"]
    assert [op.result.type.storage for op in sums] == [i32, i32]
    widened = [op for op in module.main.ops if op.name == "tfl.add" and op.result.type.storage == i64]
    assert len(widened) <= 1


def test_a_bias_that_is_computed_has_no_bounds() -> None:
    name, shapes, attributes = CASES[0]
    module = scaled(i8, name, shapes, **attributes)
    layer, rescale = module.main.ops
    layer.operands[2] = argument((2,), i32, "bias")
    note_bounds(rescale)
    assert "input_range" not in rescale.attributes


@pytest.mark.parametrize("close", [True, False])
def test_bounds_that_are_noted(close: bool) -> None:
    """Crude ones, where nobody asks for close ones, contain these."""
    source = Path(__file__).resolve().parents[3] / "models" / "cnn_int8.tflite"
    module, _ = legalize(read(source), Policy(close=close))
    noted = {op.location: op.attributes["input_range"] for op in module.ops() if "input_range" in op.attributes}
    closest, _ = legalize(read(source), Policy())
    others = {op.location: op.attributes["input_range"] for op in closest.ops() if "input_range" in op.attributes}
    wider = [place for place, (low, high) in others.items() if noted[place] != (low, high)]
    assert all(noted[place][0] <= low and high <= noted[place][1] for place, (low, high) in others.items())
    assert bool(wider) != close


def test_crude_bounds_change_no_byte_of_tosa(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(__file__).resolve().parents[3] / "models" / "cnn_int8.tflite"
    crude = convert(source, format="tosa").data
    monkeypatch.setattr(Tosa, "close", True)
    assert convert(source, format="tosa").data == crude
