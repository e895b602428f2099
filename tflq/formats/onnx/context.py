"""How one op of the integer form becomes operators of ONNX: the forms in which a tensor exists there, and what a
lowering knows of the function it works on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from tflq.analysis.known import Ranges
from tflq.base.caches import ProofCache
from tflq.base.errors import Refused
from tflq.base.light import NamedTuple
from tflq.dialects.quant import Scast
from tflq.dialects.registry import Registry, form_of
from tflq.dialects.tosa.movement import Identity
from tflq.formats.lowering import WITHOUT_NUMBERS, distinct_result, need_elements
from tflq.formats.onnx.builder import OnnxBuilder
from tflq.ir.core import Function, Module, Op, Value, constant
from tflq.ir.types import SCALARS, ScalarType, Shape, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64
from tflq.transforms.pass_manager import Note, Searches

# The forms of a tensor: equal numbers, in several element types and layouts.
#
# Runtimes compute in float32 and int32, and on images with channels first. A tensor is cast, moved and transposed only
# where something reads it in another form: what a CONV gives stays float32 with channels first up to the next one.


HELD: Final = (i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64)
"""The element types that tensors may have."""


def need_type(element: ScalarType, name: str = "a tensor") -> None:
    """Refused if no tensor may have the type."""
    if element not in HELD:
        raise Refused(f"{name} is {element}, which has no form in ONNX")


def is_narrow(element: ScalarType) -> bool:
    """Whether it is an integer that is held in a wider type."""
    return element.is_integer and element.bits < 8


EXACT: Final = 1 << 24
"""float32 holds all whole numbers up to this one."""


Again: TypeAlias = Callable[[np.ndarray, bool], "Value | None"]
"""A sum of products in float32 plus a number for each channel, or with the other sign; None if that is not exact."""


class Form(NamedTuple):
    """How a tensor's numbers are held: the element type, what is taken off them, whether channels are the second dim
    instead of the last one."""

    element: ScalarType
    offset: int = 0
    first: bool = False


class Layout(NamedTuple):
    """How many dims a tensor has, and whether channels are the second one instead of the last one."""

    rank: int = 0
    first: bool = False


class Held:
    """One tensor in all its forms. `low`, `high`: bounds of its numbers."""

    __slots__ = ("again", "channels", "forms", "high", "low", "source")

    def __init__(self, form: Form, value: Value, low: int, high: int, source: Value | None = None) -> None:
        self.forms = {form: value}
        self.low = low
        self.high = high
        self.source = source
        """The constant that it is."""
        self.channels: tuple[np.ndarray, np.ndarray] | None = None
        """Bounds of each channel, int64, where they are known."""
        self.again: Again | None = None
        """The sum that it is, made once more with other constants."""

    @property
    def rank(self) -> int:
        return len(next(iter(self.forms.values())).type.dims)

    @property
    def is_exact(self) -> bool:
        """Whether float32 holds its numbers."""
        return self.low >= -EXACT and self.high <= EXACT

    @property
    def first(self) -> bool:
        """Whether it exists with channels first only."""
        return all(form.first for form in self.forms)

    def copy(self) -> Held:
        """The same tensor, whose further forms are its own."""
        made = Held(Form(f32), next(iter(self.forms.values())), self.low, self.high, self.source)
        made.forms, made.channels, made.again = dict(self.forms), self.channels, self.again
        return made

    def within(self, low: int, high: int) -> Held:
        """The same tensor, whose numbers are within these bounds, too."""
        self.low, self.high = max(self.low, low), min(self.high, high)
        return self

    def get(self, b: OnnxBuilder, wanted: Form) -> Value:
        """The tensor in a form, made from the nearest one that there is."""
        found = self.forms.get(wanted)
        if found is None:
            need_type(wanted.element)
            found = self._made(b, wanted) if self.source is None else _constant(b, self.source, wanted)
            self.forms[wanted] = found
        return found

    def _made(self, b: OnnxBuilder, wanted: Form) -> Value:
        nearest = max(self.forms, key=lambda form: _nearness(form, wanted))
        x = self.forms[nearest]
        if nearest.first != wanted.first:
            x = turned(b, x, first=wanted.first)
            self.forms[nearest._replace(first=wanted.first)] = x
        if nearest.element != wanted.element:
            if nearest.element.is_float and not wanted.element.is_float:  # less nothing, so that narrow types hold it
                x, nearest = _moved(b, x, nearest.offset), nearest._replace(offset=0)
            elif nearest.offset != wanted.offset and not wanted.element.is_float and wanted.element.bits < 32:
                x = _moved(b, b.cast(x, i32), nearest.offset - wanted.offset)
                nearest = nearest._replace(offset=wanted.offset)
            x = b.cast(x, wanted.element)
            self.forms[Form(wanted.element, nearest.offset, wanted.first)] = x
        return _moved(b, x, nearest.offset - wanted.offset)


def _nearness(form: Form, wanted: Form) -> tuple[bool, ...]:
    """How little is to do to get from one form to another: layout costs most, then a cast, then a sum."""
    return (
        form.first == wanted.first,
        form.element == wanted.element,
        form.offset == wanted.offset,
        form.element.is_float == wanted.element.is_float,
        form.element.bits <= 16,
    )


def _moved(b: OnnxBuilder, x: Value, number: int) -> Value:
    """x + number."""
    return b.add(x, b.like(number, x)) if number else x


def turned(b: OnnxBuilder, x: Value, *, first: bool) -> Value:
    """x with channels as its second dim, or from there as its last one."""
    rank = len(x.type.dims)
    spatial = range(1, rank - 1) if first else range(2, rank)
    return b.transpose(x, (0, rank - 1, *spatial) if first else (0, *spatial, 1))


def _constant(b: OnnxBuilder, source: Value, wanted: Form) -> Value:
    """A constant in a form, stored in the smallest type that holds it."""
    array = source.array
    if wanted.first:
        array = np.moveaxis(array, -1, 1)
    if wanted.element.is_float and source.type.storage.is_float:
        return b.constant(array, wanted.element)
    wide = array.astype(np.int64) - wanted.offset
    if wanted.element == f32 and np.abs(wide).max(initial=0) > EXACT:
        raise Refused(f"float32 does not hold the numbers of the constant '{source.name}'")
    return b.stored(wide, wanted.element)


def cheapest(held: Held) -> Form:
    """The form in which a tensor is best moved: one that exists, narrow if there are several."""
    return min(held.forms, key=lambda form: (form.first, form.element.bits, form.offset != 0))


def channel_row(b: OnnxBuilder, numbers: np.ndarray, element: ScalarType, layout: Layout) -> Value:
    """A constant of one number, or of one for each channel."""
    row = np.atleast_1d(numbers)
    if (row == row[0]).all():
        return b.constant(row[0], element)
    shaped = row.reshape(-1, *(1,) * (layout.rank - 2)) if layout.first else row
    return b.stored(shaped, element) if row.dtype.kind in "iu" else b.constant(shaped, element)


# Lowerings, and what they know.
#
#     @lowering(Add)
#     def add(op: Add, t: Onnx) -> Value | Held | Sequence[Value | Held]: ...
#
# `t.value(operand)` is an operand in its storage type; `t.integers(operand)` the same numbers in int32, and
# `t.whole(operand)` in float32, if that holds them. A lowering answers with whatever form it has computed: `Held` says
# which. What ONNX lacks is `Refused`, with a clause that says what; all refusals of a model are reported together.


Made: TypeAlias = "Value | Held"
T = TypeVar("T", bound=Op)
_WIDE = 1 << 62


class Scope:
    """A function, or a graph inside of an operator: its ops, and what is known there of values, shared values and
    variables. A graph inside reads what its outer scopes hold; what it makes of that, it makes for itself.

    repeats: The variables of the body of a loop are its arguments, by name: `arguments`.
    """

    __slots__ = ("arguments", "held", "once", "ops", "outer", "repeats", "variables", "written")

    def __init__(self, ops: list[Op], outer: Scope | None = None, *, repeats: bool = False) -> None:
        self.ops = ops
        self.outer = outer
        self.repeats = repeats
        self.held: dict[Value, Held] = {}
        self.once: dict[Hashable, Value] = {}
        self.variables: dict[str, Held] = {}
        """What variables hold at this place."""
        self.written: dict[str, None] = {}
        """The variables that were written."""
        self.arguments: dict[str, Value] = {}

    def find(self, value: Value) -> Held | None:
        """What a value has become; None if it has not been lowered."""
        found = self.held.get(value)
        if found is None and self.outer is not None:
            outside = self.outer.find(value)
            if outside is not None:
                found = self.held[value] = outside.copy()
        return found

    def shared(self, key: Hashable) -> Value | None:
        """What several ops share, if one has made it."""
        found = self.once.get(key)
        return self.outer.shared(key) if found is None and self.outer is not None else found


class State:
    """The variables of a function, by name."""

    def __init__(self) -> None:
        self.starts: dict[str, np.ndarray] = {}
        """What they start as, where an op says it."""
        self.handles: dict[Value, str] = {}
        """The names of the variables that values are handles of."""
        self.arguments: dict[str, Value] = {}
        """Those that are read or written: arguments of the function, with their first value."""

    def sides(self, t: Onnx, taken: set[Value]) -> tuple[list[Value], list[Value]]:
        """The arguments and the results that stand for them."""
        arguments = list(self.arguments.values())
        taken.update(arguments)
        results = []
        for name, argument in self.arguments.items():
            result = distinct_result(t.variable(name).get(t, Form(argument.type.storage)), taken, t.identity)
            result.name, result.info = f"{name}_next", {"state": name}
            result.type = argument.type
            results.append(result)
        return arguments, results


class Onnx(OnnxBuilder):
    """An `OnnxBuilder` that knows what the values of the integer form have become."""

    def __init__(
        self,
        module: Module,
        function: Function,
        proofs: ProofCache | None = None,
        searches: Searches | None = None,
    ) -> None:
        super().__init__()
        self.users = function.users()
        self.results = frozenset(function.outputs)
        self.module = module
        """The module being lowered."""
        self.lower_ops: Callable[[Sequence[Op]], None] = lambda _: None
        """Lowers the ops of a function in the place of its call."""
        self.notes: list[Note] = []
        """What the report is told."""
        self.state = State()
        self.ranges = Ranges()
        self._proofs = proofs
        self.searched: Final = Searches(module) if searches is None else searches
        self.scope = Scope(self.ops)

    # --- what values have become ---------------------------------------------------------------------------------

    def held(self, operand: Value) -> Held:
        """What an operand has become."""
        found = self.scope.find(operand)
        if found is None:
            if not operand.is_constant:
                raise Refused(f"'{operand.name}' is neither computed nor a constant")
            found = self.scope.held[operand] = self._constant(operand)
        return found

    def value(self, operand: Value) -> Value:
        """An operand in its storage type."""
        return self.held(operand).get(self, Form(operand.type.storage))

    def integers(self, operand: Value, element: ScalarType = i32, zero_point: int = 0) -> Value:
        """An operand less a zero point, in int32 or another type that holds it."""
        return self.held(operand).get(self, Form(element, zero_point))

    def whole(self, operand: Value, zero_point: int = 0, *, first: bool = False) -> Value:
        """An operand less a zero point as whole numbers in float32. Refused if that does not hold them."""
        held = self.held(operand)
        if not self.is_exact(operand):
            raise Refused(f"float32 does not hold the numbers of '{operand.name}'")
        return held.get(self, Form(f32, zero_point, first))

    def bounds(self, operand: Value) -> tuple[int, int]:
        """The least and the greatest number that an operand can hold."""
        low, high = self.ranges.of(operand)
        held = self.held(operand)
        return max(low, held.low), min(high, held.high)

    def channel_bounds(self, operand: Value) -> tuple[np.ndarray, np.ndarray]:
        """The same, int64 [1] or for each channel."""
        low, high = self.bounds(operand)
        channels = self.held(operand).channels
        if channels is None:
            return np.asarray([max(low, -_WIDE)], np.int64), np.asarray([min(high, _WIDE)], np.int64)
        return channels

    def only_user(self, value: Value, kind: type[T]) -> T | None:
        """The only reader of an unnamed value, if it is of a class."""
        users = self.users.get(value, [])
        if len(users) != 1 or not isinstance(users[0], kind) or value.name or value in self.results:
            return None
        return users[0]

    def is_exact(self, *operands: Value) -> bool:
        """Whether float32 holds the numbers of all operands."""
        return all(low >= -EXACT and high <= EXACT for low, high in map(self.bounds, operands))

    def made(self, y: Value, like: Value, *, offset: int = 0, first: bool = False) -> Held:
        """A tensor that is made in a form: y is the numbers that `like` has, less an offset."""
        low, high = self.ranges.of(like)
        return Held(Form(y.type.storage, offset, first), y, low, high)

    def record(self, operand: Value, result: Made) -> None:
        """Records what a value has become. The forms of one with a name say which tensor they hold."""
        held = result if isinstance(result, Held) else self.made(result, operand)
        if operand.name and operand.type.storage.numpy:
            for form, value in held.forms.items():
                if value.producer is not None and not value.name:
                    value.name = operand.name
                    value.info = {"holds": (form.offset, form.first, operand.type.storage.dtype.name)}
        self.scope.held[operand] = held

    def found(self, operand: Value) -> list[Value]:
        """The forms of an operand, if it has been lowered."""
        held = self.scope.find(operand)
        return [] if held is None else [*held.forms.values()]

    def warn(self, text: str, exception: str, remedy: str) -> None:
        """Warns that the result is not the interpreter's. `exception`: the reason, as `tflq.legalize.caveats` names
        it; `remedy`: what the user can do."""
        self.notes.append(Note(self.location, text, exception, remedy))

    # --- graphs inside of operators, and variables ---------------------------------------------------------------

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Emits into a scope."""
        outer, location = self.scope, self.location
        self.scope, self.ops = scope, scope.ops
        try:
            yield
        finally:
            self.scope, self.ops, self.location = outer, outer.ops, location

    def variable(self, name: str, scope: Scope | None = None) -> Held:
        """What a declared variable holds at this place, or at the end of another scope."""
        scope = scope or self.scope
        found = scope.variables.get(name)
        if found is None:
            argument = self.state.arguments[name]
            if scope.repeats:
                argument = scope.arguments[name] = Value(argument.type, name)
            outside = None if scope.repeats or scope.outer is None else self.variable(name, scope.outer)
            found = self.made(argument, argument) if outside is None else outside.copy()
            scope.variables[name] = found
        return found

    def hold(self, name: str, held: Held) -> None:
        """Gives a variable another value."""
        self.scope.variables[name] = held
        self.scope.written[name] = None

    # --- elementwise ---------------------------------------------------------------------------------------------

    def layout(self, operands: Sequence[Value], result: Value) -> Layout:
        """Of an elementwise op. It is computed with channels first if an operand exists in no other layout."""
        rank = len(result.type.dims)
        others = [self.held(v) for v in operands if not v.is_constant]
        return Layout(rank, rank > 2 and any(h.first and h.rank == rank for h in others))

    def operand(self, value: Value, element: ScalarType, layout: Layout, zero_point: int = 0) -> Value:
        """An operand of an elementwise op."""
        held, rank = self.held(value), layout.rank
        if not layout.first:
            return held.get(self, Form(element, zero_point))
        if held.rank == rank:
            return held.get(self, Form(element, zero_point, first=True))
        shape = value.type.dims
        if value.is_constant:
            aligned = constant(value.array.reshape((1,) * (rank - len(shape)) + value.array.shape), value.type.storage)
            return self._constant(aligned).get(self, Form(element, zero_point, first=True))
        x = self.reshape(held.get(self, Form(element, zero_point)), (*(1,) * (rank - len(shape)), *shape))
        return self.made(x, value).get(self, Form(element, 0, first=True))

    def elementwise(
        self, emit: Callable[..., Value], operands: Sequence[Value], result: Value, element: ScalarType | None = None
    ) -> Held:
        """The result of an op that computes each element from those of its operands: in float32 where that is exact,
        else in int32 or int64."""
        if element is None:
            element = self.computing(operands, result)
        layout = self.layout(operands, result)
        return self.made(emit(*(self.operand(v, element, layout) for v in operands)), result, first=layout.first)

    def computing(self, operands: Sequence[Value], result: Value | None = None) -> ScalarType:
        """The element type to compute in."""
        storage = operands[0].type.storage
        if storage.is_float:
            return storage
        low, high = (0, 0) if result is None or result.type.storage == i1 else self.ranges.of(result)
        if self.is_exact(*operands) and low >= -EXACT and high <= EXACT:
            return f32
        wide = any(not (i32.minimum <= a and b <= i32.maximum) for a, b in ((low, high), *map(self.bounds, operands)))
        return i64 if wide else i32

    # --- movement ------------------------------------------------------------------------------------------------

    def moved(self, operand: Value, emit: Callable[[Value], Value], result: Value) -> Held:
        """What `emit` makes of an operand, in the form that is the cheapest: it only moves elements."""
        held = self.held(operand)
        form = cheapest(held)
        x = held.get(self, form._replace(first=False))
        return self.made(emit(x), result, offset=form.offset).within(held.low, held.high)

    def common(self, operands: Sequence[Value]) -> tuple[list[Value], Form]:
        """Operands whose elements are moved together, in one form."""
        helds = [self.held(v) for v in operands]
        shared = set(helds[0].forms).intersection(*(h.forms for h in helds[1:]))
        plain = [form for form in shared if not form.first]
        form = min(plain, key=lambda f: f.element.bits) if plain else self._joint(operands, helds)
        return [h.get(self, form) for h in helds], form

    def _joint(self, operands: Sequence[Value], helds: Sequence[Held]) -> Form:
        floats = sum(f32 in {form.element for form in h.forms} for h in helds)
        storage = operands[0].type.storage
        exact = storage.is_integer and self.is_exact(*operands)
        return Form(f32 if exact and floats * 2 > len(helds) else storage)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """`make()`, made once: what several ops share."""
        found = self.scope.shared(key)
        if found is None:
            found = self.scope.once[key] = make()
        return found

    def remembered(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)` of a pure function of `tflq.numerics`, from the cache of proofs if there is one."""
        return function(*arguments) if self._proofs is None else self._proofs(function, *arguments)

    def _constant(self, operand: Value) -> Held:
        storage = operand.type.storage
        if not is_narrow(storage):
            need_type(storage, f"'{operand.name}'")
        if storage.is_float or storage == i1:
            return Held(Form(storage), Value(operand.type.with_element(storage), buffer=operand.buffer), 0, 0)
        array = operand.array
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        plain = constant(array, storage) if storage.bits >= 8 else constant(array)
        return Held(Form(plain.type.storage), plain, low, high, plain)


Lowering: TypeAlias = Callable[[Any, Onnx], "Made | Sequence[Made]"]
lowering: Final[Registry[Lowering]] = Registry("tflq.formats.onnx")
"""The lowering of each op that has a form in ONNX."""


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Onnx) -> Held:
    """The same stored integers."""
    return t.held(op.input)


_LACKING: Final = WITHOUT_NUMBERS | {t for t in SCALARS.values() if not t.numpy}


def lowered(op: Op, t: Onnx) -> Made | Sequence[Made]:
    """What an op becomes. Refused if it has no form in ONNX."""
    lower = form_of(lowering, op, "ONNX")
    need_elements(op, _LACKING)
    return lower(op, t)


def static(shape: Shape) -> tuple[int, ...]:
    """A shape of which all dims are known. Refused if one is not."""
    if shape is None or None in shape:
        raise Refused("the shape of a tensor is not known before a run")
    return tuple(d or 0 for d in shape)
