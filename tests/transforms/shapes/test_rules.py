"""`infer` of TFLite's operators: shapes are the interpreter's, for random models of all that the matrix knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matrix import GENERATORS
from matrix.run import case_of
from support.harness import argument, const, interpret, one_op

from tflq.dialects.declare import Operator
from tflq.dialects.tfl.state import VarHandle
from tflq.formats.tflite.reader import read
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, dialect
from tflq.ir.types import SCALARS, Shape, TensorType, f32, i1, i16, i32, i64
from tflq.transforms.shape_inference import Inference

COUNT = 12

WITHOUT = {
    *("concat_embeddings", "skip_gram", "custom", "embedding_lookup_sparse", "delegate"),
    *("placeholder_for_greater_op_codes", "stablehlo_broadcast_in_dim"),
    *("stablehlo_custom_call", "stablehlo_iota"),
}
"""Operators whose result has the shape that the file states, or one that only the data say."""


DATA = {"unique", "where", "where_real", "segment_sum"}
"""Generators of operators whose results have as many elements as the data say."""


def test_every_builtin_infers_its_shapes_or_none_can() -> None:
    declared = dialect("tfl")
    assert declared is not None
    without = {kind.op_name for kind in declared.classes() if not (issubclass(kind, Operator) and kind.infers)}
    assert without == {f"tfl.{name}" for name in WITHOUT}


@pytest.mark.parametrize("name", [name for name in GENERATORS if name not in DATA])
def test_shapes_are_found_again(name: str) -> None:
    """What the generators state is what the interpreter computes: the conversions of these models are compared."""
    for number in range(COUNT):
        module = read(case_of(name, number).model)
        bound = {
            v: tuple(5 if d is None else d for d in v.type.shape or ()) for f in module.functions for v in f.inputs
        }
        inference = Inference(module, bound)
        for op in module.ops():
            for value in op.results:
                shape, stated = inference.shapes[value], value.type.shape
                if isinstance(op, VarHandle):  # its kernel leaves the shape as the file has it, which may be none
                    assert shape == stated
                    continue
                assert shape is not None
                assert stated is not None
                assert None not in shape, f"{name} {number}: {op}"
                assert len(shape) == len(stated), f"{name} {number}: {op}"
                assert all(b in (None, a) for a, b in zip(shape, stated, strict=True)), f"{name} {number}: {op}"


def found(name: str, operands: Sequence[Value | None], attributes: dict[str, Any], count: int = 1) -> list[Shape]:
    """The shapes of one operator's results."""
    results = [Value(TensorType(None, f32)) for _ in range(count)]
    op = Op(name, list(operands), results, attributes)
    inputs = [v for v in operands if v is not None and v.buffer is None]
    inference = Inference(Module([Function("main", inputs, results, [op])]), {})
    assert not inference.reasons, inference.reasons
    return [inference.shapes[v] for v in results]


def ints(*values: int) -> Value:
    return const(np.asarray(values), i32)


def x(*shape: int | None) -> Value:
    return argument(shape, f32)


WINDOW = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "dilation_h_factor": 1, "dilation_w_factor": 1}
RNN = {"time_major": False, "merge_outputs": False}
HLO_WINDOW = {
    "window_dimensions": [2, 3],
    "window_strides": [1, 2],
    "base_dilations": [2, 1],
    "window_dilations": [1, 2],
    "padding": [0, 1, 2, 0],
}

