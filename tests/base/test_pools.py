"""Conversions and verifications in a pool of processes: results and errors arrive whole."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from support.harness import own_tests

import tflq

MODELS = Path(__file__).parents[2] / "models"
SOUND = ("cnn_int8", "cnn_uint8", "cnn_int16x8", "two_signatures", "split", "log_softmax")


def converted(model: bytes) -> tuple[tflq.Conversion, str] | tflq.TflqError:
    try:
        conversion = tflq.convert(model)
        return conversion, tflq.verify(model, conversion.data, seeds=1).verdict
    except tflq.TflqError as error:
        return error


def raised(model: bytes) -> tflq.Conversion:
    return tflq.convert(model, fallback="error")


@pytest.mark.slow
def test_models_three_of_them_broken() -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    sound = [(MODELS / f"{name}.tflite").read_bytes() for name in SOUND]
    broken = [sound[0][:900], b"not a model", sound[1][: len(sound[1]) // 2]]
    models = [*sound[:3], broken[0], *sound[3:], broken[1], sound[0], broken[2]]
    with ProcessPoolExecutor(2, get_context("spawn"), own_tests) as pool:
        results = list(pool.map(converted, models))
        refused = pool.submit(raised, (MODELS / "atan2_int16.tflite").read_bytes())
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
            here = tflq.convert(model)
            assert conversion.data == here.data
            assert conversion.report.rows == here.report.rows
