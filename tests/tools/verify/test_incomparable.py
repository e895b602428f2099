"""Results without elements, signatures that are left out, floats of ONNX, and the interpreter that ran."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.chains import dense
from support.harness import argument, const, one_op
from support.on_onnx import need_onnx

import tflq
from tflq.cli import main
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedType, f32, i8, i16, i32
from tflq.tools.verify import worker
from tflq.tools.verify.model_file import ModelFile
from tflq.tools.verify.ulps import MOST, graph_ulps

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

Q = UniformQuantizedType.of(i8, 0.5, 0)
ADD = {"fused_activation_function": "NONE"}


def without_elements(kind: str, *, signature: bool = False) -> bytes:
    """A sum, and a tensor without elements: a result, a constant, or an input."""
    x, z = (argument((2, 4), Q, name) for name in "xz")
    ops = [Op("tfl.add", [x, x], [z], dict(ADD))]
    inputs, empty = [x], argument((2, 0), Q, "empty")
    if kind == "result":
        ends = [const(np.asarray(v, np.int32), i32) for v in ((0, 0), (2, 0))]
        ops.append(Op("tfl.slice", [x, *ends], [empty], {}))
    elif kind == "constant":
        empty = const(np.zeros((0,), np.int32), i32, "empty")
    else:
        inputs.append(argument((2, 0), Q, "none"))
        ops.append(Op("tfl.add", [inputs[1], inputs[1]], [empty], dict(ADD)))
    named = [Signature("serve", 0, [(v.name, v) for v in inputs], [("e", empty), ("z", z)])]
    return bytes(write(Module([Function("main", inputs, [empty, z], ops)], named if signature else None)))


@pytest.mark.parametrize("kind", ["result", "constant", "input"])
@pytest.mark.parametrize("format", ["tflite", "onnx"])
def test_results_without_elements_are_equal(kind: str, format: str) -> None:
    if format == "onnx":
        need_onnx()
    data = without_elements(kind)
    result = tflq.verify(data, tflq.convert(data, format=format).data)
    assert result.verdict == "equal", (result.interface, result.reason)
    assert {name: found.elements for (_, name), found in result.outputs.items()} == {"empty": 0, "z": 40}


def test_a_signature_may_have_a_constant_without_elements() -> None:
    data = two_signatures("add", "mul")
    module = tflq.read(data)
    none = const(np.zeros((0,), np.int32), i32, "none")
    module.functions[1].outputs.append(none)
    assert module.signatures is not None
    (first, (second)) = module.signatures
    assert second.outputs is not None
    second.outputs.append(("none", none))
    data = bytes(write(module))
    assert tflq.verify(data, data).outputs["mul", "none"].equal
    assert first.key == "add"


def two_signatures(*keys: str) -> bytes:
    functions, signatures = [], []
    for number, key in enumerate(keys):
        x, y = (argument((2, 4), Q, f"{key}_{name}") for name in "xy")
        functions.append(
            Function(key, [x], [y], [Op(f"tfl.{'add' if key == 'add' else 'mul'}", [x, x], [y], dict(ADD))])
        )
        signatures.append(Signature(key, number, [("x", x)], [("y", y)]))
    return bytes(write(Module(functions, signatures)))


def test_all_signatures_that_both_have_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.tflite", tmp_path / "b.tflite"
    a.write_bytes(two_signatures("add", "mul"))
    b.write_bytes(two_signatures("add", "more"))
    result = tflq.verify(a, b, interface=False)
    assert result.equal
    assert {run.entry for run in result.runs} == {"", "add"}
    assert [str(each) for each in result.uncompared] == [
        "signature 'mul': the second model has no signature of this key",
        "signature 'more': the original has no signature of this key",
    ]
    assert main.run(["verify", str(a), str(b), "--no-interface"]) == 0
    said = capsys.readouterr().out
    assert "compared    the first subgraph by position, signature 'add'" in said
    assert "left out    signature 'mul': the second model has no signature of this key" in said


def test_a_model_whose_batch_is_stated_is_compared_at_that_batch(tmp_path: Path) -> None:
    x, y = (argument((None, 4), Q, name) for name in "xy")
    source, result = tmp_path / "a.tflite", tmp_path / "b.tflite"
    source.write_bytes(bytes(write(Module([Function("f", [x], [y], [Op("tfl.add", [x, x], [y], dict(ADD))])]))))
    tflq.convert(source, result, batch=3)
    verified = tflq.verify(source, result)
    assert not verified.equal
    assert any("shape signature is [3, 4] instead of [-1, 4]" in text for text in verified.interface)
    assert [(each.elements, each.equal) for each in verified.outputs.values()] == [(3 * 4 * 5, True)]
    assert not verified.uncompared


def test_a_single_signature_of_another_subgraph_is_compared_too() -> None:
    module = tflq.read(two_signatures("add", "mul"))
    assert module.signatures is not None
    module.signatures = module.signatures[1:]
    data = bytes(write(module))
    assert {run.entry for run in tflq.verify(data, data).runs} == {"", "mul"}


def test_a_file_of_one_entry_says_which_it_was() -> None:
    need_onnx()
    data = two_signatures("add", "mul")
    result = tflq.verify(data, tflq.convert(data, format="onnx", signature="mul").data)
    assert result.equal
    assert {run.entry for run in result.runs} == {"mul"}
    assert [str(each) for each in result.uncompared] == [
        "the first subgraph by position: the other file has one entry, which is that of signature 'mul'",
        "signature 'add': the other file has one entry, which is that of signature 'mul'",
    ]


def test_samples_are_for_the_signatures_whose_inputs_they_name() -> None:
    data = two_signatures("add", "mul")
    samples = {"add/x": np.ones((2, 4), np.int8), "mul/x": np.zeros((2, 4), np.int8)}
    result = tflq.verify(data, data, inputs=samples)
    assert {run.entry for run in result.runs} == {"add", "mul"}
    assert result.uncompared[0].reason.startswith("the samples are not for it: ")
    with pytest.raises(tflq.OptionError, match="has no array"):
        tflq.verify(data, data, inputs={"a": samples["add/x"], "b": samples["add/x"]})


def test_an_original_that_its_kernel_refuses_is_nothing_to_compare_with(tmp_path: Path) -> None:
    kinds = (UniformQuantizedType.of(i16, scale, 0) for scale in (2**-12, 0.0123))
    x, y = (argument((1, 4), kind, name) for kind, name in zip(kinds, "xy", strict=True))
    (path := tmp_path / "tanh.tflite").write_bytes(one_op("tfl.tanh", [x], [y], {}))
    out = tmp_path / "out.tflite"
    tflq.convert(path, out)
    assert main.run(["verify", str(path), str(out)]) == 6
    result = tflq.verify(path, out)
    assert (result.verdict, result.passed, bool(result)) == ("nothing comparable", False, False)
    assert result.reason.startswith(f"{path}: the original does not run: ")
    assert main.run(["verify", str(out), str(path)]) == 5  # the other way round it is the second that fails
    assert tflq.verify(out, path).verdict == "failed"


def test_an_original_that_runs_on_no_inputs_is_nothing_to_compare_with() -> None:
    x, y = argument((3,), f32, "x"), argument((1,), f32, "y")
    data = one_op("tfl.gather", [x, const(np.asarray([9], np.int32), i32)], [y], {"axis": 0, "batch_dims": 0})
    result = tflq.verify(data, data)
    assert result.verdict == "nothing comparable"
    assert "the original does not run: " in result.reason


def test_floats_of_onnx_may_differ_by_what_it_leaves_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_onnx()
    path, out = tmp_path / "m.tflite", tmp_path / "m.onnx"
    path.write_bytes(dense())
    tflq.convert(path, out)
    ulps = graph_ulps(ModelFile(str(path)).graphs[0])
    assert 50 < ulps < 150
    assert tflq.verify(path, out, atol=0).verdict == "differs"
    assert main.run(["verify", str(path), str(out)]) == 0
    said = capsys.readouterr().out
    assert f"tolerance   floats up to {ulps} float32 ulps of their tensor's largest value" in said
    assert said.endswith("\nACCEPTED\n")
    (wrong := tmp_path / "wrong.onnx").write_bytes(tflq.convert(dense(1e-3), format="onnx").data)
    assert tflq.verify(path, wrong).verdict == "differs"


def test_ulps_of_operators(tmp_path: Path) -> None:
    def graph_of(name: str, operands: list[Value], result: Value, attributes: dict[str, object]) -> int:
        (path := tmp_path / "m.tflite").write_bytes(one_op(name, operands, [result], attributes))
        return graph_ulps(ModelFile(str(path)).graphs[0])

    x, y = argument((1, 16), f32, "x"), argument((1, 16), f32, "y")
    assert graph_of("tfl.add", [x, x], y, dict(ADD)) == 2
    assert graph_of("tfl.relu", [x], y, {}) == 0
    assert graph_of("tfl.tanh", [x], y, {}) == 8
    assert graph_of("tfl.softmax", [x], y, {"beta": 1.0}) == 46
    assert graph_of("tfl.add", [argument((1, 16), Q, "x")] * 2, argument((1, 16), Q, "y"), dict(ADD)) == 0
    assert graph_of("tfl.custom", [x], y, {"custom_code": "Mine"}) == MOST


@pytest.mark.parametrize(("stated", "named"), [("9.9.1", "ai-edge-litert 9.9.1"), ("", "ai-edge-litert-nightly 3.0")])
def test_the_interpreter_that_is_imported_is_named(
    stated: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever distribution of that name is installed elsewhere."""
    (tmp_path / "nightly-3.0.dist-info").mkdir()
    (tmp_path / "nightly-3.0.dist-info" / "METADATA").write_text("Name: ai-edge-litert-nightly\nVersion: 3.0\n")
    (tmp_path / "nightly-3.0.dist-info" / "RECORD").write_text("ai_edge_litert/__init__.py,,\n")
    package, module = ModuleType("ai_edge_litert"), ModuleType("ai_edge_litert.interpreter")
    package.__path__ = [str(tmp_path / "ai_edge_litert")]
    package.__dict__.update({"__version__": stated} if stated else {})
    module.__dict__.update(Interpreter=type("Interpreter", (), {"__module__": module.__name__}), OpResolverType=object)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert worker.load()[0] == named
