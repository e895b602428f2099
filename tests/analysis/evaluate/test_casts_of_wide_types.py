"""Casts of storage types that kernels lack: odd widths, unsigned and of 32 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import interpret
from support.running import reference

import tflq
from tflq.analysis.evaluate.registry import array_of
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.text.parser import parse_module
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.tools.opt import parse_pipeline

BITS = [2, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48]
EXPRESSED = ["f16", "bf16", "f32"]


def cast(storage: str, expressed: str, numbers: str, parameters: str) -> str:
    signless, count = storage.replace("u", "i"), numbers.count(",") + 1
    quantized = f"tensor<{count}x!quant.uniform<{storage}:{expressed}, {parameters}>>"
    return f"""
func.func @main() -> tensor<{count}x{expressed}> {{
  %0 = arith.constant dense<{numbers}> : tensor<{count}x{signless}>
  %1 = quant.scast %0 : tensor<{count}x{signless}> to {quantized}
  %2 = quant.dcast %1 : {quantized} to tensor<{count}x{expressed}>
  return %2 : tensor<{count}x{expressed}>
}}"""


def folded(text: str, passes: str) -> np.ndarray:
    module = parse_module(text)
    parse_pipeline(passes).run(module)
    return array_of(module.main.outputs[0])


@pytest.mark.parametrize("expressed", EXPRESSED)
@pytest.mark.parametrize("sign", ["i", "u"])
@pytest.mark.parametrize("bits", BITS)
def test_fold_computes_what_lower_quant_ops_says(bits: int, sign: str, expressed: str) -> None:
    top = (1 << (bits - 1)) - 1
    text = cast(f"{sign}{bits}", expressed, f"[-1, {-top - 1}, {top}, 1]", f"0.25:{min(top, 1)}")
    np.testing.assert_array_equal(folded(text, "fold"), folded(text, "lower-quant-ops,fold"))


def test_stored_integers_are_read_by_their_width() -> None:
    assert folded(cast("u12", "f32", "[-1, 5]", "1.0"), "fold").tolist() == [4095, 5]
    assert folded(cast("u32", "f32", "[-1, 5]", "1.0"), "fold").tolist() == [2.0**32, 5]


WIDE = [
    ("i32", "0.5:1073741824", "i32<-2000000000:2147483647>", "0.5:-1000"),
    ("i32", "0.5:-2147483648", "i32", "0.5:1000"),
    ("i32", "0.5:5", "i32<-100:100>", "0.25:-7"),
    ("i32", "0.5", "i32", "0.001:123456"),
]
COUNTS = np.array([-(1 << 31), -(1 << 31) + 5, -1, 0, 1, 1 << 30, (1 << 30) - 900, (1 << 31) - 1], np.int32)


def identity(operand: str, result: str) -> str:
    return f"""
func.func @main(%0: tensor<8x{operand}>) -> tensor<8x{result}> {{
  %1 = "tfl.leaky_relu"(%0) {{alpha = 1.0 : f32}} : (tensor<8x{operand}>) -> tensor<8x{result}>
  return %1 : tensor<8x{result}>
}}"""


def clamped(storage: str, real: np.ndarray, scale: float, zero: int) -> np.ndarray:
    quotient = (real / np.float32(scale)).astype(np.float64)
    low, high = -(1 << 31), (1 << 31) - 1
    if "<" in storage:
        low, high = map(int, storage[storage.index("<") + 1 : -1].split(":"))
    return np.clip(np.trunc(quotient + np.copysign(0.5, quotient)) + zero, low, high).astype(np.int64)


@pytest.mark.parametrize("form", ["tflite", "tosa"])
@pytest.mark.parametrize(("source", "from_", "target", "to"), WIDE)
def test_casts_of_32_bits_saturate(source: str, from_: str, target: str, to: str, form: str, tmp_path: Path) -> None:
    text = identity(f"!quant.uniform<{source}:f32, {from_}>", f"!quant.uniform<{target}:f32, {to}>")
    (scale, zero), (new_scale, new_zero) = map(numbers, (from_, to))
    real = (COUNTS.astype(np.int64) - zero).astype(np.float32) * np.float32(scale)
    np.testing.assert_array_equal(result(text, form, tmp_path), clamped(target, real, new_scale, new_zero))


def numbers(parameters: str) -> tuple[float, int]:
    scale, _, zero = parameters.partition(":")
    return float(scale), int(zero or 0)


def result(text: str, form: str, folder: Path) -> np.ndarray:
    if form == "tosa":
        lowered, _ = lower(legalize(parse_module(text), Policy())[0], Target())
        return reference(lowered, [COUNTS])[0]
    path = folder / "m.mlir"
    path.write_text(text)
    return interpret(tflq.convert(path).data, [[COUNTS]])[0][0]
