"""Large tables as arithmetic: all entries of the functions of int16, and the thresholds of quantization."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_c import COMPILER, WARNINGS, assert_passes, need_compiler

import tflq
from tflq.formats.c.tables import function_of, thresholds_of
from tflq.formats.c.unit import helpers
from tflq.ir.types import UniformQuantizedType, f32, i16
from tflq.numerics.activation import logistic_table, tanh_table
from tflq.numerics.float_basics import quantize_thresholds


@need_compiler
def test_functions_of_int16_equal_their_tables(tmp_path: Path) -> None:
    tables = [logistic_table(), *(tanh_table(bits) for bits in range(7))]
    calls = [str(function_of(const(table, i16))).format("x") for table in tables]
    prints = "".join(f"    y = {call};\n    fwrite(&y, 4, 1, stdout);\n" for call in calls)
    text = "\n\n".join(["#include <stdint.h>\n#include <stdio.h>", *helpers(calls)])
    loop = f"  for (int32_t x = -32768; x < 32768; x++) {{\n    int32_t y;\n{prints}  }}\n"
    (tmp_path / "a.c").write_text(f"{text}\n\nint main(void) {{\n{loop}  return 0;\n}}\n")
    subprocess.run([COMPILER, *WARNINGS, "-O1", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    done = subprocess.run([tmp_path / "a"], capture_output=True, check=True)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int32).reshape(-1, len(tables)).T, tables)


def test_a_table_of_another_function_stays() -> None:
    other = logistic_table().copy()
    other[-1] -= 1
    assert function_of(const(other, i16)) is None
    assert function_of(const(logistic_table()[:100], i16)) is None


@pytest.mark.parametrize("scale", [0.0004, 1e-30, 3.3e5, 0.7])
@pytest.mark.parametrize("first", [-32767, -9000, 1])
def test_thresholds_say_their_scale(scale: float, first: int) -> None:
    levels = first + np.arange(65535 if first < 0 else 5000)
    table = quantize_thresholds(np.float32(scale), levels)
    assert thresholds_of(const(table, f32)) == (float(np.float32(scale)), first)
    table[77] = np.nextafter(table[77], np.float32(np.inf))
    assert thresholds_of(const(table, f32)) is None


def test_tiny_entries_have_a_tiny_scale() -> None:
    """Of the scales near the estimate some are below 0, and are passed over."""
    steps = np.arange(-700, 700) * np.float32(1e-45)
    assert thresholds_of(const(steps.astype(np.float32), f32)) == (float(np.float32(1e-45)), -700)


def test_a_scale_below_zero_is_refused() -> None:
    x, y = argument((7,), f32), argument((7,), UniformQuantizedType.of(i16, -0.0, 0), "y")
    with pytest.raises(tflq.TflqError, match=r"scale"):
        tflq.convert(one_op("tfl.quantize", [x], [y], {}), format="c")


@need_compiler
@pytest.mark.parametrize(("scale", "zero"), [(0.0004, 0), (1 / 128, 0), (0.0031, -7)])
def test_quantization_to_int16_has_no_table(scale: float, zero: int, tmp_path: Path) -> None:
    x, y = argument((700,), f32), argument((700,), UniformQuantizedType.of(i16, scale, zero), "y")
    source = tmp_path / "net.c"
    tflq.convert(one_op("tfl.quantize", [x], [y], {}), source)
    assert "#define NET_CONSTANT_BYTES 0\n" in source.with_suffix(".h").read_text()
    assert_passes(source)
    assert tflq.verify(one_op("tfl.quantize", [x], [y], {}), source).equal
