"""Float networks before they are quantized: ranges that a file records, and constants as it stores them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import CalibratedQuantizedType, TensorType, f16, f32
from tflq.tools.quantize.fidelity import signal_to_noise

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")


def recorded() -> Module:
    """A network whose file records ranges of the input, of a tensor between, and of weights."""
    module = net()
    weights = module.main.ops[0].operand(1)
    for tensor, low, high in (
        (module.main.inputs[0], 0, 255),
        (module.main.ops[1].result, -9e3, 9e3),
        (weights, -50, 50),
    ):
        tensor.type = tensor.type.with_element(CalibratedQuantizedType(f32, float(low), float(high)))
    return module


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
@pytest.mark.parametrize("given", ["calibration", "statistics"])
def test_samples_count_where_a_file_records_ranges(tmp_path: Path, scheme: Any, given: str) -> None:
    model, plain = written(tmp_path, recorded()), written(tmp_path, net(), "plain.tflite")
    data = list(samples(20))
    options: dict[str, Any] = {"calibration": data}
    if given == "statistics":
        options = {"statistics": tflq.calibrate(model, data)}
    result, wanted = (
        tflq.quantize(model, scheme=scheme, range="minmax", **options),
        tflq.quantize(plain, scheme=scheme, calibration=data, range="minmax"),
    )
    assert tflq.write(result.module) == tflq.write(wanted.module)
    (warning,) = result.warnings
    assert "the file records other ranges than the samples show, which count: 'x' 0 to 255" in warning
    assert "and those of 1 other tensor" in warning
    assert result.to_json()["warnings"] == [warning]
    assert not wanted.warnings


def halves(module: Module) -> Module:
    """A network with its weights and biases as float16, dequantized, as TensorFlow's converter writes them."""
    main, ops = module.main, []
    for op in main.ops:
        for place, operand in enumerate(op.operands):
            if operand is not None and operand.is_constant:
                real = Value(TensorType(operand.type.shape, f32), f"{op.result.name}/{place}")
                ops.append(Op("tfl.dequantize", [constant(operand.array.astype(np.float16), f16)], [real], {}))
                op.operands = [real if each is operand else each for each in op.operands]
        ops.append(op)
    main.ops = ops
    return module


@pytest.mark.parametrize("scheme", ["int8", "int16x8", "dynamic", "weight-only", "float16"])
def test_weights_of_float16_are_quantized_as_floats(tmp_path: Path, scheme: Any) -> None:
    model, out = written(tmp_path, halves(net())), tmp_path / "out.tflite"
    result = tflq.quantize(model, out, scheme=scheme, calibration=list(samples(20)), range="minmax")
    plain = tflq.quantize(
        written(tmp_path, net(), "plain.tflite"), scheme=scheme, calibration=list(samples(20)), range="minmax"
    )
    assert [(row.operator, row.quantized) for row in result.rows] == [
        (row.operator, row.quantized) for row in plain.rows
    ]
    assert signal_to_noise(model, out, list(samples(20))) > 30
    assert abs(result.bytes_out - plain.bytes_out) < 200


@pytest.mark.parametrize(
    ("source", "scheme"), [("float16", "int8"), ("weight-only", "dynamic"), ("weight-only", "weight-only")]
)
def test_a_result_with_other_weights_is_a_source_again(tmp_path: Path, source: Any, scheme: Any) -> None:
    model, first = written(tmp_path, net()), tmp_path / "first.tflite"
    tflq.quantize(model, first, scheme=source)
    result = tflq.quantize(first, scheme=scheme, calibration=list(samples(20)), range="minmax")
    assert result.decibels is not None
    assert result.decibels > 30
    assert all(row.quantized for row in result.rows if row.operator == "fully_connected")


def test_gptq_rounds_weights_of_float16(tmp_path: Path) -> None:
    model = written(tmp_path, halves(net()))
    rows = tflq.quantize(
        model, scheme="weight-only", weights="int4", weight_method="gptq", calibration=list(samples(40))
    ).rows
    assert all("gptq" in row.note and "is for" not in row.note for row in rows if row.quantized)
