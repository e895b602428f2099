"""Resource variables of quantized tensors: their integers, from CALL_ONCE on, over several runs."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, interpret
from support.recurrent import per_layer
from support.running import reference

from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import convert
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    i1,
    i8,
    i16,
    i32,
    resource,
    ui8,
)

SHAPE = (2, 3)


def _op(name: str, operands: list[Value], results: list[Value], **attributes: object) -> Op:
    return Op(f"tfl.{name}", list(operands), results, attributes, info={"version": 2 if name == "add" else 1})


def _handle() -> Op:
    return _op("var_handle", [], [Value(TensorType((), resource), "h")], container="", shared_name="total")


def _model(element: ElementType, adds: bool) -> bytes:
    """A variable of sevens that takes the input, or adds it; the result is what it held, or the sum."""
    x, held = argument(SHAPE, element, "x"), argument(SHAPE, element, "held")
    first, handle = _handle(), _handle()
    start = _op("assign_variable", [first.result, const(np.full(SHAPE, 7), element, "start")], [])
    ops = [_op("call_once", [], [], init_subgraph_index=1), handle, _op("read_variable", [handle.result], [held])]
    new = x
    if adds:
        total = argument(SHAPE, element, "total")
        ops.append(_op("add", [held, x], [total], fused_activation_function="NONE", pot_scale_int16=False))
        new = held = total
    ops.append(_op("assign_variable", [handle.result, new], []))
    return bytes(write(Module([Function("main", [x], [held], ops), Function("start", [], [], [first, start])])))


@pytest.mark.parametrize("adds", [False, True], ids=["held", "added"])
@pytest.mark.parametrize("storage", [i8, ui8, i16, i32], ids=str)
def test_held_integers(storage: ScalarType, adds: bool) -> None:
    if adds and storage == i32:
        pytest.skip("ADD has no quantized int32")
    model = _model(per_layer(storage, 0.05, 3 if storage in (i8, ui8) else 0), adds)
    rng = np.random.default_rng(3)
    batches = [[rng.integers(0, 20, SHAPE).astype(storage.dtype)] for _ in range(4)]
    wanted = interpret(model, batches)
    assert len({w[0].tobytes() for w in wanted}) == 4
    tosa = convert(model, format="tosa")
    np.testing.assert_array_equal(reference(tosa.module, batches[0])[0], wanted[0][0])
    for converted in (convert(model).data, convert(tosa.data).data):
        for resolver in ("BUILTIN_REF", "AUTO"):
            for (got,), (want,) in zip(interpret(converted, batches, resolver), wanted, strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_other_parameters(storage: ScalarType) -> None:
    """Written with one scale and read with another: the integers are the same, or the numbers are."""
    zero = 0 if storage == i16 else 3
    written, seen = per_layer(storage, 0.05, zero), per_layer(storage, 0.1, zero)
    x, held = argument(SHAPE, written, "x"), argument(SHAPE, seen, "held")
    first, handle = _handle(), _handle()
    start = _op("assign_variable", [first.result, const(np.full(SHAPE, 7), seen, "start")], [])
    ops = [_op("call_once", [], [], init_subgraph_index=1), handle]
    ops += [_op("assign_variable", [handle.result, x], []), _op("read_variable", [handle.result], [held])]
    model = bytes(write(Module([Function("main", [x], [held], ops), Function("start", [], [], [first, start])])))
    given = np.asarray([[-9, 0, 3], [5, 20, 120]]).astype(storage.dtype)
    raw = convert(model)
    np.testing.assert_array_equal(interpret(raw.data, [[given]])[0][0], interpret(model, [[given]])[0][0])
    assert ["copies the stored integers" in row.warning for row in raw.report.rows].count(True) == 1
    real = convert(model, semantics="real")
    halves = (given.astype(np.int64) - zero) / 2
    wanted = (np.sign(halves) * np.floor(np.abs(halves) + 0.5)).astype(np.int64) + zero
    np.testing.assert_array_equal(interpret(real.data, [[given]])[0][0], wanted)
    assert not any(row.warning for row in real.report.rows)


def test_per_axis_under_other_parameters() -> None:
    """No form of it where parameters hold: refused, with what to do."""
    written = UniformQuantizedPerAxisType.of(i8, 1, np.asarray([0.1, 0.2, 0.3]), 0)
    x, held = argument(SHAPE, written, "x"), argument(SHAPE, per_layer(i8, 0.1, 0), "held")
    handle = _handle()
    ops = [handle, _op("assign_variable", [handle.result, x], []), _op("read_variable", [handle.result], [held])]
    model = bytes(write(Module([Function("main", [x], [held], ops)])))
    with pytest.raises(UnsupportedError, match="'held' is read under other parameters than its variable has"):
        convert(model, semantics="real")


def _changed(handle: Value | None, inputs: list[Value], name: str) -> Function:
    """Adds the argument to the variable, by a handle of its own if it is not given one; the result is the sum."""
    x = inputs[0]
    held, total = argument(SHAPE, x.type.element, "held"), argument(SHAPE, x.type.element, "total")
    first = [_handle()] if handle is None else []
    at = first[0].result if handle is None else handle
    ops = [
        *first,
        _op("read_variable", [at], [held]),
        _op("add", [held, x], [total], fused_activation_function="NONE", pot_scale_int16=False),
        _op("assign_variable", [at, total], []),
    ]
    return Function(name, inputs, [total], ops)


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
@pytest.mark.parametrize("passed", [False, True], ids=["own", "passed"])
def test_branches_and_loops_change_variables(storage: ScalarType, passed: bool) -> None:
    """One branch adds to the variable, the other three times, in a loop; handles may be passed on."""
    element = per_layer(storage, 0.05, 3 if storage in (i8, ui8) else 0)
    flag, x, y = argument((), i1, "flag"), argument(SHAPE, element, "x"), argument(SHAPE, element, "y")
    first, handle = _handle(), _handle()
    start = _op("assign_variable", [first.result, const(np.full(SHAPE, 7), element, "start")], [])
    handles = [Value(TensorType((), resource), f"h{i}") for i in range(4)] if passed else [None] * 4

    def arguments(place: int, *others: Value) -> list[Value]:
        given = handles[place]
        return [*others, argument(SHAPE, element, f"x{place}"), *([] if given is None else [given])]

    given = [] if not passed else [handle.result]
    branch = _op("if", [flag, x, *given], [y], then_subgraph_index=2, else_subgraph_index=3)
    main = Function("main", [flag, x], [y], [_op("call_once", [], [], init_subgraph_index=1), handle, branch])
    then, loops = _changed(handles[0], arguments(0), "then"), arguments(1)
    carried = [const(np.asarray(0), i32, "zero"), *loops]
    after = [Value(v.type, f"r{i}") for i, v in enumerate(carried)]
    loop = _op("while", carried, after, cond_subgraph_index=4, body_subgraph_index=5)
    otherwise = Function("else", loops, [after[1]], [loop])
    more = argument((), i1, "more")
    tested = arguments(2, argument((), i32, "i"))
    less = _op("less", [tested[0], const(np.asarray(3), i32)], [more])
    condition = Function("cond", tested, [more], [less])
    taken = arguments(3, argument((), i32, "j"))
    body, count = _changed(handles[3], taken[1:], "body"), argument((), i32, "count")
    plus = _op("add", [taken[0], const(np.asarray(1), i32)], [count], fused_activation_function="NONE")
    plus.info = {"version": 1}
    body = Function("body", taken, [count, *body.outputs, *taken[2:]], [plus, *body.ops])
    functions = [main, Function("start", [], [], [first, start]), then, otherwise, condition, body]
    model = bytes(write(Module(functions)))
    rng = np.random.default_rng(3)
    batches = [[np.asarray(f), rng.integers(0, 9, SHAPE).astype(storage.dtype)] for f in (False, True, False)]
    wanted = interpret(model, batches)
    tosa = convert(model, format="tosa")
    (alone,) = interpret(model, batches[:1])
    np.testing.assert_array_equal(reference(tosa.module, batches[0])[0], alone[0])
    for converted in (convert(model).data, convert(tosa.data).data):
        for (got,), (want,) in zip(interpret(converted, batches), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
