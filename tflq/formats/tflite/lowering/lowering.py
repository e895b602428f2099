"""Instruction selection: how one op of the integer form becomes TFLite builtins on plain integer tensors.

    @lowering(Add)
    def add(op: Add, k: Tflite) -> Value | Sequence[Value]: ...

`k.value(operand)` is the operand in the form being built; `k.<builtin>(...)` emits kernels. Which builtins are right
on plain integers, and on which types, is `rules/integer.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tflq.analysis.known import Ranges
from tflq.dialects.builder import Emitter, Operand, squeezed
from tflq.dialects.declare import Operator
from tflq.dialects.registry import Registry
from tflq.dialects.tfl.arithmetic import Add, Div, Maximum, Minimum, Mul, Pow, Sub
from tflq.dialects.tfl.casts import Bitcast, Cast
from tflq.dialects.tfl.comparison import BitwiseXor, Equal, Greater, GreaterEqual, RightShift
from tflq.dialects.tfl.convolution import BatchMatMul
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tfl.movement import Concatenation, PadV2, Reshape, Split, StridedSlice, Transpose
from tflq.dialects.tfl.state import state_version
from tflq.formats.options import Mac
from tflq.formats.tflite.lowering.naming import role_of
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, Shape, TensorType, f32, i1, i8, i32, ui8
from tflq.transforms.pass_manager import Searches

if TYPE_CHECKING:
    import numpy.typing as npt

    from tflq.base.caches import Argument, ProofCache
    from tflq.base.results import Arrays
    from tflq.numerics.float_basics import SumRounding
    from tflq.targets.target import WeightType


BROADCAST_DIMS: Final = 4
"""Dims that every elementwise kernel broadcasts."""


def _short(
    kind: type[Operator], element: ScalarType | None = None, **options: Any
) -> Callable[[Emitter, Operand, Operand], Value]:
    """The short name of an elementwise kernel of two operands; its result is of a's element type, or of `element`."""

    def emit(k: Emitter, a: Operand, b: Operand) -> Value:
        return k.emit(kind, k.alike(a, b), element, **options)

    return emit


