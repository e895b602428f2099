"""The figures that selection goes by: read from a file, whose faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.harness import argument

import tflq
from tflq.base.files import resource
from tflq.dialects.builder import Builder
from tflq.dialects.tosa.elementwise import Add
from tflq.formats.tflite.lowering.cost import arithmetic, costs, load_costs, table_pays
from tflq.ir.types import i8, i32
from tflq.numerics.fixed_point import Multiplier

HALF = Multiplier(1 << 30, 0)
TWICE = Multiplier(1 << 30, 2)


def listed(tmp_path: Path, before: str = "", after: str = "") -> Path:
    """The file of the package, with a part of it replaced."""
    text = Path(resource("rules/costs.json")).read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "costs.json"
    path.write_text(text.replace(before, after), encoding="utf-8")
    return path


def test_figures_of_the_file(tmp_path: Path) -> None:
    assert vars(load_costs(listed(tmp_path))) == vars(costs())
    changed = load_costs(listed(tmp_path, '"tosa.add": 0.2', '"tosa.add": 7'))
    assert changed.elementwise[Add] == 7.0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"tosa.add":', '"tosa.plus":', r"elementwise: 'tosa.plus' is not an op"),
        ('"tosa.add": 0.2', '"tosa.add": -1', r":6: elementwise.tosa.add: -1 is not a number of nanoseconds"),
        ('"tosa.add": 0.2', '"tosa.add": true', r":6: elementwise.tosa.add: true is not a finite number"),
        ('"wide": 5.0', '"wide": Infinity', r"rescale.wide: inf is not a finite number"),
        ('"wide": 5.0,', "", r"rescale.wide: it is missing"),
        ('"tosa.table": 3.5,', "", r"there is no figure for 'tosa.table'"),
        ('"rescale"', '"rescales"', r"rescale: it is missing"),
    ],
)
def test_faults_name_the_field(tmp_path: Path, before: str, after: str, said: str) -> None:
    with pytest.raises(tflq.OptionError, match=said) as caught:
        load_costs(listed(tmp_path, before, after))
    assert "costs.json" in str(caught.value)


def test_what_ops_cost() -> None:
    b, x = Builder(), argument((4, 4), i32)
    known = costs()
    part = b.rescale(x, HALF, i8)
    b.rescale(x, TWICE, i8)
    b.rescale(x, Multiplier(1 << 30, 1), i32, output_zp=3)
    b.add(x, x)
    figures = [arithmetic([op]) for op in b.ops]
    assert figures == [known.to_8_bits, known.wide, known.moved, known.elementwise[Add]]
    assert part.producer is not None
    assert table_pays(b.ops, 2) < table_pays(b.ops, 1)
    assert table_pays(b.ops[:1], 2) < 0
