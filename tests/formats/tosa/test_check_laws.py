"""Files that break TOSA's laws are refused as invalid, by operator, before anything is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.raised import one_op

import tflq
from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.types import i32

X = np.zeros((4, 6), np.int32)

BROKEN: dict[str, tuple[str, list[Any], tuple[int, ...], dict[str, Any], str]] = {
    "a slice beyond its operand": ("slice", [X], (2, 2), {"start": (3, 0), "size": (2, 2)}, "not 2 of 4"),
    "a slice from beyond int32": ("slice", [X], (1, 1), {"start": (1 << 40, 0), "size": (1, 1)}, "not 1 of 4"),
    "a padding of another result": ("pad", [X], (4, 6), {"padding": (1, 0, 0, 0), "pad_const": 0}, r"\[5, 6\]"),
    "fewer sizes than starts": ("slice", [X], (4, 6), {"start": (0, 0), "size": (4,)}, "2 starts and 1 sizes"),
    "half a pair of paddings": ("pad", [X], (4, 6), {"padding": (0, 0, 0, 0, 0), "pad_const": 0}, "5 paddings"),
    "shapes that do not broadcast": ("add", [X, X[:, :5]], (4, 6), {}, "broadcast"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_the_operator_and_the_law_are_named(case: str) -> None:
    name, inputs, shape, attributes, reason = BROKEN[case]
    module = one_op(name, inputs, (shape, i32), attributes)
    with pytest.raises(tflq.InvalidModelError, match=f"(?i){name}.*{reason}"):
        tflq.convert(b"".join([bytes(tosa_bytes(module))]))
