"""Results of a sweep that never was, as `results.jsonl` has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tflq.tools.sweep.task import Model, Result, new_result

FINGERPRINT = {"tflq": "2.0.0", "cpu": "a CPU", "seeds": 2}


def passing(number: int, target: str = "integer") -> Result:
    """One that is ok; sizes and times grow with its number."""
    return _result(f"nets/net_{number:04}", target, {"status": "ok", **_measured(number)})


def refused(name: str, why: str) -> Result:
    return _result(name, "integer", {"status": "refused", "why": why, "cpu": {"read": 0.01, "total": 0.01}})


def differing(name: str) -> Result:
    """One whose third operator differs by up to 5 LSB, and with it the output."""
    found = _measured(3)
    difference = {**_difference(64, 7, 5.0), "histogram": {"0": 4, "2": 3}}
    found["verification"] = {**found["verification"], "verdict": "differs", "outputs": [{"name": "out", **difference}]}
    layer = {"operator": 2, "opcode": "CONV_2D", "tensor": "conv/out", **difference}
    found["layers"] = {"results": 4, "compared": 4, "differing": 1, "first": layer, "diverging": [layer]}
    return _result(name, "integer", {"status": "differs", "why": "an output differs by up to 5 LSB", **found})


def made(count: int) -> Iterator[Result]:
    """Many, most of them ok: every hundredth is refused, and number 50 differs."""
    for number in range(count):
        if number == 50:
            yield differing("nets/off")
        elif number % 100 == 99:
            yield refused(f"nets/refused_{number:04}", f"CUSTOM: nobody knows operator {number}")
        else:
            yield passing(number)


def _result(name: str, target: str, found: dict[str, Any]) -> Result:
    return new_result(Model(name, path=f"{name}.tflite"), target, found, FINGERPRINT)


def _difference(elements: int, differing: int, largest: float) -> dict[str, Any]:
    words = {"entry": "", "unit": "LSB", "problem": "", "equal": not differing, "accepted": not differing}
    return {"elements": elements, "differing": differing, "largest": largest, "mean": largest / 10, **words}


def _measured(number: int) -> dict[str, Any]:
    outputs = [{"name": "out", **_difference(64, 0, 0.0), "histogram": {}}]
    inputs = ["random 0", "minimum", "maximum"]
    return {
        "model": {"sha256": f"{number:064x}", "bytes": 1000 + number},
        "converted": {"sha256": f"{number + 1:064x}", "bytes": 2000 + 3 * number, "files": ["converted.tflite"]},
        "operators": {
            "counts": {"integer": 3, "float": 1, "kept": 0},
            "paths": {"CONV_2D": {"integer": 3}, "TANH": {"float": 1}},
            "before": {"CONV_2D": 3, "TANH": 1},
            "after": {"tfl.add": 9, "tfl.mul": 6},
            "reasons": {"TANH: no table is that large": 1},
        },
        "cost": {
            "arena_in": {"bytes": 512},
            "arena": {"bytes": 1024 + number},
            "slower": "It is slower.",
            "instead": "",
        },
        "run_time": [{"entry": "", "before": 1e-4, "after": 2e-4 + number * 1e-6, "ratio": 2.0, "problem": ""}],
        "verification": {"verdict": "equal", "inputs": inputs, "outputs": outputs},
        "static": {"original": None, "converted": None, "kept": True},
        "cpu": {"read": 0.01, "convert": 0.02 + number / 1000, "verify": 0.3, "total": 0.33 + number / 1000},
        "seconds": 0.4,
        "peak_bytes": 200 << 20,
    }
