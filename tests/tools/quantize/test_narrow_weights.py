"""Weights of few bits in all schemes: which kernels take them, how they are stored, and which methods they have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import dense, written

import tflq
from tflq.base.errors import OptionError
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32, i2, i4, i8
from tflq.tools.quantize.correction.layers import stored_weights_of
from tflq.tools.quantize.fidelity import FloatNetwork, decibels
from tflq.tools.verify.verifying import verify

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
STATIC = ("int8", "int16x8")
FITTED = ("gptq", "reconstruct")
SAMPLES = 24


def net() -> Module:
    """CONV_2D of 3×3 and DEPTHWISE_CONV_2D with a RELU each, then two FULLY_CONNECTED, one with a RELU."""
    rng = np.random.default_rng(5)

    def drawn(name: str, *shape: int) -> Value:
        return constant((rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name=name)

    x, a, b, flat, h, y = (
        Value(TensorType(shape, f32), name)
        for name, shape in (
            *(("x", (1, 4, 4, 4)), ("a", (1, 4, 4, 8)), ("b", (1, 4, 4, 8))),
            *(("flat", (1, 128)), ("h", (1, 32)), ("y", (1, 8))),
        )
    )
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU"}
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
    ops = [
        Op("tfl.conv_2d", [x, drawn("w1", 8, 3, 3, 4), drawn("b1", 8)], [a], options),
        Op(
            "tfl.depthwise_conv_2d",
            [a, drawn("w2", 1, 3, 3, 8), drawn("b2", 8)],
            [b],
            {**options, "depth_multiplier": 1},
        ),
        Op("tfl.reshape", [b, constant(np.array([1, 128], np.int32), name="shape")], [flat], {"new_shape": (1, 128)}),
        dense(drawn("w3", 32, 128).array, flat, h, "third"),
        dense(drawn("w4", 8, 32).array, h, y, "fourth"),
    ]
    ops[3].attributes["fused_activation_function"] = "RELU"
    return Module([Function("main", [x], [y], ops)])


def images(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(6)
    return list((rng.normal(size=(count, 1, 4, 4, 2)) @ rng.normal(size=(2, 4))).astype(np.float32))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = written(tmp_path_factory.mktemp("narrow"), net())
    yield path
    floats(path).close()


@cache
def floats(model: Path) -> FloatNetwork:
    """The network, which runs once on the samples that judge."""
    return FloatNetwork(model)


@cache
def quantized(model: Path, **options: Any) -> tuple[tflq.Quantization, float]:
    """The result, which tests share, and its signal-to-noise ratio on other samples."""
    path = model.with_name("quantized.tflite")
    static = options["scheme"] in STATIC
    data = images(SAMPLES) if static or options.get("weight_method") in FITTED else None
    method = "minmax" if static else "auto"
    result = tflq.quantize(model, path, calibration=data, force=True, range=method, **options)
    return result, decibels(floats(model).beside(path, images(2 * SAMPLES)[SAMPLES:]))


def converts(result: tflq.Quantization, folder: Path, *, layers: bool = False) -> bool:
    """Whether its integer form computes the same."""
    path, out = folder / "quantized.tflite", folder / "integer.tflite"
    tflq.write(result.module, path)
    tflq.convert(path, out)
    return verify(path, out, layers=layers).equal


def storages(module: Module) -> dict[str, Any]:
    """The storage of the weights of each product."""
    products = [op for op in module.main.ops if isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected))]
    return {op.short_name: stored_weights_of(op).type.storage for op in products}


@pytest.mark.parametrize("scheme", STATIC)
def test_kernels_of_quantized_activations_take_weights_of_4_bits(model: Path, tmp_path: Path, scheme: str) -> None:
    ratios = []
    for method in ("minmax", "mse", "octav", *FITTED):
        result, ratio = quantized(model, scheme=scheme, weights="int4", weight_method=method)
        assert not result.kept
        assert storages(result.module) == {"conv_2d": i4, "depthwise_conv_2d": i8, "fully_connected": i4}
        ratios.append(ratio)
    assert min(ratios[3:]) > ratios[0] + 3
    assert converts(result, tmp_path, layers=True)


@pytest.mark.parametrize("scheme", STATIC)
@pytest.mark.parametrize("method", ["mse", "octav", *FITTED])
def test_weights_of_8_bits_have_methods_there(model: Path, scheme: str, method: str) -> None:
    plain, _ = quantized(model, scheme=scheme)
    result, ratio = quantized(model, scheme=scheme, weight_method=method)
    assert storages(result.module) == dict.fromkeys(("conv_2d", "depthwise_conv_2d", "fully_connected"), i8)
    assert tflq.write(result.module) != tflq.write(plain.module)
    assert ratio > 25
    if method in FITTED:
        what = "outputs rounded by gptq" if method == "gptq" else "outputs reconstructed"
        assert what in result.rows[-1].note


def test_a_target_without_kernels_of_4_bits_has_8(model: Path, tmp_path: Path) -> None:
    device = tmp_path / "device.toml"
    device.write_text(
        '[target]\nname = "device"\n[kernels]\n'
        'fully_connected = "qi8 qi8<-127:127>:0 qi32:0? -> qi8; multiplier_accumulator_scale"\n'
    )
    result, _ = quantized(model, scheme="int8", weights="int4", weight_method="mse", target=device)
    assert {row.operator: row.quantized for row in result.rows}["fully_connected"]
    assert storages(result.module)["fully_connected"] is i8


@pytest.mark.parametrize(("scheme", "convolution"), [("dynamic", i4), ("weight-only", i2)])
def test_weights_of_2_bits(model: Path, tmp_path: Path, scheme: str, convolution: Any) -> None:
    """The kernel of CONV_2D that quantizes its input reads int2 as int8."""
    result, plain = quantized(model, scheme=scheme, weights="int2")
    assert storages(result.module) == {"conv_2d": convolution, "depthwise_conv_2d": i8, "fully_connected": i2}
    array = stored_weights_of(result.module.main.ops[-1]).array  # type: ignore[arg-type]
    assert set(np.unique(array)) <= {-2, -1, 0, 1}
    result, fitted = quantized(model, scheme=scheme, weights="int2", weight_method="reconstruct")
    assert fitted > plain + 8
    assert converts(result, tmp_path)


@pytest.mark.parametrize(("scheme", "weights"), [("weight-only", "int8"), ("weight-only", "int2"), ("dynamic", "int4")])
def test_blocks_have_all_methods(model: Path, tmp_path: Path, scheme: str, weights: str) -> None:
    _, channels = quantized(model, scheme=scheme, weights=weights, weight_method="mse")
    ratios = []
    for method in ("mse", *FITTED):
        result, ratio = quantized(model, scheme=scheme, weights=weights, weight_method=method, blocks=32)
        assert [row.types for row in result.rows if row.operator == "fully_connected"] == [
            f"q{weights[0]}{weights[3:]}/blocks of 32"
        ] * 2
        ratios.append(ratio)
    assert ratios[0] > channels - 1
    assert ratios[2] > ratios[0] + 1
    assert converts(result, tmp_path)


def test_what_no_kernel_takes_is_refused(model: Path) -> None:
    for options, what in (
        ({"scheme": "int8", "weights": "int2"}, "take weights of 4 bits at least, not int2"),
        ({"scheme": "dynamic", "blocks": 32}, "blocks are for scheme weight-only, and for int4 with dynamic"),
    ):
        with pytest.raises(OptionError, match=what):
            quantized(model, **options)
