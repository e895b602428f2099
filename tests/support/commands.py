"""Command lines that start each command of `tflq`, and the folder that they run in."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import tflq
from support.float_nets import net, samples
from tflq.analysis.statistics import PointStatistics, Statistics, write_statistics

MODELS: Final = Path(__file__).resolve().parents[2] / "models"


class Case(NamedTuple):
    """Command lines of `tflq` that run in order; the exit code of the last, and a part of what it prints."""

    lines: tuple[str, ...]
    prints: str
    code: int = 0
    needs: tuple[str, ...] = ()
    """Packages without which it cannot run."""


_INTERPRETER: Final = ("ai_edge_litert",)
CASES: Final = {
    "version": Case(("--version",), "tflq "),
    "help": Case(("--help",), "Convert and verify many models, and see what changed."),
    "help of convert": Case(("convert --help", "convert --help-all"), "Convert model IN"),
    "integer": Case(("convert model.tflite out.tflite",), "9 of 9 operators"),
    "kernels": Case(("convert model.tflite out.tflite --target kernels --json",), '"operators"'),
    "report": Case(("convert model.tflite out.tflite --report report.md -v",), "legalization"),
    "tosa": Case(("convert model.tflite out.tosa",), "9 of 9 operators"),
    "text": Case(("convert model.tflite out.mlir", "convert out.mlir out.tflite"), "out.tflite"),
    "onnx": Case(("convert model.tflite out.onnx",), "9 of 9 operators"),
    "many": Case(("convert models -o converted --workers 2",), "converted"),
    "invalid": Case(("convert broken.tflite out.tflite",), "broken.tflite", code=3),
    "unsupported": Case(("convert refused.tflite out.tflite --fallback error",), "ATAN2", code=4),
    "quantize": Case(
        ("quantize float.tflite out.tflite --calibration samples.npz",), "3 of 3 operators", needs=_INTERPRETER
    ),
    "quantize weights": Case(("quantize float.tflite out.tflite --scheme weight-only",), "2 of 4 operators"),
    "calibrate": Case(("calibrate float.tflite samples.npz -o out.json --workers 2",), "out.json", needs=_INTERPRETER),
    "calibrate merge": Case(("calibrate merge first.json second.json -o out.json",), "out.json"),
    "debug": Case(
        ("debug float.tflite int8.tflite samples.npz --html out.html",), "fully_connected", needs=_INTERPRETER
    ),
    "inspect": Case(("inspect model.tflite",), "fully, 9 operator"),
    "why": Case(("inspect model.tflite --why --json",), '"CONV_2D"'),
    "ops": Case(("ops --operator abs --json",), '"ABS"'),
    "opt": Case(("opt model.tflite -p infer-shapes,legalize,canonicalize,dce",), "tosa.conv2d"),
    "passes": Case(("opt --list-passes",), "canonicalize"),
    "verify": Case(
        ("verify model.tflite integer.tflite --layers --html out.html",), "EQUAL", needs=(*_INTERPRETER, "jinja2")
    ),
    "differs": Case(("verify model.tflite other.tflite",), "DIFFERS", code=5, needs=_INTERPRETER),
    "reduce": Case(("reduce models/pad.tflite",), "fail", needs=_INTERPRETER),
    "bisect": Case(("bisect models/pad.tflite",), "legalize", needs=_INTERPRETER),
    "sweep": Case(
        ("sweep models -o swept --no-xnnpack", "sweep page swept", "sweep diff swept swept"),
        "no change",
        needs=(*_INTERPRETER, "jinja2"),
    ),
}
"""By what they show."""


def fill(place: Path) -> None:
    """Puts what the command lines name into a folder."""
    (place / "models").mkdir()
    for name in ("pad", "split"):
        shutil.copy(MODELS / f"{name}.tflite", place / "models")
    shutil.copy(MODELS / "atan2_int16.tflite", place / "refused.tflite")
    shutil.copy(MODELS / "cnn_int8.tflite", place / "model.tflite")
    shutil.copy(MODELS / "cnn_uint8.tflite", place / "other.tflite")
    tflq.convert(place / "model.tflite", place / "integer.tflite")
    tflq.write(net(), place / "float.tflite")
    tflq.quantize(place / "float.tflite", place / "int8.tflite", scheme="weight-only")
    (place / "broken.tflite").write_bytes((place / "model.tflite").read_bytes()[:1000])
    np.savez(place / "samples.npz", given=samples(4))
    for name in ("first", "second"):
        write_statistics(place / f"{name}.json", Statistics({"x": PointStatistics(1, 0.0, 1.0)}))