class KernelBuilder(Emitter):
    """An `Emitter` of TFLite builtins on plain tensors: short names, with options and constant operands filled in."""

    # Arithmetic. Types that each kernel gets right: rules/integer.json.

    def add(self, a: Operand, b: Operand, activation: str = "NONE") -> Value:
        return self.emit(Add, self.alike(a, b), fused_activation_function=activation, pot_scale_int16=False)

    def sub(self, a: Operand, b: Operand, activation: str = "NONE") -> Value:
        return self.emit(Sub, self.alike(a, b), fused_activation_function=activation, pot_scale_int16=False)

    mul = _short(Mul, fused_activation_function="NONE")
    div = _short(Div, fused_activation_function="NONE")  # of integers, truncated
    maximum = _short(Maximum)
    minimum = _short(Minimum)
    pow = _short(Pow)
    right_shift = _short(RightShift)  # arithmetic; the amount is of a's type
    bitwise_xor = _short(BitwiseXor)
    equal = _short(Equal, i1)
    greater = _short(Greater, i1)
    greater_equal = _short(GreaterEqual, i1)

    def row(self, values: npt.ArrayLike, element: ScalarType = i32) -> Value:
        """A constant for each channel; a scalar if it is the same for all."""
        return self.constant(squeezed(np.asarray(values)), element)

    # Conversions.

    def cast(self, x: Value, to: ScalarType) -> Value:
        """CAST; narrowing wraps, float to integer truncates. No operator if x is of the type. int4 is cast from and to
        float32 only."""
        if x.type.element != to and min(x.type.storage.bits, to.bits) < 8 and f32 not in (x.type.element, to):
            x = self.cast(x, f32)
        return x if x.type.element == to else self.emit(Cast, [x], x.type.with_element(to))

    def copy(self, x: Value, type: TensorType | None = None) -> Value:
        """A copy of x in another tensor (`type`: with or without quantization parameters): CAST to the same type,
        which int4 does not have."""
        if x.type.storage.bits < 8:
            return self.emit(Cast, [self.cast(x, f32)], type or x.type.stripped())
        return self.emit(Cast, [x], type or x.type.stripped())

    def bitcast(self, x: Value, to: ScalarType, shape: Shape | None = None) -> Value:
        """BITCAST; between widths the last dim appears or goes (`shape` if it is not x's)."""
        return self.emit(Bitcast, [x], TensorType(x.type.shape if shape is None else shape, to))

    # Data movement.

    def gather(self, x: Value, indices: Value, axis: int = 0) -> Value:
        return self.emit(Gather, [x, indices], axis=axis, batch_dims=0)

    def reshape(self, x: Value, shape: Sequence[int | None]) -> Value:
        """RESHAPE to a shape with at most one open dim (None), which the kernel computes for every size.
        The result's type states the dim where x's shape is known."""
        dims = np.asarray([-1 if d is None else d for d in shape], np.int32)
        if (dims < 0).sum() > 1:
            raise ValueError(f"RESHAPE to {tuple(shape)}: more than one unknown dim")
        type = TensorType(_filled(shape, x.type.shape), x.type.element)
        return self.emit(Reshape, [x, self.constant(dims)], type, new_shape=dims)

    def refold(self, x: Value, shape: tuple[int | None, ...]) -> Value:
        """RESHAPE that leaves the first dim to be inferred, so that the model runs with any batch."""
        folded = self.reshape(x, (None, *shape[1:]))
        folded.type = TensorType(shape, x.type.element)
        return folded

    def in_shape(self, x: Value, shape: tuple[int | None, ...]) -> Value:
        """RESHAPE that leaves the first dim to be inferred, unless another one is open."""
        return self.reshape(x, shape) if not shape or 0 in shape or None in shape[1:] else self.refold(x, shape)

    def transpose(self, x: Value, perms: Sequence[int]) -> Value:
        return self.emit(Transpose, [x, self.constant(perms)])

    def concatenation(self, xs: Sequence[Value], axis: int) -> Value:
        return self.emit(Concatenation, xs, axis=axis, fused_activation_function="NONE")

    def split(self, x: Value, count: int, axis: int) -> list[Value]:
        """SPLIT into equal parts; x itself if it is one."""
        if count == 1:
            return [x]
        shape = list(x.type.dims)
        size = shape[axis]
        shape[axis] = None if size is None else size // count
        types = [TensorType(tuple(shape), x.type.element)] * count
        return self.op(Split, [self.constant(np.asarray(axis)), x], types, {"num_splits": count}).results

    def padv2(self, x: Value, paddings: npt.ArrayLike, value: float) -> Value:
        """PADV2 with a scalar of x's type."""
        return self.emit(PadV2, [x, self.constant(paddings), self.constant(value, x.type.storage)])

    def strided_slice(
        self,
        x: Value,
        begin: Sequence[int],
        end: Sequence[int],
        strides: Sequence[int],
        *,
        begin_mask: int = 0,
        end_mask: int = 0,
        shrink_axis_mask: int = 0,
    ) -> Value:
        """STRIDED_SLICE with constant bounds."""
        return self.emit(
            StridedSlice,
            [x, *map(self.constant, (begin, end, strides))],
            begin_mask=begin_mask,
            end_mask=end_mask,
            ellipsis_mask=0,
            new_axis_mask=0,
            shrink_axis_mask=shrink_axis_mask,
            offset=False,
        )

    def reduce(self, kind: type[Operator], x: Value, axes: Sequence[int], *, keep_dims: bool = True) -> Value:
        """SUM, REDUCE_MAX, REDUCE_MIN ..."""
        return self.emit(kind, [x, self.constant(axes)], keep_dims=keep_dims)

    def batch_matmul(self, a: Value, b: Value, *, adj_y: bool = False, to: ScalarType = i32) -> Value:
        """BATCH_MATMUL: int8 × int8 → int32, exact, or float32."""
        return self.emit(BatchMatMul, [a, b], to, adj_x=False, adj_y=adj_y, asymmetric_quantize_inputs=False)


def widened(k: KernelBuilder, x: Value) -> Value:
    """x in 32 bits at least."""
    return k.cast(x, i32) if x.type.storage.bits < 32 else x


