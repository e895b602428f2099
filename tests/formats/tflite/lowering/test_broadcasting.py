"""Elementwise operators on shapes beyond what the kernels broadcast: many dims, and none of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op

from tflq.ir.ops import Value
from tflq.ir.types import ElementType, UniformQuantizedType, i1, i8, i16, ui8

BYTES = UniformQuantizedType.of(ui8, 0.04, 7)
WORDS = UniformQuantizedType.of(i16, 0.002)


def _check(name: str, operands: list[Value], result: Value, **attributes: Any) -> None:
    model = one_op("tfl." + name, operands, [result], attributes, 2)
    convert_and_compare(model, edge_inputs([v for v in operands if v.buffer is None]))


@pytest.mark.parametrize("shape", [(0,), (1, 4, 4, 2, 0), (0, 1, 3, 2, 2), (2, 0, 1, 2, 3, 1)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    x, scalar = argument(shape, BYTES, "a"), argument((), BYTES, "b")
    _check("equal", [x, scalar], argument(shape, i1, "y"))
    last = argument((*(1,) * (len(shape) - 1), shape[-1]), BYTES, "b")
    _check("maximum", [x, last], argument(shape, BYTES, "y"))


@pytest.mark.parametrize("element", [UniformQuantizedType.of(i8, 0.1, 3), BYTES, WORDS])
def test_constants_without_elements(element: ElementType) -> None:
    x, y = const(np.zeros((0, 2)), element, "a"), argument((0, 2), element, "y")
    _check("mul", [x, argument((0, 2), element, "b")], y, fused_activation_function="NONE")
    _check("maximum", [x, const(np.zeros((1, 2)), element, "b")], argument((0, 2), element, "y"))
