"""The operators of a model whose integer form is another under another kernel set."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from tflq.ir.core import Module, Op, Value
from tflq.legalize.deciding import Policy
from tflq.legalize.engine import legalize
from tflq.numerics.kernel_sets import kernel_set


def differing(read: Callable[[], Module], first: str, second: str) -> list[tuple[int, int, str]]:
    """Subgraph, number and name of each operator whose ops differ. read: the model anew, since each legalization uses
    its values."""
    forms = []
    for name in (first, second):
        module = read()
        places = {op: (f, n) for f, function in enumerate(module.functions) for n, op in enumerate(function.ops)}
        _, decisions = legalize(module, Policy(kernel_set=kernel_set(name)))
        forms.append({places[d.op]: (d.op, [_key(op) for op in d.emitted]) for d in decisions if d.op in places})
    pairs = ((place, op, keys, forms[1].get(place)) for place, (op, keys) in forms[0].items())
    rows = [(*place, op.name[4:].upper()) for place, op, keys, other in pairs if other is None or other[1] != keys]
    return sorted(rows)


def _key(op: Op) -> Hashable:
    """A key of an op's computation: its name, attributes and constants."""
    attributes = tuple((name, _hashed(value)) for name, value in sorted(op.attributes.items()))
    return op.name, attributes, tuple(map(_constant, op.operands))


def _constant(value: Value | None) -> Hashable:
    return value.array.tobytes() if value is not None and value.is_constant and value.type.storage.numpy else None


def _hashed(value: object) -> Hashable:
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)
