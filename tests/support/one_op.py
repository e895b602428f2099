"""A module in the tosa form for every operator of TOSA 1.0: one small function, around that operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflq.dialects.tosa.elementwise import IntDiv
from tflq.formats.tosa.lowering.context import TosaBuilder
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant, op_class
from tflq.ir.types import SCALARS, ScalarType, TensorType, i1, i4, i8, i16, i32, i64, ui8

f32 = SCALARS["f32"]
CASES: dict[str, Callable[[], Module]] = {}
"""Makes the module, by the operator's name and what is special about it: "conv2d i4"."""

IMAGE = (1, 4, 6, 3)


def inputs_of(module: Module, seed: int = 0) -> list[np.ndarray]:
    """Inputs for a module's entry: small numbers."""
    rng = np.random.default_rng(seed)

    def make(value: Value) -> np.ndarray:
        shape, element = [d or 0 for d in value.type.shape or ()], value.type.storage
        if element is i1:
            return np.asarray(rng.integers(0, 2, shape), bool)
        if element.is_float:
            return np.asarray(rng.uniform(0.25, 3, shape), element.dtype)
        small = value.info.get("below", 100)
        low = 0 if "below" in value.info else max(element.minimum, -100)
        return np.asarray(rng.integers(low, small, shape), element.dtype)

    return [make(value) for value in module.main.inputs]


def arg(shape: tuple[int, ...], element: ScalarType, name: str = "in", **info: int) -> Value:
    return Value(TensorType(shape, element), name, info=info)


def module(b: TosaBuilder, inputs: list[Value], *outputs: Value) -> Module:
    for i, value in enumerate(outputs):
        value.name = f"out{i}" if value not in inputs else value.name
    return Module([Function("main", inputs, list(outputs), b.ops)])


def narrow(b: TosaBuilder, x: Value) -> Value:
    """x as i32: the reference model cannot return 48 bits."""
    return b.rescale(x, (1 << 30, -6), i32) if x.type.storage is i64 else x


def case(name: str) -> Callable[[Callable[[TosaBuilder], Module]], Callable[[TosaBuilder], Module]]:
    def register(function: Callable[[TosaBuilder], Module]) -> Callable[[TosaBuilder], Module]:
        CASES[name] = lambda: function(TosaBuilder())
        return function

    return register


def unary(name: str, element: ScalarType, **attributes: Any) -> None:
    def make(b: TosaBuilder) -> Module:
        x = arg((2, 3), element)
        return module(b, [x], b.emit(op_class(f"tosa.{name}"), [x], **attributes))

    case(f"{name} {element}")(make)


def binary(name: str, element: ScalarType, out: ScalarType | None = None, **attributes: object) -> None:
    def make(b: TosaBuilder) -> Module:
        below = {"below": 7} if "shift" in name else {}
        x, y = arg((2, 3), element, "x", **below), arg((1, 3), element, "y", **below)
        return module(b, [x, y], b.emit(f"tosa.{name}", [x, y], TensorType((2, 3), out or element), **attributes))

    case(f"{name} {element}")(make)


for _name in ("ceil", "cos", "erf", "exp", "floor", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh", "abs"):
    unary(_name, f32)
for _name, _element in (("abs", i32), ("clz", i32), ("bitwise_not", i8), ("logical_not", i1), ("identity", i8)):
    unary(_name, _element)
for _element in (i8, i16, i32):
    unary("negate", _element, input1_zp=3 if _element is i8 else 0, output_zp=-2 if _element is i8 else 0)
unary("negate", f32, input1_zp=0, output_zp=0)
unary("clamp", i8, min_val=-5, max_val=90)
unary("clamp", i16, min_val=-5, max_val=90)
unary("clamp", f32, min_val=0.5, max_val=6.0)
unary("reverse", i8, axis=1)
for _name in ("add", "sub", "maximum", "minimum", "pow"):
    binary(_name, f32)
for _name in ("add", "sub", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(_name, i32)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, i1)
for _name in ("logical_left_shift", "logical_right_shift"):
    binary(_name, i16)
for _name in ("equal", "greater", "greater_equal"):
    binary(_name, i32, i1)
    binary(_name, f32, i1)
binary("arithmetic_right_shift", i32, round=True)
binary("arithmetic_right_shift", i8, round=False)
binary("mul", i8, i32, shift=0)
binary("mul", i32, shift=3)
binary("mul", f32, shift=0)


@case("intdiv")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), i32)
    return module(b, [x], b.emit(IntDiv, [x, b.constant([[7, -2, 3]])]))


