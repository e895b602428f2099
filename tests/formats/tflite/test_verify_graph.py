"""Graphs that do not hold: each case changes one thing in a good model, and says where and why it is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.model_tree import MODELS, Tree, refused, tree

from tflq.formats.flatbuffer.codec import encode
from tflq.formats.tflite.reader import read


def graph(model: Tree) -> Tree:
    first: Tree = model["subgraphs"][0]
    return first


def op(model: Tree, index: int) -> Tree:
    found: Tree = graph(model)["operators"][index]
    return found


INDICES: list[tuple[str, Callable[[Tree], Any], str, str]] = [
    ("operator code", lambda m: op(m, 0).update(opcode_index=99), "operators[0].opcode_index", "no operator code 99"),
    ("input", lambda m: op(m, 3).update(inputs=(14, 21)), "operators[3].inputs[1]", "no tensor 21"),
    ("below -1", lambda m: op(m, 3).update(inputs=(14, -2)), "operators[3].inputs[1]", "no tensor -2"),
    ("output", lambda m: op(m, 3).update(outputs=(99,)), "operators[3].outputs[0]", "no tensor 99"),
    ("output -1", lambda m: op(m, 3).update(outputs=(-1,)), "operators[3].outputs[0]", "no tensor -1"),
    ("intermediate", lambda m: op(m, 3).update(intermediates=(77,)), "operators[3].intermediates[0]", "no tensor 77"),
    ("graph input", lambda m: graph(m).update(inputs=(50,)), "subgraphs[0].inputs[0]", "no tensor 50"),
    ("graph output", lambda m: graph(m).update(outputs=(-1,)), "subgraphs[0].outputs[0]", "no tensor -1"),
    ("buffer", lambda m: graph(m)["tensors"][3].update(buffer=1000), "tensors[3].buffer", "no buffer 1000"),
    ("metadata", lambda m: m["metadata"][0].update(buffer=1000), "metadata[0].buffer", "no buffer 1000"),
    ("signature", lambda m: m["signature_defs"][0].update(subgraph_index=3), "signature_defs[0]", "no subgraph 3"),
    (
        *("signature tensor", lambda m: m["signature_defs"][0]["inputs"][0].update(tensor_index=90)),
        *("signature_defs[0].inputs[0]", "no tensor 90"),
    ),
]

GRAPHS: list[tuple[str, Callable[[Tree], Any], str, str]] = [
    ("version", lambda m: m.update(version=2), "Model.version", "schema version 2"),
    ("no subgraph", lambda m: m.update(subgraphs=[], signature_defs=None), "Model.subgraphs", "no subgraph"),
    (
        "use before definition",
        lambda m: op(m, 3).update(inputs=(14, 16)),
        "operator 3 (ADD)",
        "read before it is written",
    ),
    ("cycle", lambda m: op(m, 3).update(inputs=(14, 15)), "operator 3 (ADD)", "read before it is written"),
    ("two definitions", lambda m: op(m, 4).update(outputs=(15,)), "operator 4 (CONV_2D)", "written twice"),
    ("writes a constant", lambda m: op(m, 3).update(outputs=(3,)), "operator 3 (ADD)", "is a constant"),
    ("writes an input", lambda m: op(m, 3).update(outputs=(0,)), "operator 3 (ADD)", "an input of the subgraph"),
    (
        "undefined output",
        lambda m: graph(m)["operators"].pop(),
        "subgraph 0",
        "output 0, 'StatefulPartitionedCall_1:0'",
    ),
    ("required operand", lambda m: op(m, 0).update(inputs=(0, -1, 10)), "operator 0 (CONV_2D)", "'filter' is left out"),
    ("too few operands", lambda m: op(m, 3).update(inputs=(14,)), "operator 3 (ADD)", "1 operand, not 2"),
    ("too many operands", lambda m: op(m, 3).update(inputs=(14, 12, 12)), "operator 3 (ADD)", "3 operands, not 2"),
    (
        "axes of floats",
        lambda m: graph(m)["tensors"][1].update(type="FLOAT32"),
        "operator 6 (MEAN)",
        "not a signed integer",
    ),
    (
        *("codes disagree", lambda m: m["operator_codes"][2].update(builtin_code="MUL", deprecated_builtin_code=9)),
        *("operator_codes[2]", "name different operators"),
    ),
    (
        *("placeholder", lambda m: m["operator_codes"][2].update(builtin_code="ADD", deprecated_builtin_code=127)),
        *("operator_codes[2]", "names no operator"),
    ),
    (
        "operator version",
        lambda m: m["operator_codes"][0].update(version=0),
        "operator_codes[0]",
        "version 0 is below 1",
    ),
    (
        *("unnamed custom", lambda m: m["operator_codes"][2].update(builtin_code="CUSTOM", deprecated_builtin_code=32)),
        *("operator_codes[2]", "without a name"),
    ),
    (
        *("options of another", lambda m: op(m, 3).update(builtin_options=("MulOptions", {}))),
        *("operator 3 (ADD)", "has MulOptions where AddOptions"),
    ),
    (
        *("two signatures", lambda m: m["signature_defs"].append(m["signature_defs"][0])),
        *("signature 'serving_default'", "two of this name"),
    ),
]


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.tflite")), ids=lambda path: path.name)
def test_good_models_have_no_warnings(path: Path) -> None:
    assert read(path).warnings == []


CASES = [*INDICES, *GRAPHS]


@pytest.mark.parametrize(("change", "where", "reason"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_graph_that_does_not_hold(change: Callable[[Tree], Any], where: str, reason: str) -> None:
    model = tree("cnn_int8")
    change(model)
    refused(model, where, reason)


def calling(first: str, second: str) -> Tree:
    """A model whose two subgraphs call each other's index, by WHILE or IF options."""
    model = tree("two_signatures")
    model["operator_codes"].append({"builtin_code": "CALL_ONCE", "deprecated_builtin_code": 127, "version": 1})
    code = len(model["operator_codes"]) - 1
    for index, called in enumerate((first, second)):
        if called:
            options = ("CallOnceOptions", {"init_subgraph_index": int(called)})
            call = {"opcode_index": code, "inputs": (), "outputs": (), "builtin_options": options}
            model["subgraphs"][index]["operators"].insert(0, call)
    return model


