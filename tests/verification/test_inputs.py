"""The inputs that two models are compared on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.errors import FileError, OptionError
from tflq.verification.inputs import given_inputs, load_inputs, made_inputs


def tensor(
    dtype: str, shape: tuple[int, ...] = (2, 3), *, scale: float = 0.0, zero: int = 0, batch: bool = False
) -> dict[str, Any]:
    signature = [-1, *shape[1:]] if batch else list(shape)
    quantization = {"scales": [scale], "zero_points": [zero]} if scale else {"scales": [], "zero_points": []}
    return {"name": "x", "shape": list(shape), "shape_signature": signature, "dtype": dtype, "axis": 0, **quantization}


def test_sets_and_their_names() -> None:
    names = [name for name, _ in made_inputs([("x", tensor("int8", scale=0.1))], 2, [(2, 3)])]
    assert names == ["random 0", "random 1", "minimum", "maximum", "zero point"]


@pytest.mark.parametrize(
    ("dtype", "low", "high", "zero"), [("int8", -128, 127, 3), ("uint8", 0, 255, 131), ("int16", -32768, 32767, 0)]
)
def test_edges_of_quantized_inputs(dtype: str, low: int, high: int, zero: int) -> None:
    side = [("x", tensor(dtype, (64, 64), scale=0.1, zero=zero))]
    values = {name: arrays[0] for name, arrays in made_inputs(side, 1, [(64, 64)])}
    assert {name: a.dtype.name for name, a in values.items()} == dict.fromkeys(values, dtype)
    assert [int(values[name].min()) for name in ("minimum", "maximum", "zero point")] == [low, high, zero]
    assert [int(values[name].max()) for name in ("minimum", "maximum", "zero point")] == [low, high, zero]
    assert np.unique(values["random 0"]).size > 200


def test_floats_indices_and_strings() -> None:
    side = [("f", tensor("float32")), ("i", tensor("int32")), ("b", tensor("bool")), ("s", tensor("bytes_"))]
    for _, (floats, indices, flags, texts) in made_inputs(side, 2, [(2, 3)] * 4):
        assert np.abs(floats).max() <= 1
        assert set(np.unique(indices)) <= {0, 1}
        assert flags.dtype.name + texts.dtype.kind == "boolS"


def test_the_same_every_time_and_others_with_another_seed() -> None:
    side = [("x", tensor("int8", scale=0.1))]
    one, other, third = (next(made_inputs(side, 3, [(2, 3)], seed))[1][0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, other)
    assert (one != third).any()


def test_given_by_name_or_in_order(tmp_path: Path) -> None:
    side = [("x", tensor("int8", batch=True)), ("y", tensor("float32"))]
    x, y = np.ones((7, 3), np.int8), np.ones((2, 3), np.float32)
    assert [a.shape for a in given_inputs(side, {"y": y, "x": x})] == [(7, 3), (2, 3)]
    np.savez(tmp_path / "in.npz", x, y)
    ((name, arrays),) = load_inputs(tmp_path / "in.npz")
    assert (name, [a.dtype.name for a in given_inputs(side, arrays)]) == ("given", ["int8", "float32"])


def test_a_folder_of_arrays_by_input(tmp_path: Path) -> None:
    side = [("serving/x:0", tensor("int8")), ("y", tensor("float32"))]
    np.save(tmp_path / "serving_x_0.npy", np.ones((2, 3), np.int8))
    np.save(tmp_path / "y.npy", np.zeros((2, 3), np.float32))
    ((name, arrays),) = load_inputs(tmp_path)
    assert (name, [a.dtype.name for a in given_inputs(side, arrays)]) == ("given", ["int8", "float32"])


def test_a_folder_of_sets(tmp_path: Path) -> None:
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", x=np.ones((2, 3), np.int8))
    assert [name for name, _ in load_inputs(tmp_path)] == ["a.npz", "b.npz"]


def test_a_single_input_takes_a_file_of_any_name(tmp_path: Path) -> None:
    np.save(tmp_path / "cat.npy", np.ones((2, 3), np.int8))
    for source in (tmp_path, tmp_path / "cat.npy"):
        ((_, arrays),) = load_inputs(source)
        assert given_inputs([("x", tensor("int8"))], arrays)[0].shape == (2, 3)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"holds no \.npy files and no \.npz files"):
        load_inputs(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "no array for input 'x': there are none"),
        ({"y": np.zeros(1), "z": np.zeros(1)}, "there are 'y', 'z'"),
        ({"x": np.zeros((2, 3), np.int8), "y": np.zeros(1)}, "no input takes the array 'y': the inputs are 'x'"),
        ({"x": np.zeros((3, 2), np.int8)}, r"has shape \(3, 2\), the model wants \(2, 3\)"),
        ({"x": np.zeros((2, 3), np.uint8)}, "is uint8, the model wants int8"),
    ],
)
def test_given_that_do_not_fit(arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        given_inputs([("x", tensor("int8"))], arrays)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 not a zip", b"\x93NUMPY"])
def test_a_file_that_is_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"in\.npz: not a readable \.npy or \.npz file"):
        load_inputs(path)
