"""Elementwise operators as expressions of C, at one point of a loop.

Integers are int32_t, those of 64 bits int64_t, truth values 0 and 1, floats float. Sums, differences and products wrap
by way of unsigned integers. What is called a point says how operands are indexed there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from tflq.analysis.known import Ranges
from tflq.dialects.tosa import elementwise as ew
from tflq.dialects.tosa import movement as move
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.names import c_type, count, dims_of, index_of, literal, plus
from tflq.formats.c.tables import function_of, thresholds_of
from tflq.formats.c.unit import Unit
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i1, i32, i64


class Point(NamedTuple):
    """A point of a loop over `dims`: the index of an element, the channel, and whether i0, i1, ... are all indices."""

    dims: tuple[int, ...]
    flat: str
    channel: str | None = None
    axes: bool = False


class NeedsMoreError(Exception):
    """The point does not say an index that an operand needs."""


_OF_MATH: Final[tuple[type[Op], ...]] = (ew.Cos, ew.Erf, ew.Exp, ew.Log, ew.Sin, ew.Tanh)
_PATTERNS: Final[dict[type[Op], str | tuple[str, str, str]]] = {
    ew.Add: ("add32({}, {})", "{} + {}", "{} + {}"),
    ew.Sub: ("sub32({}, {})", "{} - {}", "{} - {}"),
    ew.Mul: ("mul32({}, {})", "{} * {}", "{} * {}"),
    ew.Maximum: ("max32({}, {})", "max64({}, {})", "maxf32({}, {})"),
    ew.Minimum: ("min32({}, {})", "min64({}, {})", "minf32({}, {})"),
    ew.Abs: ("abs32({})", "", "{0} < 0.0f ? -{0} : {0} + 0.0f"),
    ew.IntDiv: "div32({}, {})",
    ew.Pow: "(float)pow({}, {})",
    **dict.fromkeys((ew.BitwiseAnd, ew.LogicalAnd), "{} & {}"),
    **dict.fromkeys((ew.BitwiseOr, ew.LogicalOr), "{} | {}"),
    **dict.fromkeys((ew.BitwiseXor, ew.LogicalXor), "{} ^ {}"),
    ew.BitwiseNot: "~{}",
    ew.LogicalNot: "!{}",
    ew.LogicalLeftShift: "shl32({}, {})",
    ew.LogicalRightShift: "shr32({}, {})",
    ew.ArithmeticRightShift: "{} >> {}",
    ew.Clz: "clz32({})",
    ew.Equal: "{} == {}",
    ew.Greater: "{} > {}",
    ew.Select: "{} ? {} : {}",
    ew.Ceil: "ceilf32({})",
    ew.Floor: "floorf32({})",
    **{kind: f"(float){kind.__name__.lower()}((double){{}})" for kind in _OF_MATH},
    ew.Rsqrt: "(float)(1.0 / sqrt((double){}))",
    ew.Reciprocal: "1.0f / {}",
    ew.Sigmoid: "sigmoid({})",
}
"""By operator: the expression, or those of int32, of int64, and of floats."""
_GROUP: Final = 8
"""Channels in a row with the same number from which it is stored once."""


def declared_type(value: Value) -> str:
    """The type of a variable that holds an element of a tensor."""
    storage = value.type.storage
    return "float" if storage == f32 else "int64_t" if storage == i64 else "int32_t"


class Expressions:
    """The statements of one function's loops. `leaves`: the tensors that it reads, and its parameters p0, p1, ..."""

    def __init__(self, unit: Unit, fusion: Fusion, ranges: Ranges) -> None:
        self.unit = unit
        self.fusion = fusion
        self.ranges = ranges
        self.leaves: dict[Value, str] = {}
        self.ends: dict[Value, tuple[np.ndarray, np.ndarray]] = {}
        """The least and the greatest of sums that a kernel knows better than `ranges`, of each channel or of all."""
        self._at = Point((), "0")
        self._known: dict[Value, str] = {}
        self._lines: list[str] = []

    def leaf(self, value: Value) -> str:
        """The parameter that points to a tensor."""
        return self.leaves.setdefault(value, f"p{len(self.leaves)}")

    def stored(self, point: Point, root: Value, known: dict[Value, str] | None = None) -> tuple[list[str], str]:
        """Statements, and the expression of a root after them. known: values that the loop has computed."""
        self._at, self._known, self._lines = point, dict(known or {}), []
        if root in self._known:
            return self._lines, self._known[root]
        assert root.producer is not None
        return self._lines, self._compute(root.producer)

    def operand(self, point: Point, value: Value) -> tuple[list[str], str]:
        """Statements, and the expression of a tensor that is read."""
        self._at, self._known, self._lines = point, {}, []
        return self._lines, self._read(value)

    def _read(self, value: Value) -> str:
        """The expression of an operand."""
        root = self.fusion.root(value)
        if root in self._known:
            return self._known[root]
        if root.is_constant:
            array = root.array.reshape(-1)
            first = array[0].item() if array.size else 0  # no loop reads a constant without elements
            return literal(first) if (array == first).all() else f"{self._entries(root)}[{self._index(value)}]"
        if root not in self.fusion.inside or root in self.fusion.raw:
            return f"{self.leaf(root)}[{self._index(value)}]"
        assert root.producer is not None
        text = self._compute(root.producer)
        name = f"t{len(self._known)}"
        self._lines.append(f"const {declared_type(root)} {name} = {text};")
        self._known[root] = name
        return name

    def _entries(self, value: Value) -> str:
        """The name of a constant, whose elements have the type of expressions or one that C widens to it."""
        storage = value.type.storage
        return (self.unit.constant if storage == i64 else self.unit.numbers)(value.array, storage)

    def _index(self, value: Value) -> str:
        dims, size, there = dims_of(value), count(value), self._at.dims
        if size == math.prod(there):
            return self._at.flat
        if size == 1:
            return "0"
        if dims[-1] == size == there[-1] and self._at.channel is not None:
            return self._at.channel
        if not self._at.axes:
            raise NeedsMoreError
        strides = np.broadcast_to(np.empty(dims[-len(there) :], np.int8), there).strides
        return index_of(0 if dim == 1 else step for dim, step in zip(there, strides, strict=True))

    def _channel(self) -> str:
        if self._at.channel is None:
            raise NeedsMoreError
        return self._at.channel

    # Operators.

    def _compute(self, op: Op) -> str:
        if (written := _OPERATORS.get(type(op))) is not None:
            return written(self, op)
        operands = [self._read(v) for v in op.present_operands]  # first, since ranges that are known reach further
        pattern, storage = _PATTERNS[type(op)], op.present_operands[0].type.storage
        if isinstance(op, ew.Mul) and op.shift:
            pattern = f"mul_shift({{}}, {{}}, {op.shift})"
        elif isinstance(op, ew.ArithmeticRightShift) and op.round:
            pattern = "sar_round({}, {})"
        elif not isinstance(pattern, str):
            plain = storage == i64 or (storage == i32 and self._fits(op))
            pattern = pattern[2 if storage.is_float else 1 if plain else 0]
        return pattern.format(*operands)

    def _fits(self, op: Op) -> bool:
        """Whether a sum, difference or product is within int32, so that it needs not wrap."""
        if not isinstance(op, (ew.Add, ew.Sub, ew.Mul)):
            return False
        left, right = self._range(op.input1), self._range(op.input2)
        compute = operator.add if isinstance(op, ew.Add) else operator.sub if isinstance(op, ew.Sub) else operator.mul
        ends = [compute(a, b) for a in left for b in right]
        return i32.minimum <= min(ends) and max(ends) <= i32.maximum

    def _range(self, value: Value) -> tuple[int, int]:
        root = self.fusion.root(value)
        if root not in self.ends:
            return self.ranges.of(root)
        low, high = self._ends(root)
        return int(low.min()), int(high.max())

    def _ends(self, value: Value) -> np.ndarray:
        """The least and the greatest element of each channel, or of all: int64 [2, C or 1]."""
        root = self.fusion.root(value)
        low, high = self.ranges.of(root)
        if root not in self.ends:
            return np.asarray([[low], [high]])
        least, most = self.ends[root]
        return np.stack([np.maximum(least, np.int64(low)), np.minimum(most, np.int64(high))])

    def _lookup(self, op: move.Gather) -> str:
        """An entry of a constant row. An index that may be outside takes the nearest entry."""
        index, size = self._read(op.indices), count(op.values)
        low, high = self._range(op.indices)
        if low < 0 or high >= size:
            index = f"clamp32({index}, 0, {size - 1})"
        if pattern := function_of(op.values):
            return pattern.format(f"{index} - 32768")
        return f"{self._entries(op.values)}[{index}]"

    def _reached(self, op: ew.GreaterEqual) -> str:
        """A comparison; one with an entry of a large table of thresholds compares a quotient."""
        entry = self.fusion.root(op.input2).producer
        if (
            isinstance(entry, move.Gather)
            and entry.result in self.fusion.inside
            and (known := thresholds_of(entry.values))
        ):
            x, index = self._read(op.input1), self._read(entry.indices)
            return f"reaches({x}, {literal(known[0])}, {plus(index, known[1])})"
        return f"{self._read(op.input1)} >= {self._read(op.input2)}"

    def _table(self, op: move.Table) -> str:
        x, least = self._read(op.input), op.input.type.storage.minimum
        entries = self.unit.constant(op.table.array, op.table.type.storage)
        if op.input.type.storage.bits == 16:
            return f"interpolated({entries}, {x})"
        return f"{entries}[{plus(x, -least)}]"

    def _clamped(self, op: ew.Clamp) -> str:
        x, storage = self._read(op.input), op.input.type.storage
        low, high = (literal(float(v) if storage.is_float else int(v)) for v in (op.min_val, op.max_val))
        if storage == i64:
            return f"min64(max64({x}, {low}), {high})"
        return f"clamp{'f32' if storage.is_float else '32'}({x}, {low}, {high})"

    def _negated(self, op: ew.Negate) -> str:
        x, storage = self._read(op.input1), op.result.type.storage
        if storage.is_float:
            return f"-{x}"
        low, high = literal(storage.minimum), literal(storage.maximum)
        return f"clamp64({op.input1_zp + op.output_zp} - (int64_t){x}, {low}, {high})"

    def _cast(self, op: move.Cast) -> str:
        x, source, target = self._read(op.input), op.input.type.storage, op.result.type.storage
        if target.is_float:
            return x if source.is_float else f"(float){x}"
        if target == i1:
            return f"{x} != 0"
        if source.is_float:
            low, high = literal(target.minimum), literal(target.maximum)
            return f"to_int32({x})" if target == i32 else f"clamp32(to_int32({x}), {low}, {high})"
        least, most = self._range(op.input)
        if target.minimum <= least and most <= target.maximum:
            return f"(int32_t){x}" if source == i64 and target != i64 else x
        return f"({c_type(op.result)}){x}"

    def _rescaled(self, op: move.Rescale) -> str:
        """With one multiplier and shift, or with those of a channel."""
        x, storage = self._read(op.input), op.result.type.storage
        x, ends = plus(x, -op.input_zp), self._ends(op.input) - op.input_zp
        reach = max(-int(ends.min()), int(ends.max()))
        scaled = (ends if reach < 1 << 31 else ends.astype(object)) * op.multiplier >> op.shift
        least, most = int(scaled.min()) - 1 + op.output_zp, int(scaled.max()) + 1 + op.output_zp
        safe = reach < (1 << 31) - (1 << 24) and max(-least, most, most - op.output_zp, op.output_zp - least) < 1 << 31
        if safe and op.shift.size == 1 and op.multiplier[0] == 1 << 30 and op.shift[0] <= 30:
            text = f"({x})" if op.input_zp else x
            text = text if op.shift[0] == 30 else f"{text} * {1 << (30 - int(op.shift[0]))}"
        else:
            text = self._scaled(op, x, safe=safe)
        text = plus(text, op.output_zp)
        low, high = literal(storage.minimum), literal(storage.maximum)
        if not safe:
            return f"clamp64({text}, {low}, {high})"
        if storage.minimum <= least:
            return text if most <= storage.maximum else f"min32({text}, {high})"
        return f"max32({text}, {low})" if most <= storage.maximum else f"clamp32({text}, {low}, {high})"

    def _scaled(self, op: move.Rescale, x: str, *, safe: bool) -> str:
        """The product and its rounding."""
        m, s = self._per_channel(op.multiplier), self._per_channel(op.shift)
        two = op.rounding_mode == "DOUBLE_ROUND" and op.scale32 and op.input.type.storage != i64
        if not two or op.shift.max() <= 31:
            return f"scale_one{'' if safe else '64'}({x}, {m}, {s})"
        if not safe:
            return f"scale_two64({x}, {m}, {s})"
        if op.shift.min() > 31:
            return f"scale_two({x}, {m}, {self._per_channel(op.shift - 32)})"
        return f"scale_each({x}, {m}, {s})"

    def _per_channel(self, numbers: np.ndarray) -> str:
        """One number, or that of the channel; shifts are bytes."""
        changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        if not changes.size:
            return literal(int(numbers[0]))
        group = int(np.gcd.reduce([*changes, numbers.size]))  # channels that have the same, behind each other
        if group < _GROUP:
            return f"{self.unit.numbers(numbers, i32)}[{self._channel()}]"
        return f"{self.unit.numbers(numbers[::group], i32)}[{self._channel()} / {group}]"


_OPERATORS: Final[dict[type[Op], Callable[[Expressions, Any], str]]] = {
    ew.Clamp: Expressions._clamped,
    ew.Negate: Expressions._negated,
    ew.GreaterEqual: Expressions._reached,
    move.Cast: Expressions._cast,
    move.Gather: Expressions._lookup,
    move.Rescale: Expressions._rescaled,
    move.Table: Expressions._table,
}
"""Operators whose expression is more than a pattern."""
