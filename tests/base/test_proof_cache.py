"""Proofs on disk: what was proven once is read, whoever asks; what other code gave is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq.base import caches as proof_cache
from tflq.base.caches import ProofCache
from tflq.base.results import Arrays, has_form, is_result, returns

MODEL = Path(__file__).parents[2] / "models" / "cnn_int8.tflite"
CALLS: list[int] = []


def are_squares(found: Arrays, x: np.ndarray, _: int) -> bool:
    return len(found) == 2 and has_form(found[0], x.dtype.type, x.shape) and has_form(found[1], np.bool_, (0, 3))


@returns(are_squares)
def squares(x: np.ndarray, times: int) -> list[np.ndarray]:
    CALLS.append(times)
    return [x * x * times, np.zeros((0, 3), bool)]


def test_a_result_is_computed_once(tmp_path: Path) -> None:
    CALLS.clear()
    x = np.arange(5)
    for _ in range(2):
        for times in (2, 3):
            first, second = ProofCache(tmp_path / "made")(squares, x, times)
            np.testing.assert_array_equal(first, x * x * times)
            assert (second.shape, second.dtype) == ((0, 3), bool)
    assert CALLS == [2, 3]
    ProofCache(tmp_path / "made")(squares, x.astype(np.int32), 2)  # another type, another question
    assert CALLS == [2, 3, 2]


def test_other_code_does_not_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    cache, x = ProofCache(tmp_path), np.arange(5)
    cache(squares, x, 1)
    monkeypatch.setattr(proof_cache, "_revision", lambda: "another")
    cache(squares, x, 1)
    assert CALLS == [1, 1]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(tflq.FileError):
        ProofCache(tmp_path / "file")


def test_conversions_share_a_folder(tmp_path: Path) -> None:
    want = tflq.convert(MODEL).data
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        made = [pool.submit(tflq.convert, MODEL, cache=tmp_path) for _ in range(4)]
        assert [conversion.result().data for conversion in made] == [want] * 4
    assert any(tmp_path.iterdir())
    assert tflq.convert(MODEL, cache=tmp_path).data == want
    with pytest.raises(tflq.OptionError, match="cache is for TFLite files"):
        tflq.convert(MODEL, format="tosa", cache=tmp_path)


def test_an_entry_of_another_type_or_shape_is_a_miss(tmp_path: Path) -> None:
    """Rewritten with its right digest: that proves integrity alone."""
    x = np.arange(5)
    want = ProofCache(tmp_path)(squares, x, 2)
    key = proof_cache._key(squares, (x, 2))
    for other in (
        proof_cache._packed([want[0].astype(np.int32), want[1]]),
        proof_cache._packed([want[0][:4], want[1]]),
        proof_cache._packed([want[0]]),
        proof_cache._packed([*want, want[0]]),
        proof_cache._packed([]),
        proof_cache._packed(want)[:-3],
        b"no array",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}".ljust(117) + b"\n",
    ):
        ProofCache(tmp_path)._entries.put(key, other)
        CALLS.clear()
        found = ProofCache(tmp_path)(squares, x, 2)
        assert CALLS == [2]
        np.testing.assert_array_equal(found[0], want[0])


def test_every_proof_of_a_conversion_has_the_form_that_its_function_states(tmp_path: Path) -> None:
    calls = []

    def noted(function: Callable[..., Arrays], arguments: Sequence[object], found: Arrays) -> bool:
        calls.append(getattr(function, "__self__", function).__name__)
        assert is_result(function, arguments, found), function
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof_cache, "is_result", noted)
        tflq.convert(MODEL, cache=tmp_path)
        tflq.convert(MODEL, cache=tmp_path, mac="float32")
        tflq.convert(MODEL, cache=tmp_path, target="portable")
    assert {"rescale_divisions", "Falling", "Distance", "Split"} <= {*calls}


def test_a_nan_is_no_proof() -> None:
    x = np.zeros(3)
    assert not is_result(squares, (x, 1), [np.full(3, np.nan), np.zeros((0, 3), bool)])
    assert not is_result(lambda x: [x], (x,), [x])  # says nothing of what it returns
