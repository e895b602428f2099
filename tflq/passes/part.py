"""A part of a model as a model: some operators of one function.

What they read of others becomes an input, or a constant where its data is given; what others read of them, or nobody
does, is an output. The order of inputs is that of the function's own, then of first use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from tflq.dialects.effects import is_variable
from tflq.ir.core import Buffer, Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops
from tflq.passes.entry import keep

__all__ = ["part", "read_from_outside"]


def part(
    module: Module, index: int, ops: Collection[Op], constants: Mapping[Value, np.ndarray] | None = None
) -> Module:
    """The module reduced, in place, to some operators of function `index`, and to the functions that they run.

    constants: data for values that others give; of their storage dtypes, in the shapes they have when the model runs.

    Signatures and metadata go. Tensors keep their names; inputs and outputs of the same name, or of none, get
    another. The module is not to be used any more.
    """
    function, given = module.functions[index], constants or {}
    kept = [op for op in function.ops if op in ops]
    outside = read_from_outside(function, kept)
    function.outputs = _read_by_others(function, kept)
    for value in outside:
        value.producer = None
        if value in given:
            value.type = type(value.type)(given[value].shape, value.type.element)
            value.buffer = Buffer.of(given[value])
    function.inputs = [value for value in outside if value not in given]
    remove_ops(function, {op for op in function.ops if op not in ops})
    used = set(function.values())
    function.tensors = [value for value in function.tensors if value in used]
    _name(function)
    module.signatures = module.metadata = None
    return keep(module, [index])


def read_from_outside(function: Function, ops: Collection[Op]) -> list[Value]:
    """What the ops read that none of them gives: no constants, no variable tensors."""
    made = {value for op in ops for value in op.results}
    read = {v for op in ops for v in op.operands if v is not None and v not in made}
    ordered = [*function.inputs, *(v for op in ops for v in op.operands if v is not None)]
    known = set(function.inputs)
    return [
        v for v in dict.fromkeys(ordered) if v in read and (v.producer is not None or v in known) and not is_variable(v)
    ]


def _read_by_others(function: Function, ops: Collection[Op]) -> list[Value]:
    """What the ops give that others or the caller read, or nobody."""
    inner = {v for op in ops for v in op.operands if v is not None}
    others = {v for op in function.ops if op not in ops for v in op.operands if v is not None}
    others.update(function.outputs)
    return [v for op in ops for v in op.results if v in others or v not in inner]


def _name(function: Function) -> None:
    """Names inputs and outputs whose name is empty or that of another tensor, too."""
    counts = Counter(v.name for v in function.values())
    for kind, values in (("input", function.inputs), ("output", function.outputs)):
        for number, value in enumerate(values):
            if not value.name or counts[value.name] > 1:
                value.name = f"{value.name or kind}/{number}"
