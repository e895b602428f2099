"""Products corrected on samples: windows as kernels see them, networks in parts, and results that are nearer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import net, samples, written

import tflq
from tflq.base.errors import OptionError
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.calibration.collecting import run
from tflq.tools.quantize.correction.layers import layers_of, separate_biases
from tflq.tools.quantize.correction.stepwise import Stepwise
from tflq.tools.quantize.debugging.debugging import side_of
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.samples.inputs import Entry
from tflq.tools.verify.verifying import verify

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
CHANNELS = 3


def images(count: int) -> list[np.ndarray]:
    """Images whose channels depend on each other, not around zero."""
    rng = np.random.default_rng(3)
    base = rng.uniform(0, 1, size=(count, 1, 7, 6, 1)) + 0.2 * rng.uniform(0, 1, size=(count, 1, 7, 6, CHANNELS))
    return list(base.astype(np.float32))


def convolutions(padding: str = "SAME", stride: int = 1, dilation: int = 1) -> Module:
    """A convolution, a depthwise one with two outputs for each channel, and a product of what these give."""
    rng = np.random.default_rng(1)

    def drawn(name: str, *shape: int) -> Value:
        return constant((rng.normal(size=shape) + 0.3).astype(np.float32), name=name)

    options = {"padding": padding, "stride_w": stride, "stride_h": stride, "fused_activation_function": "RELU"}
    options |= {"dilation_w_factor": dilation, "dilation_h_factor": dilation}
    x, a, b, flat = (Value(TensorType((), f32), name) for name in ("x", "a", "b", "flat"))
    x.type = TensorType((1, 7, 6, CHANNELS), f32)
    first = Op("tfl.conv_2d", [x, drawn("w1", 4, 3, 2, CHANNELS), drawn("b1", 4)], [a], options)
    a.type = TensorType(first.infer_shapes(), f32)  # type: ignore[attr-defined]
    second = Op(
        "tfl.depthwise_conv_2d", [a, drawn("w2", 1, 2, 2, 8), drawn("b2", 8)], [b], {**options, "depth_multiplier": 2}
    )
    b.type = TensorType(second.infer_shapes(), f32)  # type: ignore[attr-defined]
    size = int(np.prod(b.type.sizes))
    flat.type = TensorType((1, size), f32)
    y = Value(TensorType((1, 5), f32), "y")
    dense = {"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": False}
    ops = [
        *(first, second),
        Op("tfl.reshape", [b, constant(np.array([1, size], np.int32), name="shape")], [flat], {"new_shape": (1, size)}),
        Op("tfl.fully_connected", [flat, drawn("w3", 5, size), drawn("b3", 5)], [y], dense),
    ]
    return Module([Function("main", [x], [y], ops)])


@pytest.mark.parametrize(("padding", "stride", "dilation"), [("SAME", 2, 1), ("VALID", 1, 2), ("SAME", 1, 2)])
def test_rows_times_weights_are_what_the_kernel_gives(tmp_path: Path, padding: str, stride: int, dilation: int) -> None:
    path, out = written(tmp_path, convolutions(padding, stride, dilation)), tmp_path / "int8.tflite"
    tflq.quantize(path, out, calibration=images(4))
    floats, quantized = tflq.read(path), tflq.read(out)
    sides = [side_of(module, Entry.of(module)) for module in (floats, quantized)]
    stepwise = Stepwise(sides[0].function, sides[0].inputs, [[images(1)[0]]], str(tmp_path / "part"))
    layers = layers_of(*sides)
    assert [layer.op.short_name for layer in layers] == ["conv_2d", "depthwise_conv_2d", "fully_connected"]
    for layer in layers:
        (x,) = stepwise.advance(layer.real, [])
        rows = layer.rows(x, np.arange(layer.count(x)))
        result = np.moveaxis(layer.floats.of(np.moveaxis(rows, 1, 0)), 0, 1).reshape(len(rows), -1)
        product = next(op for op in sides[0].function.ops if op.operands[0] is layer.real).result
        (wanted,) = stepwise.advance(product, [layer.real])
        low = -np.inf if layer.ends[0] is None else layer.ends[0]
        np.testing.assert_allclose(np.maximum(result, low), wanted.reshape(len(rows), -1), atol=1e-4)


def test_a_network_in_parts_gives_what_it_gives_whole(tmp_path: Path) -> None:
    path = written(tmp_path, convolutions())
    function = tflq.read(path).main
    data = [[image] for image in images(3)]
    parts = Stepwise(function, function.inputs, data, str(tmp_path / "part"))
    for value in (function.ops[1].result, function.outputs[0]):
        arrays = parts.advance(value, [])
    wanted = [run(str(path), "", each)[0] for each in data]
    np.testing.assert_allclose(arrays, wanted, rtol=1e-5)


@pytest.mark.parametrize("scheme", ["weight-only", "dynamic", "int8"])
def test_reconstructed_networks_are_nearer(tmp_path: Path, scheme: Any) -> None:
    path, out = written(tmp_path, convolutions()), tmp_path / "out.tflite"
    options: dict[str, Any] = {"calibration": images(60), "range": "minmax"}
    if scheme != "int8":
        options["weights"] = "int4"
    ratios = []
    for method in ("minmax", "reconstruct"):
        result = tflq.quantize(path, out, scheme=scheme, weight_method=method, force=True, **options)
        ratios.append(signal_to_noise(path, out, images(100)[60:]))
    assert ratios[1] > ratios[0] + (1 if scheme == "int8" else 6)
    assert any("outputs reconstructed" in row.note for row in result.rows)
    tflq.convert(out, tmp_path / "integer.tflite", force=True)
    assert verify(out, tmp_path / "integer.tflite").equal


def test_shared_biases_are_set_apart(tmp_path: Path) -> None:
    module = convolutions()
    shared = module.main.ops[0].operand(2)
    module.main.ops[3].operands = [*module.main.ops[3].operands[:2], shared]
    separate_biases(module.main)
    biases = [op.operands[2] for op in (module.main.ops[0], module.main.ops[3])]
    assert biases[0] is shared
    assert biases[1] is not shared
    np.testing.assert_array_equal(biases[1].array, shared.array)  # type: ignore[union-attr]


def test_methods_that_need_samples_say_so(tmp_path: Path) -> None:
    model = written(tmp_path, net())
    with pytest.raises(OptionError, match="weights are fitted to samples; give samples"):
        tflq.quantize(model, scheme="dynamic", weight_method="reconstruct")
    with pytest.raises(OptionError, match="1 samples are too few"):
        tflq.quantize(model, scheme="dynamic", weight_method="reconstruct", calibration=list(samples(1)))
    with pytest.raises(OptionError, match="scheme 'float16' has no choice of weights"):
        tflq.quantize(model, scheme="float16", weight_method="reconstruct")
    result = tflq.quantize(model, scheme="dynamic", weight_range="mse")
    assert result.warnings == ("weight_range has the name weight_method now",)
    plain = tflq.quantize(model, scheme="dynamic", weight_method="mse")
    assert tflq.write(plain.module) == tflq.write(result.module)


def test_a_rule_reconstructs_weights(tmp_path: Path) -> None:
    model = written(tmp_path, net())
    rule = {"name": "second", "scheme": "weight-only", "weights": "int4", "weight_method": "reconstruct"}
    rows = tflq.quantize(model, scheme="weight-only", calibration=list(samples(40)), recipe=[rule]).rows
    assert {row.tensor: "reconstructed" in row.note for row in rows if row.quantized} == {
        "first": False,
        "second": True,
    }
