"""Written TOSA flatbuffers: the reference model computes what the evaluator does, tosa-opt finds them valid."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.one_op import CASES, inputs_of
from support.running import reference, tosa_opt

from tflq.analysis.evaluate.registry import Run, evaluate_function
from tflq.base.errors import VerificationError
from tflq.formats.flatbuffer.codec import decode
from tflq.formats.flatbuffer.layout import TOSA
from tflq.formats.flatbuffer.structure import check
from tflq.formats.tosa.lowering.context import TosaBuilder
from tflq.formats.tosa.write import tosa_bytes, tosa_pieces
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Location, Value, constant, op_names
from tflq.ir.types import TensorType, i8, i32

TARGET = (
    "--tosa-attach-target=specification_version=1.0 level=8k profiles=pro_int,pro_fp "
    "extensions=int16,int4,doubleround,controlflow,variable"
)


def block(data: bytes, region: int = 0) -> dict:
    return decode(data, schema=TOSA)["regions"][region]["blocks"][0]


def small() -> tuple[Module, Value]:
    """in + 3 + 3, and the value between."""
    b = TosaBuilder()
    x = Value(TensorType((2, 2), i32), "in")
    three = b.constant([[3]])
    between = b.add(x, three)
    out = b.add(between, three)
    out.name = "out"
    return Module([Function("f", [x], [out], b.ops)]), between


def test_every_operator_has_a_case() -> None:
    made = {op.name for make in CASES.values() for op in make().ops()}
    assert op_names("tosa") - made == set()


@pytest.mark.parametrize("name", CASES)
def test_structure(name: str) -> None:
    check(memoryview(tosa_bytes(CASES[name]())), TOSA)


@pytest.mark.parametrize("name", CASES)
def test_reference_model(name: str) -> None:
    module = CASES[name]()
    inputs = inputs_of(module)
    env = evaluate_function(module.main, dict(zip(module.main.inputs, inputs, strict=True)), Run(module))
    signless = [x.view(f"i{x.itemsize}") if x.dtype.kind == "u" else x for x in inputs]
    for value, got in zip(module.main.outputs, reference(module, signless), strict=True):
        wanted = value.array if value.is_constant else env[value]
        assert got.dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
        else:
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", CASES)
def test_tosa_opt_finds_it_valid(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.tosa").write_bytes(tosa_bytes(CASES[name]()))
    (tmp_path / "empty.mlir").write_text("module {}\n")
    read = f"--tosa-deserialize=tosa-flatbuffer-filename={tmp_path / 'model.tosa'}"
    command = [tosa_opt(), str(tmp_path / "empty.mlir"), read, TARGET, "--tosa-validate=strict-op-spec-alignment"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[:2000]
    assert "func.func @main" in run.stdout


def test_version() -> None:
    graph = decode(tosa_bytes(small()[0]), schema=TOSA)
    assert graph["version"] == {"_major": 1, "_minor": 0, "_patch": 0, "_draft": False}


def test_names() -> None:
    """Those of arguments and results are kept, inner ones too where they are free, the rest is short and unique."""
    module, between = small()
    between.name = "in"
    written = block(tosa_bytes(module))
    assert written["inputs"] == ("in",)
    assert written["outputs"] == ("out",)
    names = [t["name"] for t in written["tensors"]]
    assert len(set(names)) == len(names) == 4
    assert "in_1" in names


def test_names_are_unique_among_functions() -> None:
    data = tosa_bytes(CASES["cond_if"]())
    regions = decode(data, schema=TOSA)["regions"]
    assert [r["name"] for r in regions] == ["main", "then", "else"]
    names = [t["name"] for r in regions for t in r["blocks"][0]["tensors"]]
    assert len(set(names)) == len(names)


def test_equal_constant_operands_are_one() -> None:
    b = TosaBuilder()
    x = Value(TensorType((4, 4), i8), "in")
    out = b.slice(b.slice(x, (1, 1), (3, 3)), (1, 1), (2, 2))
    written = block(tosa_bytes(Module([Function("f", [x], [out], b.ops)])))
    assert [op["op"] for op in written["operators"]].count("CONST_SHAPE") == 3
    assert [s["rank"] for s in written["shapes"]] == [2, 2, 2]


def test_fetched_values_are_results() -> None:
    module, between = small()
    between.name = "between"
    data = tosa_bytes(module, fetch=[between])
    assert block(data)["outputs"] == ("out", "between")


def test_another_entry() -> None:
    module = small()[0]
    module.functions.insert(0, CASES["tile"]().main)
    assert block(tosa_bytes(module, 1))["outputs"] == ("out",)
    assert len(decode(tosa_bytes(module, 1), schema=TOSA)["regions"]) == 1


def test_locations() -> None:
    module = small()[0]
    module.main.ops[0].location = Location("a.tflite", 0, 7, "ADD", "sum")
    place = "subgraph 0, operator 7 (ADD), tensor 'sum'"  # without the file: its bytes do not depend on where it was
    operators = block(tosa_bytes(module))["operators"]
    assert [op["location"] and op["location"]["text"] for op in operators] == [place, place, None]


def test_constants_are_not_copied() -> None:
    weights = constant(np.arange(1 << 16, dtype=np.int32))
    b = TosaBuilder()
    x = Value(weights.type, "in")
    module = Module([Function("f", [x], [b.add(x, weights)], b.ops)])
    assert weights.buffer is not None
    views = [piece for piece in tosa_pieces(module) if len(piece) == 1 << 18]
    assert len(views) == 1
    assert np.shares_memory(np.frombuffer(views[0], np.uint8), weights.buffer.data)


def test_constants_that_share_a_buffer_are_stored_once() -> None:
    weights = constant(np.arange(1 << 12, dtype=np.int32))
    b = TosaBuilder()
    x = Value(TensorType((64, 64), i32), "in")
    square, flat = b.reshape(weights, (64, 64)), b.reshape(weights, (1, 1 << 12))
    out = b.add(x, square)
    module = Module([Function("f", [x], [out, b.identity(flat)], b.ops)])
    assert len(tosa_bytes(module)) < 2 * (1 << 14)


def test_more_than_two_gibibytes() -> None:
    b = TosaBuilder()
    weights = Value(TensorType((1 << 31,), i8), "w", buffer=Buffer(np.zeros(1 << 31, np.uint8)))  # never touched
    module = Module([Function("f", [], [b.identity(weights)], b.ops)])
    with pytest.raises(VerificationError, match="2 GiB"):
        tosa_bytes(module)


def test_unknown_sizes() -> None:
    b = TosaBuilder()
    x = Value(TensorType((None, 2), i8), "in")
    assert block(tosa_bytes(Module([Function("f", [x], [b.identity(x)], b.ops)])))["tensors"][0]["shape"] == (-1, 2)
    y = Value(TensorType(None, i8), "in")
    with pytest.raises(VerificationError, match="rank that is not known"):
        tosa_bytes(Module([Function("f", [y], [y], [])]))


def test_what_tosa_has_not() -> None:
    b = TosaBuilder()
    x = Value(TensorType((2,), i32), "in")
    made = b.emit("ext.rounding_divide_by_pot", [x], x.type, exponent=3)
    with pytest.raises(VerificationError, match=r"ext\.rounding_divide_by_pot cannot be written"):
        tosa_bytes(Module([Function("f", [x], [made], b.ops)]))
