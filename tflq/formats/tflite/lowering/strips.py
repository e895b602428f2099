"""Wide intermediate results in strips of rows: an operator's result is computed some rows at a time.

A convolution's windows, its sums in int32 and what requantizes them take several times the memory of the 8-bit tensors
around it. A cone of elementwise ops over a convolution, a resize or nothing, from 8-bit tensors to a tensor that others
read, is done for one strip of rows after the other, from the rows of the input that it needs, and the strips are put
together. What the strips compute is the same: a convolution keeps of its padding what lies beyond the image, a resize
begins at another offset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Final, TypeAlias

import numpy as np

from tflq.base import sized
from tflq.dialects.declare import trait_of
from tflq.dialects.forms import ModuleForm
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.state import state_version
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.movement import Concat, Resize
from tflq.dialects.traits import Elementwise, Tabulable
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType
from tflq.transforms.pass_manager import Pass, PassResult

_Windowed: TypeAlias = Conv2D | DepthwiseConv2D | Resize
_ROWS: Final = -3
"""The dim of rows, from the last: NHWC, and what broadcasts to it."""
_MOST: Final = 32
"""Strips of one result at most: each takes operators of its own."""
_DEPTHWISE, _ELEMENTWISE = 24, 12
"""About how many bytes a depthwise convolution, and any other arithmetic, takes for each element."""


class _Rows:
    """Rows of a tensor, from one up to another."""

    __slots__ = ("begin", "end")

    def __init__(self, begin: int, end: int) -> None:
        self.begin: Final = begin
        self.end: Final = end


class _Cone:
    """The ops that compute `root`, in order, and the tensors that they read."""

    def __init__(self, root: Value, ops: list[Op], sources: list[Value]) -> None:
        self.root = root
        self.ops = ops
        self.sources = sources

    @property
    def height(self) -> int:
        return self.root.type.dims[_ROWS] or 0

    @property
    def around(self) -> int:
        """Bytes of what is read and made."""
        return _bytes(self.root) + sum(_bytes(value) for value in self.sources)


class SplitRows(Pass):
    """Results with large intermediates are computed in strips of rows. `share`: how much memory each may take, as a
    multiple of what the largest operator reads and makes; `least`: bytes of intermediates that are always allowed.
    `whole`: only what is resized in integers, since the rest has kernels of floats, which take images as they are."""

    name: ClassVar[str] = "split-rows"
    takes: ClassVar[ModuleForm] = "integer"

    def __init__(self, share: float = 2.0, least: int = 1 << 15, whole: bool = False) -> None:
        self.share: Final = share
        self.least: Final = least
        self.whole: Final = whole

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: _Strips(function, self).run())


class _Strips:
    """One function."""

    def __init__(self, function: Function, options: SplitRows) -> None:
        self._function = function
        self._options = options
        self._users = function.users()
        self._outputs = set(function.outputs)
        self._place = function.place_of()
        self._windowed = {op for op in function.ops if _is_windowed(op)}
        self._inner = self._windowed.union(filter(_is_elementwise, function.ops))

    def run(self) -> bool:
        cones = self._cones()
        largest = max((cone.around for cone in cones), default=0)
        replacements: dict[Op, list[Op]] = {}
        for cone in cones:
            count = self._count(cone, largest)
            if count > 1:
                replacements.update((op, []) for op in cone.ops)
                replacements[cone.ops[-1]] = list(_striped(cone, count))
        if replacements:
            self._function.ops = [new for op in self._function.ops for new in replacements.get(op, [op])]
        return bool(replacements)

    def _cones(self) -> list[_Cone]:
        """All cones, the last one first; no op is in two."""
        used: set[Op] = set()
        cones = []
        for op in reversed(self._function.ops):
            if op in self._inner and op not in used:
                cone = self._cone(op)
                if cone is not None:
                    cones.append(cone)
                    used.update(cone.ops)
        return cones

    def _cone(self, root: Op) -> _Cone | None:
        """The ops that nothing but the root's result needs; None if its shape is not known or has no rows."""
        shape = root.result.type.shape
        if shape is None or len(shape) != 4 or None in shape[1:] or (shape[_ROWS] or 0) < 2:
            return None
        inside, sources, pending = {root}, dict[Value, None](), [root]
        while pending:
            op = pending.pop()
            for value in _read(op):
                producer = value.producer
                if producer in inside:
                    continue
                if producer is not None and op not in self._windowed and self._is_inner(value, inside, shape):
                    inside.add(producer)
                    pending.append(producer)
                elif not value.is_constant:
                    sources[value] = None
        ops = sorted(inside, key=self._place)
        return _Cone(root.result, ops, [v for v in sources if v.producer not in inside])

    def _is_inner(self, value: Value, inside: set[Op], shape: Sequence[int | None]) -> bool:
        """Whether a value is only on the way to the root, and has its rows."""
        if value.name or value in self._outputs or value.type.shape is None or len(value.type.shape) != 4:
            return False
        producer = value.producer
        assert producer is not None
        if producer not in self._inner or len(producer.results) != 1:
            return False
        return value.type.shape[1:3] == tuple(shape[1:3]) and inside.issuperset(self._users.get(value, ()))

    def _count(self, cone: _Cone, largest: int) -> int:
        """In how many strips a result is computed; 1: whole."""
        if self._options.whole and not any(map(_is_resized_in_integers, cone.ops)):
            return 1
        rows = [value.type.dims[_ROWS] or 0 for op in cone.ops if op in self._windowed for value in _read(op)]
        if max(cone.height, *rows, 0) > sized.MOST:
            return 1  # a strip's rows are named by a constant
        needed = sum(_intermediate(op) for op in cone.ops if op in self._windowed)
        if len(cone.ops) > 1:
            needed += _ELEMENTWISE * cone.root.type.size
        joined = _bytes(cone.root)  # the strips are there until they are put together
        room = max(self._options.share * largest - cone.around - joined, largest / 8, self._options.least)
        if needed <= room:
            return 1
        weights = sum(_bytes(op.weight) for op in cone.ops if isinstance(op, Conv2D))
        most = 1 + largest // 16 // weights if weights else _MOST  # the kernel keeps a copy of them for each strip
        return max(1, min(math.ceil(needed / room), most, _MOST, cone.height))


