"""Operators whose options table a file leaves out: read as all zero, as interpreters do, and left out again."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.flatbuffer.layout import enum, options_of, table, unstated_attributes
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write

MODEL = Path(__file__).resolve().parents[3] / "models" / "cnn_int8.tflite"
MEAN = 6


def without_options(index: int) -> bytes:
    tree: dict[str, Any] = copy.deepcopy(decode(MODEL.read_bytes()))
    tree["subgraphs"][0]["operators"][index]["builtin_options"] = None
    return encode(tree)


def test_attributes_are_zero_and_a_warning_says_so() -> None:
    module = read(without_options(MEAN))
    assert module.main.ops[MEAN].attributes == {"keep_dims": False}
    assert ["has no ReducerOptions" in line for line in module.warnings] == [True]


def test_what_was_left_out_stays_out() -> None:
    module = read(without_options(MEAN))
    written = decode(write(module))["subgraphs"][0]["operators"]
    assert written[MEAN]["builtin_options"] is None
    module.main.ops[MEAN].attributes["keep_dims"] = True
    written = decode(write(module))["subgraphs"][0]["operators"]
    assert written[MEAN]["builtin_options"] == ("ReducerOptions", {"keep_dims": True})


@pytest.mark.parametrize("builtin", enum("BuiltinOperator").values)
def test_every_attribute_has_a_zero(builtin: str) -> None:
    member = options_of(builtin)
    names = [f.name for f in table(member).fields if f.kind != "union_type"] if member else []
    assert list(unstated_attributes(builtin)) == names
    assert not any(value for value in unstated_attributes(builtin).values() if not isinstance(value, str))