@case("argmax")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 5), i8)
    return module(b, [x], b.emit("tosa.argmax", [x], TensorType((2,), i32), axis=1))


def pools(element: ScalarType) -> None:
    geometry = {"kernel": (2, 3), "stride": (2, 3), "pad": (0, 0, 0, 0)}

    @case(f"avg_pool2d {element}")
    def _(b: TosaBuilder) -> Module:
        x, zp = arg(IMAGE, element), 4 if element is i8 else 0
        out = TensorType((1, 2, 2, 3), element)
        return module(b, [x], b.emit("tosa.avg_pool2d", [x], out, **geometry, input_zp=zp, output_zp=-zp))

    @case(f"max_pool2d {element}")
    def _(b: TosaBuilder) -> Module:
        x = arg(IMAGE, element)
        return module(b, [x], b.emit("tosa.max_pool2d", [x], TensorType((1, 2, 2, 3), element), **geometry))


def convolutions(name: str, element: ScalarType, weight: ScalarType, acc: ScalarType) -> None:
    zero: dict[str, Any] = {"input_zp": 3 if element is i8 else 0, "weight_zp": 0}

    def filters(*shape: int) -> Value:
        drawn = np.random.default_rng(1).integers(-7, 8, shape)
        if weight is i4:
            flat = drawn.reshape(-1).astype(np.uint8) & 15
            flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
            return Value(TensorType(shape, i4), "w", buffer=constant(flat[::2] | flat[1::2] << 4).buffer)
        return constant(drawn.astype(weight.dtype))

    def bias(count: int) -> Value:
        return constant(np.arange(-1, count - 1).astype(acc.dtype) * (1 << 33 if acc is i64 else 5))

    @case(f"conv2d {name}")
    def _(b: TosaBuilder) -> Module:
        x = arg(IMAGE, element)
        out = b.conv2d(x, filters(4, 2, 3, 3), bias(4), (1, 3, 4, 4), acc=acc, **zero)
        return module(b, [x], narrow(b, out))

    @case(f"depthwise_conv2d {name}")
    def _(b: TosaBuilder) -> Module:
        x = arg(IMAGE, element)
        y = b.conv2d(x, filters(2, 3, 3, 1), bias(3), (1, 5, 6, 3), pad=(1, 1, 1, 1), acc=acc, depthwise=True, **zero)
        return module(b, [x], narrow(b, y))

    @case(f"conv3d {name}")
    def _(b: TosaBuilder) -> Module:
        x = arg((1, 2, 3, 3, 2), element)
        geometry = {"pad": (0, 0, 1, 1, 0, 0), "stride": (1, 2, 1), "dilation": (1, 1, 1)}
        operands, out = [x, filters(3, 1, 3, 2, 2), bias(3)], TensorType((1, 2, 2, 2, 3), acc)
        return module(b, [x], narrow(b, b.emit("tosa.conv3d", operands, out, **geometry, **zero)))

    @case(f"transpose_conv2d {name}")
    def _(b: TosaBuilder) -> Module:
        x = arg((1, 2, 2, 2), element)
        operands, out = [x, filters(3, 2, 2, 2), bias(3)], TensorType((1, 5, 3, 3), acc)
        geometry = {"out_pad": (0, 1, 0, -1), "stride": (2, 2)}
        return module(b, [x], narrow(b, b.emit("tosa.transpose_conv2d", operands, out, **geometry, **zero)))


for _element in (i8, i16, f32):
    pools(_element)
convolutions("i8", i8, i8, i32)
convolutions("i4", i8, i4, i32)
convolutions("i16", i16, i8, i64)
convolutions("f32", f32, f32, f32)


