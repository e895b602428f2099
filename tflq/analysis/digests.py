"""A hash of what produces each value of a function: equal where a value is computed in the same way from the same
inputs and constants, whatever else the model has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tflq.ir.core import Buffer, Function, Op, Value
from tflq.ir.print_types import type_text

_BYTES = 16


def digests(function: Function) -> dict[Value, str]:
    """The digest of each value of a function, as hexadecimal digits. Inputs are told apart by place, and by type;
    constants by what they hold; names do not count."""
    known = {value: _hash("input", place, type_text(value.type)) for place, value in enumerate(function.inputs)}
    for op in function.ops:
        known |= zip(op.results, _of_results(op, known), strict=True)
    return known


def _of_results(op: Op, known: dict[Value, str]) -> list[str]:
    for value in op.operands:
        if value is not None and value not in known:
            known[value] = _hash("constant", type_text(value.type), _plain(value.buffer))
    operands = [known[value] if value is not None else "" for value in op.operands]
    inside = [digests(Function(None, b.arguments, [], b.ops)) for region in op.regions for b in region.blocks]
    nested = [list(found.values()) for found in inside]
    attributes = sorted((key, _plain(value)) for key, value in op.attributes.items())
    return [
        _hash(op.name, attributes, operands, nested, place, type_text(v.type)) for place, v in enumerate(op.results)
    ]


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=_BYTES).hexdigest()


def _plain(value: Any) -> object:
    """What an attribute or a buffer is hashed by: long data by a hash of its own."""
    if isinstance(value, Buffer):
        return _plain(value.data)
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value)
        return value.dtype.str, value.shape, hashlib.blake2b(data.view(np.uint8).data if data.size else b"").hexdigest()
    if isinstance(value, Mapping):
        return sorted((str(key), _plain(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)
