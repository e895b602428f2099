"""StableHLO operators of TFLite files, also those that combine elements by a subgraph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tflq.coverage.samples.entry import SCALE, Entry, Plain, Shaped, condition, entry, file_of, ints, per_layer
from tflq.dialects.tfl import op_name
from tflq.ir.core import Function, Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i1, i8, i16, ui8

__all__ = ["ENTRIES", "SAMPLES"]

_X = (2, 3)
_UNARY = "abs cbrt convert cosine exponential floor log logistic negate rsqrt tanh".split()
_BINARY = "add and divide maximum minimum multiply or power remainder shift_left subtract".split()
Samples = Iterator[tuple[str, bytes]]


def _longs(*data: int) -> np.ndarray:
    return np.asarray(data, np.int64)


def _start() -> np.ndarray:
    return np.asarray(1, np.int32)


_PADDED: dict[str, Any] = {
    "edge_padding_low": _longs(1, 0),
    "edge_padding_high": _longs(0, 2),
    "interior_padding": _longs(0, 1),
}
_DOT: dict[str, Any] = {
    "lhs_batching_dimensions": _longs(),
    "rhs_batching_dimensions": _longs(),
    "lhs_contracting_dimensions": _longs(1),
    "rhs_contracting_dimensions": _longs(0),
}
_CONVOLUTION: dict[str, Any] = {
    "window_strides": _longs(1, 1),
    "padding": _longs(0, 0, 0, 0),
    "lhs_dilation": _longs(1, 1),
    "rhs_dilation": _longs(1, 1),
    "input_batch_dimension": 0,
    "input_feature_dimension": 3,
    "input_spatial_dimensions": _longs(1, 2),
    "kernel_input_feature_dimension": 2,
    "kernel_output_feature_dimension": 3,
    "kernel_spatial_dimensions": _longs(0, 1),
    "output_batch_dimension": 0,
    "output_feature_dimension": 3,
    "output_spatial_dimensions": _longs(1, 2),
    "feature_group_count": 1,
    "batch_group_count": 1,
}
_GATHERED: dict[str, Any] = {
    "offset_dims": _longs(1),
    "collapsed_slice_dims": _longs(0),
    "start_index_map": _longs(0),
    "index_vector_dim": 1,
    "slice_sizes": _longs(1, 3),
}

_ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_UNARY, entry([_X], [_X])),
    **dict.fromkeys(_BINARY, entry([_X, _X], [_X])),
    "broadcast_in_dim": entry([(3,)], [_X], broadcast_dimensions=_longs(1)),
    "clamp": entry([_X, _X, _X], [_X]),
    "compare": entry([_X, _X], [condition(*_X)], comparison_direction="STABLEHLO_COMPARISON_DIRECTION_LT"),
    "concatenate": entry([_X, _X], [(2, 6)], dimension=1),
    "convolution": entry([(1, 4, 4, 2), (2, 2, 2, 3)], [(1, 3, 3, 3)], **_CONVOLUTION),
    "custom_call": entry([_X], [_X], call_target_name="tflq.unknown"),
    "dot_general": entry([_X, (3, 4)], [(2, 4)], **_DOT),
    "dynamic_slice": entry([_X, _start(), _start()], [(1, 2)], slice_sizes=_longs(1, 2)),
    "dynamic_update_slice": entry([_X, (1, 2), _start(), _start()], [_X]),
    "gather": entry([_X, ints([[1], [0]])], [_X], **_GATHERED),
    "iota": entry([], [_X], iota_dimension=1),
    "pad": entry([_X, ()], [(3, 7)], **_PADDED),
    "reshape": entry([_X], [(3, 2)]),
    "select": entry([condition(*_X), _X, _X], [_X]),
    "slice": entry([_X], [(1, 2)], start_indices=_longs(1, 0), limit_indices=_longs(2, 3), strides=_longs(1, 2)),
    "transpose": entry([_X], [(3, 2)], permutation=_longs(1, 0)),
}
ENTRIES: Mapping[str, Entry] = {f"stablehlo_{name}": made for name, made in _ENTRIES.items()}


def _combiner(element: UniformQuantizedType, name: str, result: UniformQuantizedType | ScalarType) -> Function:
    """A subgraph of one operator on two scalars."""
    operands: list[Value | None] = [Value(TensorType((), element), f"{name}{i}") for i in range(2)]
    made = Op(op_name(name), operands, [Value(TensorType((), result), f"{name}_out")], {}, info={"version": 1})
    return Function(name, [v for v in operands if v], made.results, [made])


def _combined(name: str, operands: list[Plain | np.ndarray | Shaped], y: Shaped, options: Mapping[str, Any]) -> Samples:
    """An operator that combines elements by a subgraph: the larger of two; a sort's order."""
    compares = name == "stablehlo_sort"
    for storage in (i8, ui8, i16):
        element = per_layer(storage, SCALE)
        values = [
            constant(slot, name=f"in{i}")
            if isinstance(slot, np.ndarray)
            else Value(TensorType(slot, element), f"in{i}")  # type: ignore[arg-type]
            for i, slot in enumerate(operands)
        ]
        called = _combiner(element, "less" if compares else "maximum", i1 if compares else element)
        yield f"{name} {storage}: ", file_of(name, values, [Value(TensorType(y, element), "out0")], options, [called])


_REDUCED = {"dimensions": _longs(1), "body_subgraph_index": 1}
_WINDOW = {
    "window_dimensions": _longs(2, 2),
    "window_strides": _longs(1, 1),
    "base_dilations": _longs(1, 1),
    "window_dilations": _longs(1, 1),
    "padding": _longs(0, 0, 0, 0),
    "body_subgraph_index": 1,
}
_SCATTERED = {
    "update_window_dims": _longs(1),
    "inserted_window_dims": _longs(0),
    "scatter_dims_to_operand_dims": _longs(0),
    "index_vector_dim": 1,
    "update_computation_subgraph_index": 1,
}
_SORTED = {"dimension": 1, "is_stable": True, "comparator_subgraph_index": 1}
SAMPLES: Mapping[str, Callable[[], Samples]] = {
    "stablehlo_reduce": partial(_combined, "stablehlo_reduce", [_X, ()], (2,), _REDUCED),
    "stablehlo_reduce_window": partial(_combined, "stablehlo_reduce_window", [_X, ()], (1, 2), _WINDOW),
    "stablehlo_scatter": partial(_combined, "stablehlo_scatter", [_X, ints([[1]]), (1, 3)], _X, _SCATTERED),
    "stablehlo_sort": partial(_combined, "stablehlo_sort", [_X], _X, _SORTED),
}