CASES: dict[str, tuple[str, list[Value | None], dict[str, Any], list[Shape]]] = {
    "open batch": ("conv_2d", [x(None, 9, 8, 3), x(5, 3, 3, 3), None], WINDOW, [(None, 5, 4, 5)]),
    "open height": ("conv_2d", [x(2, None, 8, 3), x(5, 3, 3, 3), None], WINDOW, [(2, None, 4, 5)]),
    "dense of an open batch": (
        "fully_connected",
        [x(None, 6), x(4, 6), None],
        {"keep_num_dims": False},
        [(None, 4)],
    ),
    "dense in rows": ("fully_connected", [x(3, 4, 5), x(7, 10), None], {"keep_num_dims": False}, [(6, 7)]),
    "one dim left": ("reshape", [x(2, 3, 4), ints(-1, 6)], {"new_shape": None}, [(4, 6)]),
    "left of an open batch": ("reshape", [x(None, 3, 4), ints(-1, 12)], {"new_shape": None}, [(None, 12)]),
    "scalar by option": ("reshape", [x(1, 1)], {"new_shape": [0]}, [()]),
    "open sum": (
        "concatenation",
        [x(None, 3), x(2, None)],
        {"axis": 0, "fused_activation_function": "NONE"},
        [(None, 3)],
    ),
    "operands agree": (
        "concatenation",
        [x(None, 3), x(2, None)],
        {"axis": 1, "fused_activation_function": "NONE"},
        [(2, None)],
    ),
    "matrices": ("batch_matmul", [x(None, 4, 3), x(5, 1, 6, 3)], {"adj_x": False, "adj_y": True}, [(5, None, 4, 6)]),
    "axes not known": ("mean", [x(2, 3), argument((1,), i32)], {"keep_dims": True}, [(None, None)]),
    "range": ("range", [ints(7), ints(-4), ints(-3)], {}, [(4,)]),
    "range of floats": ("range", [const(np.asarray(v), f32) for v in (0, 1, 0.3)], {}, [(4,)]),
    "where": ("where", [const(np.asarray([[True, False], [True, True]]), i1)], {}, [(3, 2)]),
    "where not known": ("where", [argument((2, 2), i1)], {}, [(None, 2)]),
    "top k not known": ("topk_v2", [x(3, 9), argument((), i32)], {}, [(3, None), (3, None)]),
    "unique": ("unique", [x(9)], {}, [(None,), (9,)]),
    "fill": ("fill", [ints(2, 3), x()], {}, [(2, 3)]),
    "scatter": ("scatter_nd", [argument((4, 1), i32), x(4, 5), ints(8, 5)], {}, [(8, 5)]),
    "segments": ("segment_sum", [x(4, 5), ints(0, 0, 1, 2)], {}, [(3, 5)]),
    "unsorted segments": ("unsorted_segment_max", [x(4, 5, 6), argument((4, 5), i32), ints(3)], {}, [(3, 6)]),
    "lookup": ("embedding_lookup", [argument((4,), i32), x(10, 3, 2)], {}, [(4, 3, 2)]),
    "one hot": ("one_hot", [argument((4, 5), i32), ints(7), x(), x()], {"axis": 1}, [(4, 7, 5)]),
    "diagonal": ("matrix_diag", [x(4, 5)], {}, [(4, 5, 5)]),
    "bits": ("bitcast", [argument((4, 2), i16)], {}, [(4,)]),
    "spectrum": ("rfft2d", [x(3, 4, 8), ints(4, 8)], {}, [(3, 4, 5)]),
    "3d": (
        "conv_3d",
        [x(1, 5, 6, 7, 2), x(2, 2, 2, 2, 9), None],
        {"padding": "VALID", **{f"stride_{c}": 1 for c in "dhw"}, **{f"dilation_{c}_factor": 2 for c in "dhw"}},
        [(1, 3, 4, 5, 9)],
    ),
    "rnn": ("rnn", [x(2, 4), x(8, 4), x(8, 8), x(8), x(2, 8)], {}, [(2, 8)]),
    "both ways": (
        "bidirectional_sequence_rnn",
        [x(2, 9, 4), x(8, 4), x(8, 8), x(8), x(2, 8), x(6, 4), x(6, 6), x(6), x(2, 6)],
        RNN,
        [(2, 9, 8), (2, 9, 6)],
    ),
    "svdf": ("svdf", [x(2, 4), x(8, 4), x(8, 10), None, x(2, 80)], {"rank": 2}, [(2, 4)]),
    "sequence": (
        "unidirectional_sequence_lstm",
        [x(9, 2, 4), *[x(6, 4)] * 4, *[x(6, 5)] * 4, *[None] * 3, *[x(6)] * 4, None, None, x(2, 5), x(2, 6)],
        {"time_major": True},
        [(9, 2, 5)],
    ),
    "basic lstm": (
        "lstm",
        [x(2, 4), x(2, 5), x(20, 9), x(20), x(2, 5)],
        {"kernel_type": "BASIC"},
        [(2, 5), (2, 5), (2, 9), (2, 20)],
    ),
    "windows": ("stablehlo_reduce_window", [x(4, 9), x()], HLO_WINDOW, [(7, 4)]),
    "edges": (
        "stablehlo_pad",
        [x(4, 0), x()],
        {"edge_padding_low": [-1, 1], "edge_padding_high": [2, 1], "interior_padding": [1, 3]},
        [(8, 2)],
    ),
    "slices": (
        "stablehlo_gather",
        [x(5, 6), argument((3, 2), i64)],
        {
            "offset_dims": [1],
            "collapsed_slice_dims": [0],
            "slice_sizes": [1, 4],
            "index_vector_dim": 1,
            "start_index_map": [0, 1],
        },
        [(3, 4)],
    ),
    "dilated": ("dilate", [x(3, 4), ints(2, 3), x()], {}, [(5, 10)]),
}


