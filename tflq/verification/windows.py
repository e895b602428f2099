"""How far the windows of a model reach, as the `tflite` package reads its file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import tflite

from tflq.verification.model_file import Graph

__all__ = ["largest_window"]

_FILTERS: Final = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "TRANSPOSE_CONV": "",
}
"""Operators whose second operand is a filter, and the options that say how it is dilated."""
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")


def largest_window(graph: Graph) -> int:
    """The largest extent of a window that the operators of a graph slide over their operands."""
    return max((extent for i in range(len(graph.operators)) for extent in _extents(graph, i)), default=1)


def _extents(graph: Graph, index: int) -> Iterator[int]:
    op = graph.operators[index]
    if op.opcode in _POOLS:
        options = _options(graph, index, "Pool2DOptions")
        yield from (options.FilterHeight(), options.FilterWidth()) if options else ()
    elif op.opcode in _FILTERS and len(op.inputs) > 1:
        name, shape = _FILTERS[op.opcode], graph.tensor(op.inputs[1]).shape
        options = _options(graph, index, name) if name else None
        dilations = (options.DilationHFactor(), options.DilationWFactor()) if options else (1, 1)
        window = shape[:3] if op.opcode == "CONV_3D" else shape[1:3]
        yield from ((extent - 1) * max(dilations) + 1 for extent in window)


def _options(graph: Graph, index: int, name: str) -> Any:
    """The options of an operator; None if it states none."""
    found = graph.table.Operators(index).BuiltinOptions()
    if found is None:
        return None
    options = getattr(tflite, name)()
    options.Init(found.Bytes, found.Pos)
    return options
