"""Control flow and variables: what is lowered runs as the functions and the kernels say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.base.errors import UnsupportedError
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i1, i8, i16, i32, i64, resource, ui8
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize


def _op(name: str, operands: list[Value | None], types: list[TensorType], **attributes: Any) -> Op:
    return Op(name, operands, [Value(t, f"{name}{i}") for i, t in enumerate(types)], attributes)


def _run(module: Module, arrays: list[np.ndarray], run: Run | None = None) -> list[np.ndarray]:
    main = module.main
    env = evaluate_function(main, dict(zip(main.inputs, arrays, strict=True)), run or Run(module))
    return [env[v] for v in main.outputs]


def _reversal(element: Any, axes: list[int]) -> Function:
    x = argument((2, 3), element)
    op = _op("tfl.reverse_v2", [x, const(np.asarray(axes), i32)], [x.type])
    return Function("branch", [x], op.results, [op])


@pytest.mark.parametrize("element", [i8, ui8, i16, f32, UniformQuantizedType.of(ui8, 0.5, 3)])
def test_if_takes_one_branch_with_signed_edges(element: Any) -> None:
    condition, x = argument((), i1), argument((2, 3), element)
    branch = _op("tfl.if", [condition, x], [x.type], then_subgraph_index=1, else_subgraph_index=2)
    functions = [
        Function("main", [condition, x], branch.results, [branch]),
        _reversal(element, [0]),
        _reversal(element, [1]),
    ]
    module, _ = lower(legalize(Module(functions), Policy())[0], Target())
    storage = x.type.storage
    array = np.arange(6).reshape(2, 3).astype(storage.dtype) + (250 if storage == ui8 else 0)
    array = array.astype(storage.dtype)
    np.testing.assert_array_equal(_run(module, [np.asarray(True), array])[0], array[::-1])
    np.testing.assert_array_equal(_run(module, [np.asarray(False), array])[0], array[:, ::-1])
    assert all(v.type.storage != ui8 for f in module.functions[1:] for v in f.values())


def test_while_runs_until_its_condition_says_so() -> None:
    count, x = argument((1,), i32, "count"), argument((2, 3), ui8)
    loop = _op("tfl.while", [count, x], [count.type, x.type], cond_subgraph_index=1, body_subgraph_index=2)
    a, b = argument((1,), i32), argument((2, 3), ui8)
    less = _op("tosa.greater", [const(np.asarray([3]), i32), a], [a.type.with_element(i1)])
    c, d = argument((1,), i32), argument((2, 3), ui8)
    plus = _op("tosa.add", [c, const(np.asarray([1]), i32)], [c.type])
    padded = _op(
        "tfl.padv2",
        [d, const(np.asarray([[0, 0], [1, 0]]), i32), const(np.asarray(7), ui8)],
        [TensorType((2, 4), ui8)],
    )
    cut = _op("tfl.slice", [padded.result, const(np.asarray([0, 0]), i32), const(np.asarray([2, 3]), i32)], [d.type])
    functions = [
        Function("main", [count, x], loop.results, [loop]),
        Function("cond", [a, b], less.results, [less]),
        Function("body", [c, d], [plus.result, cut.result], [plus, padded, cut]),
    ]
    module, _ = lower(Module(functions), Target())
    array = np.asarray([[1, 2, 3], [200, 255, 0]], np.uint8)
    counted, moved = _run(module, [np.asarray([1], np.int32), array])
    assert counted == 3
    np.testing.assert_array_equal(moved, [[7, 7, 1], [7, 7, 200]])


def test_composite_is_inlined_at_every_call_and_its_function_dropped() -> None:
    x = argument((2, 3), i8)
    first = _op("tfl.stablehlo_composite", [x], [x.type], decomposition_subgraph_index=1)
    second = _op("tfl.call", [first.result], [x.type], subgraph=1)
    functions = [Function("main", [x], second.results, [first, second]), _reversal(i8, [0])]
    module, _ = lower(Module(functions), Target(extensions=frozenset()))
    assert len(module.functions) == 1
    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    np.testing.assert_array_equal(_run(module, [array])[0], array)


def _stateful(storage: ScalarType, start: np.ndarray | None) -> Module:
    """Returns what the variable held, and stores the argument."""
    x = argument((2, 3), storage)
    handle = _op("tfl.var_handle", [], [TensorType((), resource)], container="", shared_name="state")
    read = _op("tfl.read_variable", [handle.result], [x.type])
    write = _op("tfl.assign_variable", [handle.result, x], [])
    ops = [handle, read, write]
    functions = [Function("main", [x], read.results, ops)]
    if start is not None:
        inner = _op("tfl.var_handle", [], [TensorType((), resource)], container="", shared_name="state")
        assign = _op("tfl.assign_variable", [inner.result, const(start, storage)], [])
        functions.append(Function("init", [], [], [inner, assign]))
        ops.insert(0, _op("tfl.call_once", [], [], init_subgraph_index=1))
    return Module(functions)


@pytest.mark.parametrize("storage", [i1, i8, ui8, i16, i32, f32])
def test_variables_keep_their_values_from_run_to_run(storage: ScalarType) -> None:
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, 1 << 32, (2, 3), np.uint32).view(np.int32).astype(storage.dtype) for _ in range(3)]
    module, _ = lower(_stateful(storage, draws[0]), Target())
    run = Run(module)
    np.testing.assert_array_equal(_run(module, [draws[1]], run)[0], draws[0])
    np.testing.assert_array_equal(_run(module, [draws[2]], run)[0], draws[1])
    (declared,) = [op for op in module.main.ops if op.name == "tosa.variable"]
    assert declared.operand(0).type.storage in (i8, f32)


def test_values_of_two_types_are_named() -> None:
    module = _stateful(i8, None)
    module.main.ops[1].result.type = TensorType((2, 3), i16)
    module.main.ops[1].result.name = "read"
    with pytest.raises(UnsupportedError, match="more than one type: 'x' is 2x3xi8, 'read' is 2x3xi16"):
        lower(module, Target())


def test_initialization_that_is_not_from_the_start_is_refused() -> None:
    late = _stateful(i8, np.ones((2, 3), np.int8))
    late.main.ops.append(late.main.ops.pop(0))
    with pytest.raises(UnsupportedError, match="the variable 'state' is used before it"):
        lower(late, Target())
    inner = _stateful(i8, np.ones((2, 3), np.int8))
    then, start = inner.functions
    then.ops[0].attributes["init_subgraph_index"] = 3
    condition, x = argument((), i1), argument((2, 3), i8)
    branch = _op("tfl.if", [condition, x], [x.type], then_subgraph_index=1, else_subgraph_index=2)
    main = Function("main", [condition, x], branch.results, [branch])
    with pytest.raises(UnsupportedError, match="a branch or a loop runs it"):
        lower(Module([main, then, _reversal(i8, [0]), start]), Target())


@pytest.mark.parametrize("storage", [ui8, i16])
def test_variables_that_nothing_initializes_are_zero(storage: ScalarType) -> None:
    module, _ = lower(_stateful(storage, None), Target())
    assert not _run(module, [np.ones((2, 3), storage.dtype)])[0].any()


def test_64_bit_loop_variables_are_refused_by_name() -> None:
    count = argument((1,), i64, "count")
    loop = _op("tfl.while", [count], [count.type], cond_subgraph_index=1, body_subgraph_index=1)
    inner = argument((1,), i64)
    functions = [Function("main", [count], loop.results, [loop]), Function("body", [inner], [inner], [])]
    with pytest.raises(UnsupportedError, match="'count', which it takes, is of 64 bits"):
        lower(Module(functions), Target())


def test_without_the_extension_control_flow_is_refused() -> None:
    condition, x = argument((), i1), argument((2, 3), i8)
    branch = _op("tfl.if", [condition, x], [x.type], then_subgraph_index=1, else_subgraph_index=1)
    functions = [Function("main", [condition, x], branch.results, [branch]), _reversal(i8, [0])]
    with pytest.raises(UnsupportedError, match="IF needs the extension controlflow"):
        lower(Module(functions), Target(extensions=frozenset()))


def test_entry_points_keep_unsigned_edges_also_where_they_are_called() -> None:
    condition, x = argument((), i1), argument((2, 3), ui8)
    branch = _op("tfl.if", [condition, x], [x.type], then_subgraph_index=2, else_subgraph_index=2)
    unused, called = _reversal(ui8, [1]), _reversal(ui8, [0])
    main = Function("main", [condition, x], branch.results, [branch])
    signatures = [
        Signature("a", 0, [("c", condition), ("x", x)], [("y", branch.result)]),
        Signature("b", 2, [("x", called.inputs[0])], [("y", called.outputs[0])]),
    ]
    module, _ = lower(Module([main, unused, called], signatures), Target())
    assert [f.inputs[-1].type.storage for f in module.functions] == [ui8, ui8, i8]
    assert module.signatures is not None
    assert [s.function for s in module.signatures] == [0, 1]
    for signature in module.signatures:
        function = module.functions[signature.function]
        assert [v for _, v in signature.inputs or ()] == function.inputs
        assert [v for _, v in signature.outputs or ()] == function.outputs
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    np.testing.assert_array_equal(_run(module, [np.asarray(True), array])[0], array[::-1])


def test_what_nothing_needs_is_not_refused() -> None:
    x = argument((2, 3), i8)
    unknown = _op("tfl.unique", [argument((4,), i32)], [TensorType((None,), i32)])
    flip = _op("tfl.reverse_v2", [x, const(np.asarray([0]), i32)], [x.type])
    function = Function("main", [x, unknown.operand(0)], flip.results, [unknown, flip])
    assert len(lower(Module([function]), Target())[0].main.ops) == 1
    function.outputs = [*flip.results, *unknown.results]
    with pytest.raises(UnsupportedError, match=r"TOSA has no form of tfl\.unique"):
        lower(Module([function]), Target())


def test_a_second_entry_point_is_written_with_its_variables() -> None:
    source = _stateful(i8, np.ones((2, 3), np.int8))
    x = argument((2, 3), i8)
    handle = _op("tfl.var_handle", [], [TensorType((), resource)], container="", shared_name="state")
    read = _op("tfl.read_variable", [handle.result], [x.type])
    source.functions.append(Function("peek", [x], read.results, [handle, read]))
    source.signatures = [
        Signature("a", 0, [("x", source.main.inputs[0])], [("y", source.main.outputs[0])]),
        Signature("b", 2, [("x", x)], [("y", read.result)]),
    ]
    module, _ = lower(source, Target())
    assert b"state" in tosa_bytes(module, 1)
