"""Text with points is run as it is, and what was seen goes back into it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.analysis.statistics import read_statistics
from tflq.ir.text.printer import print_module
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.lookup import is_fully_quantized

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


def instrumented(folder: Path) -> Path:
    path = folder / "instrumented.mlir"
    path.write_text(print_module(parse_pipeline("quant-instrument{target=int8}").run(net()).module))
    return path


def test_an_instrumented_network_is_calibrated_and_quantized(tmp_path: Path) -> None:
    text, statistics = instrumented(tmp_path), tmp_path / "statistics.json"
    seen = tflq.calibrate(text, list(samples(20)), statistics).statistics
    assert list(seen.points) == ["x", "positive", "second"]
    passes = "kernel-fusion{target=int8},quant-propagate{target=int8}"
    applied = parse_pipeline(f"quant-apply-stats{{statistics={statistics}}},{passes}").run(tflq.read(text)).module
    assert is_fully_quantized(applied)


def test_points_see_what_the_tensors_of_the_file_are(tmp_path: Path) -> None:
    from_text = tflq.calibrate(instrumented(tmp_path), list(samples(20))).statistics.points
    from_file = tflq.calibrate(written(tmp_path, net()), list(samples(20))).statistics.points
    assert {key: from_file[key] for key in from_text} == from_text


def test_text_without_points_is_watched_as_a_file_is(tmp_path: Path) -> None:
    text = tmp_path / "net.mlir"
    text.write_text(print_module(net()))
    np.savez(tmp_path / "data.npz", given=samples(3))
    tflq.calibrate(text, tmp_path / "data.npz", tmp_path / "s.json")
    assert list(read_statistics(tmp_path / "s.json").points) == ["x", "first", "positive", "second", "y"]
