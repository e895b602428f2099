"""Hand-made graphs under quant-propagate: the rescales that must stand, the whole IR, the annotations that remove them.

`golden/NAME.mlir` is what a graph becomes, checked by hand. `TFLQ_UPDATE_GOLDEN=1` writes it anew.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.region_graphs import A, B, C, region, reordered, rescales, text

from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module
from tflq.ir.text.printer import print_module
from tflq.ir.verifier import verify
from tflq.tools.opt import parse_pipeline

GOLDEN = Path(__file__).parent / "golden"
FIXED = "!quant.uniform<i8:f32, 0.00390625:-128>"
WIDE = "!quant.uniform<i16:f32, 0.125>"
NARROW, WIDER = "!quant.calibrated<f32<0.0:2.55>>", "!quant.calibrated<f32<0.0:255.0>>"
NARROW_MADE, WIDER_MADE = "!quant.uniform<i8:f32, 0.01:-128>", "!quant.uniform<i8:f32, 1.0:-128>"
CALLED = """func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {{
  {}
  return %r : tensor<4xf32>
}}
"""
CALL = "{} = func.call @g({}) : (tensor<4xf32>) -> tensor<4xf32>"
STATED = f"""%q = quant.qcast %a : tensor<4xf32> to tensor<4x{A}>
  %d = quant.dcast %q : tensor<4x{A}> to tensor<4xf32>"""
WEIGHTS = """%w = "tfl.pseudo_const"() {value = dense<0.5> : tensor<4xf32>} : () -> tensor<4xf32>
  %bias = "tfl.pseudo_const"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>"""
SPLIT = f"""%axis = "tfl.pseudo_const"() {{value = dense<0> : tensor<i32>}} : () -> tensor<i32>
  %0, %1 = "quant.region"(%axis, %a) ({{
    ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
      %y, %z = "tfl.split"(%i, %x) {{num_splits = 2 : i32}}
          : (tensor<i32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      "quant.return"(%y, %z) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }}) {{input_specs = [i32, f32], output_specs = [{A}, {B}], kernel = "split"}}
      : (tensor<i32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)"""


@dataclass(frozen=True)
class Graph:
    """A graph as text; the rescales that must appear, in the order in which the results need them; the texts to
    replace, by which they go."""

    text: str
    rescales: tuple[tuple[str, str], ...]
    annotation: tuple[tuple[str, str], ...] = ()


def _graph(
    *ops: str,
    expected: tuple[tuple[str, str], ...] = (),
    instead: tuple[tuple[str, str], ...] = (),
    results: str = "%r",
    before: str = "",
    size: int = 4,
) -> Graph:
    return Graph(before + text(ops, results, size=size), expected, instead)


_RELU6_TO_B = region("%2", "relu6", "%0", "f32", B)
_TANH_TO_B = region("%1", "tanh", "%b", "f32", B)
_POOL_TO_B = region("%1", "average_pool_2d", "%0", "f32", B)

GRAPHS = {
    # both branches start at one value; what one of them is to give contradicts it
    "diamond": _graph(
        region("%0", "tanh", "%a", "f32", A),
        region("%1", "relu", "%0", "f32", "f32"),
        _RELU6_TO_B,
        region("%r", "add", "%1, %2", "f32, f32", C),
        expected=((A, B),),
        instead=((_RELU6_TO_B, _RELU6_TO_B.replace(B, A)),),
    ),
    # the first input that is known decides for all
    "concatenation_of_unequal": _graph(
        region("%0", "tanh", "%a", "f32", A),
        _TANH_TO_B,
        region("%r", "concatenation", "%0, %1", "f32, f32", "f32", "{axis = 0 : i32} "),
        expected=((B, A),),
        instead=((_TANH_TO_B, _TANH_TO_B.replace(B, A)),),
    ),
    # the only output decides, back through what is of one scale, up to what has a scale of its own
    "concatenation_of_concatenation": _graph(
        region("%0", "relu", "%a", "f32", "f32"),
        region("%1", "softmax", "%b", "f32", "f32", "{beta = 1.0 : f32} "),
        region("%2", "concatenation", "%0, %1", "f32, f32", "f32", "{axis = 0 : i32} "),
        region("%r", "concatenation", "%2, %0", "f32, f32", A, "{axis = 0 : i32} "),
        expected=((FIXED, A),),
        instead=((A, FIXED),),
    ),
    "fixed_scale_into_same_scale": _graph(
        region("%0", "softmax", "%a", A, "f32", "{beta = 1.0 : f32} "),
        region("%r", "relu", "%0", "f32", B),
        expected=((FIXED, B),),
        instead=((B, FIXED),),
    ),
    # an annotation cannot change a fixed scale; who reads the value behind it gets what was annotated
    "fixed_scale_against_annotation": _graph(
        region("%0", "logistic", "%a", A, B),
        region("%r", "relu", "%0", "f32", "f32"),
        expected=((FIXED, B),),
        instead=((B, "f32"),),
    ),
    "addition_of_calibrated": _graph(
        region("%0", "tanh", "%a", A, NARROW),
        region("%1", "tanh", "%b", A, WIDER),
        region("%r", "add", "%0, %1", f"{WIDER}, {WIDER}", NARROW),
        expected=((NARROW_MADE, WIDER_MADE),),
        instead=((f"{WIDER}, {WIDER}", "f32, f32"),),
    ),
    # a constant is quantized for each consumer; what is computed is not
    "shared_weights": _graph(
        WEIGHTS,
        region("%0", "fully_connected", "%a, %w, %bias", f"{A}, {C}, f32", B),
        region("%1", "fully_connected", "%0, %w, %bias", "f32, f32, f32", B),
        region("%2", "fully_connected", "%1, %w, %bias", f"f32, {C.replace('0.25', '0.125')}, f32", B),
        region("%3", "tanh", "%b", A, C),
        region("%r", "fully_connected", "%2, %3, %bias", f"f32, {C.replace('0.25', '0.125')}, f32", B),
        expected=((C, C.replace("0.25", "0.125")),),
        instead=((C.replace("0.25", "0.125"), C),),
    ),
    "residual_with_pooling": _graph(
        region("%0", "tanh", "%a", A, A),
        _POOL_TO_B,
        region("%r", "add", "%0, %1", "f32, f32", C),
        expected=((A, B),),
        instead=((_POOL_TO_B, _POOL_TO_B.replace(B, "f32")),),
    ),
    # what was seen of one port does not change what is said of the other end of its edge
    "calibration_against_annotation": _graph(
        region("%0", "tanh", "%a", NARROW, A),
        region("%r", "relu", "%0", WIDER, "f32"),
        expected=((A, WIDER_MADE),),
        instead=((WIDER, A),),
    ),
    # at least 8 bits are 16 here; the operand of 8 bits is widened on its edge, unless its kernel gives 16, too
    "least_width": _graph(
        region("%0", "mul", "%a, %b", f"{WIDE}, {WIDE}", WIDE),
        region("%1", "mul", "%b, %a", f"{WIDE}, {WIDE}", A),
        region("%r", "maximum", "%0, %1", f"!quant.any<i8:f32>, {WIDE}", "!quant.any<i16:f32>"),
        expected=((A, WIDE),),
        instead=((A, WIDE),),
    ),
    # what has another zero point cannot come to a symmetric port as it is, and is not rescaled by itself
    "symmetric_port": _graph(
        region("%0", "tanh", "%b", A, A),
        region("%1", "fully_connected", "%a, %0", "f32, f32", "f32"),
        region("%r", "fully_connected", "%0, %1", f"f32, {C}", B),
    ),
    "symmetric_port_annotated": _graph(
        region("%0", "tanh", "%b", A, A),
        region("%r", "fully_connected", "%a, %0", f"{B}, !quant.calibrated<f32<-2.0:31.75>>", B),
        expected=((A, C),),
        instead=((A, C),),
    ),
    # each call has its own parameters; only what the function itself says holds for all
    "called_twice": _graph(
        region("%0", "tanh", "%a", A, A),
        region("%1", "tanh", "%b", A, B),
        CALL.format("%2", "%0"),
        CALL.format("%3", "%1"),
        region("%r", "add", "%2, %3", "f32, f32", C),
        before=CALLED.format(region("%r", "relu", "%x", "f32", "f32")),
    ),
    "called_twice_with_annotation": _graph(
        region("%0", "tanh", "%a", A, A),
        region("%1", "tanh", "%b", A, B),
        CALL.format("%2", "%0"),
        CALL.format("%3", "%1"),
        region("%r", "add", "%2, %3", "f32, f32", C),
        before=CALLED.format(region("%r", "relu", "%x", "f32", B)),
        expected=((A, B),),
        instead=((region("%0", "tanh", "%a", A, A), region("%0", "tanh", "%a", A, B)),),
    ),
    # outputs of one scale follow the first that is known; what was annotated is given back by a rescale
    "several_outputs": _graph(
        SPLIT,
        region("%2", "tanh", "%0", "f32", C).replace("4xf32", "2xf32"),
        results="%2, %1",
        size=2,
        expected=((A, B),),
        instead=((f"{A}, {B}", f"{A}, f32"),),
    ),
    # an input of reals is quantized for each; one whose parameters are stated is rescaled
    "conflict_on_a_graph_input": _graph(
        region("%0", "relu", "%a", A, "f32"),
        region("%1", "relu6", "%a", B, "f32"),
        region("%r", "add", "%0, %1", "f32, f32", C),
    ),
    "conflict_on_a_stated_input": _graph(
        STATED,
        region("%0", "relu", "%d", "f32", "f32"),
        region("%1", "relu6", "%d", B, "f32"),
        region("%r", "add", "%0, %1", "f32, f32", C),
        expected=((A, B),),
        instead=((B, "f32"),),
    ),
    # both ends of a chain are said: what comes first goes through, the rescale stands before the last
    "chain_between_annotations": _graph(
        region("%0", "relu", "%a", A, "f32"),
        region("%1", "relu6", "%0", "f32", "f32"),
        region("%r", "relu", "%1", "f32", B),
        expected=((A, B),),
        instead=(
            (region("%1", "relu6", "%0", "f32", "f32"), region("%1", "relu6", "%0", "f32", B)),
            (region("%0", "relu", "%a", A, "f32"), region("%0", "relu", "%a", B, "f32")),
        ),
    ),
    # no result needs two of the consumers: what they say decides, not where they stand
    "unneeded_consumers": _graph(
        region("%0", "tanh", "%a", A, "f32"),
        region("%1", "relu", "%0", "f32", B),
        region("%2", "relu", "%0", "f32", C),
        region("%r", "tanh", "%b", A, "f32"),
        expected=((C, B),),
        instead=((region("%2", "relu", "%0", "f32", C), region("%2", "relu", "%0", "f32", B)),),
    ),
    # what is to stay stays, and separates what is known before it from what comes behind
    "kept_in_floats": _graph(
        region("%0", "relu", "%a", A, "f32"),
        region("%1", "tanh", "%0", "!quant.none<f32>", "!quant.none<f32>"),
        region("%r", "relu6", "%1", "f32", B),
    ),
}


def _propagated(given: Module, target: Path) -> Module:
    found = parse_pipeline(f"quant-propagate{{target={target}}}").run(given).module
    verify(found)
    reordered(found.main)
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_has_its_rescales_and_no_others(name: str, target: Path) -> None:
    graph = GRAPHS[name]
    found = _propagated(parse_module(graph.text), target)
    assert tuple(rescales(found)) == graph.rescales
    golden, made = GOLDEN / f"{name}.mlir", print_module(found)
    if os.environ.get("TFLQ_UPDATE_GOLDEN"):
        golden.write_text(made)
    assert made == golden.read_text()


@pytest.mark.parametrize("name", [name for name, graph in GRAPHS.items() if graph.rescales])
def test_an_annotation_removes_the_rescales(name: str, target: Path) -> None:
    annotated = GRAPHS[name].text
    for before, after in GRAPHS[name].annotation:
        assert before in annotated
        annotated = annotated.replace(before, after)
    assert not rescales(_propagated(parse_module(annotated), target))


@pytest.mark.parametrize("name", GRAPHS)
def test_a_hundred_orders_of_the_ops_give_one_result(name: str, target: Path) -> None:
    generator, orders = random.Random(name), set[tuple[int, ...]]()
    for _ in range(100):
        given = parse_module(GRAPHS[name].text)
        places = {op: place for place, op in enumerate(op for function in given.functions for op in function.ops)}
        for function in given.functions:
            reordered(function, generator)
        order = tuple(places[op] for function in given.functions for op in function.ops)
        if order in orders:  # few ops have few
            continue
        orders.add(order)
        assert print_module(_propagated(given, target)) == (GOLDEN / f"{name}.mlir").read_text()