@pytest.mark.parametrize("case", CASES)
def test_rule(case: str) -> None:
    name, operands, attributes, wanted = CASES[case]
    if name == "bitcast":
        results = [Value(TensorType(None, i32))]
        module = Module([Function("main", [v for v in operands if v], results, [Op("tfl.bitcast", operands, results)])])
        assert [Inference(module, {}).shapes[v] for v in results] == wanted
    else:
        assert found(f"tfl.{name}", operands, attributes, len(wanted)) == wanted


REFUSED: dict[str, tuple[str, list[Value | None], dict[str, Any], str]] = {
    "elements": ("reshape", [x(2, 3), ints(4, 2)], {"new_shape": None}, "not have as many elements"),
    "broadcast": ("select_v2", [argument((2,), i1), x(3), x(3)], {}, "do not broadcast"),
    "squeeze": ("squeeze", [x(2, 3)], {"squeeze_dims": [0]}, "2 and 1 differ"),
    "window": ("conv_2d", [x(1, 2, 2, 3), x(5, 9, 9, 3), None], {**WINDOW, "padding": "VALID"}, "does not fit"),
    "state": ("svdf", [x(8, 4), x(8, 4), x(8, 10), None, x(1, 80)], {"rank": 2}, "not of batch 8"),
    "split": ("split", [ints(0), x(5, 2)], {}, "does not divide into 2 parts"),
    "range": ("range", [ints(0), ints(4), ints(-1)], {}, "do not lead"),
    "axis": ("arg_max", [x(5, 2), ints(2)], {}, "axis 2 is outside"),
    "rank": ("conv_2d", [x(5, 2), x(5, 9, 9, 3), None], WINDOW, "not of rank 4"),
    "channels": ("depthwise_conv_2d", [x(1, 9, 9, 3), x(1, 2, 2, 4), None], WINDOW, "not a multiple of the 3"),
    "filters": ("depthwise_conv_2d", [x(1, 9, 9, 3), x(2, 2, 2, 3), None], WINDOW, "first dim of the filter"),
    "upwards": ("transpose_conv", [ints(1, 4, 4, 5), x(5, 2, 2, 3), x(1, 2, 2, 4)], {}, "channels that: 4 and 3"),
    "3d": ("conv_3d", [x(1, 4, 4, 4, 2), x(1, 1, 1, 3, 5)], {}, "channels that: 2 and 3 differ"),
    "3d upwards": (
        "conv_3d_transpose",
        [ints(1, 4, 4, 4, 5), x(1, 1, 1, 5, 2), x(1, 4, 4, 4, 3)],
        {},
        "channels that: 3 and 2 differ",
    ),
    "axis of a scalar": ("reverse_v2", [x(), ints(0)], {}, "axis 0 is outside a rank of 0"),
    "axes apart": ("reverse_v2", [x(2, 3, 4), ints(2, 0)], {}, "axes [0, 2] do not follow one another"),
    "an axis twice": ("reverse_v2", [x(2, 3), ints(0, 0)], {}, "axes [0, 0] do not follow one another"),
    "second result": ("fully_connected", [x(2, 3), x(4, 3)], {}, "it has 2 results, where 1 are expected"),
    "steps of segments": ("segment_sum", [x(4, 5), ints(0, 0, 2, 2)], {}, "does not go up from 0 in steps of 1"),
    "rows of segments": ("segment_sum", [x(4, 5), ints(0, 0, 1)], {}, "rows of the input: 3 and 4 differ"),
    "places": ("sparse_to_dense", [ints(0, 2), ints(5), x(3), x()], {}, "values and their places: 3 and 2 differ"),
}


