"""Networks with fake quantization: the passes make what TensorFlow's converter makes of them, without data.

`simulated/NAME_float.tflite` is what the converter writes of one, a QUANTIZE and a DEQUANTIZE for each fake
quantization, and `NAME_int8.tflite` what it writes with `Optimize.DEFAULT` (benchmarks/simulated.py).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support.harness import interpret

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, i32
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.ranges import is_dequantizing, is_quantizing, other_sign, simulated_type

FOLDER = Path(__file__).with_name("simulated")
SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "simulated.py"
PIPELINE = "tfl-quantize-pipeline"
NAMES = ["trained", "branches", "mixed", "elementwise", "moved"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulated", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quantized(module: Module) -> Module:
    """What the passes make of a module, as a file has it."""
    return tflq.read(bytes(tflq.write(parse_pipeline(PIPELINE).run(module).module)))


def of_file(name: str = "trained", kind: str = "float") -> Module:
    return tflq.read(FOLDER / f"{name}_{kind}.tflite")


# The same network, with a fake quantization for each QUANTIZE and DEQUANTIZE.


def reach(scale: float, steps: int) -> float:
    """The float32 whose ratio to a number of steps is a scale."""
    near = np.float32(scale * steps)
    some = (near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf)))
    return next(float(x) for x in some if np.float32(float(x) / steps) == np.float32(scale))


def fake(cast: Op, result: Value, ranges: dict[ElementType, tuple[float, float]], dialect: str) -> Op:
    """The fake quantization that a cast stands for."""
    kind, source = cast.result.type.element, cast.operand(0)
    said: dict[str, Any] = {"num_bits": 8, "narrow_range": source.is_constant}
    if isinstance(kind, UniformQuantizedPerAxisType):
        ends = [reach(scale, 127) for scale in kind.scales.tolist()]
        said |= {"min": [-end for end in ends], "max": ends, "axis": kind.axis}
        return Op("quant.const_fake_quant_per_axis", [source], [result], said)
    assert isinstance(kind, UniformQuantizedType)
    end = reach(kind.scale, 127) if source.is_constant else 0.0
    low, high = (-end, end) if source.is_constant else ranges[kind]
    if dialect == "tf" and source.is_constant:
        bounds = [constant(np.array(end, np.float32)) for end in (low, high)]
        return Op("tf.FakeQuantWithMinMaxVars", [source, *bounds], [result], said)
    name = {"tfl": "tfl.fake_quant", "tf": "tf.FakeQuantWithMinMaxArgs", "quant": "quant.const_fake_quant"}[dialect]
    return Op(name, [source], [result], {**said, "min": low, "max": high})


def ranges_of(script: ModuleType) -> dict[ElementType, tuple[float, float]]:
    """The ranges of activations, by the types that they give."""
    found: dict[ElementType, tuple[float, float]] = {}
    for low, high in script.RANGES.values():
        x = Value(of_file().main.inputs[0].type)
        op = Op("tf.FakeQuantWithMinMaxArgs", [x], [Value(x.type)], {"min": low, "max": high})
        found[simulated_type(op)] = (low, high)
    return found


def with_fakes(script: ModuleType, dialect: str) -> Module:
    """The network with a fake quantization for each pair of casts; but for weights with a scale per channel in the
    dialect `tfl`, whose FAKE_QUANT has one range."""
    module, ranges = of_file(), ranges_of(script)
    ops: list[Op] = []
    for op in module.main.ops:
        if is_quantizing(op) and (dialect != "tfl" or isinstance(op.result.type.element, UniformQuantizedType)):
            continue
        cast = op.operand(0).producer if is_dequantizing(op) else None
        if cast is None or cast in ops:
            ops.append(op)
        else:
            ops.append(fake(cast, op.result, ranges, dialect))
            op.result.type = cast.operand(0).type
    main = module.main
    values = {v for op in ops for v in (*op.operands, *op.results)}
    main.ops, main.tensors = ops, [v for v in main.tensors if v in values]
    return module


def unrounded(module: Module) -> Module:
    """A module whose weights are as training had them: a quarter of a step from what they are rounded to."""
    rng = np.random.default_rng(5)
    for op in module.main.ops:
        source = op.operand(0)
        kind = simulated_type(op) if op.name.startswith(("tf.", "quant.")) and source.is_constant else None
        if kind is None:
            continue
        shape = [-1 if axis == getattr(kind, "axis", None) else 1 for axis in range(source.array.ndim)]
        steps = np.asarray(getattr(kind, "scales", getattr(kind, "scale", None)), np.float32).reshape(shape)
        moved = source.array + np.float32(0.25) * steps * rng.choice(np.array([-1, 1], np.float32), source.array.shape)
        op.operands = [constant(moved.astype(np.float32), name=source.name), *op.operands[1:]]
    return module


# Comparisons.


def assert_same(made: Function, want: Function, *, exact_biases: bool) -> None:
    """The same operators on tensors of the same types and constants of the same elements. The scales of biases may
    differ by a rounding: the converter multiplies scales of input and weights before it rounds them to float32, as the
    file has them. No kernel reads them."""
    assert [op.name for op in made.ops] == [op.name for op in want.ops]
    for op, twin in zip(made.ops, want.ops, strict=True):
        assert op.attributes == twin.attributes
        for value, other in zip((*op.operands, *op.results), (*twin.operands, *twin.results), strict=True):
            if value is None or other is None:
                assert value is other, f"{op.name}: an operand is left out"
                continue
            if value.is_constant:
                np.testing.assert_array_equal(value.array, other.array)
            if exact_biases or value.type.storage != i32 or not value.type.quantized:
                assert value.type == other.type, op.name
            else:
                got, wanted = value.type.element, other.type.element
                assert type(got) is type(wanted)
                scales, expected = (np.asarray(getattr(k, "scales", getattr(k, "scale", 0))) for k in (got, wanted))
                np.testing.assert_allclose(scales, expected, rtol=2**-22)


def outputs(module: Module, images: np.ndarray) -> list[np.ndarray]:
    """Each output for all images."""
    results = interpret(bytes(tflq.write(module)), [[image] for image in images])
    return [np.array(each) for each in zip(*results, strict=True)]


def images(count: int) -> np.ndarray:
    """Some beyond the range that the input was trained with."""
    return np.random.default_rng(3).uniform(-1.3, 1.3, (count, 1, 8, 8, 2)).astype(np.float32)


def test_the_files_are_those_of_the_script(script: ModuleType) -> None:
    assert list(script.NAMES) == NAMES
    assert {path.name for path in FOLDER.iterdir()} == {f"{n}_{k}.tflite" for n in NAMES for k in ("float", "int8")}


def test_the_file_has_casts_and_no_fake_quantization() -> None:
    names = [op.short_name for op in of_file().main.ops]
    assert names.count("quantize") == names.count("dequantize") == 8
    assert "fake_quant" not in names


@pytest.mark.parametrize("name", NAMES)
def test_the_passes_make_what_tensorflow_makes(name: str) -> None:
    made, want = quantized(of_file(name)), of_file(name, "int8")
    assert_same(made.main, want.main, exact_biases=False)
    assert [v.name for v in made.main.outputs] == [v.name for v in want.main.outputs]
    assert [v.name for v in made.main.inputs] == [v.name for v in want.main.inputs]


@pytest.mark.parametrize("name", NAMES)
def test_results_are_equal_on_a_thousand_inputs(name: str) -> None:
    x = images(1000)
    got, want = outputs(quantized(of_file(name)), x), outputs(of_file(name, "int8"), x)
    for result, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(result, expected)
        assert len(np.unique(expected)) > 10


def test_fake_quant_of_a_file_gives_the_same(script: ModuleType) -> None:
    """By way of a file with FAKE_QUANT operators."""
    module = tflq.read(bytes(tflq.write(with_fakes(script, "tfl"))))
    assert sum(op.name == "tfl.fake_quant" for op in module.main.ops) == 6
    assert_same(quantized(module).main, quantized(of_file()).main, exact_biases=True)


@pytest.mark.parametrize("dialect", ["tf", "quant"])
def test_fake_quantization_in_text_gives_the_same(script: ModuleType, dialect: str) -> None:
    """From weights that are not rounded, as text."""
    module = unrounded(with_fakes(script, dialect))
    parsed = parse_module(print_module(module))
    verify(parsed)
    assert not any(is_quantizing(op) for op in parsed.main.ops)
    assert_same(quantized(parsed).main, quantized(of_file()).main, exact_biases=True)


def test_pairs_have_the_types_that_fake_quantization_simulates(script: ModuleType) -> None:
    """The ranges of the script give the parameters that TensorFlow has written."""
    kinds = {op.result.type.element for op in of_file().main.ops if is_quantizing(op)}
    assert set(ranges_of(script)) <= kinds
    for op in with_fakes(script, "quant").main.ops:
        if op.name.startswith("quant.") and op.operand(0).is_constant:
            kind = simulated_type(op)
            wide = type(kind)(**{**{f: getattr(kind, f) for f in kind.__match_args__}, "storage_min": 0})
            assert wide in kinds or other_sign(wide) in kinds


def test_tensorflow_makes_it_again(script: ModuleType) -> None:
    """Trained anew: the passes make of the converter's float files what it makes of the networks themselves."""
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install tensorflow-cpu==2.21")
    network, x = script.trained(tf), images(1000)
    for name in NAMES:
        floats, integers = (script.converted(network, name, quantized=each) for each in (False, True))
        made, want = quantized(tflq.read(floats)), tflq.read(integers)
        assert_same(made.main, want.main, exact_biases=False)
        for result, expected in zip(outputs(made, x), outputs(want, x), strict=True):
            np.testing.assert_array_equal(result, expected)