def test_a_call_without_recursion_is_accepted() -> None:
    assert len(read(encode(calling("1", ""))).functions) == 2


@pytest.mark.parametrize(("first", "second"), [("0", ""), ("1", "0"), ("", "1")])
def test_recursion(first: str, second: str) -> None:
    refused(calling(first, second), "subgraph", "it calls itself")


def test_called_subgraph_out_of_range() -> None:
    refused(calling("2", ""), "CALL_ONCE", "init_subgraph_index 2 is not one of the 2 subgraphs")


def chain(*following: int) -> Tree:
    """A model whose subgraph N calls all those that come so many places after it, as far as there are any: 3,000."""
    model = calling("1", "")
    first, last = model["subgraphs"]
    code, count = len(model["operator_codes"]) - 1, 3000
    plain = {**last, "outputs": (), "inputs": (), "tensors": last["tensors"][:1]}
    model["subgraphs"] = [first, *({**plain, "operators": []} for _ in range(1, count))]
    for index, each in enumerate(model["subgraphs"][1:], 1):
        for called in (index + step for step in following if index + step < count):
            options = ("CallOnceOptions", {"init_subgraph_index": called})
            each["operators"].append({"opcode_index": code, "inputs": (), "outputs": (), "builtin_options": options})
    model["signature_defs"] = model["signature_defs"][:1]
    return model


@pytest.mark.slow
def test_a_long_chain_of_calls_is_refused_without_recursion() -> None:
    refused(chain(1), "subgraph", "its calls are 65 deep; up to 64 are handled")


def test_calls_that_multiply_are_refused() -> None:
    refused(chain(1, 1), "subgraph", "16383 runs of functions; up to 10000 are handled")


@pytest.mark.slow
def test_calls_that_are_not_deep_are_accepted() -> None:
    assert len(read(encode(chain(60))).functions) == 3000


def test_an_input_that_is_listed_twice_is_two_of_which_the_last_is_read() -> None:
    model = tree("cnn_int8")
    (listed,) = graph(model)["inputs"]
    graph(model)["inputs"] = (listed, listed)
    module = read(encode(model))
    unread, read_one = module.main.inputs
    assert module.main.ops[0].operands[0] is read_one
    assert unread.type == read_one.type
    assert "is listed twice as an input" in module.warnings[0]


def test_an_optional_operand_may_be_left_out() -> None:
    model = tree("cnn_int8")
    op(model, 0)["inputs"] = (0, 11, -1)
    assert read(encode(model)).main.ops[0].operands[2] is None


def test_a_shared_buffer_is_legal() -> None:
    model = tree("cnn_int8")
    graph(model)["tensors"][4]["buffer"] = 5
    graph(model)["tensors"].append(dict(graph(model)["tensors"][4], name="twin"))
    tensors = read(encode(model)).main.tensors
    assert tensors[-1].buffer is tensors[4].buffer


def test_an_operator_with_more_operands_than_a_short_vector_holds() -> None:
    """Long vectors are decoded as arrays."""
    model = tree("split")
    graph_fields = graph(model)
    model["operator_codes"][0].update(builtin_code="CONCATENATION", deprecated_builtin_code=2)
    options = ("ConcatenationOptions", {"axis": 0, "fused_activation_function": "NONE"})
    op(model, 0).update(inputs=(0,) * 2000, outputs=(2,), builtin_options=options)
    graph_fields.update(outputs=(2,), inputs=(0,))
    model["signature_defs"] = None
    assert len(read(encode(model)).main.ops[0].operands) == 2000
    op(model, 0)["inputs"] = (0,) * 1999 + (77,)
    refused(model, "operators[0].inputs[1999]", "no tensor 77")
