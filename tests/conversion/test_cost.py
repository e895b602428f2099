"""What a conversion costs: file and arena before and after, and whether an interpreter runs the result slower."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const

import tflq
from tflq.analysis.arena import arena_of
from tflq.cli.main import run
from tflq.conversion.cost import Cost, total
from tflq.dialects.tfl.comparison import Where
from tflq.formats.tflite.backend import Tflite
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i1, i8, i16, i32, i64

ALL = sorted(path.name for path in (Path(__file__).parents[2] / "models").glob("*.tflite"))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("options", [{}, {"target": "kernels"}, {"mac": "float32"}], ids=str)
def test_the_arena_of_the_source_is_that_of_the_file(name: str, options: Any, models: Path) -> None:
    """It is planned when the conversion is over: no pass has changed what it is planned from."""
    source = models / name
    expected = arena_of(tflq.read(source))
    cost = tflq.convert(source, **options).cost
    assert cost.arena_in == expected


def test_nothing_is_worked_out_before_it_is_asked_for(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Module] = []
    monkeypatch.setattr("tflq.analysis.arena.arenas", planned.append)
    tflq.convert(models / "cnn_int8.tflite")
    assert planned == []


def test_files_and_arenas(models: Path, tmp_path: Path) -> None:
    source, place = models / "cnn_int8.tflite", tmp_path / "out.tflite"
    written, held = tflq.convert(source, place), tflq.convert(source.read_bytes())
    assert written.cost == held.cost
    cost = written.cost
    assert (cost.bytes_in, cost.bytes_out) == (source.stat().st_size, place.stat().st_size)
    assert cost.arena == written.arena
    assert cost.arenas == (11392, 66560)
    assert cost.file_ratio == cost.bytes_out / cost.bytes_in
    assert cost.arena_ratio == 66560 / 11392


@pytest.mark.parametrize("many", [False, True])
def test_the_command_makes_a_file_once(
    many: bool, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    pieces = Tflite.pieces

    def counted(self: Tflite, module: Module, function: int, target: Any) -> Any:
        made.append(function)
        return pieces(self, module, function, target)

    monkeypatch.setattr(Tflite, "pieces", counted)
    out = ["-o", tmp_path, "--workers", 1] if many else [tmp_path / "cnn_int8.tflite"]
    assert run(["convert", *map(str, [models / "cnn_int8.tflite", *out])]) == 0
    assert made == [0]
    assert (tmp_path / "cnn_int8.tflite").exists()


def test_a_conversion_has_the_paths_of_its_files(models: Path, tmp_path: Path) -> None:
    source, place = models / "cnn_int8.tflite", tmp_path / "net.c"
    assert tflq.convert(source, place).paths == (str(place), str(tmp_path / "net.h"))
    assert tflq.convert(source).paths == ()


def test_tosa_has_files_alone(models: Path, tmp_path: Path) -> None:
    cost = tflq.convert(models / "cnn_int8.tflite", tmp_path / "out.tosa").cost
    size = (tmp_path / "out.tosa").stat().st_size
    assert cost == Cost((models / "cnn_int8.tflite").stat().st_size, size)
    assert (cost.arenas, cost.arena_ratio) == (None, None)
    back = tflq.convert(tmp_path / "out.tosa").cost
    assert (back.bytes_in, back.arena_in, back.slower) == (size, None, "")
    assert back.arena is not None


def test_the_part_that_was_converted_at_its_shapes(models: Path) -> None:
    source = models / "two_signatures.tflite"
    whole, batch = tflq.convert(source).cost.arenas, tflq.convert(source, batch=4).cost.arenas
    assert whole is not None
    assert batch is not None
    assert batch[0] > 3 * whole[0]
    source = models / "cnn_int8.tflite"
    part = tflq.convert(source, cut=[tflq.read(source).main.ops[0].result.name]).cost.arenas
    assert part is not None
    assert part[0] < 11392


def test_a_copy_holds_it(models: Path) -> None:
    conversion = tflq.convert(models / "cnn_int8.tflite")
    for held in (copy.copy(conversion), pickle.loads(pickle.dumps(conversion))):  # noqa: S301
        assert held.cost == conversion.cost
        assert held.cost.slower


def qi(storage: Any, scale: float = 0.1) -> UniformQuantizedType:
    return UniformQuantizedType.of(storage, scale)


def module(*ops: Op) -> Module:
    return Module([Function("main", [v for v in ops[0].operands if v is not None], ops[-1].results, list(ops))])


def test_an_arena_that_is_not_known() -> None:
    x = argument((8,), i1, "x")
    cost = tflq.convert(tflq.write(module(Op(Where.op_name, [x], [Value(TensorType((None, 1), i64), "y")])))).cost
    assert cost.arena_in is not None
    assert (cost.arena_in.bytes, cost.arenas, cost.arena_ratio) == (None, None, None)


def test_an_interpreter_runs_it_slower(models: Path) -> None:
    cost = tflq.convert(models / "cnn_int8.tflite").cost
    assert cost.slower == (
        "Expect an interpreter to run this slower than the original, since 8 of 9 operators became several plain ones."
    )
    assert cost.instead == (
        "For a TFLite interpreter take --target kernels; --mac float32 is the faster of the plain forms."
    )
    float32 = tflq.convert(models / "cnn_int8.tflite", mac="float32").cost
    assert float32.slower == cost.slower
    assert float32.instead == "For a TFLite interpreter take --target kernels."
    without_products = tflq.convert(models / "log_softmax.tflite").cost
    assert "since its one operator became several plain ones" in without_products.slower
    assert without_products.instead == float32.instead


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cnn_int8", {"target": "kernels"}),
        ("cnn_int8", {"format": "tosa"}),
        ("cnn_int16x8", {}),  # the kernels on 16 bits are the slower ones
        ("atan2_int16", {}),  # the interpreter has no such kernel
        ("mul_per_axis", {}),  # it has one, that is wrong
        ("arg_min", {}),  # one operator for one
    ],
)
def test_nothing_is_said_where_no_kernel_was_replaced(name: str, options: Any, models: Path) -> None:
    cost = tflq.convert(models / f"{name}.tflite", **options).cost
    assert (cost.slower, cost.instead) == ("", "")


def test_nothing_is_said_of_weights_that_no_kernel_takes() -> None:
    """A product of int8 is one of every network; with zero points of weights no kernel is right."""
    x, y = argument((1, 8), qi(i8), "x"), Value(TensorType((1, 4), qi(i8)), "y")
    for zero_point, slower in ((0, True), (3, False)):
        weights = UniformQuantizedType.of(i8, 0.1, zero_point)
        w = const(np.ones((4, 8), np.int8), weights, "w")
        op = Op("tfl.fully_connected", [x, w, None], [y])
        found = tflq.convert(tflq.write(Module([Function("main", [x], [y], [op])])))
        assert bool(found.cost.slower) == slower


def test_kernels_beside_operators_that_have_none() -> None:
    """What is spread had no kernel, and what had one is one operator still: as fast as before."""
    x, u = argument((4, 4), qi(i8), "x"), argument((4, 4), qi(i16), "u")
    y, z = Value(TensorType((4,), i32), "y"), Value(TensorType((4, 4), qi(i16)), "z")
    ops = [Op("tfl.arg_max", [x, const(np.array(1), i32)], [y]), Op("tfl.atan2", [u, u], [z])]
    found = tflq.convert(tflq.write(Module([Function("main", [x, u], [y, z], ops)])))
    assert [row.emitted > 1 for row in found.report.rows] == [False, True]
    assert found.cost.slower == ""


def test_in_total(models: Path) -> None:
    costs = [tflq.convert(models / f"{name}.tflite").cost for name in ("cnn_int8", "pad", "atan2_int16")]
    together = total(costs)
    assert together.bytes_in == sum(cost.bytes_in for cost in costs)
    assert together.arenas == (11392 + 88 + 176, 66560 + 152 + 480)
    assert "2 of 3 results" in together.slower
    assert together.instead == costs[0].instead
    assert total([]) == Cost(0, 0)
