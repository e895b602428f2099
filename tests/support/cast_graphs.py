"""Random graphs of kernels, ops that move elements, float operators and casts between them; and the least that casts
can cost in one, by trying everything.

The search knows nothing of the solver. It writes what each op reads as a term in which casts stand as far inside as
they can, so that terms are equal where stored integers are. Then it tries each form for each op that moves elements:
reals, or what any sequence of roundings of the graph makes of them, as integers or as reals again. It derives what ops
read by casts from what is there, and keeps the cheapest way that gives each op that computes, and each output, the same
term as before.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from support.harness import argument, const
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, TensorType, UniformQuantizedType, f32, i8, i32

GRIDS: Final = (
    UniformQuantizedType.of(i8, 0.5, -3),
    UniformQuantizedType.of(i8, 0.25, 0),
    UniformQuantizedType.of(i8, 0.0390625, 17),
)
_MOST: Final = 48
"""Elements of a tensor of a random graph."""


class RandomGraph:
    """A function of `count` ops that are no casts; tensors of two dims. `casts`: the dialect of casts, "quant" or
    "tfl"."""

    def __init__(self, seed: int, count: int, casts: str = "quant") -> None:
        self.draw = random.Random(seed)
        self.kinds = (Quantize, Dequantize) if casts == "tfl" else (Qcast, Dcast)
        self.inputs = [argument((2, 3), self.draw.choice((f32, *GRIDS)), f"in{i}") for i in range(2)]
        self.ops: list[Op] = []
        self.values = list(self.inputs)
        for _ in range(count):
            self.draw.choice((self._moved, self._moved, self._moved, self._kernel, self._float))()
            if self.draw.random() < 0.6:
                self._cast(self.draw.choice(self.values[-40:]))
        self.outputs = self._outputs()

    def module(self) -> Module:
        """The graph as a module. Its outputs have no names, so that equal ones can be one value."""
        return Module([Function("main", self.inputs, self.outputs, self.ops)])

    def _outputs(self) -> list[Value]:
        read = {v for op in self.ops for v in op.operands}
        ends = [op.result for op in self.ops if not any(v in read for v in op.results)]
        for value in ends:
            if self.draw.random() < 0.5 and not value.type.quantized:
                ends[ends.index(value)] = self._quantized(value, self.draw.choice(GRIDS))
        return list(dict.fromkeys(ends))

    def _emit(
        self, name: str, operands: Sequence[Value], types: Sequence[TensorType], **attributes: Any
    ) -> list[Value]:
        op = Op(name, list(operands), [Value(t) for t in types], attributes)
        self.ops.append(op)
        self.values += op.results
        return op.results

    def _quantized(self, value: Value, grid: ElementType) -> Value:
        if value.type.quantized:
            return value
        return self._emit(self.kinds[0].op_name, [value], [value.type.with_element(grid)])[0]

    def _real(self, value: Value) -> Value:
        if not value.type.quantized:
            return value
        return self._emit(self.kinds[1].op_name, [value], [value.type.with_element(f32)])[0]

    def _cast(self, value: Value) -> None:
        self._real(value) if value.type.quantized else self._quantized(value, self.draw.choice(GRIDS))

    def _pick(self) -> Value:
        return self.draw.choice(self.values[-6:])

    def _kernel(self) -> None:
        """A quantized operator."""
        x = self._quantized(self._pick(), self.draw.choice(GRIDS))
        other = next(
            (v for v in self.values[-40:] if v.type.quantized and v.type.shape == x.type.shape and v is not x), x
        )
        made = x.type.with_element(self.draw.choice(GRIDS))
        if self.draw.random() < 0.5:
            self._emit("tfl.add", [x, other], [made], fused_activation_function="NONE")
        else:
            self._emit("tfl.relu", [x], [x.type])

    def _float(self) -> None:
        x = self._real(self._pick())
        other = next((v for v in self.values[-40:] if v.type == x.type and v is not x), x)
        if self.draw.random() < 0.5:
            self._emit("tfl.mul", [x, other], [x.type], fused_activation_function="NONE")
        else:
            self._emit(self.draw.choice(("tfl.neg", "tfl.abs")), [x], [x.type])

    def _moved(self) -> None:
        """An op that moves elements, on reals or on integers."""
        x = self._pick()
        rows, columns = (d or 0 for d in x.type.shape or ())
        kind = self.draw.choice(("transpose", "reshape", "slice", "tile", "pad", "concatenation", "padv2", "split"))
        if kind in ("tile", "pad", "padv2", "concatenation") and rows * columns * 3 > _MOST:
            kind = "slice"
        if kind == "slice" and rows > 1:
            begin, size = const(np.array([1, 0]), i32), const(np.array([rows - 1, columns]), i32)
            self._emit("tfl.slice", [x, begin, size], [self._as(x, rows - 1, columns)])
        elif kind == "tile":
            self._emit("tfl.tile", [x, const(np.array([3, 1]), i32)], [self._as(x, rows * 3, columns)])
        elif kind == "pad":
            sides = const(np.array([[1, 0], [0, 1]]), i32)
            self._emit("tfl.pad", [x, sides], [self._as(x, rows + 1, columns + 1)])
        elif kind == "padv2" and not x.type.quantized:
            sides = const(np.array([[1, 0], [0, 0]]), i32)
            around = const(np.array(self.draw.choice((0.5, 0.3, -2.0)), np.float32), f32)
            self._emit("tfl.padv2", [x, sides, around], [self._as(x, rows + 1, columns)])
        elif kind == "concatenation":
            others = [v for v in self.values[-40:] if v.type == x.type]
            self._emit(
                "tfl.concatenation",
                [x, self.draw.choice(others)],
                [self._as(x, rows * 2, columns)],
                axis=0,
                fused_activation_function="NONE",
            )
        elif kind == "split" and rows % 2 == 0:
            parts = [self._as(x, rows // 2, columns)] * 2
            self._emit("tfl.split", [const(np.array(0), i32), x], parts, num_splits=2)
        elif kind == "reshape":
            shape = const(np.array([columns, rows]), i32)
            self._emit("tfl.reshape", [x, shape], [self._as(x, columns, rows)])
        else:
            self._emit("tfl.transpose", [x, const(np.array([1, 0]), i32)], [self._as(x, columns, rows)])

    def _as(self, x: Value, *shape: int) -> TensorType:
        return TensorType(shape, x.type.element)


# The search.

_MOVED: Final = {
    "tfl.transpose": (0,),
    "tfl.reshape": (0,),
    "tfl.slice": (0,),
    "tfl.tile": (0,),
    "tfl.pad": (0,),
    "tfl.padv2": (0, 2),
    "tfl.concatenation": (0, 1),
    "tfl.split": (1,),
}
"""The operands that these move."""
Term = tuple[Any, ...]
Roundings = tuple[tuple["Grid", ...], bool]


@dataclass(eq=False)
class Grid:
    """A type of stored integers: one object for each, since terms are compared and hashed all the time."""

    scale: float
    zero_point: int


def _dequantized(term: Term) -> Term:
    """The reals of a term of stored integers."""
    if term[0] == "moved":
        return ("moved", term[1], term[2], tuple(map(_dequantized, term[3])))
    if term[0] == "stored":
        _, grid, stored = term
        return ("reals", (np.float32(stored - grid.zero_point) * np.float32(grid.scale)).tobytes())
    return ("D", term)


def _quantized(term: Term, grid: Grid) -> Term:
    """Reals, stored on a grid."""
    if term[0] == "moved":
        return ("moved", term[1], term[2], tuple(_quantized(t, grid) for t in term[3]))
    if term[0] == "reals":
        real = np.frombuffer(term[1], np.float32)[0]
        stored = int(np.clip(np.rint(real / np.float32(grid.scale)) + grid.zero_point, -128, 127))
        return ("stored", grid, stored)
    if term[0] == "D" and _grid(term[1]) is grid:
        return term[1]
    return ("Q", grid, term)


def _chains(term: Term) -> set[tuple[Grid, ...]]:
    """The types that the tensors in a term are rounded to one after the other."""
    if term[0] == "moved":
        return {chain for t in term[3] for chain in _chains(t)}
    if term[0] == "D":
        return _chains(term[1])
    return {(*chain, term[1]) for chain in _chains(term[2])} if term[0] == "Q" else {()}


def _grid(term: Term) -> Grid | None:
    return term[1] if term[0] in ("Q", "stored", "value") else _grid(term[3][0]) if term[0] == "moved" else None


@dataclass
class _Way:
    """Values that are there, by what they were made of: each with its term, size, and the terms that casts of it made,
    with their costs."""

    cost: int = 0
    made: dict[Value, tuple[Term, int]] = field(default_factory=dict)
    derived: dict[Value, dict[Term, int]] = field(default_factory=dict)


class Search:
    """The least that casts can cost in a function of `RandomGraph`."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.ops = [op for op in function.ops if not isinstance(op, (Qcast, Dcast, Quantize, Dequantize))]
        self.moves = [op for op in self.ops if op.name in _MOVED]
        self.terms: dict[Value, Term] = {}
        self.roots: dict[Value, Value] = {}
        kinds: list[Any] = [v.type.element for v in function.values() if v.type.quantized]
        self.grids = {kind: Grid(kind.scale, kind.zero_point) for kind in dict.fromkeys(kinds)}
        self._state()

    def _state(self) -> None:
        """The term of each value, and the value that it was cast from."""
        for op in self.function.ops:
            if isinstance(op, (Qcast, Quantize)):
                self._cast(op, _quantized(self._term(op.operand(0)), self.grids[op.result.type.element]))
            elif isinstance(op, (Dcast, Dequantize)):
                self._cast(op, _dequantized(self._term(op.operand(0))))
            elif op.name in _MOVED:
                for place, value in enumerate(op.results):
                    moved = tuple(self._term(op.operand(i)) for i in _MOVED[op.name])
                    self.terms[value] = ("moved", id(op), place, moved)

    def _cast(self, op: Op, term: Term) -> None:
        source = op.operand(0)
        self.terms[op.result] = term
        self.roots[op.result] = self.roots.get(source, source)

    def _term(self, value: Value) -> Term:
        if value not in self.terms:
            element = value.type.element
            if value.is_constant and element is f32:
                self.terms[value] = ("reals", value.array.tobytes())
            else:
                self.terms[value] = ("value", self.grids.get(element), id(value))
        return self.terms[value]

    def forms(self) -> list[Roundings]:
        """The forms that are tried: the types that reals are rounded to, in order, and whether they are reals then."""
        chains = set[tuple[Any, ...]]()
        for value in self.function.values():
            if not value.is_constant:
                chains |= _chains(self._term(value))
        parts = {chain[i:j] for chain in chains for i in range(len(chain)) for j in range(i + 1, len(chain) + 1)}
        parts |= {(grid,) for grid in self.grids.values()}
        return [((), True), *((part, real) for part in sorted(parts, key=str) for real in (False, True))]

    @property
    def size(self) -> int:
        """How many assignments there are."""
        return len(self.forms()) ** len(self.moves)

    def least(self) -> int:
        """The cost of the cheapest assignment."""
        least: int | None = None
        for forms in itertools.product(self.forms(), repeat=len(self.moves)):
            cost = self._cost(dict(zip(self.moves, forms, strict=True)), least)
            least = least if cost is None else cost
        assert least is not None
        return least

    def _cost(self, forms: dict[Op, Roundings], most: int | None) -> int | None:
        """What casts cost with these forms; None if some op does not get what it read, or if it is not below the
        most."""
        way = _Way()
        for op in self.ops:
            if op in forms:
                read = [self._form(self._term(op.operand(i)), forms[op]) for i in _MOVED[op.name]]
                sources = [op.operand(i) for i in _MOVED[op.name]]
            else:
                sources = [v for v in op.operands if v is not None]
                read = [self._term(v) for v in sources]
            if not all(self._get(way, v, term) for v, term in zip(sources, read, strict=True)):
                return None
            if most is not None and way.cost >= most:
                return None
            for place, value in enumerate(op.results):
                made = ("moved", id(op), place, tuple(read)) if op in forms else self._term(value)
                way.made[value] = made, _size(value)
        if not all(self._get(way, v, self._term(v)) for v in self.function.outputs):
            return None
        return way.cost if most is None or way.cost < most else None

    def _form(self, term: Term, form: Roundings) -> Term:
        """What an op that moves elements in a form reads instead of a term."""
        grids, real = form
        term = term if _grid(term) is None else _dequantized(term)
        for grid in grids:
            stored = _quantized(term, grid)
            term = _dequantized(stored)
        return term if real else stored

    def _get(self, way: _Way, value: Value, wanted: Term) -> bool:
        """Derives a term from the value that it goes back to, by the fewest casts. False if there is no way."""
        if value.is_constant or value.type.storage is i32:
            return True
        root = self.roots.get(value, value)
        made, size = way.made.setdefault(root, (self._term(root), _size(root)))
        known = way.derived.setdefault(root, {made: 0})
        if wanted in known:
            return True
        reached: dict[Term, Term | None] = dict.fromkeys(known)
        level = list(known)
        for _ in range(6):
            following: list[Term] = []
            for term in level:
                for cast in self._casts(term):
                    if cast not in reached:
                        reached[cast] = term
                        following.append(cast)
            if wanted in reached:
                break
            level = following
        else:
            return False
        step: Term | None = wanted
        while step is not None and step not in known:
            known[step] = size
            way.cost += size
            step = reached[step]
        return True

    def _casts(self, term: Term) -> list[Term]:
        if _grid(term) is not None:
            return [_dequantized(term)]
        return [_quantized(term, grid) for grid in self.grids.values()]


def _size(value: Value) -> int:
    return int(np.prod([dim or 0 for dim in value.type.shape or ()]))
