"""Channels of very different ranges: the float network gives what it gave, and the quantized one comes near it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import dense, net, samples, written

import tflq
from tflq.formats.sources import read
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.equalization.equalizing import equalized
from tflq.tools.quantize.equalization.groups import groups_of
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.samples.reading import Spans

CHANNELS = 6
WINDOWS = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
APART = np.exp(np.linspace(-5, 5, CHANNELS)).astype(np.float32)


def whole(numbers: list[Any]) -> np.ndarray:
    return np.array(numbers, np.int32)


class Built:
    """A function that grows operator by operator, on images [1, 4, 4, channels]."""

    def __init__(self, channels: int = 2) -> None:
        self.rng = np.random.default_rng(0)
        self.x = Value(TensorType((1, 4, 4, channels), f32), "x")
        self.ops: list[Op] = []

    def drawn(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).astype(np.float32)

    def op(self, name: str, *operands: Any, **attributes: Any) -> Value:
        values: list[Value | None] = [
            each if isinstance(each, Value) else constant(np.asarray(each), name="c") for each in operands
        ]
        result = Value(TensorType((), f32), f"{name}_{len(self.ops)}")
        op = Op(f"tfl.{name}", values, [result], attributes)
        (shape,) = op.infer_shapes() if isinstance(op.infer_shapes(), list) else [op.infer_shapes()]  # type: ignore[attr-defined]
        result.type = TensorType(shape, f32)
        self.ops.append(op)
        return result

    def conv(self, x: Value, outputs: int, apart: np.ndarray | float = 1, activation: str = "NONE") -> Value:
        """A convolution whose result's channels are so far apart."""
        weights = self.drawn(outputs, 2, 2, x.type.sizes[-1]) * np.float32(np.reshape(apart, (-1, 1, 1, 1)))
        biases = self.drawn(outputs) * np.float32(apart)
        return self.op("conv_2d", x, weights, biases, fused_activation_function=activation, **WINDOWS)

    def module(self, result: Value) -> Module:
        result.name = "y"
        return Module([Function("main", [self.x], [result], self.ops)])


def images(count: int, channels: int = 2) -> list[np.ndarray]:
    return list(np.random.default_rng(1).normal(size=(count, 1, 4, 4, channels)).astype(np.float32))


def equal(folder: Path, module: Module, data: list[np.ndarray]) -> tuple[Path, frozenset[str]]:
    """The file of the equalized network, whose outputs are those of the network, and the tensors that changed."""
    source, path = written(folder, module), folder / "equalized.tflite"
    tensors = equalized(source, Spans.of(data, read(source)), str(path))
    if tensors:
        assert signal_to_noise(source, path, data) > 100
    return path, tensors


