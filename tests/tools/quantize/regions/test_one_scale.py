"""Along kernels of one scale one range decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.region_graphs import A, region, rescales, specs, text

from tflq.dialects.regions import Region
from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

WIDE, NARROW, OTHER = (
    f"!quant.calibrated<f32<{low}:{high}>>" for low, high in ((0.0, 5.1), (0.0, 2.55), (-5.12, 5.08))
)
OF_WIDE, OF_NARROW = "!quant.uniform<i8:f32, 0.02:-128>", "!quant.uniform<i8:f32, 0.01:-128>"
OF_OTHER = "!quant.uniform<i8:f32, 0.04>"


def propagated(target: Path, *ops: str, results: str = "%r") -> Module:
    module = parse_module(text(ops, results, "%a, %b"))
    verify(module)
    return parse_pipeline(f"quant-propagate{{target={target}}}").run(module).module


def found(module: Module) -> list[list[str]]:
    return [specs(op) for op in module.main.ops if isinstance(op, Region)]


def test_behind_a_kernel_of_one_scale_its_operand_decides(target: Path) -> None:
    made = propagated(
        target,
        region("%0", "tanh", "%a", OTHER, WIDE),
        region("%1", "average_pool_2d", "%0", WIDE, NARROW),
        region("%2", "relu", "%1", NARROW, NARROW),
        region("%r", "tanh", "%2", NARROW, OTHER),
    )
    assert found(made) == [[OF_OTHER, OF_WIDE], [OF_WIDE] * 2, [OF_WIDE] * 2, [OF_WIDE, OF_OTHER]]
    assert not rescales(made)
    origins = [op.origins for op in made.main.ops if isinstance(op, Region)]
    assert origins[1:] == [["calibration", "same_scale"], ["neighbour", "same_scale"], ["neighbour", "calibration"]]


def test_before_a_kernel_of_one_scale_its_only_result_decides(target: Path) -> None:
    made = propagated(
        target,
        region("%0", "tanh", "%a", OTHER, NARROW),
        region("%1", "tanh", "%b", OTHER, OTHER),
        region("%r", "concatenation", "%0, %1", f"{NARROW}, {OTHER}", WIDE),
    )
    assert found(made) == [[OF_OTHER, OF_WIDE], [OF_OTHER, OF_WIDE], [OF_WIDE] * 3]
    assert not rescales(made)


def test_and_so_on_before_it(target: Path) -> None:
    made = propagated(
        target,
        region("%0", "tanh", "%a", OTHER, NARROW),
        region("%1", "relu", "%0", NARROW, NARROW),
        region("%2", "tanh", "%b", OTHER, OTHER),
        region("%r", "concatenation", "%1, %2", f"{NARROW}, {OTHER}", WIDE),
    )
    assert found(made) == [[OF_OTHER, OF_WIDE], [OF_WIDE] * 2, [OF_OTHER, OF_WIDE], [OF_WIDE] * 3]
    assert not rescales(made)


@pytest.mark.parametrize("maker", ["", "exp"], ids=["an input", "no kernel"])
def test_reals_that_no_kernel_makes_do_not_decide_for_other_operands(maker: str, target: Path) -> None:
    given = [region("%x", maker, "%a", "f32", NARROW)] if maker else []
    made = propagated(
        target,
        *given,
        region("%0", "tanh", "%b", OTHER, OTHER),
        region("%1", "concatenation", f"{'%x' if maker else '%a'}, %0", f"{NARROW}, {OTHER}", OTHER),
        region("%2", "tanh", "%x" if maker else "%a", NARROW, OTHER),
        region("%r", "concatenation", "%1, %2", f"{OTHER}, {OTHER}", WIDE),
    )
    kernels = found(made)[-4:]
    assert kernels == [[OF_OTHER, OF_WIDE], [OF_WIDE] * 3, [OF_NARROW, OF_WIDE], [OF_WIDE] * 3]
    assert not rescales(made)


@pytest.mark.parametrize("returned", [False, True])
def test_a_value_with_another_use_keeps_its_range(returned: bool, target: Path) -> None:
    other = [] if returned else [region("%2", "tanh", "%0", NARROW, OTHER)]
    made = propagated(
        target,
        region("%0", "tanh", "%a", OTHER, NARROW),
        region("%1", "concatenation", "%0, %b", f"{NARROW}, {OTHER}", WIDE),
        *other,
        results="%0, %1" if returned else "%1, %2",
    )
    assert found(made) == [[OF_OTHER, OF_NARROW], [OF_WIDE] * 3, [OF_NARROW, OF_OTHER]][: 3 - returned]
    assert rescales(made) == [(OF_NARROW, OF_WIDE)]


def test_consumers_that_differ_leave_one_rescale(target: Path) -> None:
    made = propagated(
        target,
        region("%0", "tanh", "%a", OTHER, NARROW),
        region("%1", "concatenation", "%0, %b", f"{NARROW}, {OTHER}", WIDE),
        region("%2", "maximum", "%0, %b", f"{NARROW}, {OTHER}", OTHER),
        results="%1, %2",
    )
    assert found(made) == [[OF_OTHER, OF_WIDE], [OF_WIDE] * 3, [OF_OTHER] * 3]
    assert rescales(made) == [(OF_WIDE, OF_OTHER)]


def test_what_is_annotated_decides_before_ranges(target: Path) -> None:
    made = propagated(
        target,
        region("%0", "tanh", "%a", OTHER, A),
        region("%1", "average_pool_2d", "%0", NARROW, NARROW),
        region("%r", "tanh", "%1", NARROW, OTHER),
    )
    assert found(made)[1:] == [[OF_NARROW] * 2, [OF_NARROW, OF_OTHER]]
    assert rescales(made) == [(A, OF_NARROW)]


def test_a_range_that_yields_to_nothing_is_taken(target: Path) -> None:
    made = propagated(
        target,
        region("%0", "average_pool_2d", "%a", "!quant.none<f32>", NARROW),
        region("%r", "tanh", "%0", NARROW, OTHER),
    )
    assert found(made)[1] == [OF_NARROW, OF_OTHER]


def test_an_operand_that_does_not_yield_decides_for_all_results(target: Path) -> None:
    """One result is wanted at another range by a concatenation; the operand has its own, and the others follow it."""
    made = propagated(
        target,
        region("%0, %1", "split", "%b, %a", f"f32, {WIDE}", f"{NARROW}, {WIDE}"),
        region("%2", "tanh", "%0", NARROW, OTHER),
        region("%3", "concatenation", "%1, %2", f"{WIDE}, {OTHER}", WIDE),
        region("%r", "tanh", "%3", WIDE, OTHER),
    )
    assert found(made)[:2] == [["f32", OF_WIDE, OF_WIDE, OF_WIDE], [OF_WIDE, OF_WIDE]]
    assert not rescales(made)


def test_behind_a_fixed_scale_the_same_range_yields_and_another_stays(target: Path) -> None:
    fixed = "!quant.uniform<i8:f32, 0.00390625:-128>"
    made = propagated(
        target,
        region("%0", "logistic", "%a", OTHER, NARROW),
        region("%1", "relu", "%0", NARROW, NARROW),
        region("%r", "tanh", "%1", NARROW, OTHER),
    )
    assert found(made) == [[OF_OTHER, fixed], [fixed] * 2, [fixed, OF_OTHER]]
    assert not rescales(made)
    made = propagated(target, region("%0", "logistic", "%a", OTHER, NARROW), region("%r", "tanh", "%0", WIDE, OTHER))
    assert rescales(made) == [(fixed, OF_WIDE)]
