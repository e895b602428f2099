"""The lowering of one op of the integer form to ONNX: the forms of a tensor there, and the state of the function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tflq.analysis.known import Ranges
from tflq.base.caches import ProofCache
from tflq.base.errors import Refused
from tflq.dialects.quant import Scast
from tflq.dialects.registry import Registry, form_of
from tflq.dialects.tosa.movement import Identity
from tflq.formats.lowering import WITHOUT_NUMBERS, distinct_result, need_elements
from tflq.formats.onnx.builder import OnnxBuilder
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.ir.types import SCALARS, ScalarType, Shape, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64
from tflq.transforms.pass_manager import Note, Searches

# The forms of a tensor: equal numbers, in several element types and layouts.
#
# Runtimes compute in float32 and int32, and on images with channels first. A tensor is cast, moved and transposed only
# where something reads it in another form: what a CONV gives stays float32 with channels first up to the next one.


ELEMENT_TYPES: Final = (i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64)
"""The element types that tensors may have."""


def need_type(element: ScalarType, name: str = "a tensor") -> None:
    """Refused if no tensor may have the type."""
    if element not in ELEMENT_TYPES:
        raise Refused(f"{name} is {element}, which has no form in ONNX")


def is_narrow(element: ScalarType) -> bool:
    """Whether it is an integer that is held in a wider type."""
    return element.is_integer and element.bits < 8


EXACT: Final = 1 << 24
"""float32 holds all whole numbers up to this one."""


Again: TypeAlias = Callable[[np.ndarray, bool], "Value | None"]
"""A sum of products in float32 plus a number for each channel, or with the other sign; None if that is not exact."""


class TensorForm(NamedTuple):
    """A form of a tensor: its element type, the offset that is subtracted from its numbers, and its layout.

    first: whether channels are the second dim instead of the last one.
    """

    element: ScalarType
    offset: int = 0
    first: bool = False


class Layout(NamedTuple):
    """The number of a tensor's dims, and whether channels are the second one instead of the last one."""

    rank: int = 0
    first: bool = False


class OnnxTensor:
    """One tensor in all its forms. `low`, `high`: bounds of its numbers."""

    __slots__ = ("again", "channels", "forms", "high", "low", "source")

    def __init__(self, form: TensorForm, value: Value, low: int, high: int, source: Value | None = None) -> None:
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

    def copy(self) -> OnnxTensor:
        """A copy of the tensor; further forms of one are not forms of the other."""
        tensor = OnnxTensor(TensorForm(f32), next(iter(self.forms.values())), self.low, self.high, self.source)
        tensor.forms, tensor.channels, tensor.again = dict(self.forms), self.channels, self.again
        return tensor

    def within(self, low: int, high: int) -> OnnxTensor:
        """Narrows the bounds of the tensor's numbers, and returns the tensor."""
        self.low, self.high = max(self.low, low), min(self.high, high)
        return self

    def get(self, b: OnnxBuilder, wanted: TensorForm) -> Value:
        """The tensor in a form, made from the nearest one that there is."""
        value = self.forms.get(wanted)
        if value is None:
            need_type(wanted.element)
            value = self._convert(b, wanted) if self.source is None else _constant(b, self.source, wanted)
            self.forms[wanted] = value
        return value

    def _convert(self, b: OnnxBuilder, wanted: TensorForm) -> Value:
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
            self.forms[TensorForm(wanted.element, nearest.offset, wanted.first)] = x
        return _moved(b, x, nearest.offset - wanted.offset)


def _nearness(form: TensorForm, wanted: TensorForm) -> tuple[bool, ...]:
    """The nearness of one form to another, the greatest for the fewest steps: layout costs most, then a cast, then a
    sum."""
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


def _constant(b: OnnxBuilder, source: Value, wanted: TensorForm) -> Value:
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


