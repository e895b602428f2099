"""Entries: one signature's function and what it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.harness import argument, edge_inputs, interpret

from tflq.base.errors import TflqError
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32
from tflq.transforms.pass_manager import verify_stage
from tflq.transforms.source import entries, extract


def function(*callees: int) -> Function:
    """A function that runs others one after the other."""
    x = y = argument((2,), f32)
    ops: list[Op] = []
    for index in callees:
        ops.append(Op("tfl.call", [y], [Value(x.type, f"y{index}")], {"subgraph": index}))
        y = ops[-1].result
    if not ops:
        ops.append(Op("tfl.neg", [x], [Value(x.type, "y")]))
    return Function(f"of {callees}", [x], [ops[-1].result], ops)


def several() -> Module:
    functions = [function(4), function(3, 2), function(), function(2), function()]

    def signature(key: str, index: int) -> Signature:
        f = functions[index]
        return Signature(key, index, [("x", f.inputs[0])], [("y", f.outputs[0])])

    return Module(functions, [signature("a", 0), signature("b", 1)])


def test_functions_that_it_runs_are_kept_and_renumbered() -> None:
    module = several()
    assert entries(module) == ["a", "b"]
    part = extract(module, "b")
    verify_stage(part, "tfl", "extraction")
    assert [f.name for f in part.functions] == ["of (3, 2)", "of (2,)", "of ()"]
    assert [[op.attributes.get("subgraph") for op in f.ops] for f in part.functions] == [[1, 2], [2], [None]]
    assert [(s.key, s.function) for s in part.signatures or ()] == [("b", 0)]
    assert entries(part) == ["b"]


def test_unknown_keys() -> None:
    with pytest.raises(TflqError, match="there is no signature 'c'; there are 'a', 'b'"):
        extract(several(), "c")
    with pytest.raises(TflqError, match="there is no signature 'c'; the model has none"):
        extract(Module([function()]), "c")


def test_the_first_function_without_signatures() -> None:
    module = Module([function(2), function(), function()])
    assert entries(module) == [""]
    part = extract(module, "")
    assert len(part.functions) == 2
    assert part.signatures is None


def test_a_file_of_one_signature(models: Path) -> None:
    path = models / "two_signatures.tflite"
    for key in entries(read(path)):
        part = extract(read(path), key)
        data = bytes(write(part))
        module = read(data)
        assert entries(module) == [key]
        assert len(module.functions) == 1
        assert len(data) < path.stat().st_size
        assert {row["builtin_code"] for row in module.operator_codes} == {
            op.name.removeprefix("tfl.").upper() for op in module.ops()
        }
        assert interpret(data, edge_inputs(part.main.inputs))
