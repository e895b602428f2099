"""Statements that become loops, and results that are computed where they are read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, const
from support.on_c import COMPILER, WARNINGS, assert_passes, module_of, need_compiler, written
from support.recurrent import lstm_model

import tflq
from tflq.formats.c.names import elements
from tflq.formats.c.unit import rolled
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, f32, i1, i8, i16, i32, i64, ui8


def _at(line: str, step: int) -> str:
    """A statement in a step of a loop."""
    return re.sub(r"(-?\d+) \+ (-?\d+) \* step", lambda m: str(int(m[1]) + int(m[2]) * step), line)


def run(lines: list[str]) -> list[str]:
    """The statements that loops execute, with numbers for sums."""
    out, loop = [], list[str]()
    times = 0
    for line in lines:
        if line.startswith("for"):
            times, loop = int(line.rpartition("< ")[2].split(";")[0]), []
        elif line == "}":
            out += [_at(each, step) for step in range(times) for each in loop]
            times = 0
        else:
            (loop if times else out).append(line)
    return out


@pytest.mark.parametrize(
    ("period", "times", "rolls"), [(1, 4, True), (1, 3, False), (3, 9, True), (30, 5, True), (33, 9, False)]
)
def test_statements_with_growing_numbers_are_a_loop(period: int, times: int, rolls: bool) -> None:
    steps = [f"f{n}(a + {100 + n + 20 * at}, b + {500 - 7 * at}, {n});" for at in range(times) for n in range(period)]
    lines = ["first(1);", *steps, "last(2);"]
    out = rolled(lines)
    assert ("for (int32_t step = 0; step < " in "".join(out)) == rolls
    assert run(out) == lines


def test_numbers_that_do_not_grow_alike_and_comments_stay() -> None:
    squares = [f"f(a + {at * at});" for at in range(9)]
    named = [f"f(a + {at}); /* int8_t[{at}] x{at} */" for at in range(9)]
    assert rolled([*squares, *named]) == [*squares, *named]


@need_compiler
def test_operands_of_a_concatenation_are_computed_in_it(tmp_path: Path) -> None:
    """What comes first in memory is computed last, and one operand is there twice. The whole is in the output, at its
    end."""
    x, table = argument((1, 16), i8), const(np.arange(-128, 128)[::-1], i8)
    a, b = (Value(TensorType((1, 16), i8), name) for name in "ab")
    whole = Value(TensorType((4, 16), i8), "y")
    ops = [
        Op("tosa.table", [x, table], [a]),
        Op("tosa.reverse", [a], [b], {"axis": 1}),
        Op("tosa.concat", [b, a, a, x], [whole], {"axis": 0}),
        Op("tosa.cast", [whole], [Value(TensorType((4, 16), i32), "z")]),
    ]
    source = written(module_of([x], [*ops]), tmp_path)
    assert " * arena 0 bytes" in source.with_suffix(".h").read_text()
    assert source.read_text().count("memcpy(y + ") == 2
    assert_passes(source, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@need_compiler
def test_an_output_that_only_a_hook_names_compiles(tmp_path: Path) -> None:
    x = argument((1, 0), i8)
    y = Value(TensorType((2, 0), i8), "y")
    source = written(module_of([x], [Op("tosa.concat", [x, x], [y], {"axis": 0})]), tmp_path)
    assert "int main(" not in source.read_text()  # nothing to compare
    subprocess.run([COMPILER, *WARNINGS, "-fsyntax-only", source], check=True)


@need_compiler
def test_steps_of_an_lstm_are_a_loop_and_need_the_memory_of_one(tmp_path: Path) -> None:
    source = tmp_path / "net.c"
    arenas = []
    for steps in (9, 25):
        model = lstm_model(np.random.default_rng(8), batch=1, steps=steps, cells=8)
        tflq.convert(model, source, force=True)
        text = source.read_text()
        assert f"step < {steps - 2};" in text or f"step < {steps - 1};" in text
        arenas.append(int(text.split("arena ")[1].split(" ")[0]))
        assert_passes(source, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert arenas[1] - arenas[0] <= 16 * 8  # of 8 cells, 16 steps more


@pytest.mark.parametrize("type", [i1, i8, ui8, i16, i32, i64, f32], ids=str)
@pytest.mark.parametrize("size", [0, 1, 32, 70])
def test_the_text_of_a_constant_has_its_elements(type: ScalarType, size: int) -> None:
    """In lines of 32; floats by their bits."""
    bytes = np.random.default_rng(size).integers(0, 256, size * type.dtype.itemsize, np.uint8)
    array = np.nan_to_num((bytes & 1 if type == i1 else bytes).view(type.dtype))
    text = elements(array, type)
    assert text.count("\n") == max(size - 1, 0) // 32
    numbers = re.findall(r"-?[\w.+-]+", re.sub(r"INT64_C\((\d+)\)", r"\1", text))
    read = (lambda number: float.fromhex(number.rstrip("f"))) if type.is_float else int
    assert np.asarray([*map(read, numbers)], type.dtype).tobytes() == array.tobytes()
