"""Proofs on disk: what was proven once is read, whoever asks; what other code gave is not."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq import caches as proof_cache
from tflq.caches import ProofCache
from tflq.numerics.results import Arrays, has_form, returns

MODEL = Path(__file__).parents[1] / "models" / "cnn_int8.tflite"
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
