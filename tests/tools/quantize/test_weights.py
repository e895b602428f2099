"""Weights of 4 bits and of blocks, and the methods of their ranges."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.float_nets import dense, written

import tflq
from tflq.base.errors import OptionError
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType, f32, i4
from tflq.tools.quantize.fidelity import signal_to_noise
from tflq.tools.quantize.weights import NOT_BETTER, NOT_SEEN, ROUNDED_BY_GPTQ, moments_of
from tflq.tools.samples.reading import Spans

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
SIZES = (128, 64, 16)


def net() -> Module:
    """128 → 64 with a RELU inside → 16."""
    rng = np.random.default_rng(0)
    x, h, y = (Value(TensorType((1, n), f32), name) for n, name in zip(SIZES, "xhy", strict=True))
    ops: list[Op] = []
    for a, b, name in ((x, h, "first"), (h, y, "second")):
        rows, columns = b.type.shape[1], a.type.shape[1]  # type: ignore[index]
        ops.append(dense((rng.normal(size=(rows, columns)) / 12).astype(np.float32), a, b, name))  # type: ignore[arg-type]
    ops[0].attributes["fused_activation_function"] = "RELU"
    return Module([Function("main", [x], [y], ops)], [Signature("serve", 0, [("x", x)], [("y", y)])])


def factors(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return list((rng.normal(size=(count, 16)) @ rng.normal(size=(16, SIZES[0]))).astype(np.float32))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, net())


def quantized(model: Path, **options: Any) -> tflq.Quantization:
    options = {"weights": "int4", "range": "minmax", **options}
    return tflq.quantize(model, model.with_name("quantized.tflite"), force=True, **options)


def noise(model: Path, **options: Any) -> float:
    quantized(model, **options)
    return signal_to_noise(model, model.with_name("quantized.tflite"), factors(100))


def weights_of(module: Module) -> list[Value]:
    found = [op.operand(1) for op in module.main.ops if op.short_name == "fully_connected"]
    return [value.producer.operand(0) if value.producer else value for value in found]


@pytest.mark.parametrize("scheme", ["weight-only", "dynamic"])
def test_weights_of_4_bits_are_read_back_as_they_were_stored(model: Path, scheme: str) -> None:
    result = quantized(model, scheme=scheme)
    assert [row.types for row in result.rows] == ["qi4", "qi4"]
    assert result.bytes_out < 0.2 * result.bytes_in
    read = tflq.read(model.with_name("quantized.tflite"))
    originals = [op.operand(1).array for op in net().main.ops]
    for stored, original in zip(weights_of(read), originals, strict=True):
        kind = stored.type.element
        assert isinstance(kind, UniformQuantizedPerAxisType)
        scales = (np.abs(original).max(axis=1) / np.float32(7)).astype(np.float32)
        np.testing.assert_allclose(kind.scales, scales, rtol=2e-7)
        assert kind.storage == i4
        np.testing.assert_array_equal(stored.array, np.clip(np.rint(original / kind.scales[:, None]), -8, 7))


@pytest.mark.parametrize(("name", "operator"), [("unet", "transpose_conv"), ("residual", "depthwise_conv_2d")])
def test_weights_of_which_no_kernel_takes_4_bits_have_8(name: str, operator: str) -> None:
    floats = Path(__file__).resolve().parents[3] / "models" / f"{name}_float.tflite"
    rows = tflq.quantize(floats, scheme="weight-only", weights="int4").rows
    assert {row.types for row in rows if row.operator == operator} == {"qi8"}
    assert {row.types for row in rows if row.operator == "conv_2d"} == {"qi4"}


@pytest.mark.parametrize("scheme", ["weight-only", "dynamic"])
def test_other_ranges_are_nearer_with_4_bits(model: Path, scheme: str) -> None:
    plain = noise(model, scheme=scheme)
    assert noise(model, scheme=scheme, weight_method="octav") > plain + 0.4
    assert noise(model, scheme=scheme, weight_method="mse") > plain + 0.4


def test_blocks_have_scales_of_their_own_and_activations_apart(model: Path) -> None:
    result = quantized(model, scheme="dynamic", blocks=32)
    assert [op.short_name for op in result.module.main.ops] == ["fully_connected", "relu", "fully_connected"]
    assert [op.results[0].name for op in result.module.main.ops] == ["h/product", "h", "y"]
    assert "2 fully_connected: of blocks the reference kernel gives zeros" in result.summary()
    for stored, original in zip(weights_of(tflq.read(model.with_name("quantized.tflite"))), SIZES[1:], strict=True):
        kind = stored.type.element
        assert isinstance(kind, UniformQuantizedSubChannelType)
        assert kind.scales.shape == (original, stored.array.shape[1] // 32)
    assert noise(model, scheme="dynamic", blocks=32) > noise(model, scheme="dynamic") + 0.4


def test_rows_that_are_no_blocks_stay_float(model: Path) -> None:
    result = quantized(model, scheme="dynamic", blocks=128)
    assert [(row.quantized, row.why) for row in result.rows] == [
        (True, ""),
        (False, "its rows of 64 weights do not divide into blocks of 128"),
    ]


def test_choices_that_no_kernel_has(model: Path) -> None:
    for options, what in (
        ({"scheme": "float16"}, "scheme 'float16' has no choice of weights"),
        ({"scheme": "int8", "blocks": 32}, "blocks are for scheme weight-only, and for int4 with dynamic"),
        ({"scheme": "dynamic", "blocks": 48}, "blocks=48 is not known"),
        ({"scheme": "dynamic", "weight_method": "max"}, "weight_method='max' is not known"),
    ):
        with pytest.raises(OptionError, match=what):
            quantized(model, **options)


def uncorrelated(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(2).normal(size=(count, SIZES[0])).astype(np.float32))


@pytest.mark.parametrize("scheme", ["weight-only", "dynamic"])
def test_weights_rounded_by_products_are_nearer(model: Path, scheme: str) -> None:
    samples, ratios = factors(300), []
    for options in ({}, {"weight_method": "gptq", "calibration": samples[:200]}):
        result = quantized(model, scheme=scheme, **options)
        ratios.append(signal_to_noise(model, model.with_name("quantized.tflite"), samples[200:]))
    assert ratios[1] > ratios[0] + 2
    assert {row.note for row in result.rows} == {ROUNDED_BY_GPTQ}


def test_products_are_kept_only_where_they_are_better_on_samples_held_back(model: Path) -> None:
    """Of inputs of which nothing follows for others, what few samples show is chance."""
    result = quantized(model, scheme="weight-only", weight_method="gptq", calibration=uncorrelated(40))
    assert result.rows[0].note == NOT_BETTER
    plain = quantized(model, scheme="weight-only", weight_method="mse")
    first, second = (weights_of(each.module)[0].array for each in (result, plain))
    np.testing.assert_array_equal(first, second)
    assert f"fully_connected: {NOT_BETTER}" in result.summary()


def test_a_rule_rounds_by_products_in_a_network_with_static_ranges(model: Path) -> None:
    rule = {"name": "h", "scheme": "weight-only", "weights": "int4", "weight_method": "gptq"}
    path = model.with_name("mixed.tflite")
    result = tflq.quantize(model, path, calibration=factors(100), recipe=[rule])
    assert [(row.quantized, row.note) for row in result.rows] == [(True, ROUNDED_BY_GPTQ), (True, "")]
    assert quantized(model, scheme="weight-only", weight_method="gptq", calibration=factors(2)).rows[0].note


def test_a_near_network_is_judged_by_samples_that_weights_were_not_rounded_by(model: Path) -> None:
    given = {"scheme": "weight-only", "weight_method": "gptq", "calibration": factors(40), "min_snr": 1}
    search = quantized(model, **given).search
    assert search is not None
    assert (search.calibrated, search.judged) == (30, 10)


@pytest.mark.slow
def test_samples_that_weights_are_rounded_by_are_not_held(model: Path) -> None:
    held, most = set[int](), 0

    class Made:
        """Samples that are made each time that they are gone through."""

        def __iter__(self) -> Iterator[np.ndarray]:
            nonlocal most
            for number, sample in enumerate(uncorrelated(1000)):
                array = sample.copy()
                held.add(number)
                weakref.finalize(array, held.discard, number)
                most = max(most, len(held))
                yield array

    result = quantized(model, scheme="weight-only", weight_method="gptq", calibration=Made())
    assert result.decibels is not None
    assert 0 < most < 300


def test_products_need_samples(model: Path) -> None:
    for options, what in (
        ({"scheme": "weight-only"}, "rounded by gptq on samples"),
        ({"scheme": "weight-only", "calibration": factors(1)}, "1 samples are too few"),
    ):
        with pytest.raises(OptionError, match=what):
            quantized(model, weight_method="gptq", **options)


def pointwise(stride: int) -> Module:
    """A 1×1 CONV_2D, and one of 2×2 on the same input."""
    rng = np.random.default_rng(3)
    x, y, z = (
        Value(TensorType(shape, f32), n) for shape, n in (((1, 5, 5, 4), "x"), ((1, 3, 3, 6), "y"), ((1, 4, 4, 6), "z"))
    )
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    options |= {"fused_activation_function": "NONE"}
    ops: list[Op] = []
    for size, result, steps in ((1, y, stride), (2, z, 1)):
        weights = constant(rng.normal(size=(6, size, size, 4)).astype(np.float32), name=f"{result.name}/weights")
        bias = constant(np.zeros(6, np.float32), name=f"{result.name}/bias")
        ops.append(Op("tfl.conv_2d", [x, weights, bias], [result], {**options, "stride_w": steps, "stride_h": steps}))
    return Module([Function("main", [x], [y, z], ops)])


def test_moments_are_of_what_is_multiplied(tmp_path: Path) -> None:
    path = written(tmp_path, pointwise(2))
    samples = list(np.random.default_rng(4).normal(size=(8, 1, 5, 5, 4)).astype(np.float32))
    found = moments_of(path, Spans.of(samples, tflq.read(path)))
    assert [tflq.read(path).functions[at].tensors[tensor].name for at, tensor in found] == ["y/weights"]
    for made, part in zip(next(iter(found.values())), (samples[:6], samples[6:]), strict=True):
        rows = np.stack(part)[:, 0, ::2, ::2].reshape(-1, 4).astype(np.float64)
        np.testing.assert_allclose(made, rows.T @ rows, rtol=1e-12)
    result = quantized(path, scheme="weight-only", weight_method="gptq", calibration=samples)
    assert result.rows[1].note == NOT_SEEN


@pytest.mark.parametrize("scheme", ["dynamic", "weight-only"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_no_numbers_stay_float(number: float, scheme: str, tmp_path: Path) -> None:
    module = net()
    module.main.ops[1].operand(1).array[0, 0] = number
    rows = quantized(written(tmp_path, module), scheme=scheme).rows
    assert [row.quantized for row in rows] == [True, False]
    assert "hold NaN or infinity" in rows[1].why
