"""Damaged models to compare: each is refused in a sentence that names it, with exit code 3, before anything runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.damaging import damaged_bytes

import tflq
from tflq.base.errors import InvalidModelError
from tflq.cli.main import run
from tflq.tools.verify.c_interface import Interface
from tflq.tools.verify.kernels import exactness_of
from tflq.tools.verify.sources import path_of

COUNT = 200
MODEL = "cnn_int8.tflite"


@pytest.fixture(scope="module")
def converted(models: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    pytest.importorskip("onnx", reason="needs the package onnx: pip install '.[onnx]'")
    source, folder = models / "pad.tflite", tmp_path_factory.mktemp("converted")
    paths = {kind: folder / f"m.{kind}" for kind in ("tflite", "onnx")}
    return {kind: tflq.convert(source, path).data for kind, path in paths.items()}


@pytest.mark.parametrize("kind", ["tflite", "onnx"])
def test_a_damaged_model_is_opened_or_refused(converted: dict[str, bytes], kind: str, tmp_path: Path) -> None:
    path, rng = tmp_path / f"damaged.{kind}", random.Random(kind)
    refusals: list[str] = []
    for _ in range(COUNT):
        path.write_bytes(damaged_bytes(converted[kind], rng))
        try:
            with path_of(path) as place:
                exactness_of(place)
        except InvalidModelError as error:
            refusals.append(str(error))
    assert len(refusals) > COUNT // 5
    assert all(refusal.startswith(str(path)) for refusal in refusals)


@pytest.mark.parametrize("ending", [".c", ".h"])
def test_a_damaged_source_in_c_has_an_interface_or_is_refused(models: Path, ending: str, tmp_path: Path) -> None:
    tflq.convert(models / "pad.tflite", tmp_path / "net.c")
    path, rng = tmp_path / f"net{ending}", random.Random(ending)
    data, refusals = path.read_bytes(), list[str]()
    for _ in range(COUNT):
        path.write_bytes(damaged_bytes(data, rng))
        try:
            Interface(str(tmp_path / "net.c"))
        except InvalidModelError as error:
            refusals.append(str(error))
    assert refusals
    assert all(refusal.startswith(str(tmp_path / "net.c")) for refusal in refusals)


@pytest.mark.parametrize("data", [b"", b"cut"], ids=["empty", "cut"])
@pytest.mark.parametrize("kind", ["tflite", "onnx"])
@pytest.mark.parametrize("side", [0, 1])
def test_the_command_refuses_it(
    converted: dict[str, bytes],
    models: Path,
    side: int,
    kind: str,
    data: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(data and converted[kind][:200])
    pair = [str(path), str(models / MODEL)]
    assert run(["verify", *(pair if not side else pair[::-1])]) == 3
    assert capsys.readouterr().err.startswith(f"tflq: {path}: ")
