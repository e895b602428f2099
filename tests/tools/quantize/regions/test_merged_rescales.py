"""quant-codegen: rescales merged to one for each output, where the results stay the same or if asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.tosa_integers import single

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.dialects.builder import Builder
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tosa.text import mlir_text
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.text.parser import parse_module
from tflq.ir.types import ScalarType, i8, i32
from tflq.ir.verifier import verify
from tflq.numerics.fixed_point import quantize_multiplier
from tflq.tools.opt import named_passes, parse_pipeline
from tflq.tools.quantize.regions.merged_rescales import merge_rescales

SUM = """
func.func @f(%a: tensor<256x1xf32>, %b: tensor<1x256xf32>) -> tensor<256x256xf32> {{
  %0 = "quant.region"(%a, %b) ({{
    ^bb0(%x: tensor<256x1xf32>, %y: tensor<1x256xf32>):
      %z = "tfl.{kernel}"(%x, %y) {{fused_activation_function = "NONE"}}
          : (tensor<256x1xf32>, tensor<1x256xf32>) -> tensor<256x256xf32>
      "quant.return"(%z) : (tensor<256x256xf32>) -> ()
  }}) {{input_specs = [!quant.uniform<i8:f32, {0}:{1}>, !quant.uniform<i8:f32, {2}:{3}>],
       output_specs = [!quant.uniform<i8:f32, {4}:{5}>], kernel = "{kernel}"}}
      : (tensor<256x1xf32>, tensor<1x256xf32>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}}
"""
STORED = np.arange(-128, 128)


def coded(text: str, rescales: str) -> Module:
    given = parse_module(text)
    verify(given)
    made = parse_pipeline(f"quant-codegen{{rescales={rescales}}}", named_passes()).run(given).module
    verify(made)
    return made


def count(module: Module) -> int:
    return sum(isinstance(op, Rescale) for op in module.main.ops)


def results(module: Module, *arrays: np.ndarray) -> np.ndarray:
    function = module.main
    given = dict(zip(function.inputs, arrays, strict=True))
    return evaluate_function(function, given)[function.outputs[0]]


def real(scale: float, zero: int) -> np.ndarray:
    """All values of a type of 8 bits."""
    return ((STORED - zero) * np.float32(scale)).astype(np.float32)


def drawn(generator: np.random.Generator) -> tuple[float, int, float, int, float, int]:
    """Scales and zero points of two operands and of a result that holds their sum, more or less."""
    scales = np.exp2(generator.uniform(-3, 3, 2))
    zeros = generator.integers(-128, 128, 3)
    out = float((scales.sum()) * generator.uniform(0.5, 1.5))
    return float(scales[0]), int(zeros[0]), float(scales[1]), int(zeros[1]), out, int(zeros[2])


@pytest.mark.parametrize("kernel", ["add", "sub"])
def test_a_sum_is_rescaled_once_and_the_results_stay(kernel: str) -> None:
    generator = np.random.default_rng(7)
    exact = 0
    for _ in range(20):
        numbers = drawn(generator)
        text = SUM.format(*numbers, kernel=kernel)
        arrays = real(*numbers[:2]).reshape(-1, 1), real(*numbers[2:4]).reshape(1, -1)
        wanted = results(coded(text, "kernel"), *arrays)
        found = coded(text, "exact")
        exact += count(found) == 1
        np.testing.assert_array_equal(results(found, *arrays), wanted)
        merged = coded(text, "merged")
        assert count(merged) == 1
        assert np.abs(results(merged, *arrays) - wanted).max() <= np.float32(numbers[4]) * 1.001
    assert exact >= 17


@pytest.mark.parametrize("numbers", [(0.5, -3, 0.25, 5, 2.0, 7), (1.0, 0, 1.0, 0, 1.0, 0), (0.3, 3, 0.3, -3, 0.7, 9)])
def test_a_sum_of_such_scales_is_exact(numbers: tuple[float, ...]) -> None:
    text = SUM.format(*numbers, kernel="add")
    assert count(coded(text, "kernel")) >= 3
    assert count(coded(text, "exact")) == 1


Chain = tuple[tuple[float, int, int, ScalarType], ...]


def chained(links: Chain, *, read_twice: bool = False) -> Module:
    """Rescales of an i8, each of a factor, zero points of input and output, to a type."""

    def body(b: Builder, x: Value) -> Value:
        values = [x]
        for factor, zero, made, to in links:
            multiplier = quantize_multiplier(factor)
            values.append(b.rescale(values[-1], multiplier, to, input_zp=zero, output_zp=made))
        return b.add(values[-1], values[-2]) if read_twice else values[-1]

    return single([((256,), i8)], body)


@pytest.mark.parametrize(
    ("links", "left"),
    [
        (((1024.0, -3, 0, i32), (0.25, 0, 0, i32)), 1),  # the first is exact
        (((1024.0, -3, 0, i32), (0.3, 0, 0, i32), (0.001, 0, 5, i8)), 1),
        (((0.25, 0, 0, i32), (4.0, 0, 0, i32)), 2),  # it rounds
        (((4.0, 0, 0, i8), (0.25, 0, 0, i32)), 2),  # it saturates
        (((1.0, 5, 7, i8), (0.5, 6, 0, i32)), 2),  # the zero points between them are not the same
    ],
)
def test_a_chain_is_merged_where_all_results_stay(links: Chain, left: int) -> None:
    given, merged = chained(links), chained(links)
    stored = STORED.astype(np.int8)
    assert merge_rescales(merged.main, step=False) is (left < len(links))
    verify(merged)
    assert count(merged) == left
    np.testing.assert_array_equal(results(merged, stored), results(given, stored))


def test_a_chain_that_saturates_is_not_merged_if_asked_for() -> None:
    assert not merge_rescales(chained(((4.0, 0, 0, i8), (0.25, 0, 0, i32))).main, step=True)


def test_one_step_is_allowed_if_asked_for() -> None:
    links: Chain = ((0.5, 0, 0, i32), (0.5, 0, 0, i32))
    given, merged = chained(links), chained(links)
    assert not merge_rescales(given.main, step=False)
    assert merge_rescales(merged.main, step=True)
    stored = STORED.astype(np.int8)
    assert np.abs(results(merged, stored) - results(given, stored)).max() == 1


def test_a_value_that_is_read_twice_stays() -> None:
    links: Chain = ((1024.0, -3, 0, i32), (0.25, 0, 0, i32))
    assert not merge_rescales(chained(links, read_twice=True).main, step=False)


@pytest.mark.parametrize("rescales", ["kernel", "exact"])
def test_code_runs_on_iree_and_gives_what_the_kernel_gives(rescales: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("iree.runtime", reason="needs IREE: pip install iree-base-compiler iree-base-runtime")
    tool = shutil.which("iree-compile", path=str(Path(sys.executable).parent)) or shutil.which("iree-compile")
    if tool is None:
        pytest.skip("needs iree-compile: pip install iree-base-compiler")
    numbers = (0.5, -3, 0.3, 5, 0.9, 7)
    arrays = real(*numbers[:2]).reshape(-1, 1), real(*numbers[2:4]).reshape(1, -1)
    module = coded(SUM.format(*numbers, kernel="add"), rescales)
    text, compiled = tmp_path / "model.mlir", tmp_path / "model.vmfb"
    text.write_text(mlir_text(module))
    flags = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
    subprocess.run([tool, *flags, "--iree-llvmcpu-target-cpu=host", text, "-o", compiled], check=True)
    context = runtime.SystemContext(config=runtime.Config("local-task"))
    context.add_vm_module(runtime.VmModule.mmap(context.instance, str(compiled)))
    found = np.asarray(context.modules.module["main"](*arrays).to_host())
    np.testing.assert_array_equal(found, results(coded(SUM.format(*numbers, kernel="add"), "kernel"), *arrays))
