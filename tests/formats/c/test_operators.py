"""Operators of TOSA in C equal the evaluator: each program tests itself, with sanitizers, on drawn inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const
from support.on_c import assert_passes, compiled, module_of, need_compiler, written

import tflq
from tflq.formats.c.expressions import _OPERATORS, _PATTERNS
from tflq.ir.index import DIALECTS
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, op_class
from tflq.ir.types import SCALARS, ScalarType, TensorType, f32, i1, i8, i16, i32, i64, ui8

pytestmark = need_compiler
RNG: Final = np.random.default_rng(3)
SANITIZE: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def result(element: ScalarType, *shape: int) -> Value:
    return Value(TensorType(shape, element), "y")


def op(kind: str, operands: list[Value], element: ScalarType, shape: tuple[int, ...], **attributes: Any) -> Op:
    return Op(f"tosa.{kind}", [*operands], [result(element, *shape)], attributes)


def drawn(element: ScalarType, *shape: int) -> Value:
    return const(RNG.integers(max(element.minimum, -1 << 20), min(element.maximum, 1 << 20), shape), element)


def rescaled(x: Value, element: ScalarType, numbers: list[int], shifts: list[int], **more: Any) -> Op:
    attributes = {"input_zp": 0, "output_zp": 3, "rounding_mode": "DOUBLE_ROUND", "scale32": True} | more
    arrays = {"multiplier": np.asarray(numbers, np.int32), "shift": np.asarray(shifts, np.int8)}
    return op("rescale", [x], element, x.type.sizes, **arrays, per_channel=len(numbers) > 1, **attributes)


def convolved(
    name: str, x: Value, weight: tuple[int, ...], out: tuple[int, ...], wide: Any = i32, **more: Any
) -> list[Op]:
    """A convolution and its requantization to int8, with shifts on both sides of 31."""
    zero = {"input_zp": -3 if x.type.storage == i8 else 0, "weight_zp": more.pop("weight_zp", 0)}
    conv = op(name, [x, drawn(i8, *weight), drawn(wide, out[-1])], wide, out, **zero, **more)
    channels = out[-1]
    numbers = RNG.integers(1 << 30, (1 << 31) - 1, channels).tolist()
    mode = {} if wide == i32 else {"rounding_mode": "SINGLE_ROUND", "scale32": False}
    if wide == i64:
        return [conv, rescaled(conv.result, i16, [20000] * channels, [26] * channels, output_zp=0, **mode)]
    return [conv, rescaled(conv.result, i8, numbers, [31 + 6 + i % 3 for i in range(channels)])]


ONE: Final = {"stride": (1, 1), "dilation": (1, 1), "pad": (0, 0, 0, 0)}
X: Final = argument((1, 7, 6, 3), i8)
CONVOLUTIONS: Final[dict[str, Callable[[], list[Op]]]] = {
    "1x1": lambda: convolved("conv2d", X, (5, 1, 1, 3), (1, 7, 6, 5), **ONE),
    "one channel": lambda: convolved("conv2d", X, (1, 1, 1, 3), (1, 7, 6, 1), **ONE),
    "weights with a zero point": lambda: convolved("conv2d", X, (4, 1, 1, 3), (1, 7, 6, 4), weight_zp=7, **ONE),
    "padded": lambda: convolved("conv2d", X, (4, 3, 3, 3), (1, 7, 6, 4), **ONE | {"pad": (1, 1, 1, 1)}),
    "strides and dilation": lambda: convolved(
        "conv2d", X, (2, 3, 2, 3), (1, 3, 3, 2), stride=(2, 2), dilation=(2, 1), pad=(2, 1, 1, 0)
    ),
    "of a volume": lambda: convolved(
        "conv3d", argument((2, 5, 4, 6, 2), i8), (3, 3, 2, 2, 2), (2, 3, 2, 5, 3),
        stride=(2, 2, 1), dilation=(1, 1, 2), pad=(2, 0, 0, 1, 1, 0),
    ),
    "whole picture": lambda: convolved("conv2d", X, (4, 7, 6, 3), (1, 1, 1, 4), **ONE),
    "batches": lambda: convolved("conv2d", argument((3, 4, 4, 2), i8), (3, 2, 2, 2), (3, 3, 3, 3), **ONE),
    "int16": lambda: convolved("conv2d", argument((1, 5, 5, 2), i16), (3, 3, 3, 2), (1, 3, 3, 3), i64, **ONE),
    "depthwise": lambda: convolved(
        "depthwise_conv2d", X, (3, 3, 3, 1), (1, 7, 6, 3), **ONE | {"pad": (1, 1, 1, 1)}
    ),
    "depthwise, several outputs": lambda: convolved("depthwise_conv2d", X, (2, 2, 3, 2), (1, 6, 5, 6), **ONE),
    "depthwise, a large window": lambda: convolved("depthwise_conv2d", X, (6, 5, 3, 1), (1, 2, 2, 3), **ONE),
    "depthwise, int16": lambda: convolved(
        "depthwise_conv2d", argument((1, 5, 5, 4), i16), (3, 3, 4, 1), (1, 3, 3, 4), i64, **ONE
    ),
    "transposed": lambda: convolved(
        "transpose_conv2d", X, (2, 3, 3, 3), (1, 14, 12, 2), stride=(2, 2), out_pad=(0, -1, -1, 0)
    ),
}  # fmt: skip


def _one_large_sum() -> list[Op]:
    """A channel without weights whose bias is near the end of int32, as networks have it, beside others."""
    weights = const(np.asarray([0, 0, 0, 99, -128, 127], np.int8).reshape(2, 1, 1, 3), i8)
    bias = const(np.asarray([-(1 << 31) + (1 << 25), 5]), i32)
    conv = op("conv2d", [X, weights, bias], i32, (1, 7, 6, 2), input_zp=-3, weight_zp=0, **ONE)
    return [conv, rescaled(conv.result, i8, [1945634817, 1 << 30], [58, 40])]


def _least_weight(bias: int) -> list[Op]:
    """Depthwise products of which two do not fit int16, or sums that zero points would take out of int32."""
    weights = const(RNG.integers(-127 if bias else -128, -125, (3, 3, 3, 1)), i8)
    conv = op(
        "depthwise_conv2d",
        [X, weights, const(np.full(3, bias), i32)],
        i32,
        (1, 5, 4, 3),
        input_zp=-128,
        weight_zp=0,
        **ONE,
    )
    return [conv, rescaled(conv.result, i8, [1 << 30], [46])]


CONVOLUTIONS.update(
    {
        "one large sum": _one_large_sum,
        "depthwise, the least weight": lambda: _least_weight(0),
        "depthwise, a large bias": lambda: _least_weight((1 << 31) - 200),
        "windows that end with zeros": lambda: convolved(
            "conv2d", argument((1, 5, 5, 5), i8), (7, 2, 2, 5), (1, 4, 4, 7), **ONE
        ),
    }
)


def test_a_residual_sum_lies_on_its_operand(tmp_path: Path) -> None:
    """A convolution, the sum with its operand and the next requantization are one kernel."""
    x = argument((1, 4, 4, 8), i8)
    first = convolved("conv2d", x, (8, 1, 1, 8), (1, 4, 4, 8), **ONE)
    second = convolved("conv2d", first[-1].result, (8, 3, 3, 8), (1, 4, 4, 8), **ONE | {"pad": (1, 1, 1, 1)})
    casts = [op("cast", [v], i32, (1, 4, 4, 8)) for v in (first[-1].result, second[-1].result)]
    total = op("add", [c.result for c in casts], i32, (1, 4, 4, 8))
    last = rescaled(total.result, i8, [1 << 30], [31], output_zp=0)
    third = convolved("conv2d", last.result, (8, 1, 1, 8), (1, 4, 4, 8), **ONE)
    source = written(module_of([x], [*first, *second, *casts, total, last, *third]), tmp_path)
    assert_passes(source)
    assert source.read_text().count("static void net_") == 3


def test_a_result_is_where_an_output_will_be(tmp_path: Path) -> None:
    """Of two results between three windows of all elements, one has room in the output before that is written."""
    x, attributes = argument((1, 8, 8, 8), i8), {"kernel": (3, 3), "stride": (1, 1), "pad": (1, 1, 1, 1)}
    first = op("max_pool2d", [x], i8, (1, 8, 8, 8), **attributes)
    second = op("reverse", [first.result], i8, (1, 8, 8, 8), axis=1)
    third = op("max_pool2d", [second.result], i8, (1, 8, 8, 8), **attributes)
    source = written(module_of([x], [first, second, third]), tmp_path)
    assert_passes(source, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert "(uint8_t *)out0" in source.read_text()
    assert int(re.findall(r"NET_ARENA_BYTES (\d+)", source.with_suffix(".h").read_text())[0]) <= 512 + 8


def _elementwise(element: ScalarType = i32) -> list[Op]:
    """Wrapping arithmetic of ends, comparisons, shifts and choices with operands that broadcast."""
    x = argument((2, 3, 4), i8)
    ops = [op("cast", [x], i32, (2, 3, 4))]
    a = ops[0].result
    big = const(np.asarray([[[2**31 - 1, -(2**31), 77, -5]]]), i32)
    rows = const(np.asarray([[[3], [-2], [0]]]), i32)
    ops += [op(name, [a, other], i32, (2, 3, 4)) for name, other in (("add", big), ("sub", big), ("maximum", rows))]
    ops.append(op("mul", [ops[1].result, big], i32, (2, 3, 4), shift=0))
    ops.append(op("mul", [ops[2].result, big], i32, (2, 3, 4), shift=31))
    ops.append(op("intdiv", [ops[4].result, const(np.full((1, 1, 1), -7), i32)], i32, (2, 3, 4)))
    ops.append(op("abs", [ops[5].result], i32, (2, 3, 4)))
    ops.append(op("clz", [ops[7].result], i32, (2, 3, 4)))
    few = op("minimum", [ops[8].result, const(np.full((1, 1, 1), 31), i32)], i32, (2, 3, 4))
    ops += [few, op("arithmetic_right_shift", [ops[6].result, few.result], i32, (2, 3, 4), round=False)]
    ops.append(op("greater", [ops[3].result, a], i1, (2, 3, 4)))
    ops.append(op("select", [ops[-1].result, ops[-2].result, ops[7].result], i32, (2, 3, 4)))
    ops.append(op("bitwise_xor", [ops[-1].result, big], i32, (2, 3, 4)))
    return ops


def _two_convolutions() -> list[Op]:
    """The sum of two convolutions, requantized twice: it is cut off at the narrow value between, and then in itself."""
    first, second = (convolved("conv2d", X, (5, 1, 1, 3), (1, 7, 6, 5), **ONE)[0] for _ in range(2))
    total = op("add", [first.result, second.result], i32, (1, 7, 6, 5))
    narrow = rescaled(total.result, i8, [1 << 30], [40])
    return [first, second, total, narrow, rescaled(narrow.result, ui8, [1 << 30], [30], input_zp=-128, output_zp=0)]


def _softmax_like() -> list[Op]:
    x = argument((5, 16), i8)
    most = op("reduce_max", [x], i8, (5, 1), axis=1)
    wide = [op("cast", [v], i32, v.type.sizes) for v in (x, most.result)]
    apart = op("sub", [w.result for w in wide], i32, (5, 16))
    squared = op("mul", [apart.result, apart.result], i32, (5, 16), shift=0)
    return [most, *wide, apart, squared, op("reduce_sum", [squared.result], i32, (5, 1), axis=1)]


def _pool(kind: str, element: ScalarType, **window: tuple[int, ...]) -> list[Op]:
    zeros = {"input_zp": -4, "output_zp": 2} if kind == "avg" and element == i8 else {}
    zeros = zeros or ({"input_zp": 0, "output_zp": 0} if kind == "avg" else {})
    x, window = argument((2, 6, 5, 3), element), {"kernel": (3, 2), "pad": (1, 0, 0, 1)} | window
    heights = (6 + sum(window["pad"][:2]) - window["kernel"][0]) // 2 + 1
    return [op(f"{kind}_pool2d", [x], element, (2, heights, 3, 3), stride=(2, 2), **window, **zeros)]


def _resized(mode: str, element: ScalarType) -> list[Op]:
    x = argument((1, 4, 5, 2), i8)
    return [op("resize", [x], element, (1, 8, 10, 2), scale=(4, 2, 4, 2), offset=(-1, -1), border=(1, 1), mode=mode)]


def _moved() -> list[Op]:
    x = argument((2, 4, 6), i16)
    ops = [op("transpose", [x], i16, (6, 2, 4), perms=(2, 0, 1))]
    ops.append(op("reverse", [ops[-1].result], i16, (6, 2, 4), axis=1))
    ops.append(op("slice", [ops[-1].result], i16, (4, 1, 3), start=(1, 1, 0), size=(4, 1, 3)))
    ops.append(op("pad", [ops[-1].result], i16, (5, 3, 4), padding=(0, 1, 1, 1, 1, 0), pad_const=-7))
    ops.append(op("tile", [ops[-1].result], i16, (5, 6, 8), multiples=(1, 2, 2)))
    return [*ops, op("concat", [ops[-1].result, const(np.ones((5, 6, 1)), i16)], i16, (5, 6, 9), axis=2)]


def _by_index() -> list[Op]:
    x, at = argument((2, 5, 3), i8, "x"), argument((2, 4), i32, "at")
    gathered = op("gather", [x, at], i8, (2, 4, 3))
    return [gathered, op("scatter", [x, at, gathered.result], i8, (2, 5, 3))]


def _wide() -> list[Op]:
    cast = op("cast", [argument((64,), i8)], i32, (64,))
    wide = op("logical_left_shift", [cast.result, const(np.full(1, 24), i32)], i32, (64,))
    return [cast, wide, rescaled(wide.result, i32, [(1 << 31) - 1], [31 + 30], output_zp=0)]


OTHERS: Final[dict[str, Callable[[], list[Op]]]] = {
    "elementwise": _elementwise,
    "reductions and broadcasts": _softmax_like,
    "mean of int8": lambda: _pool("avg", i8),
    "mean of int16": lambda: _pool("avg", i16),
    "mean of a window larger than its input": lambda: _pool("avg", i8, kernel=(1999, 4), pad=(3, 1994, 1, 2)),
    "greatest": lambda: _pool("max", i8),
    "nearest": lambda: _resized("NEAREST_NEIGHBOR", i8),
    "bilinear": lambda: _resized("BILINEAR", i32),
    "movement": _moved,
    "by index": _by_index,
    "argmax": lambda: [op("argmax", [argument((3, 7, 2), i8)], i32, (3, 2), axis=1)],
    "matmul": lambda: [
        op("matmul", [argument((2, 3, 4), i8, "a"), argument((2, 4, 5), i8, "b")], i32, (2, 3, 5), a_zp=3, b_zp=-128)
    ],
    "matmul of int16": lambda: [
        op("matmul", [argument((1, 3, 40), i16, "a"), argument((1, 40, 2), i16, "b")], i64, (1, 3, 2), a_zp=0, b_zp=0)
    ],
    "table of 16 bits": lambda: [op("table", [argument((9, 9), i16), drawn(i16, 513)], i32, (9, 9))],
    "floats to integers": lambda: [
        (scaled := op("mul", [argument((64,), f32), const(np.full(1, 2.5), f32)], f32, (64,), shift=0)),
        op("cast", [scaled.result], i32, (64,)),
    ],
    "a requantization of all of int32": _wide,
    "two convolutions in a tree": _two_convolutions,
    "a constant without elements": lambda: [
        op("sub", [argument((1, 1), i32), const(np.zeros((2, 0)), i32)], i32, (2, 0)),
        op("argmax", [argument((3, 7, 2), i8)], i32, (3, 2), axis=1),
    ],
}  # fmt: skip


CASES: Final = CONVOLUTIONS | OTHERS


def _of(name: str) -> Module:
    ops = CASES[name]()
    computed = {v for each in ops for v in each.results}
    inputs = dict.fromkeys(v for each in ops for v in each.present_operands if not v.is_constant and v not in computed)
    return module_of(list(inputs), ops)


@pytest.mark.parametrize("name", CASES)
def test_an_operator(name: str, tmp_path: Path) -> None:
    assert_passes(written(_of(name), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_operator_with_sanitizers(name: str, tmp_path: Path) -> None:
    assert_passes(written(_of(name), tmp_path), *SANITIZE)


def test_state_starts_as_it_says_and_goes_on(tmp_path: Path) -> None:
    """A variable is read before and after it is written; the self-test runs two steps."""
    x, start = argument((4,), i8), const(np.asarray([5, -6, 7, -8]), i8)
    first = op("variable_read", [], i8, (4,), name="v")
    wide = [op("cast", [v], i32, (4,)) for v in (x, first.result)]
    total = op("add", [w.result for w in wide], i32, (4,))
    narrow = op("cast", [total.result], i8, (4,))
    write = Op("tosa.variable_write", [narrow.result], [], {"name": "v"})
    again = op("variable_read", [], i8, (4,), name="v")
    ops = [Op("tosa.variable", [start], [], {"name": "v"}), first, *wide, total, narrow, write, again]
    last = [op("cast", [v], i32, (4,)) for v in (first.result, again.result)]
    ops += [*last, op("sub", [w.result for w in last], i32, (4,))]
    assert_passes(written(module_of([x], ops), tmp_path))


def test_every_elementwise_operator_has_an_expression() -> None:
    kinds = {op_class(f"tosa.{name}") for name in DIALECTS["tosa"]["elementwise"].split()}
    assert kinds <= _PATTERNS.keys() | _OPERATORS.keys()


def test_an_unsigned_input_is_read_as_it_is(tmp_path: Path) -> None:
    x = argument((1, 5, 5, 3), ui8)
    signed = rescaled(x, i8, [1 << 30], [30], output_zp=-128, rounding_mode="SINGLE_ROUND")
    ops = [signed, *convolved("conv2d", signed.result, (4, 3, 3, 3), (1, 5, 5, 4), **ONE | {"pad": (1, 1, 1, 1)})]
    source = written(module_of([x], ops), tmp_path)
    assert_passes(source)
    assert source.read_text().count("static void net_") == 1


def _branch(name: str, element: ScalarType, shape: tuple[int, ...], *kinds: str, number: int = 3) -> Function:
    """A function that takes operators with a number one after the other, and returns its operand, too."""
    x = argument(shape, element, "x")
    ops: list[Op] = []
    for kind in kinds:
        value = ops[-1].result if ops else x
        ops.append(op(kind, [value, const(np.full((1,) * len(shape), number), element)], element, shape))
    return Function(name, [x], [ops[-1].result if ops else x, x], ops)


@pytest.mark.parametrize("data", ["inline", "blob"])
def test_if_calls_a_function(data: str, tmp_path: Path) -> None:
    """A branch that is nothing but its operand, and one of which the constants are behind a pointer."""
    x, chosen = argument((2, 3), i32), argument((), i1, "chosen")
    branch = Op("tosa.cond_if", [chosen, x], [result(i32, 2, 3), result(i32, 2, 3)], {"then_graph": 1, "else_graph": 2})
    total = op("add", branch.results, i32, (2, 3))
    main = Function("main", [chosen, x], [total.result, branch.results[1]], [branch, total])
    rows = const(RNG.integers(-99, 99, (2, 3)), i32)
    y = argument((2, 3), i32, "y")
    scaled = op("mul", [y, rows], i32, (2, 3), shift=0)
    other = Function("other", [y], [scaled.result, y], [scaled])
    module = Module([main, _branch("then", i32, (2, 3)), other])
    source = written(module, tmp_path, data=data)
    if data == "inline":
        assert_passes(source, *SANITIZE)
    else:
        compiled(source, "-c")


def test_while_calls_functions_until_one_says_no(tmp_path: Path) -> None:
    """Two loops, one in the other: memory of the inner one is within that of the outer one."""

    def loop(x: Value, cond: int, body: int) -> Op:
        return Op("tosa.while_loop", [x], [result(i32, 1)], {"cond_graph": cond, "body_graph": body})

    def condition(name: str, most: int) -> Function:
        x = argument((1,), i32)
        less = op("greater", [const(np.asarray([most]), i32), x], i1, (1,))
        return Function(name, [x], less.results, [less])

    def step(name: str, number: int) -> tuple[Value, Op]:
        x = argument((1,), i32, name)
        return x, op("add", [x, const(np.asarray([number]), i32)], i32, (1,))

    x = argument((1,), i32)
    outer = loop(x, 1, 2)
    (a, more), (b, again) = step("a", 1), step("b", 7)
    inner = loop(more.result, 3, 4)
    functions = [Function("main", [x], outer.results, [outer]), condition("outer", 50)]
    functions += [Function("outer_body", [a], inner.results, [more, inner]), condition("inner", 20)]
    functions += [Function("inner_body", [b], again.results, [again])]
    assert_passes(written(Module(functions), tmp_path), *SANITIZE)


def test_a_loop_without_an_end_has_no_test(tmp_path: Path) -> None:
    x = argument((1,), i32)
    loop = Op("tosa.while_loop", [x], [result(i32, 1)], {"cond_graph": 1, "body_graph": 2})
    y = argument((1,), i32, "y")
    always = op("equal", [y, y], i1, (1,))
    functions = [Function("main", [x], loop.results, [loop]), Function("always", [y], always.results, [always])]
    source = written(Module([*functions, _branch("body", i32, (1,), "add")]), tmp_path)
    assert "int main(" not in source.read_text()


def test_a_padding_of_gigabytes_has_no_test(tmp_path: Path) -> None:
    """The loops look at no padding; the evaluator would make an array of it."""
    far = {"stride": (1, 1 << 30), "pad": (0, 0, 0, (1 << 30) - 5)}
    source = written(module_of([X], convolved("conv2d", X, (2, 1, 1, 3), (1, 7, 2, 2), **ONE | far)), tmp_path)
    assert "int main(" not in source.read_text()


def test_functions_of_control_flow_are_refused_beyond_a_depth(tmp_path: Path) -> None:
    functions = []
    for at in range(60):
        x, chosen = argument((1,), i32), argument((), i1, "chosen")
        ops = [Op("tosa.cond_if", [chosen, chosen, x], [result(i32, 1)], {"then_graph": at + 1, "else_graph": at + 1})]
        functions.append(Function(f"f{at}", [chosen, x], ops[0].results, ops))
    x, chosen = argument((1,), i32), argument((), i1, "chosen")
    functions.append(Function("last", [chosen, x], [x], []))
    with pytest.raises(tflq.UnsupportedError, match="more than 50 functions"):
        written(Module(functions), tmp_path)


def test_functions_of_control_flow_are_refused_where_they_call_themselves(tmp_path: Path) -> None:
    x, chosen = argument((1,), i32), argument((), i1, "chosen")
    branch = Op("tosa.cond_if", [chosen, x, chosen], [result(i32, 1)], {"then_graph": 0, "else_graph": 0})
    with pytest.raises(tflq.UnsupportedError, match="a function that calls itself"):
        written(Module([Function("main", [chosen, x], branch.results, [branch])]), tmp_path)


@pytest.mark.parametrize("data", ["inline", "separate", "blob"])
def test_constants_are_where_they_shall_be(data: str, tmp_path: Path) -> None:
    ops = CONVOLUTIONS["1x1"]()
    source = written(module_of([X], ops), tmp_path, data=data, name="other")
    assert "other_run(" in source.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["net.c", "net.h", *{"inline": [], "separate": ["net_data.c"], "blob": ["net.bin"]}[data]]
    )


def test_all_that_has_no_form_is_refused_at_once(tmp_path: Path) -> None:
    x, half = argument((1, 4, 4), f32), argument((4,), SCALARS["f16"], "half")
    waves = Op("tosa.fft2d", [x, x], [result(f32, 1, 4, 4), result(f32, 1, 4, 4)], {"inverse": False})
    with pytest.raises(tflq.UnsupportedError, match="FFT2D is not written in C"):
        written(module_of([x], [waves]), tmp_path)
    with pytest.raises(tflq.UnsupportedError, match="'half' is f16, which C99 has no type for"):
        written(module_of([half], [op("abs", [half], half.type.storage, (4,))]), tmp_path)
    assert not list(tmp_path.iterdir())
