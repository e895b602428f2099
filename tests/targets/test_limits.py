"""What `--target kernels` keeps, the interpreter takes: zero points of int16, and scales of 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from support.coverage_inputs import inputs_of
from support.harness import argument, const, edge_inputs, interpret, one_op

import tflq
from tflq.formats.tflite.writer import write
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16
from tflq.targets.constraints import CONSTRAINTS
from tflq.targets.load import load_target
from tflq.tools.coverage.table import samples_of

KERNELS = load_target("kernels")
WIDE = [name for name, lines in KERNELS.kernels.items() if any("qi16" in line.text for line in lines)]
FUSED = {"fused_activation_function": "NONE"}
OPTIONS: Mapping[str, Mapping[str, Any]] = {"add": {**FUSED, "pot_scale_int16": False}, "mul": FUSED}


def kept_on_int16(name: str) -> Iterator[bytes]:
    """A model of each of the operator's lines that takes int16."""
    lines = set[str]()
    for title, model in samples_of(name):
        if "i16" not in title:
            continue
        try:
            ops = [op for op in tflq.read(model).ops() if op.name == f"tfl.{name}"]
        except tflq.InvalidModelError:
            continue  # a type that no file may have
        wide = ops and any(v.type.quantized and v.type.storage == i16 for v in ops[0].tensors)
        verdict = KERNELS.judge(ops[0]) if wide and len(ops) == 1 else None
        if verdict is not None and verdict.runs and verdict.reason not in lines:
            lines.add(verdict.reason)
            yield model


def changed(model: bytes, change: Callable[[UniformQuantizedType], UniformQuantizedType]) -> bytes:
    """The model with other parameters of its tensors of one scale."""
    module = tflq.read(model)
    for value in dict.fromkeys(v for op in module.ops() for v in op.tensors):
        if isinstance(value.type.element, UniformQuantizedType):
            value.type = value.type.with_element(change(value.type.element))
    return bytes(write(module))


def off_zero(element: UniformQuantizedType) -> UniformQuantizedType:
    return element.replace(zero_point=100) if element.storage == i16 else element


@pytest.mark.parametrize("name", WIDE)
def test_zero_points_of_int16(name: str) -> None:
    """The result runs, and gives what the default one gives."""
    compared = 0
    for model in kept_on_int16(name):
        moved = changed(model, off_zero)
        try:
            conversions = [tflq.convert(moved, target=target) for target in ("integer", "kernels")]
        except tflq.UnsupportedError:
            continue  # it has no form with that zero point
        batches = inputs_of(tflq.read(moved), name)
        plain, kept = (interpret(conversion.data, batches) for conversion in conversions)
        for want, got in zip(plain, kept, strict=True):
            for w, g in zip(want, got, strict=True):
                np.testing.assert_array_equal(g, w)
        compared += 1
    if not compared:
        pytest.skip("no sample of it has a form with that zero point")


@pytest.mark.parametrize("storage", [i8, i16], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@pytest.mark.parametrize("place", range(3))
def test_scales_of_0(name: str, storage: ScalarType, place: int) -> None:
    """As of a constant that is 0 throughout. The interpreter dies of most of these."""
    scales = [0.5, 0.25, 0.75]
    scales[place] = 0.0
    first, second, result = (UniformQuantizedType.of(storage, scale, 0) for scale in scales)
    x, y = argument((2, 3), first, "x"), const(np.zeros((2, 3)), second, "y")
    options = OPTIONS.get(name, OPTIONS["add"])
    model = one_op(f"tfl.{name}", [x, y], [argument((2, 3), result, "z")], options)
    want, got = (interpret(tflq.convert(model, target=t).data, edge_inputs([x])) for t in ("integer", "kernels"))
    for one, other in zip(want, got, strict=True):
        np.testing.assert_array_equal(one, other)


def values(*scales: float, storage: ScalarType = i16) -> list[Value]:
    return [argument((2,), UniformQuantizedType.of(storage, scale, 0), f"v{i}") for i, scale in enumerate(scales)]


@pytest.mark.parametrize(("scale", "kept"), [(0.5, True), (0.0, False), (float("inf"), False)])
def test_positive_scale(scale: float, kept: bool) -> None:
    x, y = values(scale, 0.5)
    reason = CONSTRAINTS["positive_scale"].function(Op("tfl.abs", [x], [y], {}))
    assert (reason is None) is kept
    assert kept or (reason is not None and "the scale of 'v0' is" in reason)


@pytest.mark.parametrize(
    ("scales", "shifting", "kept"),
    [
        ((0.5, 0.25, 0.5), True, True),
        ((0.5, 0.25, 0.25), True, False),
        ((0.25, 0.25, 0.5), True, False),
        ((0.25, 0.25, 0.5), False, True),
        ((0.3, 0.25, 0.5), True, True),
    ],
)
def test_power_of_two_shifts(scales: tuple[float, ...], shifting: bool, kept: bool) -> None:
    x, y, z = values(*scales)
    op = Op("tfl.add", [x, y], [z], {**FUSED, "pot_scale_int16": shifting})
    assert (CONSTRAINTS["power_of_two_shifts"].function(op) is None) is kept


@pytest.mark.parametrize("beta", [1.0, 1e-8, 0.0, -1.0])
def test_softmax_is_kept_by_its_scale_times_beta(beta: float) -> None:
    """The interpreter dies of a beta of 0 or less, and of a tiny one."""
    x = argument((2, 5), UniformQuantizedType.of(i8, 0.05, 3), "x")
    y = argument((2, 5), UniformQuantizedType.of(i8, 1 / 256, -128), "y")
    conversion = tflq.convert(one_op("tfl.softmax", [x], [y], {"beta": beta}, 2), target="kernels")
    assert conversion.report.counts["kept"] == (beta == 1.0)
    interpret(conversion.data, edge_inputs([x]))
