"""docs/kernel-sets.md: its tables are those of the sets."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.pages import kernel_sets
from tflq.numerics.kernel_sets import NAMES


def test_the_tables_are_current() -> None:
    assert kernel_sets.page() == kernel_sets.PAGE.read_text("utf-8"), "make it anew: scripts/make_docs.py kernel_sets"


def test_the_page_names_every_set() -> None:
    text = kernel_sets.PAGE.read_text("utf-8")
    assert [name for name in NAMES if f"`{name}`" not in text] == []


def test_formulas_give_different_numbers() -> None:
    numbers = kernel_sets.FORMULAS
    assert len({*numbers.values()}) == len(numbers)
    assert [kernel_sets.formula(number) for number in numbers.values()] == list(numbers)
    with pytest.raises(ValueError, match="add it to FORMULAS"):
        kernel_sets.formula(float(np.pi))