@case("matmul i8")
def _(b: TosaBuilder) -> Module:
    x, y = arg((2, 3, 4), i8, "x"), arg((2, 4, 2), i8, "y")
    return module(b, [x, y], b.emit("tosa.matmul", [x, y], TensorType((2, 3, 2), i32), a_zp=1, b_zp=-2))


@case("matmul i16")
def _(b: TosaBuilder) -> Module:
    x, y = arg((2, 3, 4), i16, "x"), arg((2, 4, 2), i16, "y")
    out = b.emit("tosa.matmul", [x, y], TensorType((2, 3, 2), i64), a_zp=0, b_zp=0)
    return module(b, [x, y], narrow(b, out))


@case("cast")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), i8)
    return module(b, [x], b.cast(x, i32), b.cast(x, f32), b.cast(b.cast(x, i16), i1))


@case("concat")
def _(b: TosaBuilder) -> Module:
    x, y = arg((2, 3), i8, "x"), arg((2, 1), i8, "y")
    return module(b, [x, y], b.concat([x, y, x], 1))


@case("cond_if")
def _(b: TosaBuilder) -> Module:
    condition, x = arg((), i1, "c"), arg((2,), i32, "x")
    attributes = {"then_graph": 1, "else_graph": 2}
    out = b.emit("tosa.cond_if", [condition, x], x.type, **attributes)
    made = module(b, [condition, x], out)
    other = TosaBuilder()
    y = arg((2,), i32, "x")  # a name that another function has too
    made.functions.append(Function("then", [y], [other.add(y, other.constant([3]))], other.ops))
    z = arg((2,), i32, "z")
    made.functions.append(Function("else", [z], [z], []))
    return made


@case("while_loop")
def _(b: TosaBuilder) -> Module:
    x = arg((), i32)
    made = module(b, [x], b.emit("tosa.while_loop", [x], x.type, cond_graph=1, body_graph=2))
    test, body = TosaBuilder(), TosaBuilder()
    y, z = arg((), i32, "y"), arg((), i32, "z")
    made.functions.append(Function("cond", [y], [test.greater(test.constant(200), y)], test.ops))
    made.functions.append(Function("body", [z], [body.add(z, body.constant(9))], body.ops))
    return made


@case("variable")
def _(b: TosaBuilder) -> Module:
    x = arg((2,), i8)
    b.ops.append(Op("tosa.variable", [b.constant([5, 6], i8)], [], {"name": "state"}))
    before = b.op("tosa.variable_read", [], [x.type], {"name": "state"}).result
    b.ops.append(Op("tosa.variable_write", [x], [], {"name": "state"}))
    return module(b, [x], before, b.op("tosa.variable_read", [], [x.type], {"name": "state"}).result)


@case("gather")
def _(b: TosaBuilder) -> Module:
    x, at = arg((1, 4, 2), i8), arg((1, 3), i32, "at", below=4)
    return module(b, [x, at], b.gather(x, at))


@case("scatter")
def _(b: TosaBuilder) -> Module:
    x, y, at = arg((1, 4, 2), i8, "x"), arg((1, 2, 2), i8, "y"), b.constant([[2, 0]])
    return module(b, [x, y], b.emit("tosa.scatter", [x, at, y], x.type))


@case("pad")
def _(b: TosaBuilder) -> Module:
    x, y = arg((2, 3), i8, "x"), arg((2,), f32, "y")
    c = arg((2,), i1, "c")
    return module(b, [x, y, c], b.pad(x, [(1, 0), (0, 2)], -7), b.pad(y, [(1, 1)], 0.5), b.pad(c, [(1, 0)], 1))


def reductions() -> None:
    for name, element in (
        *((f"reduce_{kind}", i32) for kind in ("sum", "max", "min")),
        *((f"reduce_{kind}", f32) for kind in ("sum", "max", "min", "product")),
        *((f"reduce_{kind}", i1) for kind in ("all", "any")),
    ):

        @case(f"{name} {element}")
        def _(b: TosaBuilder, name: str = name, element: ScalarType = element) -> Module:
            x = arg((2, 3), element)
            return module(b, [x], b.emit(f"tosa.{name}", [x], TensorType((2, 1), element), axis=1))