_SLICE = dict(zip(("start_indices", "limit_indices", "strides"), ([1], [4], [1]), strict=True))
_BLOCKS = {
    "offset_dims": [1],
    "collapsed_slice_dims": [0],
    "slice_sizes": [1, 4],
    "index_vector_dim": 1,
    "start_index_map": [0],
}
_PADS = {"edge_padding_low": [0], "edge_padding_high": [0], "interior_padding": [0]}
_CONVOLUTION = {
    "input_batch_dimension": 0,
    "input_feature_dimension": 3,
    "input_spatial_dimensions": [1, 2],
    "kernel_input_feature_dimension": 2,
    "kernel_output_feature_dimension": 3,
    "kernel_spatial_dimensions": [0, 1],
    "output_batch_dimension": 0,
    "output_feature_dimension": 3,
    "output_spatial_dimensions": [1, 2],
}
HLO: dict[str, tuple[list[Value | None], dict[str, Any], Shape, dict[str, dict[str, Any]]]] = {
    "slice": (
        [x(9)],
        _SLICE,
        (3,),
        {
            "strides [0]": {"strides": [0]},
            "beyond": {"limit_indices": [10]},
            "before": {"start_indices": [-1]},
            "backwards": {"start_indices": [5]},
            "of int64": {"start_indices": [-(1 << 40)]},
        },
    ),
    "gather": (
        [x(5, 6), argument((3, 1), i64)],
        _BLOCKS,
        (3, 4),
        {
            "one dim twice": {"collapsed_slice_dims": [0, 0]},
            "one place twice": {"offset_dims": [1, 1], "collapsed_slice_dims": []},
            "too long": {"slice_sizes": [1, 7]},
            "no such dim": {"index_vector_dim": 3},
        },
    ),
    "pad": (
        [x(9), x()],
        _PADS,
        (9,),
        {"negative": {"interior_padding": [-1]}, "too long": {"edge_padding_low": [(1 << 31) - 1]}},
    ),
    "dynamic_slice": (
        [x(9), argument((), i32)],
        {"slice_sizes": [4]},
        (4,),
        {"too long": {"slice_sizes": [10]}, "two dims": {"slice_sizes": [4, 4]}},
    ),
    "reduce_window": (
        [x(9), x()],
        {"window_dimensions": [2], "body_subgraph_index": 1},
        (8,),
        {
            "window of 0": {"window_dimensions": [0]},
            "dilation of 0": {"base_dilations": [0]},
            "stride of int64": {"window_strides": [1 << 40]},
            "one side": {"padding": [1]},
        },
    ),
    "dot_general": (
        [x(4, 5), x(5, 6)],
        {"lhs_contracting_dimensions": [1], "rhs_contracting_dimensions": [0]},
        (4, 6),
        {
            "one dim twice": {"lhs_contracting_dimensions": [1, 1], "rhs_contracting_dimensions": [0, 0]},
            "negative": {"lhs_contracting_dimensions": [-1]},
        },
    ),
    "convolution": (
        [x(2, 5, 5, 2), x(3, 3, 2, 4)],
        _CONVOLUTION,
        (2, 3, 3, 4),
        {
            "stride of 0": {"window_strides": [0, 1]},
            "dilation of int64": {"lhs_dilation": [1 << 40, 1]},
            "one dim twice": {"input_spatial_dimensions": [1, 1]},
            "three dims": {"kernel_spatial_dimensions": [0, 1, 2]},
            "negative": {"input_batch_dimension": -1},
            "groups": {"feature_group_count": 2},
            "groups of batches": {"batch_group_count": 3},
            "no groups": {"feature_group_count": -1},
        },
    ),
}


