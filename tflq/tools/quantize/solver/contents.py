"""Contents of the values of a function, independent of their form.

A content is a tensor of numbers: reals that an op computes, or stored integers that a quantized type, its grid, makes
reals of. The values of a program are forms of contents, and casts lead from form to form:

    quant.dcast, tfl.dequantize    to the reals of the same content
    quant.qcast, tfl.quantize      to another content, rounded; to the same one where it is on that grid already
    quant.scast                    to the stored integers of the same content

An op that moves elements moves reals and stored integers alike: its results are on the grid of its operands. Each has
readers, which need its reals, its integers, or its rounding to a grid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np

from tflq.analysis.cast_cost import computes_on_reals
from tflq.analysis.evaluate.registry import evaluate_op
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl import fused_activation
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import MovesElements, Surrounded
from tflq.ir.facts import walk
from tflq.ir.module import Function
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, ScalarType, TensorType, UniformQuantizedType, is_float, is_quantized
from tflq.transforms.canonicalize import FOLDED_BYTES, gives_back

# Grids: how reals become the stored integers of a quantized type, and back, and what is the same after both.


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding of reals to stored integers: the cast, its grid and its attributes."""

    kind: type[Operator]
    grid: ElementType
    rounding: str | None = None
    sum_rounding: str | None = None

    @property
    def usual(self) -> bool:
        """Whether it rounds to the nearest, so that what is on the grid stays as it is."""
        return self.sum_rounding is None and self.rounding != "toward_zero"

    def attributes(self) -> dict[str, object]:
        both = {"rounding": self.rounding, "sum_rounding": self.sum_rounding}
        return {key: value for key, value in both.items() if value is not None}

    def of(self, array: np.ndarray, type: TensorType) -> np.ndarray:
        """Stored integers of reals, as the cast computes them."""
        attributes = {"rounding": "half_away"} if self.kind is Quantize else self.attributes()
        op = Op(Qcast.op_name, [Value(type)], [Value(type.with_element(self.grid))], attributes)
        (stored,) = evaluate_op(op, [array]) or [array]
        return stored


def reals_of(array: np.ndarray, type: TensorType, expressed: ScalarType) -> np.ndarray:
    """The reals that stored integers of a quantized type stand for."""
    op = Op(Dcast.op_name, [Value(type)], [Value(type.with_element(expressed))])
    (reals,) = evaluate_op(op, [array]) or [array]
    return reals


def on_grid(array: np.ndarray, grid: UniformQuantizedType) -> np.ndarray:
    """Reals, rounded to a grid."""
    type = TensorType(array.shape, grid.expressed)
    return reals_of(Rounding(Qcast, grid).of(array, type), type.with_element(grid), grid.expressed)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b) and np.array_equal(np.signbit(a), np.signbit(b)))


def surrounds(op: Op, grid: ElementType | None, rounding: Rounding | None = None) -> bool:
    """Whether the op can put around stored integers what stands around the reals: on a grid, or rounded to it."""
    trait = trait_of(op, Surrounded)
    if trait is None or not isinstance(grid, UniformQuantizedType):
        return True
    if trait.attribute is not None:
        if not grid.expressed.numpy or not grid.storage.signed:
            return False
        real = np.asarray(trait.attribute.__get__(op, type(op)), grid.expressed.dtype)
        return rounding is not None or same_bits(on_grid(real, grid), real)
    return grid.zero_point == 0 or (trait.zero_point and grid.storage_min <= grid.zero_point <= grid.storage_max)


# Contents.


Form: TypeAlias = Literal["real", "quantized", "stored"]
REAL: Final = "real"
QUANTIZED: Final = "quantized"
STORED: Final = "stored"


@dataclass(eq=False, slots=True)
class Content:
    """Content of a value. `type` is that of its reals.

    form: the form in which its op makes it. grid: the type whose stored integers it is; None: reals of any kind. moves:
    the op that makes it, if that moves elements. value: what it is made as, unless an op that is moved makes it.
    rounded_from, rounding: it is that content, rounded so. exact: what else leaves it as it is. values: those of the
    source, by form.
    """

    type: TensorType
    form: Form
    grid: ElementType | None = None
    moves: Moves | None = None
    value: Value | None = None
    rounded_from: Content | None = None
    rounding: Rounding | None = None
    exact: Rounding | None = None
    values: dict[Form, list[Value]] = field(default_factory=dict)
    rounded: dict[Rounding, Content] = field(default_factory=dict)
    readers: list[Reader] = field(default_factory=list)

    @property
    def folds(self) -> bool:
        """Whether its casts are computed here and now: it is a constant, and not too large to be expressed."""
        if self.rounded_from is not None:
            return self.rounded_from.folds
        value = self.value
        if value is None or not value.is_constant or not value.type.is_static or value.type.storage.bits < 8:
            return False
        size = self.type.size * self.type.storage.bits // 8
        return bool(self.type.storage.numpy) and (self.form == REAL or size <= FOLDED_BYTES)

    def stays(self, rounding: Rounding) -> bool:
        """Whether a rounding leaves it as it is."""
        if self.grid != rounding.grid:
            return False
        reals = self.form == REAL and self.moves is None
        return rounding == self.exact or (rounding.usual and (reals or gives_back(rounding.grid)))

    def type_as(self, form: Form) -> TensorType:
        if form == REAL:
            return self.type
        assert self.grid is not None
        quantized = self.type.with_element(self.grid)
        return quantized if form == QUANTIZED else quantized.stored()


