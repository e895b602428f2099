"""Files of `models/` as trees, to change one thing and see where and why it is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tflq.base.errors import InvalidModelError
from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.tflite.reader import read

MODELS = Path(__file__).resolve().parents[2] / "models"
Tree = dict[str, Any]


def tree(name: str) -> Tree:
    return copy.deepcopy(decode((MODELS / f"{name}.tflite").read_bytes()))


def tensor(model: Tree, index: int) -> Tree:
    """A tensor of the first subgraph."""
    table: Tree = model["subgraphs"][0]["tensors"][index]
    return table


def options(model: Tree, index: int) -> Tree:
    """The options of an operator of the first subgraph."""
    table: Tree = model["subgraphs"][0]["operators"][index]["builtin_options"][1]
    return table


def refused(model: Tree, where: str, reason: str) -> None:
    """Asserts that a model is refused, at a place that holds `where`, for a reason that holds `reason`."""
    with pytest.raises(InvalidModelError) as caught:
        read(encode(model))
    assert where in caught.value.where, str(caught.value)
    assert reason in caught.value.reason.what, str(caught.value)