reductions()


@case("rescale per channel")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), i32)
    several = np.array([1 << 30, 1 << 29, (1 << 30) + 12345]), np.array([-3, 0, -5])
    return module(b, [x], b.rescale(x, several, i8, output_zp=5, rounding_mode="SINGLE_ROUND"))


@case("rescale double")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), i8)
    return module(b, [x], b.rescale(x, (1 << 30, 4), i32, input_zp=-1), b.rescale(x, (1 << 30, 1), i16))


@case("rescale i48")
def _(b: TosaBuilder) -> Module:
    x = arg((1, 2, 2, 2), i16)
    wide = b.conv2d(x, b.constant(np.ones((2, 1, 1, 2)), i8), b.constant([1 << 40, -5], i64), (1, 2, 2, 2), acc=i64)
    return module(b, [x], b.rescale(wide, (1 << 30, -20), i16))


@case("rescale unsigned")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), ui8)
    signed = b.rescale(x, (1 << 30, 1), i8, input_zp=128, rounding_mode="SINGLE_ROUND")
    return module(b, [x], signed, b.rescale(signed, (1 << 30, 1), ui8, output_zp=128, rounding_mode="SINGLE_ROUND"))


@case("rescale unsigned i16")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), SCALARS["ui16"])
    signed = b.rescale(x, (1 << 30, 1), i16, input_zp=32768, rounding_mode="SINGLE_ROUND")
    return module(b, [x], b.identity(signed))


@case("reshape")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3), i8)
    return module(b, [x], b.reshape(x, (3, 1, 2)), b.reshape(b.slice(x, (0, 1), (1, 1)), ()))


@case("resize nearest")
def _(b: TosaBuilder) -> Module:
    x = arg((1, 2, 2, 1), i8)
    attributes = {"scale": (4, 2, 4, 2), "offset": (0, 0), "border": (2, 2), "mode": "NEAREST_NEIGHBOR"}
    return module(b, [x], b.emit("tosa.resize", [x], TensorType((1, 4, 4, 1), i8), **attributes))


@case("resize bilinear")
def _(b: TosaBuilder) -> Module:
    x = arg((1, 2, 2, 1), i8)
    attributes = {"scale": (4, 2, 4, 2), "offset": (-1, 0), "border": (1, 2), "mode": "BILINEAR"}
    return module(b, [x], b.emit("tosa.resize", [x], TensorType((1, 4, 4, 1), i32), **attributes))


@case("select")
def _(b: TosaBuilder) -> Module:
    c, x, y = arg((2, 1), i1, "c"), arg((2, 3), i8, "x"), arg((1, 3), i8, "y")
    return module(b, [c, x, y], b.select(c, x, y))


@case("slice")
def _(b: TosaBuilder) -> Module:
    x = arg((4, 3), i8)
    return module(b, [x], b.slice(x, (1, 0), (2, 3)))


@case("table")
def _(b: TosaBuilder) -> Module:
    x, y = arg((2, 3), i8, "x"), arg((2, 3), i16, "y")
    eight = (np.arange(256) * 7 % 256 - 128).astype(np.int8)
    return module(b, [x, y], b.table(x, eight), b.table(y, np.arange(-256, 257).astype(np.int16)))


@case("tile")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 1), i8)
    return module(b, [x], b.tile(x, (1, 3)))


@case("transpose")
def _(b: TosaBuilder) -> Module:
    x = arg((2, 3, 4), i8)
    return module(b, [x], b.transpose(x, (2, 0, 1)))


@case("constants")
def _(b: TosaBuilder) -> Module:
    """A constant as a result, two that share a buffer, one that two operators read."""
    x = arg((2, 3), i32)
    row = b.constant(np.arange(100).reshape(1, 100)[:, :3])
    column = b.reshape(b.constant([[1, 2]]), (2, 1))
    total = b.add(b.add(b.add(x, row), row), column)
    wide = b.constant(np.array([1 << 37, -(1 << 34), -1]), i64)
    return module(b, [x], total, narrow(b, wide), b.constant([[True, False]], i1))
