"""Declaration of an operator: a class with its operands, results and attributes by name, and its other properties.

    class Conv2D(Operator, name="tfl.conv_2d"):
        \"\"\"2-D convolution of NHWC input and OHWI filter.\"\"\"

        input: Value = operand()
        filter: Value = operand()
        bias: Value | None = operand(optional=True)
        output: Value = result()
        stride_h: int = attribute(default=0, positive=True)
        traits = (MultiplyAccumulate(input, filter, bias, axis=0), Window(input))

The class is the op: the reader makes a `Conv2D`, and `conv.filter` is `conv.operands[1]`. An op with a declared name
is always of its class (`Op.__init__`). These are views: what is assigned to is `operands`, `results`, `attributes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from tflq.dialects.inference import DECLARED_SHAPES, DeclaredShapes, NotInferred, check_sizes
from tflq.ir.attributes import TypedFloat, TypedInt
from tflq.ir.ops import Op, Value, register
from tflq.ir.types import SCALARS, ElementType, ScalarType, Shape
from tflq.ir.verifier import Notes

# --- element types


class Types:
    """The element types that a value may have, by name. `bound`: all values of one op declared with this very object
    have the same one. `widths`: the names stand for types of their kind ("int", "float") of every width. `text`: what
    messages call them."""

    __slots__ = ("bound", "kinds", "names", "text")

    def __init__(
        self, *types: ScalarType | Types | str, bound: bool = False, widths: tuple[str, ...] = (), text: str = ""
    ) -> None:
        names: set[str] = set()
        kinds = set(widths)
        for type in types:
            names |= type.names if isinstance(type, Types) else {str(getattr(type, "name", type))}
            kinds |= type.kinds if isinstance(type, Types) else set()
        self.names: frozenset[str] = frozenset(names)
        self.kinds: frozenset[str] = frozenset(kinds)
        self.bound = bound
        only = types[0] if len(types) == 1 else None
        self.text: str = text or (only.text if isinstance(only, Types) else "")

    def admits(self, element: ElementType) -> bool:
        """Whether an element type is one of these."""
        if not isinstance(element, ScalarType):
            return "quantized" in self.names
        return element.name in self.names or element.kind in self.kinds

    def __str__(self) -> str:
        if self.text:
            return self.text
        listed = [t for t in (*SCALARS, "quantized") if t in self.names]
        return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def OneOf(*types: ScalarType | Types) -> Types:  # noqa: N802  reads like the class it makes
    """A type variable: one of these, the same for all values declared with it."""
    return Types(*types, bound=True)


ANY: Final = Types(*SCALARS.values())
"""Every plain element type."""
INTEGER: Final = Types(*(t for t in SCALARS.values() if t.is_integer))
FLOAT: Final = Types(*(t for t in SCALARS.values() if t.is_float))
QUANTIZED: Final = Types("quantized")
"""Every quantized element type."""


# --- operands and results


class Slot:
    """One operand or result of an operator: read from an op, it is the value there.

    optional: it may be left out, and is None then. variadic: any number of values, a list; only the last operand or
    result can be.
    indices: it holds integers that say where or how many (axes, shapes). constant: it must be a constant. types: the
    element types, one `Types` for each alternative signature of the op; none: any.
    """

    __slots__ = ("constant", "index", "indices", "is_result", "name", "optional", "types", "variadic")

    def __init__(
        self,
        types: Sequence[Types | ScalarType],
        *,
        is_result: bool,
        optional: bool = False,
        variadic: bool = False,
        indices: bool = False,
        constant: bool = False,
    ) -> None:
        self.name = ""
        self.index = 0
        self.is_result = is_result
        self.optional = optional
        self.variadic = variadic
        self.indices = indices
        self.constant = constant
        self.types = tuple([t if isinstance(t, Types) else Types(t) for t in types]) if types else ()

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Op | None, owner: type) -> Any:
        if op is None:
            return self
        values: Sequence[Value | None] = op.results if self.is_result else op.operands
        if self.variadic:
            return values[self.index :]
        value = values[self.index] if self.index < len(values) else None
        if value is None and not self.optional:
            raise ValueError(f"{op.name} has no {'result' if self.is_result else 'operand'} '{self.name}'")
        return value

    def __set__(self, op: Op, value: Any) -> None:
        of = "results" if self.is_result else "operands"
        raise AttributeError(f"'{self.name}' of {op.name} is read from its {of}: change these")

    def values(self, op: Op) -> list[Value]:
        """The values that an op has there; none if it is left out."""
        values: Sequence[Value | None] = op.results if self.is_result else op.operands
        if self.variadic:
            return [v for v in values[self.index :] if v is not None]
        value = values[self.index] if self.index < len(values) else None
        return [] if value is None else [value]

    def value(self, op: Op) -> Value | None:
        """The first of `values`; None if there is none."""
        if self.variadic:
            return next(iter(self.values(op)), None)
        values: Sequence[Value | None] = op.results if self.is_result else op.operands
        return values[self.index] if self.index < len(values) else None

    def __repr__(self) -> str:
        return f"<{'result' if self.is_result else 'operand'} {self.index} '{self.name}'>"


def operand(*types: Types | ScalarType, **options: bool) -> Any:
    """Declares an operand; `Slot` says what it can be."""
    return Slot(types, is_result=False, **options)


def result(*types: Types | ScalarType, **options: bool) -> Any:
    """Declares a result."""
    return Slot(types, is_result=True, **options)


# --- attributes


class Kind:
    """The kind of an attribute: in words, and a test for values."""

    __slots__ = ("holds", "text")

    def __init__(self, text: str, holds: Callable[[Any], bool]) -> None:
        self.text: Final = text
        self.holds: Final = holds

    def __str__(self) -> str:
        return self.text


_INTS: Final = frozenset({int, TypedInt})
_NUMBERS: Final = _INTS | {float, TypedFloat}

INT: Final = Kind("int", lambda value: type(value) in _INTS)
BOOL: Final = Kind("bool", lambda value: type(value) is bool)
STRING: Final = Kind("string", lambda value: type(value) is str)
NUMBER: Final = Kind("number", lambda value: type(value) in _NUMBERS)


def words(*allowed: str) -> Kind:
    """One of these words."""
    known = frozenset(allowed)
    return Kind("/".join(allowed), lambda value: isinstance(value, str) and value in known)


def ints(count: int = 0) -> Kind:
    """A tuple of integers: that many; 0: any number."""
    return _tuple("int", count, _INTS)


def dims(count: int = 0) -> Kind:
    """A tuple of dims: integers, None for one that is not known."""
    return _tuple("dim", count, _INTS | {type(None)})


def _tuple(base: str, count: int, members: frozenset[type]) -> Kind:
    return Kind(
        f"{base}[{count or ''}]",
        lambda value: (
            isinstance(value, (tuple, list))
            and (not count or len(value) == count)
            and members.issuperset(map(type, value))
        ),
    )


def array(element: ScalarType) -> Kind:
    """A numpy array with one dim."""
    return Kind(
        f"{element}[]",
        lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == element.dtype,
    )


_REQUIRED: Final = object()


class Attribute:
    """One attribute: read from an op, it is the value there, or its default.

    positive, finite: a file in which it is not is invalid. among: so is one with another word than these, if there are
    any. unread: interpreters disregard it, and only a warning says so.
    """

    __slots__ = ("among", "default", "finite", "key", "kind", "name", "positive", "unread")

    def __init__(
        self,
        kind: Kind | None,
        default: Any,
        key: str,
        *,
        positive: bool = False,
        finite: bool = False,
        among: Sequence[str] = (),
        unread: bool = False,
    ) -> None:
        self.kind = kind
        self.default = default
        self.key = key
        self.name = key
        self.positive = positive
        self.finite = finite
        self.among = among
        self.unread = unread

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.key = self.key or name

    def __get__(self, op: Op | None, owner: type) -> Any:
        if op is None:
            return self
        if self.default is _REQUIRED:
            return op.attributes[self.key]
        return op.attributes.get(self.key, self.default)

    def __set__(self, op: Op, value: Any) -> None:
        raise AttributeError(f"'{self.name}' of {op.name} is read from its attributes: change these")

    @property
    def checked(self) -> bool:
        """Whether a file can violate it."""
        return self.positive or self.finite or bool(self.among) or self.unread

    @property
    def required(self) -> bool:
        """Whether it cannot be left out."""
        return self.default is _REQUIRED

    def as_read(self, op: Op) -> Any:
        """The value in the file: 0 for an attribute that it does not have, as an interpreter reads it."""
        return op.attributes.get(self.key, 0)

    def __repr__(self) -> str:
        return f"<attribute '{self.key}'>"


def attribute(kind: Kind | None = None, *, default: Any = _REQUIRED, key: str = "", **options: Any) -> Any:
    """Declares an attribute; `key` is what the IR calls it, if that is not a name for a field. `Attribute` says the
    rest."""
    return Attribute(kind, default, key, **options)


_DECLARED: Final = frozenset({Slot, Attribute})


# --- operators


class Trait:
    """Something that is true of an operator wherever it occurs: what the rest of the house asks for by class.

    `check` holds an op of a file to it: it raises for a defect and notes what is harmless.
    """

    __slots__ = ()

    def check(self, op: Operator, notes: Notes) -> None:
        """Nothing, unless the trait says something that a file can violate."""

    def infer(self, op: Operator, site: DeclaredShapes) -> Shape:
        """The result's shape, if the trait says it."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Its name and what it says: `SameScale(input, output)`."""
        from inspect import signature

        parameters = signature(type(self)).parameters
        order = list(parameters)
        names = [name for kind in reversed(type(self).__mro__) for name in vars(kind).get("__slots__", ())]
        names = [name for name in names if not name.startswith("_")]
        names.sort(key=lambda name: order.index(name) if name in order else len(order))
        members = ((name, getattr(self, name)) for name in names)
        members = (
            (name, value) for name, value in members if name not in parameters or parameters[name].default is not value
        )
        texts = [text for name, value in members for text in _member_texts(name, value)]
        return f"{type(self).__name__}({', '.join(texts)})" if texts else type(self).__name__


