"""Copies of a file that return other tensors, or hold a part of its operators; and the parts of a graph."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from support.harness import interpret

import tflq
from tflq.base.errors import InvalidModelError
from tflq.tools.verify import layers
from tflq.tools.verify.model_file import ModelCopy, ModelFile
from tflq.tools.verify.tflite_runner import divided

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")

NAMES = ["cnn_int8", "cnn_uint8", "split", "two_signatures"]


def bytes_of(copy: ModelCopy) -> bytes:
    stream = io.BytesIO()
    copy.write(stream)
    return stream.getvalue()


def file_of(copy: ModelCopy, folder: Path) -> ModelFile:
    path = folder / "copy.tflite"
    path.write_bytes(bytes_of(copy))
    return ModelFile(str(path))


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_returns_the_tensors_that_it_is_asked_for(models: Path, name: str) -> None:
    file = ModelFile(str(models / f"{name}.tflite"))
    wanted = [t for op in file.graphs[0].operators for t in op.outputs]
    module = tflq.read(bytes_of(ModelCopy(file).outputs(0, wanted)))
    assert [v.name for v in module.main.outputs] == [file.graphs[0].tensor(t).name for t in wanted]
    assert len(module.main.ops) == len(file.graphs[0].operators)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_holds_a_part_of_the_operators(models: Path, name: str, tmp_path: Path) -> None:
    file = ModelFile(str(models / f"{name}.tflite"))
    kept = list(range(0, len(file.graphs[0].operators), 2))
    part = file_of(ModelCopy(file).operators(0, kept).codes([0]), tmp_path)
    opcodes = [op.code for op in file.graphs[0].operators]
    assert [op.code for op in part.graphs[0].operators] == [opcodes[i] for i in kept]
    assert {code for code, _ in part.codes} == {file.codes[0][0]}


def test_another_graph_can_be_the_first_one(models: Path, tmp_path: Path) -> None:
    file = ModelFile(str(models / "two_signatures.tflite"))
    assert len(file.graphs) > 1
    copy = file_of(ModelCopy(file).alone(1), tmp_path)
    assert copy.graphs[0].outputs == file.graphs[1].outputs
    assert list(copy.entries) == [""]


@pytest.mark.parametrize("apart", [[], [2], [0, 3, 4], [8]])
def test_parts_hold_every_operator_once_behind_what_it_reads(models: Path, apart: list[int]) -> None:
    graph = ModelFile(str(models / "cnn_int8.tflite")).graphs[0]
    cut = graph.operators[5].outputs[0]
    parts = divided(graph, apart, [cut], [])
    assert sorted(i for part in parts for i in part.operators) == list(range(len(graph.operators)))
    assert {i for part in parts if part.apart for i in part.operators} == set(apart)
    there = set(graph.inputs)
    for part in parts:
        assert set(part.inputs) <= there
        there.update(part.outputs)
        assert not any(cut in graph.operators[i].inputs for i in part.operators if cut not in part.inputs)
    assert set(graph.outputs) <= there


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_int16x8"])
def test_small_chunks_compare_the_same_tensors(models: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = models / f"{name}.tflite"
    converted = tflq.convert(path).data
    whole = tflq.verify(path, converted, layers=True, seeds=1)
    monkeypatch.setattr(layers, "BUDGET", 1)
    said: list[tuple[str, int, int]] = []
    single = tflq.verify(path, converted, layers=True, seeds=1, progress=lambda *what: said.append(what))
    assert whole.layers == single.layers
    assert whole.layers is not None
    assert sum(what == "operator results" for what, _, _ in said) == whole.layers.compared
    assert all(done <= total for _, done, total in said)


def test_copies_compute_what_the_file_does(models: Path) -> None:
    path = models / "cnn_int8.tflite"
    file = ModelFile(str(path))
    inputs = [np.zeros(file.graphs[0].tensor(t).shape, np.int8) for t in file.graphs[0].inputs]
    inner = [t for op in file.graphs[0].operators for t in op.outputs]
    (want,) = interpret(path.read_bytes(), [inputs])
    (got,) = interpret(bytes_of(ModelCopy(file).outputs(0, inner)), [inputs])
    at = [inner.index(t) for t in file.graphs[0].outputs]
    for i, expected in zip(at, want, strict=True):
        np.testing.assert_array_equal(got[i], expected)


@pytest.mark.parametrize("data", [b"", b"TFL3", bytes(64), b"\xff" * 64])
def test_a_file_that_is_none(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "none.tflite"
    path.write_bytes(data)
    with pytest.raises(InvalidModelError, match=r"none\.tflite: not a TFLite model that can be read"):
        ModelFile(str(path))
