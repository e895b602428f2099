"""IF and WHILE as IF and LOOP: values from outside, variables, shapes that change, results of any origin."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from support.harness import argument, const, interpret
from support.on_onnx import LEVELS, file_of, need_onnx, run_file

import tflq
from tflq.formats.onnx.engine import exact_in, lower
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
    resource,
)

NONE: Final = {"fused_activation_function": "NONE"}
ADD_I32: Final = NONE | {"pot_scale_int16": False}
Q: Final = UniformQuantizedType.of(i8, 0.1, 3)


def op(name: str, operands: list[Value | None], shape: tuple[int | None, ...], element: ElementType, **more: Any) -> Op:
    return Op(f"tfl.{name}", operands, [argument(shape, element, f"{name}_result")], more)


def one(name: str, operands: list[Value], inputs: list[Value], **attributes: Any) -> Function:
    """A function of one operator, whose result is like its first operand."""
    made = op(name, [*operands], operands[0].type.dims, operands[0].type.element, **attributes)
    return Function(name, inputs, made.results, [made])


def branching(then: Function, otherwise: Function, *inputs: Value, shape: tuple[int | None, ...]) -> Module:
    condition = argument((), i1, "condition")
    chosen = op(
        "if",
        [condition, *inputs],
        shape,
        then.outputs[0].type.element,
        then_subgraph_index=1,
        else_subgraph_index=2,
    )
    return Module([Function("main", [condition, *inputs], chosen.results, [chosen]), then, otherwise])


def run(module: Module, **inputs: Any) -> list[np.ndarray]:
    """What ONNX Runtime makes of a module in the integer form, with all optimizations."""
    data = file_of(module)
    made = [run_file(data, {name: np.asarray(a) for name, a in inputs.items()}, level) for level in LEVELS]
    for others in made[1:]:
        for a, b in zip(made[0], others, strict=True):
            np.testing.assert_array_equal(a, b)
    return made[0]


def test_a_branch_reads_what_is_outside_and_leaves_nothing_of_its_own_there() -> None:
    """The operand is cast in both branches, and once more behind them."""
    need_onnx()
    x, a, b = (argument((2, 3), i8, name) for name in ("x", "a", "b"))
    module = branching(
        one("maximum", [a, const(np.asarray(5), i8)], [a]), one("minimum", [b, const(np.asarray(5), i8)], [b]), x,
        shape=(2, 3),
    )  # fmt: skip
    behind = op("maximum", [x, module.main.outputs[0]], (2, 3), i8)
    module.main.ops.append(behind)
    module.main.outputs = [*module.main.outputs, *behind.results]
    array = np.arange(-3, 3, dtype=np.int8).reshape(2, 3) * 4
    for taken, want in ((True, np.maximum(array, 5)), (False, np.minimum(array, 5))):
        chosen, most = run(module, condition=taken, x=array)
        np.testing.assert_array_equal(chosen, want)
        np.testing.assert_array_equal(most, np.maximum(array, want))


def test_a_branch_gives_its_argument_twice_or_a_constant() -> None:
    """Each result of a graph comes from a node of its own."""
    need_onnx()
    x, a, b = (argument((2,), i32, name) for name in ("x", "a", "b"))
    other = const(np.asarray([7, 8]), i32)
    module = branching(Function("same", [a], [a, a], []), Function("other", [b], [other, b], []), x, shape=(2,))
    (chosen,) = module.main.ops
    chosen.results.append(argument((2,), i32, "second"))
    chosen.results[1].producer = chosen
    module.main.outputs = list(chosen.results)
    assert [r.tolist() for r in run(module, condition=True, x=np.asarray([1, 2], np.int32))] == [[1, 2], [1, 2]]
    assert [r.tolist() for r in run(module, condition=False, x=np.asarray([1, 2], np.int32))] == [[7, 8], [1, 2]]


def test_branches_of_different_shapes() -> None:
    need_onnx()
    x, a, b = (argument((2, 3), i8, name) for name in ("x", "a", "b"))
    rows = op("slice", [a, const(np.asarray([0, 0]), i32), const(np.asarray([1, 3]), i32)], (1, 3), i8)
    module = branching(Function("row", [a], rows.results, [rows]), Function("all", [b], [b], []), x, shape=(None, 3))
    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    np.testing.assert_array_equal(run(module, condition=True, x=array)[0], array[:1])
    np.testing.assert_array_equal(run(module, condition=False, x=array)[0], array)


def looping(body: list[Op], carried: list[Value], following: list[Value], most: int, *operands: Value) -> Module:
    """A loop that runs until its first value, a count without dims, is `most`."""
    count = argument((), i32, "counted")
    less = op("less", [count, const(np.asarray(most), i32)], (), i1)
    test = Function(
        "test", [count, *(argument(v.type.dims, v.type.element) for v in carried[1:])], less.results, [less]
    )
    results = [argument(v.type.dims, v.type.element, f"{v.name}_last") for v in following]
    loop = Op("tfl.while", [*operands], results, {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    return Module([Function("main", [*operands], results, [loop]), test, Function("body", carried, following, body)])


def test_a_loop_counts_and_its_values_grow() -> None:
    """A counter without dims, a vector that is longer by one each time, a result that was not changed."""
    need_onnx()
    n, x, fixed = argument((), i32, "n"), argument((None,), i32, "x"), argument((2,), i8, "fixed")
    count, row, same = argument((), i32, "count"), argument((None,), i32, "row"), argument((2,), i8, "same")
    more = op("add", [count, const(np.asarray(1), i32)], (), i32, **ADD_I32)
    wide = op("expand_dims", [count, const(np.asarray(0), i32)], (1,), i32)
    longer = op("concatenation", [row, wide.result], (None,), i32, axis=0, **NONE)
    module = looping(
        [more, wide, longer], [count, row, same], [more.result, longer.result, same], 4, n, x, fixed
    )  # fmt: skip
    given = {"x": np.asarray([9], np.int32), "fixed": np.asarray([-1, 5], np.int8)}
    last, grown, kept = run(module, n=np.asarray(1, np.int32), **given)
    assert (last.shape, int(last), grown.tolist(), kept.tolist()) == ((), 4, [9, 1, 2, 3], [-1, 5])
    last, grown, kept = run(module, n=np.asarray(4, np.int32), **given)  # not run at all
    assert (int(last), grown.tolist(), kept.tolist()) == (4, [9], [-1, 5])


def variables(writes: bool) -> tuple[list[Op], Value, Value]:
    """Operators that read a variable without dims, and write one more than it held; what it held and the handle."""
    handle, was = argument((), resource, "handle"), argument((), i32, "was")
    ops = [
        Op("tfl.var_handle", [], [handle], {"container": "", "shared_name": "total"}),
        Op("tfl.read_variable", [handle], [was]),
    ]
    if writes:
        more = op("add", [was, const(np.asarray(1), i32)], (), i32, **ADD_I32)
        ops += [more, Op("tfl.assign_variable", [handle, more.result], [])]
    return ops, was, handle


def test_a_variable_that_a_branch_writes() -> None:
    need_onnx()
    (writing, before, _), (reading, held, _) = variables(True), variables(False)
    module = branching(Function("writes", [], [before], writing), Function("reads", [], [held], reading), shape=())
    after, now, _ = variables(False)
    module.main.ops += after
    module.main.outputs = [*module.main.outputs, now]
    assert [int(r) for r in run(module, condition=True, total=np.asarray(5, np.int32))] == [5, 6, 6]
    assert [int(r) for r in run(module, condition=False, total=np.asarray(5, np.int32))] == [5, 5, 5]


def test_a_variable_that_the_body_of_a_loop_writes_in_a_branch() -> None:
    """It counts how often the body was run, where the branch is taken: in every second run."""
    need_onnx()
    n, count = argument((), i32, "n"), argument((), i32, "count")
    more = op("add", [count, const(np.asarray(1), i32)], (), i32, **ADD_I32)
    rest = op("floor_mod", [count, const(np.asarray(2), i32)], (), i32)
    odd = op("equal", [rest.result, const(np.asarray(1), i32)], (), i1)
    chosen = op("if", [odd.result], (), i32, then_subgraph_index=3, else_subgraph_index=4)
    module = looping([more, rest, odd, chosen], [count], [more.result], 6, n)
    (writing, before, _), (reading, held, _) = variables(True), variables(False)
    module.functions += [Function("writes", [], [before], writing), Function("reads", [], [held], reading)]
    last, total = run(module, n=np.asarray(0, np.int32), total=np.asarray(10, np.int32))
    assert (int(last), int(total)) == (6, 13)


def test_a_handle_goes_into_a_branch() -> None:
    need_onnx()
    handle, inner, other, was = (argument((), resource, n) for n in ("handle", "inner", "other", "was"))
    was.type = TensorType((), i32)
    read = Op("tfl.read_variable", [inner], [was])
    module = branching(
        Function("reads", [inner], [was], [read]), Function("not", [other], [const(np.asarray(-1), i32)], []),
        shape=(),
    )  # fmt: skip
    (chosen,) = module.main.ops
    module.main.ops.insert(0, Op("tfl.var_handle", [], [handle], {"container": "", "shared_name": "total"}))
    chosen.operands.append(handle)
    assert [int(r) for r in run(module, condition=True, total=np.asarray(5, np.int32))] == [5, 5]
    assert [int(r) for r in run(module, condition=False, total=np.asarray(5, np.int32))] == [-1, 5]


def test_what_a_branch_lacks_is_refused_with_its_place() -> None:
    x, a, b = (argument((2,), f32, name) for name in ("x", "a", "b"))
    module = branching(one("atan2", [a, a], [a]), Function("same", [b], [b], []), x, shape=(2,))
    with pytest.raises(tflq.UnsupportedError, match=r"tfl\.atan2"):
        lower(module)
    module.functions[1] = Function("same", [a], [a], [])
    module.main.ops[0].operands[0] = argument((), i32, "condition")
    module.main.inputs[0] = module.main.ops[0].operand(0)
    with pytest.raises(tflq.UnsupportedError, match="its condition 'condition' is i32, not i1"):
        lower(module)


@pytest.mark.parametrize(("depth", "fits"), [(2, True), (7, False)])
def test_numbers_in_copies_of_a_function_are_bounded(depth: int, fits: bool) -> None:
    """Each function runs the next one in both branches, and the last one has a table of 16 bits for each channel."""
    left, right = (UniformQuantizedPerAxisType.of(i16, 1, np.asarray([s, 2 * s], np.float32), 0) for s in (0.01, 0.03))

    def calling(index: int) -> Function:
        condition, x = argument((), i1, "condition"), argument((1, 2), left, "x")
        both = op("if", [condition, condition, x], (1, 2), right, then_subgraph_index=index, else_subgraph_index=index)
        return Function(f"before_{index}", [condition, x], both.results, [both])

    condition, x = argument((), i1, "condition"), argument((1, 2), left, "x")
    last = op("relu6", [x], (1, 2), right)
    module = Module([*(calling(at + 1) for at in range(depth)), Function("last", [condition, x], last.results, [last])])
    if fits:
        assert tflq.convert(write(module), format="onnx").data
    else:
        with pytest.raises(tflq.UnsupportedError, match=r"copies of .* numbers in its place"):
            tflq.convert(write(module), format="onnx")


def test_sums_and_wide_integers_inside_count() -> None:
    """Where a graph inside gives sums of floats, no runtime is exact; where it computes int64, OpenVINO is not."""
    x, a, b = (argument((2,), i64, name) for name in ("x", "a", "b"))
    module = branching(one("add", [a, a], [a], **ADD_I32), Function("same", [b], [b], []), x, shape=(2,))
    assert exact_in(lower(module).main) == ["onnxruntime"]
    x, a, b = (argument((2, 4), f32, name) for name in ("x", "a", "b"))
    product = op("fully_connected", [a, const(np.ones((4, 4)), f32)], (2, 4), f32, weights_format="DEFAULT", **NONE)
    module = branching(
        Function("sum", [a], product.results, [product]), Function("same", [b], [b], []), x, shape=(2, 4)
    )
    assert exact_in(lower(module).main) == []


@pytest.mark.parametrize("format", ["onnx", "qdq"])
def test_quantized_branches_and_loops_as_in_the_interpreter(format: str) -> None:
    """A loop of quantized ADDs, with a quantized branch behind it."""
    need_onnx()
    n, x = argument((), i32, "n"), argument((2, 3), Q, "x")
    count, held = argument((), i32, "count"), argument((2, 3), Q, "held")
    more = op("add", [count, const(np.asarray(1), i32)], (), i32, **ADD_I32)
    grown = op("add", [held, const(np.asarray([9, -4, 4]), Q)], (2, 3), Q, **ADD_I32)
    module = looping([more, grown], [count, held], [more.result, grown.result], 3, n, x)
    inside, same = argument((2, 3), Q, "inside"), argument((2, 3), Q, "same")
    condition = op("less", [n, const(np.asarray(2), i32)], (), i1)
    chosen = op(
        "if", [condition.result, module.main.outputs[1]], (2, 3), Q, then_subgraph_index=3, else_subgraph_index=4
    )
    module.functions += [one("mul", [inside, inside], [inside], **NONE), Function("same", [same], [same], [])]
    module.main.ops += [condition, chosen]
    module.main.outputs = [module.main.outputs[0], *chosen.results]
    model = bytes(write(module))
    data = tflq.convert(model, format=format).data
    array = np.arange(-60, 60, 20, dtype=np.int8).reshape(2, 3)
    for start in (0, 2, 5):
        batch: list[np.ndarray] = [np.asarray(start, np.int32), array]
        (wanted,) = interpret(model, [batch])
        made = run_file(data, {"n": batch[0], "x": array})
        for want, got in zip(wanted, made, strict=True):
            np.testing.assert_allclose(got.astype(int), want.astype(int), atol=int(format == "qdq"))