@pytest.mark.parametrize("name", HLO)
def test_options_of_stablehlo_fit_each_other(name: str) -> None:
    """A kernel or a rule indexes and reshapes by each of these numbers."""
    operands, attributes, shape, wrong = HLO[name]
    assert found(f"tfl.stablehlo_{name}", operands, attributes) == [shape]
    for case, changed in wrong.items():
        op = Op(f"tfl.stablehlo_{name}", list(operands), [Value(TensorType(None, f32))], {**attributes, **changed})
        inference = Inference(Module([Function("main", [v for v in operands if v], op.results, [op])]), {})
        assert op in inference.misfits, case


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_interpreter_refuses(case: str) -> None:
    name, operands, attributes, reason = REFUSED[case]
    results = [Value(TensorType(None, f32)) for _ in range(2 if name in ("split", "fully_connected") else 1)]
    op = Op(f"tfl.{name}", list(operands), results, attributes)
    inference = Inference(Module([Function("main", [v for v in operands if v], results, [op])]), {})
    assert reason in inference.reasons[op]
    assert all(inference.shapes[v] is None for v in results)


STRIDED = [
    ((4, 5, 6), ([1, 0, 2], [4, 0, 0], [2, 1, 1]), {"end_mask": 0b110, "begin_mask": 0b010}),
    ((4, 5, 6), ([0, -1], [0, -6], [1, -2]), {"begin_mask": 0b01, "end_mask": 0b01}),
    ((4, 5, 6), ([1, 0, -1], [0, 0, 0], [1, 1, 1]), {"ellipsis_mask": 0b010, "shrink_axis_mask": 0b101}),
    ((4, 5), ([0, 0, 1], [0, 0, 3], [1, 1, 1]), {"new_axis_mask": 0b001, "ellipsis_mask": 0b010}),
    ((4, 5), ([1, 2], [2, 3], [1, 1]), {"offset": True}),
    ((4, 5), ([9, 3], [12, 1], [1, 1]), {}),
]


@pytest.mark.parametrize(("shape", "columns", "options"), STRIDED)
def test_strided_slice_as_the_interpreter(shape: tuple[int, ...], columns: Any, options: dict[str, Any]) -> None:
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)
    attributes = {**{f"{k}_mask": 0 for k in masks}, "offset": False, **options}
    value, operands = argument(shape, f32), [ints(*column) for column in columns]
    dims = found("tfl.strided_slice", [value, *operands], attributes)[0]
    assert dims is not None
    model = one_op("tfl.strided_slice", [value, *operands], [argument(dims, f32, "y")], attributes, 4)
    (out,) = interpret(model, [[np.zeros(shape, np.float32)]])[0]
    assert out.shape == dims


def test_unary_operators_keep_strings() -> None:
    text = SCALARS["!tfl.string"]
    assert found("tfl.reverse_v2", [argument((None, 3), text), ints(0)], {}) == [(None, 3)]


def test_tables() -> None:
    """As HashtablePrepare, HashtableFindPrepare and HashtableSizePrepare in tflite/kernels allocate them."""
    table, keys = argument((1,), i32, "table"), argument((2, None, 3), i64, "keys")
    assert found("tfl.hashtable", [], {}) == [(1,)]
    assert found("tfl.hashtable_find", [table, keys, const(np.zeros(1), f32)], {}) == [(2, None, 3)]
    assert found("tfl.hashtable_size", [table], {}) == [(1,)]
    assert found("tfl.hashtable_import", [table, keys, argument((2, None, 3), f32, "values")], {}, 0) == []
