"""What a conversion costs follows what a file holds: twice as many parts take about twice the work, and no size that a
small file states takes more time or memory than docs/security.md says. Work is counted, not timed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from support.counting import calls
from support.growing import GROWING
from support.hostile import in_child

import tflq
from tflq.ir.module import Module
from tflq.transforms.pass_manager import Searches

SMALL = 40
FORMS: dict[str, dict[str, Any]] = {
    "integer": {},
    "kernels": {"target": "kernels"},
    "float32": {"mac": "float32"},
    "portable": {"target": "portable"},
    "tosa": {"format": "tosa"},
    "onnx": {"format": "onnx"},
    "c": {"format": "c"},
}
BOUNDED = ("moving_functions",)
"""Kinds with a search over inputs that is bounded, and not linear below its bound."""
OTHERS = ("chain", "activations", "readers", "signatures", "variables")


def work(model: bytes, form: str) -> int:
    """How many functions a conversion calls."""

    def convert() -> None:
        with suppress(tflq.TflqError):
            _ = tflq.convert(model, **FORMS[form]).files

    return calls(convert)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "integer") for name in GROWING if name not in BOUNDED),
        *((name, form) for form in list(FORMS)[1:] for name in OTHERS),
        ("accesses", "tosa"),
        ("functions", "tosa"),
    ],
)
def test_twice_the_model_is_twice_the_work(name: str, form: str) -> None:
    work(GROWING[name](2), form)  # what is imported, and computed once
    fixed = work(GROWING[name](2), form)
    once, twice = (work(GROWING[name](count), form) - fixed for count in (SMALL, 2 * SMALL))
    assert twice < 2.3 * once + 2000


@pytest.mark.slow
def test_many_functions_are_resized_all_at_once_alone() -> None:
    fixed = work(GROWING["moving_functions"](2), "integer")
    once, twice = (work(GROWING["moving_functions"](count), "integer") - fixed for count in (400, 800))
    assert twice < 2.3 * once


@pytest.mark.slow
def test_no_small_file_takes_more_than_the_bounds() -> None:
    beyond = [found for found in in_child(range(200)) if found.excessive]
    assert not beyond


def test_equal_searches_are_one_and_a_small_model_has_few() -> None:
    made: list[int] = []

    def search(table: np.ndarray, number: int) -> int:
        made.append(number)
        return int(table.sum()) + number

    searches = Searches(Module([]))
    assert [searches(30, search, np.arange(3), n) for n in (1, 1, 2)] == [4, 4, None]
    assert made == [1]
    assert searches(10, search, np.arange(4), 2) == 8