def _filled(shape: Sequence[int | None], source: Shape) -> Shape:
    """The shape with its unknown dim computed, if the size of what is reshaped is known."""
    if source is None or None in source or None not in shape:
        return tuple(shape)
    rest, size = prod(d for d in shape if d is not None), prod(d for d in source if d is not None)
    return tuple(size // rest if d is None and rest else d for d in shape)


# Float twins: float32 tensors with the values of 8-bit ones, less an offset, that one float kernel hands to the next.
#
# With multiply-accumulate in float32, a result that is requantized in float32 is a whole number there already. Its
# reader is often a float kernel, which wants it as float32 and less its zero point. So the result has two forms: the
# twin, and the integers, which are cast from it. A lowering reads the form it needs, and `dce` drops the other: between
# float kernels no cast is left.


class Twin(NamedTuple):
    """A float32 tensor: an integer one less `offset`."""

    value: Value
    offset: int


def integers_of(k: Tflite, twin: Twin, storage: ScalarType) -> Value:
    """The integers of a twin; from here on it is their twin."""
    result = k.cast(as_int32(k, twin), storage)
    k.twins[result] = twin
    return result


def as_int32(k: Tflite, twin: Twin) -> Value:
    """The integers of a twin, in int32."""
    return k.cast(_plus(k, twin.value, twin.offset), i32)


def twin_of(k: Tflite, x: Value) -> Twin | None:
    """The twin of a tensor on plain 8-bit integers: its own, or a constant; None if it has none."""
    if x.is_constant and x.type.element == x.type.storage:
        return Twin(constant(x.array.astype(np.float32)), 0)
    return k.twins.get(x)


def centred(k: Tflite, x: Value, zero_point: int) -> Value:
    """x - zero_point in float32, of 8-bit x: from its twin, if it has one, else cast."""
    twin = twin_of(k, x) or Twin(k.cast(x, f32), 0)
    return _plus(k, twin.value, twin.offset - zero_point)


def moved(k: Tflite, x: Value, emit: Callable[[Value, int], Value]) -> Value:
    """The result of `emit`, of an op that only moves elements, on x and 0, or on x's twin and its offset."""
    twin = k.twins.get(x)
    if twin is None:
        return emit(x, 0)
    return integers_of(k, Twin(emit(*twin), twin.offset), x.type.storage)


def _plus(k: Tflite, x: Value, number: int) -> Value:
    """x + number, whole numbers in float32."""
    if not number:
        return x
    if x.is_constant:
        return constant(x.array + np.float32(number))
    return k.add(x, np.asarray(number))


IMAGE: Final = 4
"""Dims of an image."""
BYTES: Final = (i8, ui8)
JOINED: Final = 10
"""The operands of CONCATENATION that all runtimes take: TFLite Micro's kernels/concatenation.cc, kMaxInputNum."""

T = TypeVar("T", bound=Op)
R = TypeVar("R")


class Tflite(KernelBuilder):
    """A `KernelBuilder` that knows the function being selected: its ops in the integer form (`source`), what its values
    have become, which ops read them; `weights`: the type in which weights of float kernels are stored where it holds
    them; `restricted`: the target says which builtins it has, and `lists` whether it has one as it is."""

    def __init__(
        self,
        function: Function,
        mac: Mac,
        proofs: ProofCache | None = None,
        sums: SumRounding = "separate",
        searches: Searches | None = None,
        *,
        weights: WeightType = "float32",
        lists: Callable[[Op], bool] | None = None,
    ) -> None:
        super().__init__()
        self.mac = mac
        self.sums = sums
        self.weights: Final = weights
        self.restricted = lists is not None
        self.lists: Final = lists or (lambda _: True)
        self._proofs = proofs
        self.searched: Final = Searches(Module([function])) if searches is None else searches
        self.source: Final[Sequence[Op]] = function.ops
        self.fused: set[Op] = set()
        self.twins: Final[dict[Value, Twin]] = {}
        self._start = 0
        self._users = function.users()
        self._outputs = frozenset(function.outputs)
        self._selected: dict[Value, Value] = {}
        self.ranges: Final = Ranges(sums=not self.restricted)  # of integer tensors of `source`
        self._once: dict[Callable[[Tflite], Any], Any] = {}

    def concatenation(self, xs: Sequence[Value], axis: int) -> Value:
        """CONCATENATION, in groups where the target may not take all operands at once."""
        while self.restricted and len(xs) > JOINED:
            groups = [xs[i : i + JOINED] for i in range(0, len(xs), JOINED)]
            xs = [super(Tflite, self).concatenation(g, axis) if len(g) > 1 else g[0] for g in groups]
        return super().concatenation(xs, axis)

    def gather(self, x: Value, indices: Value, axis: int = 0) -> Value:
        """GATHER; where the target says which builtins it has, from a table by an index of one dim: OpenVINO, which
        lays images out otherwise, takes one of four dims in the wrong order."""
        shape = indices.type.dims
        if not self.restricted or len(shape) < IMAGE or len(x.type.dims) != 1 or None in shape[1:]:
            return super().gather(x, indices, axis)
        return self.refold(super().gather(x, self.reshape(indices, (None,)), axis), shape)

    def copy(self, x: Value, type: TensorType | None = None) -> Value:
        """A copy of x in another tensor: by RESHAPE, where the target says which builtins it has."""
        shape = x.type.shape
        if not self.restricted or type is not None or shape is None or shape.count(None) > 1:
            return super().copy(x, type)
        return self.in_shape(x, shape)

    def value(self, operand: Value) -> Value:
        """The lowered value of an operand; arguments and constants stay themselves."""
        return self._selected.get(operand, operand)

    def once(self, compute: Callable[[Tflite], R]) -> R:
        """`compute(self)`, computed once: what is worked out for all ops of `source` together."""
        if compute not in self._once:
            self._once[compute] = compute(self)
        result: R = self._once[compute]
        return result

    def remembered(self, function: Callable[..., Arrays], *arguments: Argument) -> Arrays:
        """`function(*arguments)` of a pure function of `tflq.numerics`, from the cache of proofs if there is one."""
        return function(*arguments) if self._proofs is None else self._proofs(function, *arguments)

    def begin(self) -> None:
        """Starts the lowering of one op: what is emitted from here on is its own."""
        self._start = len(self.ops)

    def end(self, op: Op, results: Sequence[Value]) -> None:
        """Ends it: gives its results and the tensors on the way to them roles, and its kernels versions."""
        role = role_of(op)
        for value in results:
            value.role = value.role or role
        for emitted in self.ops[self._start :]:
            for value in emitted.results:
                if not value.role:
                    value.role = f"{role}/{emitted.name.removeprefix('tfl.')}"
        for old, new in zip(op.results, results, strict=True):
            self.claim(old, new)
        for emitted in self.ops[self._start :]:
            state_version(emitted)

    def claim(self, old: Value, new: Value) -> None:
        """Records the lowered value. A value that has a name or is returned becomes a tensor of its own."""
        twin = self.twins.get(new)
        if self.restricted and old.name and twin is not None and not (twin.value.name or twin.value.is_constant):
            twin.value.name = f"{old.name}/{new.type.storage.dtype.name}{twin.offset:+d}"
        unnamed = self.restricted and new.is_constant and old not in self._outputs
        if (old.name or old in self._outputs) and new is not old and not unnamed:
            is_new = any(new is v for op in self.ops[self._start :] for v in op.results)
            if new.name or not is_new:
                new = self.copy(new)
            new.name = old.name
            if old.type.shape is not None:
                new.type = TensorType(old.type.shape, new.type.element)
        self._selected[old] = new

    def only_user(self, value: Value, kind: type[T]) -> T | None:
        """The only reader of an unnamed value, if it is of a class: a lowering may fuse it with its producer."""
        users = self._users.get(value, ())
        if len(users) != 1 or not isinstance(users[0], kind) or not self.is_inner(value):
            return None
        return users[0]

    def is_inner(self, value: Value) -> bool:
        """Whether nothing but its readers needs a value: it has no name, and is not returned."""
        return not value.name and value not in self._outputs

    def readers(self, value: Value) -> Sequence[Op]:
        """The ops of the integer form that read a value."""
        return self._users.get(value, ())

    def fuse(self, op: Op, result: Value) -> Value:
        """Records that `result` is what `op`, a reader, would have computed, so that it is not selected again."""
        self.fused.add(op)
        result.role = role_of(op)
        self.claim(op.result, result)
        return result


Lowering: TypeAlias = Callable[[Any, Tflite], Value | Sequence[Value]]
lowering: Final[Registry[Lowering]] = Registry("tflq.formats.tflite.lowering")
"""The lowering of each op of the integer form."""
