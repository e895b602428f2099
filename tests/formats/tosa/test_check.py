"""The check of the tosa form: what is valid passes with the least that it needs, what is not is named."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.one_op import CASES, arg, module
from support.running import valid

from tflq.base.errors import UnsupportedError
from tflq.dialects.tosa.elementwise import Ceil, LogicalNot
from tflq.formats.tosa.check import Requirements, check
from tflq.formats.tosa.laws import law
from tflq.formats.tosa.lowering.context import TosaBuilder
from tflq.formats.tosa.rules import Target
from tflq.formats.tosa.text import mlir_text
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value, constant, op_class, op_names
from tflq.ir.types import SCALARS, TensorType, i1, i8, i32, i64

ALL = Target()
f32 = SCALARS["f32"]


def test_every_operator_has_a_law_or_says_the_shape_of_its_result() -> None:
    kinds: list[Any] = [op_class(name) for name in op_names("tosa")]
    assert all(kind.infers or law.named(kind.op_name) is not None for kind in kinds)


@pytest.mark.parametrize("name", CASES)
def test_valid(name: str) -> None:
    made = CASES[name]()
    needs = check(made, ALL, static=True)
    least = Target(frozenset(needs.profiles), frozenset(needs.extensions))
    assert check(made, least) == needs
    for extension in needs.extensions:
        with pytest.raises(UnsupportedError, match=f"needs .*{extension}"):
            check(made, Target(least.profiles, least.extensions - {extension}))


@pytest.mark.parametrize(
    ("name", "profiles", "extensions"),
    [
        ("conv2d i8", ["pro_int"], []),
        ("conv2d i4", ["pro_int"], ["int4"]),
        ("rescale i48", ["pro_int"], ["int16"]),
        ("rescale double", ["pro_int"], ["doubleround"]),
        ("conv2d f32", ["pro_fp"], []),
        ("pad", ["pro_int", "pro_fp"], []),
        ("logical_not i1", ["pro_int"], []),
        ("while_loop", ["pro_int"], ["controlflow"]),
        ("variable", ["pro_int"], ["variable"]),
    ],
)
def test_requirements(name: str, profiles: list[str], extensions: list[str]) -> None:
    assert check(CASES[name](), ALL) == Requirements(tuple(profiles), tuple(extensions), "8k", "1.0")


def test_requirements_in_words() -> None:
    needs = Requirements(("pro_int",), ("int16", "doubleround"), "8k", "1.0")
    assert str(needs) == "TOSA 1.0, level 8k: valid for the integer profile, with extensions int16, doubleround"
    assert needs.to_json()["extensions"] == ["int16", "doubleround"]
    assert str(Requirements(("pro_int", "pro_fp"), (), "8k", "1.0")).endswith("the integer and floating-point profiles")


def test_what_both_profiles_have_needs_that_of_the_rest() -> None:
    b = TosaBuilder()
    x, y = arg((2,), f32, "x"), arg((2,), i1, "y")
    made = module(b, [x, y], b.emit(Ceil, [x]), b.emit(LogicalNot, [y]))
    assert check(made, ALL).profiles == ("pro_fp",)


def changed(name: str, op: str, **attributes: Any) -> Callable[[], Module]:
    """A case with other attributes of its first op of a name."""

    def make() -> Module:
        made = CASES[name]()
        next(o for o in made.main.ops if o.name == f"tosa.{op}").attributes.update(attributes)
        return made

    return make


def reshaped(name: str, op: str, *shape: int | None, operand: int | None = None) -> Callable[[], Module]:
    """A case with another shape of an operand, or of the result, of its first op of a name."""

    def make() -> Module:
        made = CASES[name]()
        found = next(o for o in made.main.ops if o.name == f"tosa.{op}")
        value = found.result if operand is None else found.operand(operand)
        value.type = TensorType(tuple(shape), value.type.element)
        if value.buffer is not None:
            value.buffer = Buffer(value.buffer.data[: value.type.storage.bits // 8 * prod(d or 0 for d in shape)])
        return made

    return make


def built(emit: Callable[[TosaBuilder], Module]) -> Callable[[], Module]:
    return lambda: emit(TosaBuilder())


def _many(b: TosaBuilder) -> Module:
    x = arg((1, 2), i8)
    return module(b, [x], b.concat([x] * 65, 0))


def _deep(b: TosaBuilder) -> Module:
    x = arg((1,) * 7, i8)
    return module(b, [x], b.identity(x))


def _bits(b: TosaBuilder) -> Module:
    x = arg((2, 3), i8)
    return module(b, [x], b.emit("tosa.maximum", [x, x], x.type))


def _wide(b: TosaBuilder) -> Module:
    x = arg((2, 3), i64)
    return module(b, [x], b.emit("tosa.add", [x, x], x.type))


def _unequal(b: TosaBuilder) -> Module:
    x, y = arg((2, 3), i32, "x"), arg((3,), i32, "y")
    return module(b, [x, y], b.emit("tosa.add", [x, y], x.type))


def _both_unsigned(b: TosaBuilder) -> Module:
    x = arg((2, 3), SCALARS["ui8"])
    return module(b, [x], b.rescale(x, (1 << 30, 1), SCALARS["ui8"], rounding_mode="SINGLE_ROUND"))


def _undeclared(b: TosaBuilder) -> Module:
    return module(b, [], b.op("tosa.variable_read", [], [TensorType((2,), i8)], {"name": "x"}).result)


def _twice(b: TosaBuilder) -> Module:
    x = arg((2,), i8)
    b.ops.extend(Op("tosa.variable", [constant(np.zeros(2, np.int8))], [], {"name": "a"}) for _ in range(2))
    return module(b, [x], b.identity(x))


def _large(b: TosaBuilder) -> Module:
    x = arg((1 << 29,), i32)
    return module(b, [x], b.identity(x))


def _empty(b: TosaBuilder) -> Module:
    x = arg((0, 2), i32)
    return module(b, [x], b.identity(x))


def _itself() -> Module:
    made = CASES["while_loop"]()
    made.functions[2].ops.append(Op("tosa.while_loop", [made.functions[2].inputs[0]], [arg((), i32)], {}))
    made.functions[2].ops[-1].attributes = {"cond_graph": 1, "body_graph": 2}
    return made


def _other_variable() -> Module:
    made = CASES["variable"]()
    value = next(op for op in made.main.ops if op.name == "tosa.variable_write").operand(0)
    value.type = TensorType((3,), i8)
    return made


BROKEN: dict[str, tuple[Callable[[], Module], str]] = {
    "types": (built(_bits), r"\(i8, i8\) → i8"),
    "48 bits": (built(_wide), r"lacks \(i64, i64\) → i64"),
    "ranks": (built(_unequal), "unequal ranks"),
    "broadcast": (reshaped("add i32", "add", 2, 2, operand=1), "do not broadcast"),
    "elementwise result": (reshaped("add i32", "add", 1, 3), r"the result is \[1, 3\], where \[2, 3\] follows"),
    "unary result": (reshaped("abs i32", "abs", 3, 2), "the result is"),
    "rank": (built(_deep), "more than the level's 6 dims"),
    "bytes": (built(_large), r"2\^31"),
    "no elements": (built(_empty), "no elements"),
    "list": (built(_many), "a number of operands of 65, where 64 is the most"),
    "clamp": (changed("clamp i8", "clamp", min_val=3, max_val=2), "min_val 3 is greater"),
    "clamp range": (changed("clamp i8", "clamp", max_val=200), "bounds of 200"),
    "clamp nan": (changed("clamp f32", "clamp", max_val=float("nan")), "NaN"),
    "mul shift": (changed("mul i8", "mul", shift=2), "shift of 2"),
    "mul shift i32": (changed("mul i32", "mul", shift=64), "shift of 64"),
    "negate zero point": (changed("negate i16", "negate", input1_zp=1), "input1_zp of 1"),
    "argmax axis": (changed("argmax", "argmax", axis=2), "axis 2"),
    "argmax result": (reshaped("argmax", "argmax", 2, 1), "the result is"),
    "reduce axis": (changed("reduce_sum i32", "reduce_sum", axis=-1), "axis -1"),
    "reduce result": (reshaped("reduce_sum i32", "reduce_sum", 2), "the result is"),
    "conv division": (changed("conv2d i8", "conv2d", stride=(4, 1)), "not divisible by 4"),
    "conv pad": (changed("conv2d i8", "conv2d", pad=(-1, 1, 0, 0)), "a pad of -1"),
    "conv stride": (changed("conv2d i8", "conv2d", stride=(0, 1)), "a stride of 0"),
    "conv dilation": (changed("conv2d i8", "conv2d", dilation=(0, 1)), "a dilation of 0"),
    "conv kernel": (changed("conv2d i8", "conv2d", dilation=(8192, 1)), "a dilated kernel of 16384"),
    "conv result": (reshaped("conv2d i8", "conv2d", 1, 3, 4, 5), "the result is"),
    "conv channels": (
        reshaped("conv2d i8", "conv2d", 1, 4, 6, 2, operand=0),
        "the channels of input and weight: 2 and 3 differ",
    ),
    "conv zero point": (changed("conv2d i16", "conv2d", input_zp=1), "input_zp of 1"),
    "conv zero point i4": (changed("conv2d i4", "conv2d", weight_zp=1), "weight_zp of 1 with a tensor of i4"),
    "conv3d result": (reshaped("conv3d i8", "conv3d", 1, 2, 2, 1, 3), "the result is"),
    "depthwise": (reshaped("depthwise_conv2d i8", "depthwise_conv2d", 1, 5, 6, 4), "the result is"),
    "transpose_conv2d": (
        changed("transpose_conv2d i8", "transpose_conv2d", out_pad=(-2, 3, 0, -1)),
        "an out_pad of -2",
    ),
    "transpose_conv2d result": (reshaped("transpose_conv2d i8", "transpose_conv2d", 1, 4, 3, 3), "the result is"),
    "pool pad": (changed("max_pool2d i8", "max_pool2d", pad=(2, 0, 0, 0)), "a pad of 2 is not smaller"),
    "pool division": (changed("avg_pool2d i8", "avg_pool2d", stride=(3, 3)), "not divisible by 3"),
    "pool kernel": (changed("avg_pool2d i8", "avg_pool2d", kernel=(0, 3)), "a kernel of 0"),
    "pool zero point": (changed("avg_pool2d i16", "avg_pool2d", output_zp=1), "output_zp of 1"),
    "matmul": (reshaped("matmul i8", "matmul", 2, 5, 2, operand=1), "the dims that are multiplied: 4 and 5 differ"),
    "matmul batch": (reshaped("matmul i8", "matmul", 1, 4, 2, operand=1), "batches of 2 and 1"),
    "rescale shift": (changed("rescale double", "rescale", shift=np.array([1], np.int8)), "shift of 1"),
    "rescale last shift": (changed("rescale double", "rescale", shift=np.array([63], np.int8)), "shift of 63"),
    "rescale channels": (changed("rescale per channel", "rescale", per_channel=False), "3 multipliers"),
    "rescale zero point": (changed("rescale per channel", "rescale", input_zp=1), "input_zp of 1"),
    "rescale ui16": (changed("rescale unsigned i16", "rescale", input_zp=1), "input_zp of 1 with a tensor of ui16"),
    "rescale multiplier": (
        changed("rescale double", "rescale", multiplier=np.array([-1], np.int32)),
        "multiplier of -1",
    ),
    "rescale double": (changed("rescale double", "rescale", scale32=False), "DOUBLE_ROUND without scale32"),
    "rescale i48": (changed("rescale i48", "rescale", scale32=True), "scale32 with an input of 48 bits"),
    "rescale unsigned": (built(_both_unsigned), r"\(ui8\) → ui8"),
    "concat": (reshaped("concat", "concat", 2, 8), "the result is"),
    "concat axis": (changed("concat", "concat", axis=0), "dim 1 of its operands: 3 and 1 differ"),
    "pad": (changed("pad", "pad", padding=(1, -1, 0, 2)), "a padding of -1"),
    "pad result": (reshaped("pad", "pad", 2, 5), "the result is"),
    "reshape": (reshaped("reshape", "reshape", 3, 1, 3), "as many elements"),
    "reverse axis": (changed("reverse i8", "reverse", axis=2), "axis 2"),
    "slice": (changed("slice", "slice", start=(3, 0)), "from 3 on there are not 2 of 4"),
    "slice result": (reshaped("slice", "slice", 1, 3), "the result is"),
    "tile": (reshaped("tile", "tile", 2, 4), "the result is"),
    "transpose": (changed("transpose", "transpose", perms=(0, 0, 1)), "not a permutation"),
    "transpose result": (reshaped("transpose", "transpose", 2, 3, 4), "the result is"),
    "gather": (reshaped("gather", "gather", 2, 3, operand=1), "the batches of values and indices: 1 and 2 differ"),
    "table": (reshaped("table", "table", 128, operand=1), "a table of"),
    "resize": (changed("resize nearest", "resize", border=(1, 2)), "not divisible by 2"),
    "resize scale": (changed("resize nearest", "resize", scale=(4, 64, 4, 2)), "not greater than 1/16"),
    "resize offset": (changed("resize nearest", "resize", offset=(-5, 0)), "an offset of y of -5"),
    "resize border": (changed("resize nearest", "resize", border=(4, 2)), "a border of y of 4"),
    "resize mode": (changed("resize nearest", "resize", mode="BILINEAR"), "BILINEAR from i8 to i8"),
    "cond_if": (reshaped("cond_if", "cond_if", 3), r"outputs of then_graph: number 0"),
    "cond_if condition": (reshaped("cond_if", "cond_if", 2, operand=0), "the condition is"),
    "while_loop": (changed("while_loop", "while_loop", cond_graph=2), "the output of cond_graph"),
    "while_loop function": (changed("while_loop", "while_loop", cond_graph=7), "names no function"),
    "recursion": (_itself, "nests deeper"),
    "variable": (built(_undeclared), "no variable is called 'x'"),
    "variables": (built(_twice), "two variables are called 'a'"),
    "variable type": (_other_variable, "'state' is"),
}
TAKEN = frozenset({"conv channels", "rescale shift", "rescale last shift", "rescale multiplier", "tile", "resize mode"})
"""What the specification forbids and tosa-opt does not look at."""
NO_TEXT = frozenset({"recursion", "while_loop function", "rescale double", "variables"})


@pytest.mark.parametrize("name", BROKEN)
def test_violations(name: str) -> None:
    make, reason = BROKEN[name]
    with pytest.raises(UnsupportedError, match=reason):
        check(make(), ALL)


@pytest.mark.parametrize("name", sorted(BROKEN.keys() - NO_TEXT))
def test_tosa_opt_agrees(name: str, tmp_path: Path) -> None:
    assert valid(mlir_text(BROKEN[name][0]()), ALL.profiles, ALL.extensions, tmp_path) == (name in TAKEN)


def test_all_violations_are_listed() -> None:
    made = changed("conv2d i8", "conv2d", pad=(-1, 0, 0, 0), stride=(0, 1), input_zp=200)()
    with pytest.raises(UnsupportedError) as caught:
        check(made, ALL)
    assert len(caught.value.reasons) == 3
    assert all("tosa.conv2d" in str(reason) for reason in caught.value.reasons)


def test_a_tensor_that_does_not_fit_is_said_without_the_operator_of_tosa() -> None:
    """The shape is the model's, and what the operator makes of it follows."""
    with pytest.raises(UnsupportedError) as caught:
        check(built(_empty)(), ALL)
    assert all("no elements" in str(reason) and "tosa." not in str(reason) for reason in caught.value.reasons)


def test_what_the_target_has_not() -> None:
    with pytest.raises(UnsupportedError, match=r"\(i8, i4, i32\) → i32 needs int4, which the target lacks"):
        check(CASES["conv2d i4"](), Target(extensions=frozenset()))
    with pytest.raises(UnsupportedError, match="DOUBLE_ROUND needs the extension doubleround"):
        check(CASES["rescale double"](), Target(extensions=frozenset()))
    with pytest.raises(UnsupportedError, match="a tensor of f32 needs pro_fp"):
        check(CASES["add f32"](), Target(frozenset({"pro_int"})))


def open_batch() -> Module:
    b = TosaBuilder()
    x = Value(TensorType((None, 4), i8), "in")
    y = b.reshape(b.rescale(x, (1 << 30, 1), i8, rounding_mode="SINGLE_ROUND"), (None, 2, 2))
    return Module([Function("main", [x], [b.slice(y, (0, 1, 0), (None, 1, 2))], b.ops)])


def test_dims_that_are_not_known() -> None:
    assert check(open_batch(), ALL).profiles == ("pro_int",)
    with pytest.raises(UnsupportedError, match=r"input 'in' .*state a batch size") as caught:
        check(open_batch(), ALL, static=True)
    assert len(caught.value.reasons) == 1