def cheapest(tensor: OnnxTensor) -> TensorForm:
    """The form in which a tensor is best moved: one that exists, narrow if there are several."""
    return min(tensor.forms, key=lambda form: (form.first, form.element.bits, form.offset != 0))


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
#     def add(op: Add, t: Onnx) -> Value | OnnxTensor | Sequence[Value | OnnxTensor]: ...
#
# `t.value(operand)` is an operand in its storage type; `t.integers(operand)` the same numbers in int32, and
# `t.whole(operand)` in float32, if that holds them. A lowering answers with whatever form it has computed: `OnnxTensor`
# says which. What ONNX lacks is `Refused`, with a clause that says what; all refusals of a model are reported together.


Result: TypeAlias = "Value | OnnxTensor"
T = TypeVar("T", bound=Op)
_WIDE = 1 << 62


class Scope:
    """A function, or a graph inside of an operator: its ops, and what is known there of values, shared values and
    variables. A graph inside reads what its outer scopes hold; what it makes of that, it makes for itself.

    repeats: The variables of the body of a loop are its arguments, by name: `arguments`.
    """

    __slots__ = ("arguments", "once", "ops", "outer", "repeats", "tensors", "variables", "written")

    def __init__(self, ops: list[Op], outer: Scope | None = None, *, repeats: bool = False) -> None:
        self.ops = ops
        self.outer = outer
        self.repeats = repeats
        self.tensors: dict[Value, OnnxTensor] = {}
        self.once: dict[Hashable, Value] = {}
        self.variables: dict[str, OnnxTensor] = {}
        """The tensor that each variable holds at this place."""
        self.written: dict[str, None] = {}
        """The variables that were written."""
        self.arguments: dict[str, Value] = {}

    def find(self, value: Value) -> OnnxTensor | None:
        """The tensor of a value; None if the value has not been lowered."""
        tensor = self.tensors.get(value)
        if tensor is None and self.outer is not None:
            outside = self.outer.find(value)
            if outside is not None:
                tensor = self.tensors[value] = outside.copy()
        return tensor

    def shared(self, key: Hashable) -> Value | None:
        """The value that several ops share, if one of them has emitted it."""
        value = self.once.get(key)
        return self.outer.shared(key) if value is None and self.outer is not None else value


class State:
    """The variables of a function, by name."""

    def __init__(self) -> None:
        self.starts: dict[str, np.ndarray] = {}
        """The first values of variables, where an op gives them."""
        self.handles: dict[Value, str] = {}
        """The names of the variables that values are handles of."""
        self.arguments: dict[str, Value] = {}
        """The arguments of the function for variables that are read or written, with their first value."""

    def sides(self, t: Onnx, used: set[Value]) -> tuple[list[Value], list[Value]]:
        """The arguments and the results that stand for them."""
        arguments = list(self.arguments.values())
        used.update(arguments)
        results = []
        for name, argument in self.arguments.items():
            result = distinct_result(t.variable(name).get(t, TensorForm(argument.type.storage)), used, t.identity)
            result.name, result.info = f"{name}_next", {"state": name}
            result.type = argument.type
            results.append(result)
        return arguments, results


