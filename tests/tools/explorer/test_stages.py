"""Graphs of a model before conversion, in the integer form and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, one_op

import tflq
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op
from tflq.ir.types import UniformQuantizedSubChannelType, f32, i1, i4, i32
from tflq.tools.explorer import COLOURS, explore, graphs

Json = dict[str, Any]


def pairs(attributes: list[Json]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in attributes}


def labels(graph: Json) -> list[str]:
    return [node["label"] for node in graph["nodes"] if node["label"] != "pseudo_const"]


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_int16x8", "cnn_uint8", "two_signatures", "split"])
@pytest.mark.parametrize("target", [None, "kernels", "tosa"])
def test_every_op_is_a_node_and_every_edge_has_its_ends(name: str, target: str | None, models: Path) -> None:
    path = models / f"{name}.tflite"
    stages = explore(path, target).stages
    assert [stage["label"] for stage in stages] == ["before", "integer form", "after"]
    converted = tflq.convert(path, format="mlir" if target == "tosa" else "tflite", target=target).module
    for stage, module in ((stages[0], tflq.read(path)), (stages[2], converted)):
        for graph, function in zip(stage["subgraphs"], module.functions, strict=True):
            ops = [op.name.removeprefix("tfl.") for op in function.ops]
            assert labels(graph) == ["GraphInputs", *ops, "GraphOutputs"]
    ids = [graph["id"] for stage in stages for graph in stage["subgraphs"]]
    assert len(set(ids)) == len(ids)
    for stage in stages:
        for graph in stage["subgraphs"]:
            nodes = {node["id"]: node for node in graph["nodes"]}
            assert len(nodes) == len(graph["nodes"])
            for node in graph["nodes"]:
                for edge in node["incomingEdges"]:
                    source = nodes[edge["sourceNodeId"]]
                    output = pairs(source["outputsMetadata"][int(edge["sourceNodeOutputId"])]["attrs"])
                    (end,) = (m for m in node["inputsMetadata"] if m["id"] == edge["targetNodeInputId"])
                    assert output["tensor_shape"] == pairs(end["attrs"])["tensor_shape"]


def test_quantization_and_formula_of_a_layer(models: Path) -> None:
    before, middle, after = (stage["subgraphs"][0] for stage in explore(models / "cnn_int8.tflite").stages)
    conv = before["nodes"][3]
    assert conv["label"] == "conv_2d"
    assert pairs(conv["attrs"])["fused_activation_function"] == "RELU6"
    weights, result = pairs(conv["inputsMetadata"][1]["attrs"]), pairs(conv["outputsMetadata"][0]["attrs"])
    assert weights["__tensor_tag"] == "filter"
    assert (weights["quantized_dimension"], weights["quantization"].count(" * q")) == ("0", 16)
    assert result["quantization"] == "0.0109707816 * (q + 128)"
    assert result["tensor_shape"] == "int8[1,12,12,16]"
    rescale = next(node for node in middle["nodes"] if node["label"] == "tosa.rescale")
    shown = pairs(rescale["attrs"])
    assert (shown["rounding_mode"], shown["output_zp"], shown["tflq: path"]) == ("DOUBLE_ROUND", "-128", "integer")
    assert shown["multiplier"].startswith("[1814478563, ")
    assert pairs(rescale["outputsMetadata"][0]["attrs"])["source: quantization"] == "0.0109707816 * (q + 128)"
    layer = "functional_1/re_lu_1/CONV_2D 0"
    for graph in (before, middle, after):
        assert any(node["namespace"] == layer for node in graph["nodes"])
    assert rescale["style"]["borderColor"] == COLOURS["integer"]


def test_a_model_that_is_refused_is_shown_with_the_reasons(tmp_path: Path) -> None:
    path = tmp_path / "unique.tflite"
    x = argument((4,), f32)
    path.write_bytes(one_op("tfl.unique", [x], [argument((None,), f32, "y"), argument((4,), i32, "z")], {}))
    with pytest.raises(tflq.UnsupportedError) as caught:
        tflq.convert(path, format="mlir")
    explored = explore(path, "tosa")
    assert str(explored.refused) == str(caught.value)
    (stage,) = explored.stages
    (graph,) = stage["subgraphs"]
    assert graph["groupNodeAttributes"][""]["not converted"] == str(caught.value)
    node = next(node for node in graph["nodes"] if node["label"] == "unique")
    assert pairs(node["attrs"])["tflq: reason"] == caught.value.reason.what
    assert node["style"]["borderColor"] == COLOURS["refused"]


def test_calls_name_the_graphs_they_run(tmp_path: Path) -> None:
    x, y = argument((2,), f32, "x"), argument((2,), f32, "y")
    branch = argument((2,), f32, "z")
    cond = argument((), i1, "c")
    op = Op("tfl.if", [cond, x], [y], {"then_subgraph_index": 1, "else_subgraph_index": 1}, info={"version": 1})
    functions = [Function("main", [cond, x], [y], [op]), Function("same", [branch], [branch], [])]
    path = tmp_path / "if.tflite"
    tflq.write(Module(functions), path)
    node = next(n for n in explore(path).stages[0]["subgraphs"][0]["nodes"] if n["label"] == "if")
    assert node["subgraphIds"] == ["same (before)", "same (before)"]


def test_blockwise_scales_and_cut_off_constants() -> None:
    blocks = UniformQuantizedSubChannelType.of(i4, (1,), (32,), np.full((4, 2), 0.5))
    x, weights, y = argument((1, 64), f32), const(np.zeros((4, 64), np.int8), blocks, "w"), argument((1, 4), f32, "y")
    module = Module([Function("main", [x], [y], [Op("tfl.fully_connected", [x, weights, None], [y])])])
    (graph,) = graphs(module, "before", lambda _: ({}, ""))
    shown = next(node for node in graph["nodes"] if node["label"] == "pseudo_const")
    assert pairs(shown["attrs"])["__value"].endswith("…] (4×64)")
    metadata = pairs(shown["outputsMetadata"][0]["attrs"])
    assert metadata["block_sizes"] == "32 of axis 1"
    assert metadata["tensor_shape"] == "int4[4,64]"