def _is_windowed(op: Op) -> bool:
    if isinstance(op, Resize):
        return op.mode == "BILINEAR" and op.input.type.storage.is_integer and _has_known_rows(op.input)
    if not isinstance(op, (Conv2D, DepthwiseConv2D)):
        return False
    extent = (_kernel_height(op) - 1) * op.dilation[0] + 1
    meets_image = max(op.pad[:2]) < extent  # each window meets the image
    return meets_image and op.input.type.storage.is_integer and _has_known_rows(op.input)


def _is_resized_in_integers(op: Op) -> bool:
    if not isinstance(op, Resize):
        return False
    from tflq.numerics.resize import float_kernel, steps_of

    sizes = (v.type.dims[1:3] for v in (op.input, op.output))
    return float_kernel(steps_of(op.scale, op.offset), *sizes) is None


def _kernel_height(op: Conv2D | DepthwiseConv2D) -> int:
    return op.weight.type.dims[1 if isinstance(op, Conv2D) else 0] or 1


def _has_known_rows(value: Value) -> bool:
    shape = value.type.shape
    return shape is not None and len(shape) == 4 and shape[_ROWS] is not None


def _is_elementwise(op: Op) -> bool:
    return len(op.results) == 1 and (trait_of(op, Elementwise) is not None or trait_of(op, Tabulable) is not None)


def _read(op: Op) -> Iterator[Value]:
    """The operands that have rows; a windowed op has only its image."""
    if isinstance(op, (Conv2D, DepthwiseConv2D, Resize)):
        yield op.input
    else:
        yield from op.present_operands


def _bytes(value: Value) -> int:
    return value.type.size * max(8, value.type.storage.bits) // 8


def _intermediate(op: Op) -> int:
    """About how many bytes a windowed op takes in addition to its image and the result of its cone."""
    elements = op.result.type.size
    if isinstance(op, DepthwiseConv2D):
        return _DEPTHWISE * elements
    if not isinstance(op, Conv2D):
        return _ELEMENTWISE * elements
    outputs, height, width, inputs = (d or 1 for d in op.weight.type.dims)
    windows = 0 if (height, width) == (1, 1) and set(op.stride) == {1} else 2 * height * width * inputs
    return elements // outputs * windows + 4 * elements


