"""Operators that a target lacks, computed by others: exact on the evaluator and on the reference model."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.on_tosa import assert_exact, emitted

import tflq
from tflq.base.errors import OptionError, UnsupportedError
from tflq.base.files import resource
from tflq.dialects.builder import Builder
from tflq.dialects.tosa.elementwise import (
    BitwiseAnd,
    BitwiseXor,
    Equal,
    Greater,
    GreaterEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
)
from tflq.formats.tosa.check import check
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import load_target
from tflq.ir.ops import Value, constant
from tflq.ir.types import ScalarType, i1, i8, i16, i32
from tflq.targets.load import DEVICES

U55, U85 = load_target("ethos-u55"), load_target("ethos-u85")
BYTES = np.arange(-128, 128, dtype=np.int8)
ROOT = Path(__file__).resolve().parents[4]
INT32 = np.iinfo(np.int32)
WORDS = np.asarray([INT32.min, INT32.min + 1, -(1 << 16), -129, -128, -1, 0, 1, 127, 128, 255, 1 << 15, INT32.max])
ENTRIES = {
    "all 32 bits": np.random.default_rng(7).integers(INT32.min, INT32.max, 256, np.int32, endpoint=True),
    "ends of int32": np.resize(np.asarray([INT32.min, INT32.max, -1, 0], np.int32), 256),
    "24 bits": np.resize(np.asarray([-(1 << 23), (1 << 23) - 1], np.int32), 256),
    "25 bits": np.resize(np.asarray([-(1 << 23) - 1, 1 << 23], np.int32), 256),
    "one byte": np.resize(np.asarray([-128, 127], np.int32), 256),
    "int16": np.resize(np.asarray([-32768, 32767, -1, 255, 256], np.int16), 256),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_table_by_bytes(name: str) -> None:
    entries = ENTRIES[name]
    names = assert_exact(lambda b, x: b.table(x, entries), [i8], [BYTES], U55)
    assert "table" in names
    assert "gather" not in names


def test_a_table_is_gathered_where_the_target_has_that() -> None:
    assert "gather" in assert_exact(lambda b, x: b.table(x, ENTRIES["25 bits"]), [i8], [BYTES], U85)


@pytest.mark.parametrize("to", [i8, i16])
def test_narrowing_wraps(to: ScalarType) -> None:
    names = assert_exact(lambda b, x: b.cast(x, to), [i32], [WORDS.astype(np.int32)], U55)
    assert names == ["logical_left_shift", "rescale"]


def test_narrowing_of_what_fits_needs_no_shift() -> None:
    def emit(b: Builder, x: Value) -> Value:
        return b.cast(b.maximum(b.minimum(x, b.constant(127)), b.constant(-128)), i8)

    assert "logical_left_shift" not in assert_exact(emit, [i32], [WORDS.astype(np.int32)], U55)


@pytest.mark.parametrize("mask", [-128, 85])
def test_a_bitwise_operator_of_bytes_is_a_table(mask: int) -> None:
    other = constant(np.asarray([mask], np.int8))
    names = assert_exact(lambda b, x: b.emit(BitwiseXor, [x, other], x.type), [i8], [BYTES], U55)
    assert names == ["table"]


PAIRS = [grid.reshape(-1).astype(np.int32) for grid in np.meshgrid(WORDS, WORDS)]
COMPARISONS = {"greater": Greater, "greater equal": GreaterEqual, "equal": Equal}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("bounded", ["neither", "first", "second"])
def test_a_choice_by_comparison(name: str, bounded: str) -> None:
    def emit(b: Builder, x: Value, y: Value) -> Value:
        if bounded == "first":
            x = b.maximum(x, b.constant(-1000))
        if bounded == "second":
            y = b.minimum(y, b.constant(1000))
        where = b.emit(COMPARISONS[name], [x, y], x.type.with_element(i1))
        return b.select(where, x, y)

    names = assert_exact(emit, [i32, i32], PAIRS, U55)
    assert not {"greater", "greater_equal", "equal", "select"} & set(names)


@pytest.mark.parametrize("kind", [LogicalAnd, LogicalOr, LogicalXor])
def test_connected_truth_values(kind: type) -> None:
    def emit(b: Builder, x: Value, y: Value) -> Value:
        zero = b.constant(0)
        both = b.emit(kind, [b.greater(x, zero), b.greater(y, zero)], x.type.with_element(i1))
        return b.select(b.emit(LogicalNot, [both], both.type), x, y)

    assert "select" not in assert_exact(emit, [i32, i32], PAIRS, U55)


@pytest.mark.parametrize("bits", [1, 8, 16, 30])
def test_low_bits(bits: int) -> None:
    def emit(b: Builder, x: Value) -> Value:
        return b.emit(BitwiseAnd, [x, b.constant((1 << bits) - 1)], x.type)

    assert "bitwise_and" not in assert_exact(emit, [i32], [WORDS.astype(np.int32)], U55)


def test_a_boolean_result_is_refused() -> None:
    module = emitted(lambda b, x: b.greater(x, b.constant(0)), [i32], [(4,)])
    with pytest.raises(UnsupportedError, match="result 'result': it is of truth values"):
        lower(module, U55)
    check(lower(module, U85)[0], U85)


def test_what_is_missing_is_named() -> None:
    module = emitted(lambda b, x, y: b.emit(BitwiseAnd, [x, y], x.type), [i32, i32], [(4,), (4,)])
    lowered, _ = lower(module, U55)
    with pytest.raises(UnsupportedError, match=r"tosa\.bitwise_and: the target lacks \(i32, i32\) → i32"):
        check(lowered, U55)
    check(lower(module, U85)[0], U85)


def test_the_two_small_devices_take_the_same() -> None:
    lines = [Path(resource(f"rules/ethos-u{n}.toml")).read_text(encoding="utf-8").splitlines()[1:] for n in (55, 65)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_is_no_target_of_tflite(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=name):
        tflq.convert(ROOT / "models/cnn_int8.tflite", tmp_path / "out.tflite", target=name)


@pytest.mark.parametrize("name", DEVICES)
def test_vela_compiles_a_network_whole(name: str, tmp_path: Path) -> None:
    if (vela := shutil.which("vela")) is None:
        pytest.skip("vela is not installed: pip install ethos-u-vela, in an environment of its own, and put it on PATH")
    path = tmp_path / "cnn.tosa"
    tflq.convert(ROOT / "models/cnn_int8.tflite", path, target=name)
    size = "256"
    command = [vela, "--accelerator-config", f"{name}-{size}", "--output-dir", str(tmp_path), str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    made = (tmp_path / "cnn_vela.tflite").read_bytes()
    assert made.count(b"ethos-u") == 1
