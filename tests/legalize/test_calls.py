"""Functions that operators call: plain integers on both sides of a call, whatever the parameters were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, interpret
from support.recurrent import per_layer

from tflq import UnsupportedError
from tflq.conversion.convert import Conversion, convert
from tflq.dialects.effects import callees, entry_functions
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, i1, i8, i16, i32, ui8

SHAPE = (2, 3)
FINE, COARSE = per_layer(i8, 0.05, 3), per_layer(i8, 0.1, -7)
PLAIN = {"fused_activation_function": "NONE", "pot_scale_int16": False}
BATCHES = [[np.asarray(flag), np.arange(-60, 60, 20, np.int8).reshape(SHAPE)] for flag in (True, False, True)]


def _op(name: str, operands: Sequence[Value], results: Sequence[Value], **attributes: Any) -> Op:
    if name == "stablehlo_composite":
        attributes |= {"name": "twice", "composite_attributes": np.asarray([0, 0, 1, 0, 0, 36, 1], np.uint8)}
    return Op(
        f"tfl.{name}", list(operands), list(results), attributes, info={"version": 2 if name == "quantize" else 1}
    )


def _doubled(element: ElementType, name: str = "") -> Function:
    x, y = argument(SHAPE, element, f"{name}x"), argument(SHAPE, element, f"{name}y")
    return Function(name, [x], [y], [_op("add", [x, x], [y], **PLAIN)])


def _moved(given: ElementType, returned: ElementType, name: str = "") -> Function:
    """RESHAPE to the same shape: the integers as they are."""
    x, y = argument(SHAPE, given, f"{name}x"), argument(SHAPE, returned, f"{name}y")
    shape = np.asarray(SHAPE, np.int32)
    return Function(name, [x], [y], [_op("reshape", [x, const(shape, i32)], [y], new_shape=shape)])


def _branching(element: ElementType, then: Function, otherwise: Function, *more: Function) -> Module:
    flag, x, y = argument((), i1, "flag"), argument(SHAPE, element, "x"), argument(SHAPE, element, "y")
    branch = _op("if", [flag, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    return Module([Function("main", [flag, x], [y], [branch]), then, otherwise, *more])


def _assert_plain(conversion: Conversion) -> None:
    """No tensor is quantized but arguments and results of entries, and calls agree with the functions called."""
    module = conversion.module
    entries = entry_functions(module)
    for index, function in enumerate(module.functions):
        edge = {*function.inputs, *function.outputs} if index in entries else set()
        assert not [v for v in function.values() if v.type.quantized and v not in edge]
    for op in module.ops():
        for index in callees(op):
            given = op.operands[1:] if op.name == "tfl.if" else op.operands
            types = [v.type.element for v in given if v is not None]
            assert [v.type.element for v in module.functions[index].inputs] == types


@pytest.mark.parametrize("storage", [i8, ui8, i16], ids=str)
def test_branches_are_plain_integers(storage: Any) -> None:
    element = per_layer(storage, 0.05)
    model = bytes(write(_branching(element, _doubled(element, "a"), _moved(element, element, "b"))))
    batches = [[flag, x.astype(storage.dtype)] for flag, x in BATCHES]
    _assert_plain(convert_and_compare(model, batches))


def test_an_entry_that_is_called_has_a_copy_for_its_calls() -> None:
    module = _branching(FINE, _doubled(FINE, "a"), _moved(FINE, FINE, "b"))
    keys = [Signature(f"s{i}", i, *_sides(module.functions[i])) for i in (0, 1)]
    module.signatures = keys
    conversion = convert_and_compare(bytes(write(module)), BATCHES)
    _assert_plain(conversion)
    again = read(conversion.data)
    assert len(again.functions) == 4
    assert [s.function for s in again.signatures or ()] == [0, 1]
    assert [f.inputs[-1].type.quantized for f in again.functions] == [True, True, False, False]
    want, got = (convert(data, signature="s1").data for data in (bytes(write(module)), conversion.data))
    for a, b in zip(*(interpret(data, [BATCHES[0][1:]]) for data in (want, got)), strict=True):
        np.testing.assert_array_equal(a, b)


def _sides(function: Function) -> tuple[list[tuple[str | None, Value]], list[tuple[str | None, Value]]]:
    return [(v.name, v) for v in function.inputs], [(v.name, v) for v in function.outputs]


def test_parameters_that_differ_are_disregarded_with_a_warning() -> None:
    model = bytes(write(_branching(FINE, _doubled(COARSE, "a"), _moved(COARSE, FINE, "b"))))
    conversion = convert_and_compare(model, BATCHES)
    _assert_plain(conversion)
    (warning,) = [row.warning for row in conversion.report.rows if row.opcode == "IF"]
    sides = "'x' and 'ax' of subgraph 1"
    assert warning == f"the kernel copies the stored integers, though {sides} have different quantization parameters"


def test_parameters_hold_under_real_semantics() -> None:
    """-7 + 2 (x - 3) becomes a coarse tensor of the same numbers, doubled; nothing is lost."""
    model = bytes(write(_branching(FINE, _doubled(COARSE, "a"), _moved(COARSE, COARSE, "b"))))
    conversion = convert(model, semantics="real")
    _assert_plain(conversion)
    assert not conversion.report.warnings
    x = np.asarray([[3, 5, 7], [-41, 23, 63]], np.int8)
    (twice,), (same,) = interpret(conversion.data, [[np.asarray(True), x], [np.asarray(False), x]])
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(twice, np.clip((x.astype(int) - 3) * 2 + 3, -128, 127))


def test_calls_on_other_parameters_have_functions_of_their_own_under_real_semantics() -> None:
    body, results = _doubled(FINE, "a"), [argument(SHAPE, FINE, "y0"), argument(SHAPE, COARSE, "y1")]
    inputs = [argument(SHAPE, FINE, "x0"), argument(SHAPE, COARSE, "x1")]
    ops = [
        _op("stablehlo_composite", [x], [y], decomposition_subgraph_index=1, version=1)
        for x, y in zip(inputs, results, strict=True)
    ]
    model = bytes(write(Module([Function("main", inputs, results, ops), body])))
    x = np.asarray([[3, 5, 7], [-41, 23, 33]], np.int8)
    assert len(convert_and_compare(model, [[x, x]]).module.functions) == 2
    conversion = convert(model, semantics="real")
    _assert_plain(conversion)
    assert len(conversion.module.functions) == 3
    ((fine, coarse),) = interpret(conversion.data, [[x, np.asarray([[-7, -8, 0], [10, -30, 20]], np.int8)]])
    np.testing.assert_array_equal(fine, (x.astype(int) - 3) * 2 + 3)
    np.testing.assert_array_equal(coarse, [[-7, -9, 7], [27, -53, 47]])


def test_storage_types_that_differ_are_refused() -> None:
    model = bytes(write(_branching(FINE, _doubled(per_layer(i16, 0.1), "a"), _moved(FINE, FINE, "b"))))
    with pytest.raises(UnsupportedError, match=r"subgraph 0, operator 0 \(IF\).*'x' \(2x3xqi8\) and 'ax' \(2x3xqi16\)"):
        convert(model)


def _loop(body: Function, carried: Sequence[Value], limit: int) -> bytes:
    """A loop of so many rounds; the body counts."""
    results = [Value(v.type, f"r{i}") for i, v in enumerate(carried)]
    while_op = _op("while", carried, results, cond_subgraph_index=1, body_subgraph_index=2)
    inner = [Value(v.type, f"c{i}") for i, v in enumerate(carried)]
    flag = argument((), i1, "more")
    less = _op("less", [inner[0], const(np.asarray(limit), i32)], [flag])
    main = Function("main", list(carried), results, [while_op])
    return bytes(write(Module([main, Function("cond", inner, [flag], [less]), body])))


def _counting(inputs: Sequence[Value], outputs: Sequence[Value], ops: Sequence[Op]) -> Function:
    count = argument((), i32, "count")
    plus = _op("add", [inputs[0], const(np.asarray(1), i32)], [count], **PLAIN)
    return Function("body", list(inputs), [count, *outputs], [plus, *ops])


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_loops_carry_integers_between_other_parameters(rounds: int) -> None:
    """The body gives coarse tensors and takes fine ones."""
    carried = [argument((), i32, "n"), argument(SHAPE, FINE, "x")]
    inputs = [argument((), i32, "i"), argument(SHAPE, FINE, "a")]
    sums = argument(SHAPE, COARSE, "s")
    body = _counting(inputs, [sums], [_op("add", [inputs[1], inputs[1]], [sums], **PLAIN)])
    model = _loop(body, carried, rounds)
    x = BATCHES[0][1]
    _assert_plain(convert_and_compare(model, [[np.asarray(0, np.int32), x]]))
    conversion = convert(model, semantics="real")
    _assert_plain(conversion)
    ((_, got),) = interpret(conversion.data, [[np.asarray(0, np.int32), np.full(SHAPE, 5, np.int8)]])
    np.testing.assert_array_equal(got, np.full(SHAPE, 3 + 2 * 2**rounds))


def test_a_loop_that_changes_nothing_and_one_that_swaps() -> None:
    """What the body returns untouched stays so: the interpreter takes no copy of it."""
    for order in ((1, 2), (2, 1)):
        carried = [argument((), i32, "n"), *(argument(SHAPE, FINE, f"x{i}") for i in range(2))]
        inputs = [argument((), i32, "i"), *(argument(SHAPE, FINE, f"a{i}") for i in range(2))]
        model = _loop(_counting(inputs, [inputs[i] for i in order], []), carried, 3)
        x = BATCHES[0][1]
        _assert_plain(convert_and_compare(model, [[np.asarray(0, np.int32), x, x[::-1].copy()]]))


@pytest.mark.parametrize("named", [True, False])
def test_what_a_body_moves_is_returned_in_tensors_of_its_own(named: bool) -> None:
    """Arguments in other places, one of them twice, by QUANTIZE: no result may be an argument, or another result."""
    carried = [argument((), i32, "n"), *(argument(SHAPE, FINE, f"x{i}") for i in range(3))]
    inputs = [argument((), i32, "i"), *(argument(SHAPE, FINE, f"a{i}") for i in range(3))]
    outputs = [argument(SHAPE, FINE, f"o{i}" if named else "") for i in range(3)]
    ops = [_op("quantize", [inputs[source]], [out]) for source, out in zip((2, 1, 1), outputs, strict=True)]
    model = _loop(_counting(inputs, outputs, ops), carried, 3)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-128, 128, SHAPE).astype(np.int8) for _ in range(3)]
    _assert_plain(convert_and_compare(model, [[np.asarray(0, np.int32), *arrays]]))
