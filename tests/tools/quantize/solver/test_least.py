"""Random graphs through the solver: casts cost the least there is, never more than before, and results stay."""

from __future__ import annotations

import numpy as np
import pytest
from support.cast_graphs import RandomGraph, Search
from support.counting import calls
from support.harness import edge_inputs, interpret

from tflq.analysis.cast_cost import cast_cost
from tflq.analysis.evaluate.registry import array_of, evaluate_function
from tflq.conversion.convert import integer_form, lower
from tflq.formats.options import Options
from tflq.formats.tflite.writer import write
from tflq.ir.module import Module
from tflq.ir.ops import Location
from tflq.ir.text.parser import parse_module
from tflq.tools.opt import parse_pipeline
from tflq.transforms.canonicalize import DeadCodeElimination
from tflq.transforms.pass_manager import PassResult

MODES = ("quant-simplify", "quant-transform")
SMALL = 12
"""Small graphs of one test."""


def graph(seed: int, count: int) -> Module:
    """The graph of a seed, anew each time: passes change it."""
    return RandomGraph(seed, count, "tfl" if seed % 3 == 0 else "quant").module()


def solved(mode: str, module: Module) -> PassResult:
    return parse_pipeline(mode).run(module)


def without_dead_ops(module: Module) -> Module:
    return DeadCodeElimination().run(module).module


@pytest.mark.parametrize("first", range(0, 10 * SMALL, SMALL))
def test_the_least_there_is(first: int) -> None:
    """Of graphs of at most 8 ops that are no casts, by a search that tries all forms of all of them."""
    for seed in range(first, first + SMALL):
        count = next(n for n in (2 + seed % 7, 4, 3, 2) if Search(without_dead_ops(graph(seed, n)).main).size <= 1000)
        before = without_dead_ops(graph(seed, count))
        least = Search(before.main).least()
        for mode in MODES:
            after = solved(mode, graph(seed, count))
            assert cast_cost(after.module) == least <= cast_cost(before), f"{mode}, graph {seed} of {count} ops"


@pytest.mark.parametrize("first", range(0, 10 * SMALL, SMALL))
def test_results_stay_and_the_cost_never_rises(first: int) -> None:
    for seed in range(first, first + SMALL):
        count = 3 + seed % 30
        original = graph(seed, count)
        batches = edge_inputs(original.main.inputs, seed)
        cost, wanted = cast_cost(original), _evaluated(original, batches)  # which removes what is dead
        for mode in MODES:
            result = solved(mode, graph(seed, count))
            assert cast_cost(result.module) <= cost, f"{mode}, graph {seed}"
            again = solved(mode, result.module)
            assert not again.modified, f"{mode}, graph {seed}, a second time"
            _assert_equal(_evaluated(again.module, batches), wanted, f"{mode}, {seed}")


@pytest.mark.parametrize("seed", range(0, 24, 3))
@pytest.mark.parametrize("mode", MODES)
def test_results_stay_in_the_interpreter(seed: int, mode: str) -> None:
    batches = edge_inputs(graph(seed, 8).main.inputs, seed)
    files = [_file(module) for module in (graph(seed, 8), solved(mode, graph(seed, 8)).module)]
    wanted, found = (interpret(file, batches, "BUILTIN_REF") for file in files)
    _assert_equal(found, wanted, f"{mode}, {seed}")


@pytest.mark.parametrize("mode", MODES)
def test_no_cast_has_the_place_of_another_operator(mode: str) -> None:
    """A conversion knows by an op's place what became of the operator there."""
    for seed in range(20):
        module = graph(seed, 12)
        for place, op in enumerate(module.main.ops):
            op.location = Location("f.tflite", 0, place, op.short_name, op.result.name)
        ops = parse_pipeline(mode).run(module).module.main.ops
        places = [op.location for op in ops if op.location is not None]
        assert len(places) == len(set(places)) > 0


@pytest.mark.parametrize("mode", MODES)
def test_large_graphs_are_cheap(mode: str) -> None:
    """Four times as many ops take about four times as many calls; a quadratic step would take sixteen times."""
    small, large = (RandomGraph(count, count).module() for count in (250, 1000))
    before, pipeline = cast_cost(large), parse_pipeline(mode)
    assert calls(lambda: pipeline.run(large)) < 6 * calls(lambda: pipeline.run(small))
    assert cast_cost(large) < 0.8 * before


def test_a_long_chain_is_one_part() -> None:
    short, long = chain(250), chain(1000)
    pipeline = parse_pipeline("quant-simplify")
    assert calls(lambda: pipeline.run(long)) < 6 * calls(lambda: pipeline.run(short))
    assert cast_cost(long) == 0


def chain(length: int) -> Module:
    """So many ops that move elements, between casts at both ends and in the middle."""
    q = "tensor<4x!quant.uniform<i8:f32, 0.5>>"
    ops = [f"%0 = quant.dcast %q : {q} to tensor<4xf32>"]
    kind = "{axis = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>"
    ops += [f'%{place + 1} = "tosa.reverse"(%{place}) {kind}' for place in range(length)]
    ends = length // 2, length
    ops += [f"%r{i} = quant.qcast %{i} : tensor<4xf32> to {q}" for i in ends]
    results = ", ".join(f"%r{i}" for i in ends)
    return parse_module(
        f"func.func @f(%q: {q}) -> ({q}, {q}) {{\n" + "\n".join(ops) + f"\nreturn {results} : {q}, {q}\n}}"
    )


def _file(module: Module) -> bytes:
    return bytes(write(lower(module, Options())[0]))


def _evaluated(module: Module, batches: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    main = integer_form(module).main
    results = []
    for arrays in batches:
        known = evaluate_function(main, dict(zip(main.inputs, arrays, strict=True)))
        results.append([array_of(v) if v.is_constant else known[v] for v in main.outputs])
    return results


def _assert_equal(found: list[list[np.ndarray]], wanted: list[list[np.ndarray]], what: str) -> None:
    for some, others in zip(found, wanted, strict=True):
        for a, b in zip(some, others, strict=True):
            assert a.dtype == b.dtype, what
            np.testing.assert_array_equal(a, b, err_msg=what)
