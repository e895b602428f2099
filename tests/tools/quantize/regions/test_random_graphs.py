"""Random graphs under quant-propagate: what holds of each, whatever was annotated."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from support.region_graphs import A, B, C, region, reordered, text

from tflq.dialects.regions import Region, Rescale
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.types import ElementType, is_quantized
from tflq.ir.verifier import verify
from tflq.targets.constraints import quant_functions
from tflq.targets.load import load_kernels
from tflq.tools.opt import parse_pipeline
from tflq.tools.quantize.regions.lookup import lookup, ports, regions_of

SPECS = [*["f32"] * 12, A, B, C, "!quant.calibrated<f32<-1.0:2.0>>", "!quant.any<i8:f32>", "!quant.none<f32>"]
INPUTS = {
    "relu": 1,
    "tanh": 1,
    "logistic": 1,
    "average_pool_2d": 1,
    "add": 2,
    "maximum": 2,
    "mul": 2,
    "concatenation": 3,
}


def drawn(seed: int) -> str:
    """Ten kernels, of which each takes earlier results, mostly late ones, and some ports are annotated."""
    generator = random.Random(seed)
    known, ops = ["%a", "%b"], []
    for index in range(10):
        kernel = generator.choice(list(INPUTS))
        operands = [generator.choice(known[-4:]) for _ in range(INPUTS[kernel])]
        specs = [generator.choice(SPECS) for _ in operands]
        known.append(f"%{index}")
        attributes = "{axis = 0 : i32} " if kernel == "concatenation" else ""
        ops.append(
            region(known[-1], kernel, ", ".join(operands), ", ".join(specs), generator.choice(SPECS), attributes)
        )
    return text(ops, ", ".join(known[-2:]))


def propagated(given: Module, target: Path) -> Module:
    found = parse_pipeline(f"quant-propagate{{target={target}}}").run(given).module
    verify(found)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_constraints_hold_on_every_kernel_and_edge(seed: int, target: Path) -> None:
    found = propagated(parse_module(drawn(seed)), target)
    kernels = load_kernels(target)
    for op in regions_of(found.main.ops):
        match = lookup(kernels, op, op.input_specs, op.output_specs)
        for _, function, numbers in quant_functions(match.signature.constraints) if match else ():
            assert function(list(op.input_specs), list(op.output_specs), *numbers) == ([], [])
        for port in ports(op):
            if not port.is_output and is_quantized(port.spec):
                assert _made_with(port.value) in (None, port.spec)


def _made_with(value: Value) -> ElementType | None:
    """The parameters with which a value comes; None if it comes without."""
    op = value.producer
    if isinstance(op, Rescale):
        assert op.input.producer is None or op.source == _made_with(op.input)  # an input is as its port was annotated
        return op.target
    if isinstance(op, Region):
        spec = op.output_specs[op.results.index(value)]
        return spec if is_quantized(spec) else None
    return None


@pytest.mark.parametrize("seed", range(40))
def test_one_result_that_does_not_change_again(seed: int, target: Path) -> None:
    generator = random.Random(seed)
    results = []
    for _ in range(5):
        given = parse_module(drawn(seed))
        reordered(given.main, generator)
        made = propagated(given, target)
        reordered(made.main)
        results.append(print_module(made))
    assert all(one == other for one, other in pairwise(results))
    again = parse_pipeline(f"quant-propagate{{target={target}}}").run(parse_module(results[0]))
    assert print_module(again.module) == results[0]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_is_kept_and_what_is_annotated_and_free_stays(seed: int, target: Path) -> None:
    given = parse_module(drawn(seed))
    before = [[port.spec for port in ports(op)] for op in regions_of(given.main.ops)]
    free = [op.kernel in ("tanh", "add", "mul") for op in regions_of(given.main.ops)]
    propagated(given, target)
    for specs, op, is_free in zip(before, regions_of(given.main.ops), free, strict=True):
        for spec, port in zip(specs, ports(op), strict=True):
            if str(spec).startswith("NoQuantizedType") or (is_free and is_quantized(spec)):
                assert port.spec == spec
