"""Conversions and verifications in a pool of processes: results and errors arrive whole."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import tflq

MODELS = sorted((Path(__file__).parents[1] / "models").glob("*.tflite"))


def converted(model: bytes) -> tuple[tflq.Conversion, str] | tflq.TflqError:
    try:
        conversion = tflq.convert(model)
        return conversion, tflq.verify(model, conversion.data, seeds=1).verdict
    except tflq.TflqError as error:
        return error


def raised(model: bytes) -> tflq.Conversion:
    return tflq.convert(model, fallback="error")


def test_twenty_models_three_of_them_broken() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install tflq[verify]")
    sound = [path.read_bytes() for path in MODELS]
    sound = (sound * 2)[:17]
    broken = [sound[0][:900], b"not a model", sound[1][: len(sound[1]) // 2]]
    models = [*sound[:5], broken[0], *sound[5:10], broken[1], *sound[10:], broken[2]]
    with ProcessPoolExecutor(4, get_context("spawn")) as pool:
        results = list(pool.map(converted, models))
        refused = pool.submit(raised, next(m for m, p in zip(sound, MODELS, strict=False) if "atan2" in p.name))
        with pytest.raises(tflq.UnsupportedError, match="ATAN2") as caught:
            refused.result()
    assert caught.value.reasons[0].opcode == "ATAN2"
    for model, result in zip(models, results, strict=True):
        if model in broken:
            assert isinstance(result, tflq.InvalidModelError)
            assert result.reason.what
        else:
            assert not isinstance(result, tflq.TflqError), result
            conversion, verdict = result
            assert verdict == "equal"
            assert conversion.data == tflq.convert(model).data
            assert conversion.report.rows == tflq.convert(model).report.rows