def _member_texts(name: str, value: Any) -> list[str]:
    """A member of a trait as text; none if it says nothing."""
    if isinstance(value, (Slot, Attribute)):
        return [value.name]
    if value is None or value == ():
        return []
    if isinstance(value, tuple) and isinstance(value[0], (Slot, Attribute)):
        return [item.name for item in value]
    if isinstance(value, Mapping):
        value = tuple(f"{key} {item}" for key, item in value.items())
    if isinstance(value, (tuple, frozenset)):
        value = "/".join(sorted(map(str, value)) if isinstance(value, frozenset) else map(str, value))
    return [f"{name}={value}"]


T = TypeVar("T", bound=Trait)


class Operator(Op):
    """An op that is declared. The class has its `operand_slots`, `result_slots`, `attribute_slots` and `traits`.

    A class without a name is what operators share: slots, attributes, traits and constraints, which theirs begin with.

    newest: the newest version of a TFLite operator that the interpreter registers; versions: which one its types need
    (`dialects.tfl.Needs`), the newest that holds.
    """

    op_name: ClassVar[str]
    """The `name` of every op of the class."""
    operand_slots: ClassVar[tuple[Slot, ...]] = ()
    result_slots: ClassVar[tuple[Slot, ...]] = ()
    attribute_slots: ClassVar[Mapping[str, Attribute]] = {}
    checked_attributes: ClassVar[tuple[Attribute, ...]] = ()
    traits: ClassVar[tuple[Trait, ...]] = ()
    checked_traits: ClassVar[tuple[Trait, ...]] = ()
    """The traits that a file can violate."""
    shape_trait: ClassVar[Trait | None] = None
    """The first that says the result's shape."""
    infers: ClassVar[bool] = False
    """Whether the class or a trait of it says the shapes of its results."""
    newest: ClassVar[int] = 1
    versions: ClassVar[tuple[Any, ...]] = ()

    _by_trait: ClassVar[dict[type, Trait]] = {}
    _declared: ClassVar[Mapping[str, Slot | Attribute]] = {}
    """The slots and attributes of the class, those of its bases first."""

    def __init_subclass__(cls, name: str = "", newest: int = 1) -> None:
        namespace = vars(cls)
        joined = len(cls.__bases__) > 1
        members = {key: each for key, each in namespace.items() if type(each) in _DECLARED}
        if joined or members:
            cls._number(members)
        if joined or "traits" in namespace:
            traits = cls.traits
            cls.checked_traits = tuple([t for t in traits if type(t).check is not Trait.check])
            cls.shape_trait = next((t for t in traits if type(t).infer is not Trait.infer), None)
            cls._by_trait = {kind: t for t in reversed(traits) for kind in type(t).__mro__}  # the first one stays
        if joined or "traits" in namespace or "infer" in namespace:
            cls.infers = cls.shape_trait is not None or cls.infer is not Operator.infer
        if not name:
            return
        cls.op_name = name
        type.__setattr__(cls, "name", name)  # instead of the slot of a plain op
        if newest != cls.newest:
            cls.newest = newest
        register(name, cls)

    @classmethod
    def _number(cls, members: Mapping[str, Any]) -> None:
        """Gathers the slots and attributes of the class, behind those of its bases, and says each slot which one it
        is."""
        declared: dict[str, Any] = {}
        for base in reversed(cls.__bases__):
            if issubclass(base, Operator):
                declared |= base._declared
        declared |= members
        cls._declared = declared
        operands: list[Slot] = []
        results: list[Slot] = []
        attributes: dict[str, Attribute] = {}
        for each in declared.values():
            if type(each) is Attribute:
                attributes[each.key] = each
                continue
            slots = results if each.is_result else operands
            each.index = len(slots)
            slots.append(each)
        cls.operand_slots, cls.result_slots = tuple(operands), tuple(results)
        if attributes:
            cls.attribute_slots = attributes
            cls.checked_attributes = tuple([each for each in attributes.values() if each.checked])

    def infer(self, site: DeclaredShapes) -> Shape | list[Shape]:
        """The shapes of its results, from those of its operands and from its attributes (`tflq.dialects.inference`)."""
        if self.shape_trait is None:
            raise NotInferred(f"nothing says the shape that {self.name} makes")
        return self.shape_trait.infer(self, site)

    def infer_shapes(self) -> Shape | list[Shape]:
        """The shapes that `infer` gives for the declared types; None if no shape follows from them. Misfit if the
        operands do not fit, as where a window is larger than its input."""
        try:
            shapes = self.infer(DECLARED_SHAPES)
        except NotInferred:
            return None
        for dims in shapes if isinstance(shapes, list) else (shapes,):
            check_sizes(dims)
        return shapes

    @property
    def missing(self) -> Slot | None:
        """The first operand that is left out and must not be; None if all are there."""
        if len(self.operands) == len(self.operand_slots) and None not in self.operands:
            return None
        for slot in self.operand_slots:
            if not (slot.optional or slot.variadic) and slot.value(self) is None:
                return slot
        return None

    @classmethod
    def trait(cls, kind: type[T]) -> T | None:
        """The first of its traits that is of a kind; None if it has none."""
        match: Any = cls._by_trait.get(kind)
        return match

    @classmethod
    def has(cls, *kinds: type[Trait]) -> bool:
        """Whether it has a trait of one of the kinds."""
        return not cls._by_trait.keys().isdisjoint(kinds)

    @classmethod
    def matches(cls, kind: type) -> bool:
        return kind in cls._by_trait or issubclass(cls, kind)

    @classmethod
    def slot(cls, name: str) -> Slot | None:
        """Its operand or result of that name."""
        return next((s for s in (*cls.operand_slots, *cls.result_slots) if s.name == name), None)


def trait_of(op: Op, kind: type[T]) -> T | None:
    """The trait of an op, declared or not; None if it has none of that kind."""
    return op.trait(kind) if isinstance(op, Operator) else None