def _striped(cone: _Cone, count: int) -> Iterator[Op]:
    """The ops of all strips, and the one that puts them together."""
    bounds = [cone.height * i // count for i in range(count + 1)]
    strips: list[Value | None] = []
    for begin, end in pairwise(bounds):
        values: dict[Value, Value] = {}
        for op in cone.ops:
            yield from _of_rows(op, _Rows(begin, end), cone, values)
        strips.append(values[cone.root])
    last = cone.ops[-1]
    yield Op(Concat.op_name, strips, [cone.root], {"axis": 1}, last.location)


def _of_rows(op: Op, rows: _Rows, cone: _Cone, values: dict[Value, Value]) -> Iterator[Op]:
    """An op for some rows of its result; `values` has what its operands are there."""
    attributes: Mapping[str, object] = op.attributes
    operands = list(op.operands)
    if isinstance(op, (Conv2D, DepthwiseConv2D, Resize)):
        needed, attributes = _window(op, rows)
        piece, cuts = _cut(op.input, needed, op)
        yield from cuts
        operands = [piece if v is op.input else v for v in operands]
    else:
        for at, value in enumerate(operands):
            if value is None:
                continue
            if value not in values and _has_rows(value, cone.height):
                values[value], cuts = _cut(value, rows, op)
                yield from cuts
            operands[at] = values.get(value, value)
    values[op.result] = Value(_with_rows(op.result.type, rows))
    yield Op(op.name, operands, [values[op.result]], dict(attributes), op.location, info=op.info)


def _has_rows(value: Value, height: int) -> bool:
    """Whether a tensor differs from row to row, rather than being broadcast to all of them."""
    shape = value.type.dims
    return len(shape) >= -_ROWS and shape[_ROWS] == height


def _with_rows(type: TensorType, rows: _Rows) -> TensorType:
    shape = list(type.shape or ())
    shape[_ROWS] = rows.end - rows.begin
    return TensorType(tuple(shape), type.element)


def _cut(value: Value, rows: _Rows, op: Op) -> tuple[Value, list[Op]]:
    """Rows of a tensor, by GATHER, which leaves the batch open."""
    shape = value.type.dims
    if (rows.begin, rows.end) == (0, shape[_ROWS]):
        return value, []
    axis = len(shape) + _ROWS
    if value.is_constant:
        return constant(np.ascontiguousarray(value.array.take(range(rows.begin, rows.end), axis))), []
    index = constant(sized.arange(rows.begin, rows.end, dtype=np.int32))
    piece = Value(_with_rows(value.type, rows))
    piece.role = "rows"
    gather = Op(Gather.op_name, [value, index], [piece], {"axis": axis, "batch_dims": 0}, op.location)
    state_version(gather)
    return piece, [gather]


def _window(op: _Windowed, rows: _Rows) -> tuple[_Rows, Mapping[str, object]]:
    """The rows of the image that some rows of the result need, and the op's attributes for these."""
    height = op.input.type.dims[_ROWS] or 0
    if isinstance(op, Resize):
        return _resized(op, rows, height)
    top, _, left, right = op.pad
    begin = rows.begin * op.stride[0] - top
    end = (rows.end - 1) * op.stride[0] - top + (_kernel_height(op) - 1) * op.dilation[0] + 1
    needed = _Rows(min(max(begin, 0), height), min(max(end, 0), height))
    pad = (needed.begin - begin, end - needed.end, left, right)
    return needed, {**op.attributes, "pad": pad}


def _resized(op: Resize, rows: _Rows, height: int) -> tuple[_Rows, Mapping[str, object]]:
    from tflq.numerics.resize import steps_of

    steps = steps_of(op.scale, op.offset)[0]
    first, last = (at * steps.d + steps.offset for at in (rows.begin, rows.end - 1))
    needed = _Rows(max(first // steps.n, 0), min(max(last // steps.n, 0) + 2, height))
    offset = first - needed.begin * steps.n
    border = last - (needed.end - 1) * steps.n
    changed = {"offset": (offset, op.offset[1]), "border": (border, op.border[1])}
    return needed, {**op.attributes, **changed}
