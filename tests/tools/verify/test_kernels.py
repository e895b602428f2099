"""Which share of a difference is one of kernels, and whether two models say the same class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.chains import chain
from support.harness import argument

import tflq
from tflq.cli import main
from tflq.ir.core import Buffer
from tflq.ir.types import UniformQuantizedType, f32, i8
from tflq.tools.verify.comparison import agreement

pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")


def test_the_difference_that_the_originals_own_kernels_make_is_named(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = models / "cnn_int8.tflite", tmp_path / "cnn.tflite"
    tflq.convert(path, out)
    assert tflq.verify(path, out).kernels == []
    assert main.run(["verify", str(path), str(out), "--resolver", "default"]) == 5
    said = capsys.readouterr().out
    assert "the original itself differs between these kernels and the reference ones (up to 1 LSB, 1 of 10" in said
    assert "; the other model equals the original on the reference kernels" in said
    assert main.run(["verify", str(path), str(out), "--resolver", "default", "--json"]) == 5
    (share,) = json.loads(capsys.readouterr().out)["kernels"]
    assert (share["original"]["largest"], share["other"]["equal"]) == (1, True)


def test_a_difference_that_is_none_of_kernels_is_not_said_to_be_one() -> None:
    element = UniformQuantizedType.of(i8, 0.1, 0)
    a, b = (
        chain(argument((2, 3), element, "x"), [(name, [], argument((2, 3), element, "y"), {}, 2)])
        for name in ("tfl.relu", "tfl.abs")
    )
    result = tflq.verify(a, b, resolver="optimized")
    assert result.verdict == "differs"
    (share,) = result.kernels
    assert share.original.equal
    assert not share.other.equal
    assert "the original gives the same on these kernels and on the reference ones" in str(share)


def test_top_1_agreement(models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, other = models / "cnn_int8.tflite", tmp_path / "other.tflite"
    module = tflq.read(path)
    weights = module.main.ops[7].operand(1)
    assert weights.buffer is not None
    weights.buffer = Buffer(weights.buffer.data[::-1].copy())
    tflq.write(module, other)
    shape = module.main.inputs[0].type.shape
    assert shape is not None
    folder = tmp_path / "in"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(4):
        name = module.main.inputs[0].name
        np.savez(folder / f"{i}.npz", **{name: rng.integers(-128, 128, [d or 1 for d in shape], np.int8)})
    assert tflq.verify(path, path).top1 == []
    (same,) = tflq.verify(path, path, inputs=folder).top1
    assert (same.inputs, same.agreeing) == (4, 4)
    main.run(["verify", str(path), str(other), "--inputs", str(folder), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["top1"]
    assert found["inputs"] == 4
    assert found["agreeing"] < 4
    assert found["share"] == found["agreeing"] / 4
    main.run(["verify", str(path), str(path), "--inputs", str(folder)])
    assert "4 of 4 agree (100.00%)" in capsys.readouterr().out


def test_what_looks_like_scores() -> None:
    quantized = {"scales": [0.1]}
    a, b = np.asarray([[1, 5, 2], [7, 0, 1]], np.int8), np.asarray([[3, 4, 2], [0, 1, 1]], np.int8)
    found = agreement("", "y", a, b, quantized)
    assert found is not None
    assert (found.inputs, found.agreeing) == (2, 1)
    assert agreement("", "y", a, b, {"scales": []}) is None
    sizes: dict[tuple[int, ...], int | None] = {
        (1, 4, 4, 3): None,
        (2, 1, 1, 3): 2,
        (3,): 1,
        (3, 1): None,
        (0, 3): None,
    }
    for shape, inputs in sizes.items():
        floats = np.zeros(shape, np.float32)
        found = agreement("", "y", floats, floats, {})
        assert (found.inputs if found is not None else None) == inputs


def test_a_verification_is_true_only_if_equal() -> None:
    def model(name: str) -> bytes:
        return chain(argument((2, 3), f32, "x"), [(name, [], argument((2, 3), f32, "y"), {}, 1)])

    equal, differs = tflq.verify(model("tfl.abs"), model("tfl.abs")), tflq.verify(model("tfl.abs"), model("tfl.neg"))
    accepted = tflq.verify(model("tfl.abs"), model("tfl.neg"), atol=4)
    failed = tflq.verify(model("tfl.abs"), b"no model")
    assert [each.verdict for each in (equal, differs, accepted, failed)] == ["equal", "differs", "accepted", "failed"]
    assert [bool(each) for each in (equal, differs, accepted, failed)] == [True, False, False, False]
    assert [each.passed for each in (equal, differs, accepted, failed)] == [True, False, True, False]