def largest(path: Path, data: list[np.ndarray], tensor: str) -> np.ndarray:
    """The largest magnitude of each channel of a tensor, behind which the network is cut off."""
    module = read(path)
    (value,) = (v for op in module.main.ops for v in op.results if v.name == tensor)
    cut = path.with_suffix(".cut.tflite")
    tflq.write(Module([Function("main", module.main.inputs, [value], module.main.ops)]), cut)
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(str(cut))
    interpreter.allocate_tensors()
    seen = []
    for sample in data:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        seen.append(np.abs(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    return np.asarray(np.stack(seen).reshape(-1, value.type.sizes[-1]).max(axis=0))


def test_factors_go_through_what_is_homogeneous(tmp_path: Path) -> None:
    built = Built()
    a = built.conv(built.x, CHANNELS, APART, "RELU")
    b = built.op("leaky_relu", built.conv(a, CHANNELS, APART), alpha=0.1)
    c = built.op("add", built.op("add", a, b), built.drawn(CHANNELS) * APART)
    d = built.op("prelu", built.op("mul", c, built.drawn(CHANNELS)), built.drawn(1, 1, CHANNELS))
    pool = {**WINDOWS, "filter_width": 2, "filter_height": 2}
    e = built.op("max_pool_2d", built.op("pad", d, whole([[0, 0], [1, 0], [0, 1], [0, 0]])), **pool)
    f = built.op("average_pool_2d", e, **pool)
    weights = built.drawn(1, 2, 2, 2 * CHANNELS) * np.repeat(1 / APART, 2)
    g = built.op("depthwise_conv_2d", f, weights, built.drawn(2 * CHANNELS), depth_multiplier=2, **WINDOWS)
    h = built.op("mean", built.op("neg", g), whole([1, 2]))
    y = built.op("fully_connected", h, built.drawn(3, 2 * CHANNELS), built.drawn(3))
    data = images(5)
    path, tensors = equal(tmp_path, built.module(y), data)
    assert tensors == {value.name for op in built.ops[:-1] for value in op.results}
    before = largest(tmp_path / "model.tflite", data, a.name)
    after = largest(path, data, a.name)
    assert after.max() / after.min() < before.max() / before.min() / 100


def test_channels_follow_each_other_where_dims_are_joined(tmp_path: Path) -> None:
    built = Built()
    a = built.op("relu", built.conv(built.x, CHANNELS, APART))
    flat = built.op("reshape", a, whole([1, 16 * CHANNELS]), new_shape=(1, 16 * CHANNELS))
    y = built.op("fully_connected", flat, built.drawn(3, 16 * CHANNELS), built.drawn(3))
    _, tensors = equal(tmp_path, built.module(y), images(3))
    assert flat.name in tensors
    assert a.name in tensors


def test_scale_and_offset_of_a_normalization(tmp_path: Path) -> None:
    """One constant multiplies, one is added, and products behind take the factors up."""
    built = Built(CHANNELS)
    mean = built.op("mean", built.x, whole([3]), keep_dims=True)
    scaled = built.op("mul", built.op("sub", built.x, mean), built.drawn(CHANNELS) * APART)
    added = built.op("sub", built.drawn(CHANNELS) * APART, scaled)
    path, tensors = equal(tmp_path, built.module(built.conv(added, 3)), images(3, CHANNELS))
    assert tensors == {scaled.name, added.name}
    after = largest(path, images(3, CHANNELS), added.name)
    assert after.max() / after.min() < 300


def bounded(built: Built, a: Value) -> Value:
    return built.op("relu6", a)


def curved(built: Built, a: Value) -> Value:
    return built.op("tanh", a)


def mixed(built: Built, a: Value) -> Value:
    return built.op("add", a, built.op("mean", a, whole([3]), keep_dims=True))


def squared(built: Built, a: Value) -> Value:
    return built.op("mul", a, a)


def returned(built: Built, a: Value) -> Value:
    return built.op("sub", a, np.float32(1))


def padded(built: Built, a: Value) -> Value:
    return built.op("pad", a, whole([[0, 0], [0, 0], [0, 0], [0, 1]]))


@pytest.mark.parametrize("between", [bounded, curved, mixed, squared, returned, padded])
def test_other_operators_keep_channels_as_they_are(between: Callable[[Built, Value], Value]) -> None:
    built = Built()
    y = built.conv(between(built, built.conv(built.x, CHANNELS)), 3)
    assert not groups_of(built.module(y).main)


def test_outputs_and_shared_weights_keep_theirs() -> None:
    built = Built()
    a = built.conv(built.x, CHANNELS)
    y = built.conv(a, 3)
    module = built.module(y)
    assert len(groups_of(module.main)) == 1
    module.main.outputs = [y, a]
    assert not groups_of(module.main)
    module.main.outputs = [y]
    built.op("conv_2d", built.x, built.ops[0].operand(1), built.ops[0].operand(2), **WINDOWS)
    assert not groups_of(module.main)


def scaled_net() -> Module:
    """Two products, between which channels are up to e^10 apart; one of them is never reached."""
    module = net(last="tfl.relu")
    first, second = module.main.ops[0], module.main.ops[2]
    apart = np.exp(np.linspace(-5, 5, 8)).astype(np.float32)
    weights = first.operand(1).array * apart[:, None]
    weights[3] = -np.abs(weights[3])
    others = second.operand(1).array / apart
    module.main.ops[0] = dense(weights, first.operand(0), first.result, "first")
    module.main.ops[2] = dense(others, second.operand(0), second.result, "second")
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "least"), [("int8", 30), ("int16x8", 35), ("dynamic", 33), ("weight-only", 35)])
def test_equalized_where_that_is_nearer(tmp_path: Path, scheme: Any, least: float) -> None:
    model, out = written(tmp_path, scaled_net()), tmp_path / "out.tflite"
    data = list(np.abs(samples(40)))
    result = tflq.quantize(model, out, scheme=scheme, calibration=data)
    before, after = result.trials[:2]
    assert not before.chosen
    assert after.chosen
    assert after.decibels > before.decibels + 10
    assert signal_to_noise(model, out, list(np.abs(samples(40, 1)))) > least
    assert {row.tensor for row in result.rows if "channels equalized" in row.note} & {"first", "positive"}


def test_a_recipe_rounds_weights_by_the_numbers_of_equalized_channels(tmp_path: Path) -> None:
    model, out = written(tmp_path, scaled_net()), tmp_path / "out.tflite"
    options: dict[str, Any] = {"scheme": "dynamic", "weight_method": "gptq", "calibration": list(np.abs(samples(24)))}
    result = tflq.quantize(model, out, **options)
    assert result.trials[1].chosen
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(result.recipe)
    assert tflq.write(tflq.quantize(model, recipe=recipe, **options).module) == out.read_bytes()


def test_networks_that_gain_nothing_stay(tmp_path: Path) -> None:
    model, data = written(tmp_path, net()), list(samples(20))
    result = tflq.quantize(model, calibration=data, scheme="weight-only")
    assert [trial.name for trial in result.trials if trial.chosen] == ["channels as they are"]
    plain = tflq.quantize(model, scheme="weight-only")
    assert tflq.write(result.module) == tflq.write(plain.module)