@dataclass(eq=False, slots=True)
class Moves:
    """An op that moves elements: of which operands, by index. `form`: of its operands and results in the source.

    grid: of its results, if all operands are on it. steps: the casts that all readers of its results take, straight or
    behind ops that move elements: roundings, and `None` where the rounded reals are read again. integers: it cannot
    move reals. level: what was solved.

        0        stored integers on the grid
        1        reals
        1 + n    what n steps make of the reals
    """

    op: Op
    form: Form
    sources: dict[int, Content]
    results: list[Content]
    grid: ElementType | None = None
    steps: Steps = ()
    integers: bool = False
    level: int = 0

    @property
    def reals(self) -> bool:
        """Whether it moves reals."""
        return self.level % 2 == 1

    @property
    def roundings(self) -> list[Rounding]:
        """Roundings that its operands go through before they are moved, instead of its results after."""
        return [step for step in self.steps[: max(self.level - 1, 0)] if step is not None]


Steps: TypeAlias = tuple[Rounding | None, ...]
Reader: TypeAlias = Literal["real", "quantized", "stored"] | Moves | Rounding
"""Reader of a content: an op that needs a form, one that moves it, or a rounding of it."""


class Contents:
    """The contents of one function.

    apart: values that keep their names, so that no other is returned in their place. called: the function is run by
    another. typed: ops that are put on quantized types, each with the rounding of its results. encased: ops on
    quantized types that are declared for reals are put between casts. unrounded: reals are not rounded by casts to
    integers and back.

    steps: the ops that stay, in order; those that move elements as `Moves`. of: what each value is a form of.
    """

    def __init__(
        self,
        function: Function,
        apart: Collection[Value],
        *,
        called: bool = False,
        typed: Mapping[Op, Rounding] | None = None,
        encased: bool = False,
        unrounded: bool = False,
    ) -> None:
        self.function = function
        self.apart = apart
        self.called = called
        self.typed = typed or {}
        self.encased = encased
        self.unrounded = unrounded
        self.steps: list[Op | Moves] = []
        self.of: dict[Value, tuple[Content, Form]] = {}
        self.all: list[Content] = []
        self.dequantize, self.quantize = self._casts()
        self._returned: dict[tuple[Content, Form], Value] = {}
        self._stored: dict[tuple[Value, ElementType], Content] = {}
        for op in function.ops:
            self._read(op)
        self._ask()

    def _casts(self) -> tuple[type[Operator], type[Operator]]:
        """Classes of new casts: those of casts that are there."""
        for op in self.function.ops:
            if isinstance(op, (Quantize, Dequantize)):
                return Dequantize, Quantize
            if isinstance(op, (Qcast, Dcast)):
                break
        return Dcast, Qcast

    def look(self, value: Value) -> tuple[Content, Form] | None:
        """The content that a value is a form of: None if it is neither real nor quantized."""
        if value not in self.of:
            element = value.type.element
            if is_variable(value):
                return None
            if is_quantized(element):
                content = self._new(value.type.with_element(element.expressed), QUANTIZED, element)
            elif is_float(element):
                content = self._new(value.type, REAL)
            else:
                return None
            content.value = value
            self._set(value, content, content.form)
        return self.of[value]

    def _new(self, type: TensorType, form: Form, grid: ElementType | None = None) -> Content:
        content = Content(type, form, grid)
        self.all.append(content)
        return content

    def _set(self, value: Value, content: Content, form: Form) -> None:
        self.of[value] = content, form
        content.values.setdefault(form, []).append(value)

    # Ops of the source, one by one.

    def _read(self, op: Op) -> None:
        if isinstance(op, (Qcast, Quantize)) and self._round(op):
            return
        if isinstance(op, (Dcast, Dequantize)) and self._express(op):
            return
        if isinstance(op, Scast) and self._store(op):
            return
        moves = self._move(op)
        self.steps.append(op if moves is None else moves)
        if moves is not None:
            return
        if op in self.typed:
            for value in op.results:
                grid = self.typed[op].grid
                content = self._new(value.type, QUANTIZED, grid)
                content.exact = self.typed[op]
                self._set(value, content, REAL)
        elif self.is_encased(op):
            for value in op.results:
                self._encase(value)

    def _encase(self, value: Value) -> None:
        """The result of an op that computes on reals, rounded."""
        grid = value.type.element
        if is_quantized(grid):
            content = self._new(value.type.with_element(grid.expressed), REAL)
            self._set(value, self.rounded(content, Rounding(Qcast, grid)), QUANTIZED)

    def _round(self, op: Qcast | Quantize) -> bool:
        source = self.look(op.input)
        if source is None or source[1] != REAL:
            return False
        content, grid = source[0], op.result.type.element
        if not is_quantized(grid) or grid.expressed != content.type.element or op.info.get("kept"):
            return False
        more = (op.rounding, op.sum_rounding) if isinstance(op, Qcast) else (None, None)
        rounding = Rounding(type(op), grid, *more)
        if content.grid is None and content.moves is None and self.unrounded:
            content.grid, content.rounding = grid, rounding  # as if it were on it
        return self._claim(op.result, self.rounded(content, rounding), QUANTIZED)

    def rounded(self, content: Content, rounding: Rounding) -> Content:
        """A content, rounded: itself, if that leaves it as it is."""
        if content.stays(rounding):
            return content
        if rounding not in content.rounded:
            result = self._new(content.type, QUANTIZED, rounding.grid)
            result.rounded_from, result.rounding = content, rounding
            content.rounded[rounding] = result
        return content.rounded[rounding]

    def _express(self, op: Dcast | Dequantize) -> bool:
        source = self.look(op.input)
        if source is None or source[1] != QUANTIZED or op.info.get("kept"):
            return False
        content = source[0]
        while self.unrounded and content.rounded_from is not None:
            content = content.rounded_from
        return content.type == op.result.type and self._claim(op.result, content, REAL)

    def _store(self, op: Scast) -> bool:
        value, grid = op.input, op.result.type.element
        source = self.look(value)
        if not is_quantized(grid):
            return source is not None and self._claim(op.result, source[0], STORED)
        if source is None and not is_variable(value):
            content = self._stored.get((value, grid))
            if content is None:
                content = self._new(op.result.type.with_element(grid.expressed), STORED, grid)
                content.value = value
                self._stored[value, grid] = content
            return self._claim(op.result, content, QUANTIZED)
        if source is None or source[0].grid != grid:
            return False
        return self._claim(op.result, source[0], QUANTIZED)

    def _claim(self, value: Value, content: Content, form: Form) -> bool:
        """Takes a cast's result for a form of a content. False, so that the cast stays, if the result is one that users
        know by its name, and another value is in its place."""
        if value in self.apart:
            known = content.value if content.form == form else None
            first = self._returned.setdefault((content, form), known or value)
            if first is not value:
                free = known is first and known.producer is not None and not known.name and known not in self.apart
                if free:
                    self._returned[content, form] = value
                elif self.called or (value.name and value.name != first.name):
                    return False
        self._set(value, content, form)
        return True

    # Ops that move elements.

    def _move(self, op: Op) -> Moves | None:
        """An op that moves elements; None if it does anything else, or moves what has no one form."""
        trait = trait_of(op, MovesElements)
        if trait is None or fused_activation(op) != "NONE" or op.regions:
            return None
        moved = {i: v for i, v in enumerate(op.operands) if v is not None and trait.moves(i)}
        seen = [self.look(v) for v in moved.values() if not v.is_constant or is_variable(v)]
        forms = {None if known is None else known[1] for known in seen}
        form = forms.pop() if len(forms) == 1 else None
        if form is None:
            return None
        grids = {known[0].grid for known in seen if known is not None}
        moves = Moves(op, form, {}, [])
        if len(grids) == 1 and isinstance(grid := grids.pop(), UniformQuantizedType):
            moves.grid = grid
        if not self._fits(moves, moved):
            return None
        for index, value in moved.items():
            moves.sources[index] = self._source(moves, value)
        if form == REAL and not (surrounds(moves.op, moves.grid) and self._on_grid(moves)):
            moves.grid = None
        self._make(moves)
        return moves

    def _make(self, moves: Moves) -> None:
        """The contents of its results."""
        element = next(iter(moves.sources.values())).type.element
        for value in moves.op.results:
            content = self._new(value.type.with_element(element), moves.form, moves.grid)
            content.moves = moves
            moves.results.append(content)
            self._set(value, content, moves.form)
            if value in self.apart:
                self._returned[content, moves.form] = value

    def _fits(self, moves: Moves, moved: Mapping[int, Value]) -> bool:
        """Whether operands and results have one form, and the op does the same in others, or keeps its own."""
        types = {v.type.element for v in (*moved.values(), *moves.op.results)}
        if moves.form == REAL:
            return len(types) == 1
        if moves.grid is None or len(types) != 1:
            return False
        surrounded = trait_of(moves.op, Surrounded)
        if surrounded is None:
            return True
        moves.integers = moves.form == STORED
        return moves.integers or (surrounded.attribute is None and surrounds(moves.op, moves.grid))

    def _source(self, moves: Moves, value: Value) -> Content:
        """The content of an operand; a constant of stored integers is on the grid of the others."""
        seen = self.look(value)
        if seen is not None:
            return seen[0]
        assert isinstance(moves.grid, UniformQuantizedType)
        content = self._new(value.type.with_element(moves.grid.expressed), STORED, moves.grid)
        content.value = value
        return content

    def _on_grid(self, moves: Moves) -> bool:
        """Whether its constant operands of reals are on the grid of the others."""
        grid = moves.grid
        for content in moves.sources.values():
            if content.value is not None and content.value.is_constant and content.form == REAL and grid is not None:
                if not content.folds or not isinstance(grid, UniformQuantizedType):
                    return False
                if not same_bits(on_grid(content.value.array, grid), content.value.array):
                    return False
        return True

    # Readers.

    def _ask(self) -> None:
        """Who reads each content, and what all readers of an op's results ask for."""
        for step in self.steps:
            if isinstance(step, Moves):
                for content in dict.fromkeys(step.sources.values()):
                    content.readers.append(step)
                self._needed(v for i, v in enumerate(step.op.operands) if i not in step.sources)
            else:
                self._needed(step.operands, step)
                self._needed(v for inner in walk([step]) if inner is not step for v in inner.operands)
        self._needed((*self.function.outputs, *self.apart))
        for content in reversed(self.all):
            if content.rounded_from is not None and content.readers:
                assert content.rounding is not None
                content.rounded_from.readers.append(content.rounding)
        for step in reversed(self.steps):
            if isinstance(step, Moves) and not step.integers:
                step.steps = self._possible(step, steps_of(step.results))

    def _possible(self, moves: Moves, steps: Steps) -> Steps:
        """The first of these steps that an op that moves elements can be put behind."""
        constants = [c for c in moves.sources.values() if c.value is not None and c.value.is_constant]
        for place, step in enumerate(steps):
            if step is None:
                continue
            alike = isinstance(step.grid, UniformQuantizedType) and all(content.folds for content in constants)
            if not alike or not surrounds(moves.op, step.grid, step):
                return steps[:place]
        return steps

    def _needed(self, values: Iterable[Value | None], op: Op | None = None) -> None:
        for value in values:
            seen = None if value is None else self.read_as(value, op)
            if seen is not None:
                seen[0].readers.append(seen[1])

    def read_as(self, value: Value, op: Op | None) -> tuple[Content, Form] | None:
        """The content and form of a value that an op that stays reads; op: None where the value is returned."""
        seen = self.look(value)
        if seen is None or op is None:
            return seen
        content, form = seen
        if op in self.typed:
            return content, form if content.grid is None else QUANTIZED
        return content, REAL if form == QUANTIZED and self.is_encased(op) else form

    def is_encased(self, op: Op) -> bool:
        """Whether an op on quantized types is put between casts."""
        return self.encased and any(v.type.quantized for v in op.tensors) and computes_on_reals(op)


_MOST: Final = 6
"""Steps that are followed."""


def steps_of(contents: Iterable[Content]) -> Steps:
    """The steps that all readers of the reals of contents take."""
    return _common(_steps_from(reader, content) for content in contents for reader in content.readers)


def _steps_from(reader: Reader, content: Content) -> Steps:
    """The steps that a reader takes from the reals of a content."""
    if isinstance(reader, Moves):
        return reader.steps
    if not isinstance(reader, Rounding):
        return ()
    rounded = content.rounded[reader]
    behind = _common(_expressed(reader, rounded) for reader in rounded.readers)
    return (reader, *behind)[:_MOST]


def _expressed(reader: Reader, rounded: Content) -> Steps:
    """The steps that a reader of stored integers takes; the first is to read their reals."""
    if reader in (QUANTIZED, STORED) or (isinstance(reader, Moves) and reader.integers):
        return ()
    return (None, *_steps_from(reader, rounded))


def _common(paths: Iterable[Steps]) -> Steps:
    """The steps with which all begin."""
    first, *others = dict.fromkeys(paths) or [()]
    for steps in others:
        same = [a == b for a, b in zip(first, steps, strict=False)]
        first = first[: same.index(False) if False in same else len(same)]
    return first
