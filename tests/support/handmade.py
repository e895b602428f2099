"""TFLite files made by hand, with every feature of the format, and a module that was read from none."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.formats.flatbuffer.codec import encode
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32

Fields = dict[str, Any]
SCALE: Fields = {"scale": (0.5,), "zero_point": (3,)}


def code(name: str, number: int, version: int = 1, custom: str | None = None) -> Fields:
    fields = {"builtin_code": name, "deprecated_builtin_code": min(number, 127), "version": version}
    return {**fields, "custom_code": custom}


def tensor(name: str, shape: tuple[int, ...] | None = (2, 4), type: str = "INT8", **more: Any) -> Fields:
    return {"name": name, "shape": shape, "type": type, **more}


def data(*numbers: int) -> Fields:
    return {"data": np.array(numbers, np.uint8)}


def model(
    codes: list[Fields],
    tensors: list[Fields],
    operators: list[Fields],
    inputs: tuple[int, ...] = (0,),
    outputs: tuple[int, ...] = (1,),
    buffers: tuple[Fields, ...] = (),
    subgraphs: tuple[Fields, ...] = (),
    **more: Any,
) -> bytes:
    """A model of one subgraph and further `subgraphs`; buffer 0 is the empty one."""
    main = {"name": "main", "tensors": tensors, "inputs": inputs, "outputs": outputs, "operators": operators}
    fields = {"version": 3, "operator_codes": codes, "subgraphs": [main, *subgraphs], "buffers": [{}, *buffers]}
    return encode({**fields, **more})


def operator(inputs: tuple[int, ...], outputs: tuple[int, ...], row: int = 0, **more: Any) -> Fields:
    return {"opcode_index": row, "inputs": inputs, "outputs": outputs, **more}


ABS = code("ABS", 101)
ABS_OPTIONS: tuple[str, Fields] = ("AbsOptions", {})
ONE_ABS = [operator((0,), (1,), builtin_options=ABS_OPTIONS)]
PAIR = [tensor("a", type="FLOAT32"), tensor("b", type="FLOAT32")]
BLOCKWISE = [
    *PAIR,
    tensor(
        "w",
        (2, 64),
        "INT4",
        buffer=1,
        quantization={"details": ("BlockwiseQuantization", {"scales": 3, "zero_points": -1, "block_size": 32})},
    ),
    tensor("s", (2, 2), "FLOAT16", buffer=2),
]
CSR = {
    "traversal_order": (0, 1),
    "dim_metadata": [
        {"format": "DENSE", "dense_size": 2},
        {
            "format": "SPARSE_CSR",
            "array_segments": ("Uint8Vector", {"values": np.array([0, 1, 2], np.uint8)}),
            "array_indices": ("Uint16Vector", {"values": (0, 3)}),
        },
    ],
}

FEATURES: dict[str, bytes] = {
    "plain": model([ABS], PAIR, ONE_ABS),
    "description and empty name": model([ABS], [{**PAIR[0], "name": ""}, PAIR[1]], ONE_ABS, description="made by hand"),
    "tensor without a name": model([ABS], [{**PAIR[0], "name": None}, PAIR[1]], ONE_ABS),
    "version and duplicate opcode rows": model([code("ABS", 101, 5), ABS, ABS], PAIR, [operator((0,), (1,), 2)]),
    "unused tensors and buffers": model(
        [ABS], [*PAIR, tensor("unused", buffer=1)], ONE_ABS, buffers=(data(*range(8)),)
    ),
    "shared buffer": model(
        [code("ADD", 0)],
        [*PAIR, tensor("c", (1,), "FLOAT32", buffer=1), tensor("d", (1,), "FLOAT32", buffer=1)],
        [operator((0, 2), (1,), builtin_options=("AddOptions", {"fused_activation_function": "RELU6"}))],
        buffers=(data(0, 0, 128, 63),),
    ),
    "two signatures": model(
        [ABS],
        PAIR,
        ONE_ABS,
        signature_defs=[
            {"signature_key": "first", "inputs": [{"name": "x"}], "outputs": [{"name": "y", "tensor_index": 1}]},
            {"signature_key": "second", "inputs": [{"name": "z"}], "outputs": [{"name": None, "tensor_index": 1}]},
        ],
    ),
    "metadata": model(
        [ABS],
        PAIR,
        ONE_ABS,
        buffers=(data(1, 2, 3),),
        metadata=[{"name": "min_runtime_version", "buffer": 1}, {"name": "again", "buffer": 1}],
        metadata_buffer=(1,),
    ),
    "custom operator": model(
        [code("CUSTOM", 32, 2, "MyOp")],
        PAIR,
        [operator((0, -1), (1,), custom_options=np.array([7, 8, 9], np.uint8), intermediates=())],
    ),
    "operator without options": model([ABS], PAIR, [operator((0,), (1,))]),
    "unknown batch": model([ABS], [tensor(n, (1, 4), "FLOAT32", shape_signature=(-1, 4)) for n in "ab"], ONE_ABS),
    "stored shape that is not 1": model(
        [ABS], [tensor(n, (8, 4), "FLOAT32", shape_signature=(-1, 4), has_rank=True) for n in "ab"], ONE_ABS
    ),
    "signature without unknown dims": model([ABS], [{**t, "shape_signature": (2, 4)} for t in PAIR], ONE_ABS),
    "unranked": model([ABS], [tensor(n, None, "FLOAT32") for n in "ab"], ONE_ABS),
    "scalars": model([ABS], [tensor(n, (), "FLOAT32", has_rank=True) for n in "ab"], ONE_ABS),
    "quantization with everything": model(
        [ABS],
        [tensor(n, quantization={**SCALE, "min": (-1.0,), "max": (1.0,), "quantized_dimension": 1}) for n in "ab"],
        ONE_ABS,
    ),
    "empty quantization": model(
        [ABS], [{**PAIR[0], "quantization": {}}, {**PAIR[1], "quantization": {"scale": (), "min": ()}}], ONE_ABS
    ),
    "statistics only": model([ABS], [{**t, "quantization": {"min": (0.0,), "max": (6.0,)}} for t in PAIR], ONE_ABS),
    "string tensor": model(
        [ABS],
        [*PAIR, tensor("text", (1,), "STRING", buffer=1)],
        ONE_ABS,
        buffers=(data(1, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 65),),
    ),
    "int4": model(
        [ABS],
        [*PAIR, tensor("w", (3,), "INT4", buffer=1, quantization={"scale": (0.5,), "zero_point": (0,)})],
        ONE_ABS,
        buffers=(data(0x21, 0x0F),),
    ),
    "blockwise": model([ABS], BLOCKWISE, ONE_ABS, buffers=(data(*range(64)), data(0, 60, 0, 60, 0, 60, 0, 60))),
    "sparsity": model(
        [ABS], [*PAIR, tensor("w", (2, 4), "INT8", buffer=1, sparsity=CSR)], ONE_ABS, buffers=(data(1, 2),)
    ),
    "variable tensor": model([ABS], [*PAIR, tensor("state", is_variable=True)], ONE_ABS),
    "external buffer": model(
        [ABS],
        [*PAIR, tensor("w", external_buffer=1)],
        ONE_ABS,
        external_buffer_groups=[{"name": "weights.bin"}],
        external_buffers=[{"id": 1, "group": 0, "offset": 4096, "length": 8, "packing": "none"}],
    ),
    "debug metadata": model([ABS], PAIR, [{**ONE_ABS[0], "debug_metadata_index": 4}]),
    "empty data": model([ABS], PAIR, ONE_ABS, buffers=({"data": np.zeros(0, np.uint8)}, {})),
    "control flow": model(
        [code("WHILE", 119)],
        PAIR,
        [operator((0,), (1,), builtin_options=("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))],
        subgraphs=(
            {
                "name": "cond",
                "tensors": [PAIR[0], tensor("t", (), "BOOL", buffer=1)],
                "inputs": (0,),
                "outputs": (1,),
                "operators": [],
            },
            {"name": "body", "tensors": [PAIR[0]], "inputs": (0,), "outputs": (0,), "debug_metadata_index": 2},
        ),
        buffers=(data(0),),
    ),
    "operator 209": model(
        [code("STABLEHLO_CASE", 209)],
        [tensor("index", (), "INT32", has_rank=True), PAIR[1]],
        [operator((0,), (1,), builtin_options_2=("StablehloCaseOptions", {"branch_subgraph_indices": (1,)}))],
        subgraphs=(
            {"name": "branch", "tensors": [{**PAIR[0], "buffer": 1}], "inputs": (), "outputs": (0,), "operators": []},
        ),
        buffers=(data(*bytes(32)),),
    ),
    "composite": model(
        [code("STABLEHLO_COMPOSITE", 206), ABS],
        PAIR,
        [
            operator(
                (0,),
                (1,),
                builtin_options_2=(
                    "StableHLOCompositeOptions",
                    {
                        "name": "odml.x",
                        "decomposition_subgraph_index": 1,
                        "composite_attributes": np.array([1], np.uint8),
                    },
                ),
            )
        ],
        subgraphs=(
            {"name": "inner", "tensors": PAIR, "inputs": (0,), "outputs": (1,), "operators": [operator((0,), (1,), 1)]},
        ),
    ),
}


def new_module(element: Any = f32, shape: tuple[int | None, ...] = (None, 4), **info: Any) -> Module:
    """input → tfl.cast → tfl.add of a constant → output, none of it read from a file."""
    x, y, z = (Value(TensorType(shape, element), name) for name in "xyz")
    one = constant(np.ones(4, np.float32), name="one")
    cast = Op("tfl.cast", [x], [y], {"in_data_type": "FLOAT32", "out_data_type": "FLOAT32"}, info=info)
    add = Op("tfl.add", [y, one], [z], {"fused_activation_function": "NONE", "pot_scale_int16": True})
    return Module([Function("main", [x], [z], [cast, add])])
