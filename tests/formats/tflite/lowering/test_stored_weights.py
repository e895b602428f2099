"""Weights of float kernels that are stored as int8: which are, that all kernels give equal bits, and their memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, interpret
from support.lowered import RESOLVERS, draw

import tflq
from tflq.analysis.evaluate.registry import evaluate_function
from tflq.base.errors import OptionError, UnsupportedError
from tflq.dialects.builder import Builder
from tflq.dialects.tfl.casts import Dequantize
from tflq.formats.tflite.lowering.engine import CheckLegality, Select, check
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, ui8
from tflq.numerics.fixed_point import quantize_multipliers
from tflq.targets.load import load_target
from tflq.targets.target import INTEGER, Target
from tflq.transforms.canonicalize import DeadCodeElimination
from tflq.transforms.pass_manager import Pipeline

pytestmark = pytest.mark.usefixtures("forked")

DEPTH = 16
PAD = (2, 1, 2, 1)
SHAPES = {"conv_2d": (DEPTH, 1, 1, DEPTH), "depthwise_conv_2d": (4, 4, DEPTH, 1)}
EVERY = np.arange(256)
"""As many weights as either filter has, with all values of 8 bits."""


def layer(kind: str, storage: ScalarType, numbers: np.ndarray, zero: int, batch: int | None = None) -> Module:
    """A convolution of weights, less their zero point, and what requantizes it."""
    b, x = Builder(), argument((batch, 4, 3, DEPTH), storage, "x")
    weights, bias = b.constant(numbers.reshape(SHAPES[kind]), storage), b.constant(np.arange(DEPTH) * 7 - 50)
    depthwise = kind == "depthwise_conv_2d"
    pad, least = PAD if depthwise else (0, 0, 0, 0), storage.minimum + 120
    shape = (batch, 4, 3, DEPTH)
    sums = b.conv2d(x, weights, bias, shape, depthwise=depthwise, pad=pad, input_zp=least, weight_zp=zero)
    scales = quantize_multipliers(np.linspace(0.4, 1.3, DEPTH) * 0.004)
    result = b.rescale(sums, scales, storage, output_zp=storage.minimum + 100)
    result.name = "result"
    return Module([Function("main", [x], [result], b.ops)])


def on_kernels(module: Module, target: Target = INTEGER) -> Module:
    passes = [Select("float32", target=target), DeadCodeElimination(), CheckLegality(target, "float32")]
    return Pipeline(passes, "integer").run(module).module


def stored(module: Module) -> list[int]:
    """The zero points of the constants that DEQUANTIZE reads, all of int8 and scale 1."""
    elements = [op.input.type.element for op in module.ops() if isinstance(op, Dequantize) and op.input.is_constant]
    assert all(isinstance(e, UniformQuantizedType) and e.storage is i8 and e.scale == 1 for e in elements)
    return [e.zero_point for e in elements if isinstance(e, UniformQuantizedType)]


CASES = {
    "int8": (i8, EVERY - 128, 0, 0),
    "uint8 within int8": (ui8, EVERY, 128, 0),
    "uint8, none positive": (ui8, EVERY, 255, 127),
    "uint8, none negative": (ui8, EVERY, 0, -128),
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("case", CASES)
def test_every_kernel_gives_the_same_bits_in_each_run(kind: str, case: str) -> None:
    storage, numbers, zero, stored_zero = CASES[case]
    source = layer(kind, storage, numbers, zero, batch=2).main
    module = on_kernels(layer(kind, storage, numbers, zero))
    assert stored(module) == [stored_zero]
    runs = [[draw(storage, (2, 4, 3, DEPTH), seed)] for seed in range(3)]
    want = [evaluate_function(source, {source.inputs[0]: x})[source.outputs[0]] for (x,) in runs]
    assert len(np.unique(want)) > 20
    model = bytes(write(module))
    for resolver in RESOLVERS:
        np.testing.assert_array_equal(np.concatenate(interpret(model, runs, resolver)), want, err_msg=resolver)


def test_few_weights_stay_float() -> None:
    assert stored(on_kernels(layer("conv_2d", i8, EVERY - 128, 0))) == [0]
    b, x = Builder(), argument((1, 4, 3, 8), i8, "x")
    sums = b.conv2d(x, b.constant(np.ones((8, 1, 1, 8)), i8), b.constant(np.zeros(8, np.int64)), (1, 4, 3, 8))
    result = b.rescale(sums, quantize_multipliers(np.full(8, 0.1)), i8)
    result.name = "result"
    assert stored(on_kernels(Module([Function("main", [x], [result], b.ops)]))) == []


def test_a_target_says_whether_it_unpacks_constants() -> None:
    """ONNX Runtime and TFLite Micro unpack them in each run."""
    portable = load_target("portable")
    for target, count in ((portable, 0), (load_target("tflm"), 0), (portable.replace(weights="int8"), 1)):
        assert len(stored(on_kernels(layer("conv_2d", i8, EVERY - 128, 0), target))) == count


def test_a_target_file_says_so_in_words(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = '[target]\nweights = "{}"\n[builtins]\nfloor = "f32 -> f32"\n'
    for word in ("int8", "float32"):
        path.write_text(text.format(word))
        assert load_target(path).weights == word
    path.write_text(text.format("int4"))
    with pytest.raises(OptionError, match="weights: 'int4' is not known"):
        load_target(path)


@pytest.mark.parametrize("model", ["cnn_int8", "cnn_uint8"])
def test_a_file_of_the_sources_size_is_equal_and_its_memory_counted(models: Path, model: str) -> None:
    path = models / f"{model}.tflite"
    small, quick = (tflq.convert(path, mac="float32", prefer=prefer) for prefer in ("speed", "memory"))
    weights = sum(4 * op.input.type.size for op in small.module.ops() if isinstance(op, Dequantize))
    assert stored(small.module)
    assert stored(quick.module) == []
    assert len(small.data) < len(quick.data) - weights / 2
    assert small.arena is not None
    assert quick.arena is not None
    assert weights <= small.arena.kept - quick.arena.kept < weights + 64 * len(small.module.main.ops)
    verification = tflq.verify(path, small.data, seeds=1)
    assert verification.verdict == "equal"


def test_other_tensors_with_parameters_stay_illegal() -> None:
    """DEQUANTIZE of an activation that is not at an edge."""
    x, inner = argument((1, 2), i8, "x"), Value(TensorType((1, 2), UniformQuantizedType.of(i8, 1.0, 0)), "inner")
    result = argument((1, 2), f32, "result")
    ops = [Op("tfl.cast", [x], [inner]), Op("tfl.dequantize", [inner], [result])]
    with pytest.raises(UnsupportedError, match=r"tensor 'inner' of tfl\.dequantize has quantization parameters"):
        check(Module([Function("main", [x], [result], ops)]), [], "float32")
