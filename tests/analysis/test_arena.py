"""The arena that is stated is the one that the interpreter makes: its tensors' addresses are the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const
from support.memory import addresses

import tflq
from tflq.analysis.arena import Arena, arena_of, arenas, offsets
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import f16, f32, i8, i32

MODELS = Path(__file__).resolve().parents[2] / "models"
RUN = ("cnn_int16x8", "cnn_int8", "cnn_uint8", "log_softmax", "mul_per_axis", "pad", "split")
NONE = {"fused_activation_function": "NONE"}
WAYS = {"original": None, "integer": {}, "kernels": {"target": "kernels"}, "float32": {"mac": "float32"}}
PLACE = 64
TIED = {
    **dict.fromkeys([("cnn_int8", "float32"), ("cnn_int8", "integer"), ("cnn_uint8", "integer")], 0),
    **dict.fromkeys([("log_softmax", "float32"), ("log_softmax", "integer")], PLACE),
}
"""Here the planner sorts tensors that its rule makes equal in the order of a hash table: places differ. By how many
bytes the ends may, too: by a place where a result and scratch memory of its size are equal."""


def check_places(model: bytes, *, apart: int | None = None) -> Arena:
    """Holds each tensor's place against its address, and gives the arena that is stated."""
    module = tflq.read(model)
    placed, found = offsets(module), addresses(model)
    index = {value: at for at, value in enumerate(module.main.tensors)}
    ours = {index[value]: at for value, at in placed.items() if found.get(index[value], (0, 0))[1]}
    base = min(found[at][0] for at in ours)
    assert ours
    theirs = {at: found[at][0] - base for at in ours}
    assert apart is not None or ours == theirs
    sizes = {at: found[at][1] for at in ours}
    ends = [max(places[at] + sizes[at] for at in ours) for places in (ours, theirs)]
    assert abs(ends[0] - ends[1]) <= (apart or 0)
    return arena_of(module)


def file_of(inputs: list[Value], outputs: list[Value], ops: list[Op]) -> bytes:
    for number, value in enumerate((*inputs, *(r for op in ops for r in op.results))):
        value.name = f"t{number}"
    return bytes(write(Module([Function("main", inputs, outputs, ops)])))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RUN)
def test_places_are_the_interpreters(name: str, way: str) -> None:
    asked: Any = WAYS[way]
    model = (MODELS / f"{name}.tflite").read_bytes()
    if asked is None:
        check_places(model)
        return
    conversion = tflq.convert(model, **asked)
    assert conversion.arena == check_places(conversion.data, apart=TIED.get((name, way)))


def test_an_add_over_its_operand_takes_no_memory() -> None:
    x, y, z = (argument((4, 100), f32) for _ in range(3))
    made = [argument((4, 100), f32) for _ in range(2)]
    ops = [Op("tfl.add", [x, y], [made[0]], dict(NONE)), Op("tfl.mul", [made[0], z], [made[1]], dict(NONE))]
    last = argument((4, 100), f32)
    ops.append(Op("tfl.add", [made[1], z], [last], dict(NONE)))
    stated = check_places(file_of([x, y, z], [last], ops))
    assert stated.shared == 4 * 1600 + 4 * 0 + 1600  # three inputs, one for both sums, and the output


def test_an_add_over_a_tensor_that_is_read_again_has_memory_of_its_own() -> None:
    x, kept, made, last = (argument((4, 100), f32) for _ in range(4))
    ops = [
        Op("tfl.add", [x, x], [kept], dict(NONE)),
        Op("tfl.add", [kept, x], [made], dict(NONE)),
        Op("tfl.add", [kept, made], [last], dict(NONE)),
    ]
    assert check_places(file_of([x], [last], ops)).shared == 4 * 1600


def test_windows_of_a_convolution_are_counted() -> None:
    x, output = argument((1, 16, 16, 4), f32), argument((1, 16, 16, 8), f32)
    weights, bias = const(np.ones((8, 5, 5, 4)), f32), const(np.ones(8), f32)
    conv = {"padding": "SAME", "stride_w": 1, "stride_h": 1, **NONE}
    ops = [Op("tfl.conv_2d", [x, weights, bias], [output], conv)]
    stated = check_places(file_of([x], [output], ops))
    assert stated.shared == 4 * 256 * (4 + 8 + 100)


def test_what_is_computed_once_is_kept() -> None:
    x, wide, output = argument((2, 300), f32), argument((2, 300), f32), argument((2, 300), f32)
    half = const(np.ones((2, 300)), f16)
    ops = [Op("tfl.dequantize", [half], [wide]), Op("tfl.add", [x, wide], [output], dict(NONE))]
    stated = check_places(file_of([x], [output], ops))
    assert (stated.shared, stated.kept) == (2 * 2432 - 32, 2400)


def reshaped(shape: Value, inputs: list[Value]) -> Module:
    x, output = argument((2, 3), f32), argument((3, 2), f32)
    return Module([Function("main", [x, *inputs], [output], [Op("tfl.reshape", [x, shape], [output])])])


def test_a_size_that_follows_from_values_is_unknown() -> None:
    shape = argument((2,), i32, "shape")
    (stated,) = arenas(reshaped(shape, [shape]))
    assert (stated.bytes, stated.dynamic) == (None, "operator 0 (RESHAPE)")
    (stated,) = arenas(reshaped(const(np.asarray([3, 2]), i32), []))
    assert stated.bytes is not None


def test_a_shape_of_a_shape_is_known_early() -> None:
    x, other, shape, output = argument((2, 3), f32), argument((3, 2), f32), argument((2,), i32), argument((3, 2), f32)
    ops = [Op("tfl.shape", [other], [shape], {"out_type": "INT32"}), Op("tfl.reshape", [x, shape], [output])]
    assert check_places(file_of([x, other], [output], ops)).dynamic == ""


def test_functions_that_are_run_are_counted() -> None:
    def body(name: str, size: int) -> Function:
        x, y = argument((size,), i8), argument((size,), i8)
        return Function(name, [x], [y], [Op("tfl.maximum", [x, x], [y])])

    flag, x, y = argument((), f32), argument((640,), i8), argument((640,), i8)
    choice = Op("tfl.if", [flag, x], [y], {"then_subgraph_index": 1, "else_subgraph_index": 2})
    module = Module([Function("main", [flag, x], [y], [choice]), body("a", 640), body("b", 64), body("c", 6400)])
    alone = [arena.bytes for arena in arenas(module)]
    assert alone[1:] == [1280, 128, 12800]
    assert arena_of(module).bytes == sum(alone[:3])  # type: ignore[arg-type]


def test_scratch_of_what_is_unknown_is_said() -> None:
    x, y = argument((8,), f32), argument((8,), f32)
    op = Op("tfl.custom", [x], [y], {"custom_code": "Mine"})
    (stated,) = arenas(Module([Function("main", [x], [y], [op])]))
    assert (stated.bytes, stated.beside) == (2 * 64 - 32, ("Mine",))


def test_scratch_of_a_spectrum_is_not_known() -> None:
    x, length, y = argument((4, 8), f32), const(np.array([4, 8]), i32), argument((4, 5), f32)
    op = Op("tfl.rfft2d", [x, length], [y])
    (stated,) = arenas(Module([Function("main", [x], [y], [op])]))
    assert stated.beside == ("RFFT2D",)
