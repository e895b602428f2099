"""by-rows: a product whose rows are read one by one becomes a product of one row where each is read.

    rescale(conv2d(x)), sliced row by row   →   rescale(conv2d(slice(x))), for each slice

Steps of an LSTM read a row each of what their inputs are multiplied to. By rows, a device needs the memory of one.
Elementwise operators before the product follow, as far as nothing else reads them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar, Final

from tflq.dialects.tosa.convolution import Conv2D
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Cast, Rescale, Reshape, Slice, Table
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType
from tflq.transforms.pass_manager import Pass, PassResult

_ALONG: Final = (Rescale, Cast, Clamp, Table, Reshape)
"""Operators of which a row of the result needs a row of the first operand."""


class ByRows(Pass):
    """Computes rows of products where they are read, if each is read by itself."""

    name: ClassVar[str] = "by-rows"
    runs_on: ClassVar[tuple[type, ...]] = (Slice,)

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, _by_rows)


def _by_rows(function: Function) -> bool:
    users: dict[Value, list[Op]] = defaultdict(list)
    for op in function.ops:
        for value in op.present_operands:
            users[value].append(op)
    returned = set(function.outputs)
    chains: dict[Value, list[Op]] = {}
    for value, readers in users.items():
        if value not in returned and _are_rows(value, readers) and (chain := _chain(value, users, returned)):
            chains[value] = chain
    gone = {op for chain in chains.values() for op in chain}
    ops: list[Op] = []
    for op in function.ops:
        if isinstance(op, Slice) and op.input in chains:
            ops += _row(op, chains[op.input])
        elif op not in gone:
            ops.append(op)
    if chains:
        function.ops = ops
    return bool(chains)


def _axis(value: Value) -> int | None:
    """The dim of rows: the first that is not 1, but the last, of channels. None if there is none, or a dim is open."""
    dims = value.type.shape
    if dims is None or None in dims:
        return None
    return next((at for at, dim in enumerate(dims[:-1]) if dim != 1), None)


def _rows(value: Value) -> int | None:
    axis = _axis(value)
    return None if axis is None else value.type.sizes[axis]


def _are_rows(value: Value, readers: Sequence[Op]) -> bool:
    """Whether operators read each row of a value, and no two the same."""
    axis, starts = _axis(value), set()
    for op in readers:
        if not isinstance(op, Slice) or axis is None:
            return False
        whole = (*value.type.sizes[:axis], 1, *value.type.sizes[axis + 1 :])
        if tuple(op.size) != whole or op.start[axis] in starts:
            return False
        starts.add(op.start[axis])
    return len(starts) == _rows(value)


def _chain(value: Value, users: dict[Value, list[Op]], returned: set[Value]) -> list[Op]:
    """The operators that compute a value row by row, the last first; none if there is no product among them."""
    chain: list[Op] = []
    while (op := value.producer) is not None and isinstance(op, (*_ALONG, Conv2D)):
        source = op.operands[0]
        if source is None or _rows(source) != _rows(value) or (isinstance(op, Conv2D) and not _is_pointwise(op)):
            break
        chain.append(op)
        value = source
        if value.is_constant or value in returned or len(users[value]) > 1:
            break
    return chain if any(isinstance(op, Conv2D) for op in chain) else []


def _is_pointwise(op: Conv2D) -> bool:
    """Whether a convolution is the product of each row, with constant weights."""
    _, height, width, _ = op.weight.type.sizes
    alone = op.input.type.sizes[1:3] == (1, 1) and height == width == 1 and not any(op.pad)
    return alone and tuple(op.stride) == (1, 1) and op.weight.is_constant and op.bias.is_constant


def _row(slice: Slice, chain: Sequence[Op]) -> list[Op]:
    """The operators that compute one row. The last has the result of the slice."""
    source = chain[-1].operands[0]
    axis, at = _axis(slice.input), _axis(source) if source is not None else None
    assert source is not None
    assert axis is not None
    assert at is not None
    start = [slice.start[axis] if n == at else 0 for n in range(len(source.type.sizes))]
    row = _one(source)
    attributes = {"start": tuple(start), "size": row.type.sizes}
    ops = [Op(slice.name, [source], [row], attributes, slice.location)]
    for op in reversed(chain):
        result = slice.result if op is chain[0] else _one(op.result)
        ops.append(Op(op.name, [row, *op.operands[1:]], [result], dict(op.attributes), op.location))
        row = result
    return ops


def _one(value: Value) -> Value:
    """A value for one row of another."""
    axis = _axis(value)
    dims = tuple(1 if at == axis else dim for at, dim in enumerate(value.type.sizes))
    return Value(TensorType(dims, value.type.element))
