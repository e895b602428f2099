"""Reduction: predicates, processes, state, branches, and what is written."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument

import tflq
from tflq.cli import main
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedType, f32, i1, i8, resource
from tflq.tools.debug.reduction import Conversion, Inputs, Interpreter, build, input_sets, record, reduce
from tflq.tools.verify.runner import opened_whole

needs_interpreter = pytest.mark.skipif(
    not pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'"), reason=""
)
INFO = {"version": 1}


def holds(*names: str) -> Callable[[bytes, Inputs], str]:
    """Fails if a model has all these operators in its functions."""

    def predicate(model: bytes, inputs: Inputs) -> str:
        module = tflq.read(model)
        assert [v.name for v in module.main.inputs] == list(inputs)
        for value, array in zip(module.main.inputs, inputs.values(), strict=True):
            assert array.dtype == value.type.storage.dtype
        return "found" if set(names) <= {op.name for op in module.ops()} else ""

    return predicate


@needs_interpreter
def test_the_least_part_and_the_tensors_it_reads(models: Path) -> None:
    found = reduce(models / "cnn_int8.tflite", predicate=holds("tfl.add", "tfl.softmax"))
    assert found is not None
    module = tflq.read(found.data)
    assert [op.name for op in module.ops()] == ["tfl.add", "tfl.softmax"]
    assert [o.partition(",")[0] for o in found.operators] == ["subgraph 0"] * 2
    assert found.total == 9
    real = [array for array in found.inputs.values() if np.unique(array).size > 1]
    assert len(real) == len(found.inputs) == 3


@needs_interpreter
def test_a_model_that_does_not_fail(models: Path) -> None:
    with Conversion() as predicate:
        assert reduce(models / "cnn_uint8.tflite", predicate=predicate) is None


@needs_interpreter
def test_into_a_branch(tmp_path: Path) -> None:
    c, x, y = argument((), i1, "c"), argument((2,), f32, "x"), argument((2,), f32, "y")
    op = Op("tfl.if", [c, x], [y], {"then_subgraph_index": 1, "else_subgraph_index": 2}, info=INFO)
    branches = []
    for name in ("abs", "neg"):
        a, b, z = (argument((2,), f32, f"{name}/{n}") for n in "abz")
        ops = [Op("tfl.exp", [a], [b], info=INFO), Op(f"tfl.{name}", [b], [z], info=INFO)]
        branches.append(Function(name, [a], [z], ops))
    path = tmp_path / "if.tflite"
    tflq.write(Module([Function("main", [c, x], [y], [op]), *branches]), path)
    found = reduce(path, predicate=holds("tfl.neg"))
    assert found is not None
    assert [op.name for op in tflq.read(found.data).ops()] == ["tfl.neg"]
    assert found.operators[0].startswith("subgraph 2, operator 1 (NEG)")


@needs_interpreter
def test_what_cannot_be_an_input_keeps_its_operator(tmp_path: Path) -> None:
    handle, x, y = argument((1,), resource, "h"), argument((2,), f32, "x"), argument((2,), f32, "y")
    z = argument((2,), f32, "z")
    named = {"container": "", "shared_name": "v"}
    ops = [
        Op("tfl.var_handle", [], [handle], named, info=INFO),
        Op("tfl.assign_variable", [handle, x], [], info=INFO),
        Op("tfl.read_variable", [handle], [y], info=INFO),
        Op("tfl.neg", [y], [z], info=INFO),
    ]
    path = tmp_path / "state.tflite"
    tflq.write(Module([Function("main", [x], [z], ops)]), path)
    found = reduce(path, predicate=holds("tfl.read_variable"))
    assert found is not None
    assert [op.name for op in tflq.read(found.data).ops()] == ["tfl.var_handle", "tfl.read_variable"]


@needs_interpreter
def test_a_model_that_does_not_run_is_cut_on_other_values(models: Path) -> None:
    found = reduce(models / "add_per_axis.tflite", predicate=holds("tfl.add"))
    assert found is not None
    assert len(found.inputs) == 2


def test_kinds_of_conversions_that_fail(models: Path) -> None:
    data = (models / "pad.tflite").read_bytes()

    def raises(model: bytes) -> bytes:
        raise KeyError("x")

    def hangs(model: bytes) -> bytes:
        time.sleep(30)
        return model

    def refuses(model: bytes) -> bytes:
        raise tflq.UnsupportedError("no:", ["there is no kernel"])

    def kind(convert: Callable[[bytes], bytes], timeout: float = 60.0) -> str:
        with Conversion(convert=convert, timeout=timeout) as predicate:
            return predicate(data, {})

    assert kind(raises) == "error: KeyError in reduction._outcome"
    assert kind(lambda _: os.kill(os.getpid(), signal.SIGKILL)) == "crash: SIGKILL"  # type: ignore[arg-type, return-value]
    assert kind(lambda _: os._exit(3)) == "crash: exit code 3"
    assert kind(hangs, 0.5) == "crash: no answer in 0.5 s"
    assert kind(refuses) == "refused: there is no kernel"


@needs_interpreter
def test_kinds_of_results(models: Path) -> None:
    data = (models / "log_softmax.tflite").read_bytes()
    value = tflq.read(data).main.inputs[0]
    inputs = {value.name: np.zeros([d or 1 for d in value.type.shape or ()], value.type.storage.dtype)}
    other = (models / "arg_min.tflite").read_bytes()
    with Conversion() as equal, Conversion(convert=lambda _: other) as wrong, Conversion({"format": "tosa"}) as tosa:
        assert equal(data, inputs) == ""
        assert wrong(data, inputs) in ("differs", "does not run")
        assert wrong(b"TFL3", inputs) == ""
        if pytest.importorskip("tosa_reference_model", reason="needs the reference model: pip install '.[tosa]'"):
            assert tosa(data, inputs) == ""


@needs_interpreter
def test_the_command_writes_a_part_that_its_line_shows(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    element = UniformQuantizedType.of(i8, 0.5)
    x, y, z = (argument((1, 4), element, name) for name in "xyz")
    ops = [Op("tfl.neg", [x], [y], info=INFO), Op("tfl.custom", [y], [z], {"custom_code": "Mine"}, info=INFO)]
    path = tmp_path / "custom.tflite"
    tflq.write(Module([Function("main", [x], [z], ops)]), path)
    monkeypatch.chdir(tmp_path)
    assert main.run(["reduce", str(path), "--fallback", "error", "--target", "tosa"]) == 5
    out = capsys.readouterr().out
    assert "custom.tflite: refused: " in out
    assert "tflq convert custom.reduced.tflite custom.reduced.converted.tosa --force --target tosa" in out
    assert Path("custom.reduced.npz").is_file()
    assert main.run(["reduce", str(path)]) == 2
    assert "it exists already" in capsys.readouterr().err
    convert = ["convert", "custom.reduced.tflite", "y.tosa", "--target", "tosa", "--fallback", "error"]
    assert main.run(convert) == 4
    assert main.run(["reduce", str(models / "pad.tflite"), "--force"]) == 0
    assert "nothing to reduce: its conversion neither fails nor differs" in capsys.readouterr().out
    monkeypatch.setattr(tflq, "reduce", lambda *_, **__: None)
    assert main.run(["reduce", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"format": "tflq.reduction", "version": 1, "kind": ""}


@needs_interpreter
@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8", "cnn_int16x8", "two_signatures", "split"])
def test_every_operator_alone_gives_what_it_gives_in_the_model(name: str, models: Path) -> None:
    path = models / f"{name}.tflite"
    module = tflq.read(path)
    with opened_whole(str(path), keep=False, timeout=60) as opened:
        arrays = next(input_sets(opened.head["entries"][""]["inputs"], 1, None))
    recording = record(path, module, "", arrays, 60)
    places = {value.name: (0, n) for n, value in enumerate(module.main.tensors)}
    interpreter = Interpreter(60)
    try:
        for number in range(len(module.main.ops)):
            data, inputs = build(path.read_bytes(), 0, [number], recording)
            outputs = interpreter.run(data, inputs)
            for value, output in zip(tflq.read(data).main.outputs, outputs, strict=True):
                np.testing.assert_array_equal(output, recording[places[value.name]])
    finally:
        interpreter.close()


def test_a_tosa_file_is_refused(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "pad.tosa"
    tflq.convert(models / "pad.tflite", path)
    with pytest.raises(tflq.OptionError, match="TOSA file"):
        reduce(path)
