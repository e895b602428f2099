"""What a constraint that gives parameters gives ports of other storage types, bounds, and of scales along an axis."""

from __future__ import annotations

import pytest

from tflq.ir.types import (
    AnyQuantizedType,
    ElementType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    i16,
)
from tflq.targets.constraints import quant_functions

KNOWN = UniformQuantizedType.of(i8, 0.5, 3)
NARROW = AnyQuantizedType.of(i8, f32, -8, 7)
PER_AXIS = UniformQuantizedPerAxisType.of(i8, 0, [0.5, 0.25])
CASES: dict[str, tuple[ElementType, ElementType, ElementType]] = {
    "parameters are not known": (KNOWN, AnyQuantizedType.of(i8, f32, -128, 127), KNOWN),
    "bounds are narrower": (KNOWN, NARROW, UniformQuantizedType.of(i8, 0.5, 3, storage_min=-8, storage_max=7)),
    "another storage": (
        KNOWN,
        AnyQuantizedType.of(i16, f32, -32768, 32767),
        AnyQuantizedType.of(i16, f32, -32768, 32767),
    ),
    "other parameters": (KNOWN, UniformQuantizedType.of(i8, 0.25), KNOWN),
    "the same, with bounds": (
        KNOWN,
        UniformQuantizedType.of(i8, 0.5, 3, storage_min=-8, storage_max=7),
        UniformQuantizedType.of(i8, 0.5, 3, storage_min=-8, storage_max=7),
    ),
    "a scale per index": (PER_AXIS, NARROW, PER_AXIS),
}


@pytest.mark.parametrize("case", CASES)
def test_parameters_on_a_port(case: str) -> None:
    known, port, given = CASES[case]
    ((_, give, _),) = quant_functions([("same_scale", ())])
    outputs = [port]
    assert give([known], outputs) == ([], [0] if given != port else [])
    assert outputs == [given]