class Onnx(OnnxBuilder):
    """An `OnnxBuilder` that knows the tensors of the integer form's values."""

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
        """Notes for the report."""
        self.state = State()
        self.ranges = Ranges()
        self._proofs = proofs
        self.searched: Final = Searches(module) if searches is None else searches
        self.scope = Scope(self.ops)

    # --- the tensors of values -----------------------------------------------------------------------------------

    def tensor(self, operand: Value) -> OnnxTensor:
        """The tensor of an operand. Refused if the operand has not been lowered."""
        tensor = self.scope.find(operand)
        if tensor is None:
            if not operand.is_constant:
                raise Refused(f"'{operand.name}' is neither computed nor a constant")
            tensor = self.scope.tensors[operand] = self._constant(operand)
        return tensor

    def value(self, operand: Value) -> Value:
        """An operand in its storage type."""
        return self.tensor(operand).get(self, TensorForm(operand.type.storage))

    def integers(self, operand: Value, element: ScalarType = i32, zero_point: int = 0) -> Value:
        """An operand less a zero point, in int32 or another type that holds it."""
        return self.tensor(operand).get(self, TensorForm(element, zero_point))

    def whole(self, operand: Value, zero_point: int = 0, *, first: bool = False) -> Value:
        """An operand less a zero point as whole numbers in float32. Refused if that does not hold them."""
        tensor = self.tensor(operand)
        if not self.is_exact(operand):
            raise Refused(f"float32 does not hold the numbers of '{operand.name}'")
        return tensor.get(self, TensorForm(f32, zero_point, first))

    def bounds(self, operand: Value) -> tuple[int, int]:
        """The least and the greatest number that an operand can hold."""
        low, high = self.ranges.of(operand)
        tensor = self.tensor(operand)
        return max(low, tensor.low), min(high, tensor.high)

    def channel_bounds(self, operand: Value) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest number of an operand, int64 [1] or for each channel."""
        low, high = self.bounds(operand)
        channels = self.tensor(operand).channels
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

    def bind(self, y: Value, like: Value, *, offset: int = 0, first: bool = False) -> OnnxTensor:
        """Binds a value as one form of a tensor: y has the numbers of `like`, less an offset."""
        low, high = self.ranges.of(like)
        return OnnxTensor(TensorForm(y.type.storage, offset, first), y, low, high)

    def record(self, operand: Value, result: Result) -> None:
        """Records the tensor of a value. The forms of a value with a name note which tensor they hold."""
        tensor = result if isinstance(result, OnnxTensor) else self.bind(result, operand)
        if operand.name and operand.type.storage.numpy:
            for form, value in tensor.forms.items():
                if value.producer is not None and not value.name:
                    value.name = operand.name
                    value.info = {"holds": (form.offset, form.first, operand.type.storage.dtype.name)}
        self.scope.tensors[operand] = tensor

    def forms_of(self, operand: Value) -> list[Value]:
        """The forms of an operand, if it has been lowered."""
        tensor = self.scope.find(operand)
        return [] if tensor is None else [*tensor.forms.values()]

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

    def variable(self, name: str, scope: Scope | None = None) -> OnnxTensor:
        """The tensor that a declared variable holds at this place, or at the end of another scope."""
        scope = scope or self.scope
        tensor = scope.variables.get(name)
        if tensor is None:
            argument = self.state.arguments[name]
            if scope.repeats:
                argument = scope.arguments[name] = Value(argument.type, name)
            outside = None if scope.repeats or scope.outer is None else self.variable(name, scope.outer)
            tensor = self.bind(argument, argument) if outside is None else outside.copy()
            scope.variables[name] = tensor
        return tensor

    def hold(self, name: str, tensor: OnnxTensor) -> None:
        """Gives a variable another value."""
        self.scope.variables[name] = tensor
        self.scope.written[name] = None

    # --- elementwise ---------------------------------------------------------------------------------------------

    def layout(self, operands: Sequence[Value], result: Value) -> Layout:
        """Of an elementwise op. It is computed with channels first if an operand exists in no other layout."""
        rank = len(result.type.dims)
        others = [self.tensor(v) for v in operands if not v.is_constant]
        return Layout(rank, rank > 2 and any(h.first and h.rank == rank for h in others))

    def operand(self, value: Value, element: ScalarType, layout: Layout, zero_point: int = 0) -> Value:
        """An operand of an elementwise op."""
        tensor, rank = self.tensor(value), layout.rank
        if not layout.first:
            return tensor.get(self, TensorForm(element, zero_point))
        if tensor.rank == rank:
            return tensor.get(self, TensorForm(element, zero_point, first=True))
        shape = value.type.dims
        if value.is_constant:
            aligned = constant(value.array.reshape((1,) * (rank - len(shape)) + value.array.shape), value.type.storage)
            return self._constant(aligned).get(self, TensorForm(element, zero_point, first=True))
        x = self.reshape(tensor.get(self, TensorForm(element, zero_point)), (*(1,) * (rank - len(shape)), *shape))
        return self.bind(x, value).get(self, TensorForm(element, 0, first=True))

    def elementwise(
        self, emit: Callable[..., Value], operands: Sequence[Value], result: Value, element: ScalarType | None = None
    ) -> OnnxTensor:
        """The result of an op that computes each element from those of its operands: in float32 where that is exact,
        else in int32 or int64."""
        if element is None:
            element = self.computing(operands, result)
        layout = self.layout(operands, result)
        return self.bind(emit(*(self.operand(v, element, layout) for v in operands)), result, first=layout.first)

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

    def moved(self, operand: Value, emit: Callable[[Value], Value], result: Value) -> OnnxTensor:
        """The result of `emit`, which only moves elements, on an operand in its cheapest form."""
        tensor = self.tensor(operand)
        form = cheapest(tensor)
        x = tensor.get(self, form._replace(first=False))
        return self.bind(emit(x), result, offset=form.offset).within(tensor.low, tensor.high)

    def common(self, operands: Sequence[Value]) -> tuple[list[Value], TensorForm]:
        """Operands whose elements are moved together, in one form."""
        tensors = [self.tensor(v) for v in operands]
        shared = set(tensors[0].forms).intersection(*(h.forms for h in tensors[1:]))
        plain = [form for form in shared if not form.first]
        form = min(plain, key=lambda f: f.element.bits) if plain else self._joint(operands, tensors)
        return [h.get(self, form) for h in tensors], form

    def _joint(self, operands: Sequence[Value], tensors: Sequence[OnnxTensor]) -> TensorForm:
        floats = sum(f32 in {form.element for form in h.forms} for h in tensors)
        storage = operands[0].type.storage
        exact = storage.is_integer and self.is_exact(*operands)
        return TensorForm(f32 if exact and floats * 2 > len(tensors) else storage)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """`make()`, called once for a value that several ops share."""
        value = self.scope.shared(key)
        if value is None:
            value = self.scope.once[key] = make()
        return value

    def remembered(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)` of a pure function of `tflq.numerics`, from the cache of proofs if there is one."""
        return function(*arguments) if self._proofs is None else self._proofs(function, *arguments)

    def _constant(self, operand: Value) -> OnnxTensor:
        storage = operand.type.storage
        if not is_narrow(storage):
            need_type(storage, f"'{operand.name}'")
        if storage.is_float or storage == i1:
            buffer = Buffer.of(operand.array) if "sparsity" in operand.info else operand.buffer
            return OnnxTensor(TensorForm(storage), Value(operand.type.with_element(storage), buffer=buffer), 0, 0)
        array = operand.array
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        plain = constant(array, storage) if storage.bits >= 8 else constant(array)
        return OnnxTensor(TensorForm(plain.type.storage), plain, low, high, plain)


Lowering: TypeAlias = Callable[[Any, Onnx], "Result | Sequence[Result]"]
lowering: Final[Registry[Lowering]] = Registry("tflq.formats.onnx")
"""The lowering of each op that has a form in ONNX."""


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Onnx) -> OnnxTensor:
    """No operator: the stored integers stay."""
    return t.tensor(op.input)


_LACKING: Final = WITHOUT_NUMBERS | {t for t in SCALARS.values() if not t.numpy}


def lowered(op: Op, t: Onnx) -> Result | Sequence[Result]:
    """The lowered results of an op. Refused if the op has no form in ONNX."""
    lower = form_of(lowering, op, "ONNX")
    need_elements(op, _LACKING)
    return lower(op, t)


def static(shape: Shape) -> tuple[int, ...]:
    """A shape of which all dims are known. Refused if one is not."""
    if shape is None or None in shape:
        raise Refused("the shape of a tensor is not known before a run")
    return tuple(d or 0 for d in shape)
