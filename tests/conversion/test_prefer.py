"""What `prefer` decides: tables or arithmetic, and how large the result of a small source may become."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from support.harness import edge_inputs, interpret
from support.sums import sums, tables

import tflq
from tflq.conversion.convert import MOST_GROWTH, SMALL
from tflq.dialects.tfl.indexing import Gather
from tflq.formats.options import Prefer

TWO = (0.1, 0.2)
PREFERENCES: tuple[Prefer, ...] = ("speed", "size")


def check_equal(model: bytes, made: bytes) -> None:
    draws = edge_inputs(tflq.read(model).main.inputs)
    for want, got in zip(interpret(model, draws), interpret(made, draws), strict=True):
        for a, b in zip(want, got, strict=True):
            np.testing.assert_array_equal(a, b)


def test_size_has_no_tables_of_two_operands() -> None:
    model = sums(*TWO, filler=SMALL)
    fast, small = (tflq.convert(model, prefer=prefer).data for prefer in PREFERENCES)
    assert (tables(fast), tables(small)) == (2, 0)
    assert len(small) < len(fast) - 100_000
    check_equal(model, small)


@pytest.mark.parametrize(("filler", "kept"), [(0, 0), (5_000, 1), (10_000, 2), (SMALL, 2)])
def test_a_small_source_gets_the_tables_that_it_has_room_for(filler: int, kept: int) -> None:
    model = sums(*TWO, filler=filler)
    made = tflq.convert(model).data
    assert tables(made) == kept
    assert len(made) <= MOST_GROWTH * len(model)
    check_equal(model, made)


def test_the_tables_kept_save_most() -> None:
    model = sums(0.1, 0.2, 0.3, sizes=(64, 640, 6), filler=5_000)
    looked_up = [op for op in tflq.convert(model).module.ops() if isinstance(op, Gather)]
    (kept,) = (op for op in looked_up if op.input.type.shape == (1 << 16,))
    assert kept.output.name == "z1"


def test_the_size_of_a_stream_counts(tmp_path: Path) -> None:
    model = sums(*TWO)
    path = tmp_path / "sums.tflite"
    path.write_bytes(model)
    made = tflq.convert(model).data
    assert tflq.convert(io.BytesIO(model)).data == made
    with path.open("rb") as stream:
        conversion = tflq.convert(stream)
    assert conversion.report.source == str(path)
    assert tables(conversion.data) == 0


def test_the_dump_is_of_the_conversion_that_counts(tmp_path: Path) -> None:
    from tflq.conversion.convert import convert_with_dump

    convert_with_dump(sums(*TWO), dump_ir=tmp_path / "ir")
    texts = [path.read_text() for path in sorted((tmp_path / "ir").glob("*.mlir"))]
    assert not any("ext.table_2d" in text for text in texts)


def test_it_is_for_tflite_files() -> None:
    with pytest.raises(tflq.OptionError, match="prefer 'size' is for TFLite files"):
        tflq.convert(sums(*TWO), format="tosa", prefer="size")
    with pytest.raises(tflq.OptionError, match="prefer='smallest' is not known"):
        tflq.convert(sums(*TWO), prefer="smallest")  # type: ignore[arg-type]
