"""Dataclasses and named tuples whose methods are not compiled for each, for what every conversion imports.

    from tflq.base.light import NamedTuple, dataclass, field, replace

`dataclasses` and `typing.NamedTuple` write the methods of each class as text and compile it, up to half a millisecond a
class: a hundred of them take longer than the conversion of a small model. Here `__init__` and `__new__` are functions
that are there for each number of fields, and get the names of a class' own; of a dataclass when its first object is
made. They do the same; what tflq does not use (`order`, `kw_only`, tuples that are generic) is not here.

To a type checker they are those of the standard library. So they are to `dataclasses.fields`, `asdict` and
`inspect.signature`: when one of these asks, a dataclass with the same fields is made, and answers (`_twin`). A
dataclass of the standard library may inherit from one of these, but not the other way.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, TypeVar

__all__ = ["NamedTuple", "dataclass", "field", "replace"]

T = TypeVar("T")
_NOTHING: Final = object()
_put: Final = object.__setattr__
_FIELDS: Final = "_light_fields"
_ALONE: Final = (object,)


class _Field:
    """Default, factory and methods of a field: whether `__init__`, `repr` and comparison include it."""

    __slots__ = ("compare", "default", "default_factory", "init", "repr", "required")

    def __init__(
        self,
        *,
        default: Any = _NOTHING,
        default_factory: Any = _NOTHING,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare

        self.required = default is _NOTHING and default_factory is _NOTHING


_PLAIN: Final = _Field()


def _dataclass(
    cls: type | None = None,
    /,
    *,
    init: bool = True,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Any:
    if cls is None:
        return lambda cls: _finished(cls, init, frozen, slots, eq, repr)
    return _finished(cls, init, frozen, slots, eq, repr)


def _replace(item: T, /, **changes: Any) -> T:
    """A copy with other values of some fields."""
    fields: Mapping[str, _Field] = getattr(item, _FIELDS)
    unchanged = {name: getattr(item, name) for name, each in fields.items() if each.init and name not in changes}
    return type(item)(**unchanged, **changes)


def _finished(cls: type, init: bool, frozen: bool, slots: bool, eq: bool, repr: bool) -> type:
    """The class with its methods. With slots it is a new one: they are said when a class is made."""
    namespace = vars(cls)
    declared = _declared_fields(cls, namespace)
    fields = declared
    if cls.__bases__ != _ALONE:
        inherited = _inherited_fields(cls)
        _refuse_hidden(cls, declared, inherited)
        fields = {**inherited, **declared}
    _check_order(cls, fields)
    methods: dict[str, Any] = {}
    if repr:
        methods["__repr__"] = _represent
    if eq:
        values = _reader([name for name, each in fields.items() if each.compare])
        methods["__eq__"] = _comparer(values)
        methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
    if frozen:
        methods["__setattr__"] = methods["__delattr__"] = _refuse
    if slots:
        methods |= {"__getstate__": _reader(list(fields)), "__setstate__": _restorer(list(fields))}
    methods = {name: method for name, method in methods.items() if namespace.get(name) is None}  # the class's own stay
    methods["__match_args__"] = tuple([name for name, each in fields.items() if each.init])
    methods["__dataclass_params__"] = _FROZEN if frozen else _MUTABLE
    methods["__dataclass_fields__"] = _LAZY_FIELDS
    methods[_FIELDS] = fields
    if init := init and "__init__" not in namespace:
        methods["__signature__"] = _LAZY_SIGNATURE
    if slots:
        cls = _with_slots(cls, declared, methods)
    else:
        for name, method in methods.items():
            setattr(cls, name, method)
        for name in [name for name in declared if type(namespace.get(name)) is _Field]:
            if declared[name].default is _NOTHING:
                delattr(cls, name)
            else:
                setattr(cls, name, declared[name].default)
    if init:
        cls.__init__ = _first_of_all(cls)  # type: ignore[misc]
    return cls


def _declared_fields(cls: type, namespace: Mapping[str, Any]) -> dict[str, _Field]:
    """The fields that a class itself declares. ValueError for a default that all would share, and could change."""
    declared = {}
    for name, kind in cls.__annotations__.items():
        if (kind if type(kind) is str else str(kind)).startswith(("ClassVar", "typing.ClassVar")):
            continue
        if name not in namespace:
            declared[name] = _PLAIN
            continue
        default = namespace[name]
        declared[name] = each = default if type(default) is _Field else _Field(default=default)
        if type(each.default).__hash__ is None:
            raise ValueError(f"{cls.__name__}.{name} needs a default_factory")
    return declared


def _refuse_hidden(cls: type, declared: Mapping[str, _Field], inherited: Mapping[str, _Field]) -> None:
    """TypeError for a field without default over an attribute of a base: the standard library takes that for it."""
    bases = cls.__mro__[1:-1]
    for name, each in declared.items():
        if each.required and name not in inherited and any(name in vars(base) for base in bases):
            raise TypeError(f"{cls.__name__}.{name} has no default, and hides an attribute of a base")


def _inherited_fields(cls: type) -> dict[str, _Field]:
    inherited: dict[str, _Field] = {}
    for base in cls.__mro__[-2:0:-1]:
        if _FIELDS in vars(base):
            inherited |= vars(base)[_FIELDS]
        elif "__dataclass_fields__" in vars(base):
            raise TypeError(f"{cls.__name__} is light, and {base.__name__} a dataclass of the standard library")
    return inherited


def _check_order(cls: type, fields: Mapping[str, _Field]) -> None:
    last = True
    for each in fields.values():
        if each.required and not last:
            raise TypeError(f"{cls.__name__} has a field without default after one with a default")
        last = each.required


def _with_slots(cls: type, declared: Iterable[str], methods: Mapping[str, Any]) -> type:
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    left_out = {*declared, "__dict__", "__weakref__"}  # a default would be in the way of its slot
    namespace = {name: value for name, value in vars(cls).items() if name not in left_out}
    namespace |= {**methods, "__slots__": tuple([name for name in declared if name not in inherited])}
    slotted = type(cls)(cls.__name__, cls.__bases__, namespace)
    slotted.__qualname__ = cls.__qualname__
    return slotted


def _first_of_all(cls: type) -> Callable[..., None]:
    """`__init__` until the first object is made, which most classes that a process imports never are: it then puts the
    true one in its place."""

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
        initialize = _initializer(cls, vars(cls)[_FIELDS])
        cls.__init__ = initialize  # type: ignore[misc]
        initialize(self, *values, **named)

    return __init__


def _initializer(cls: type, fields: Mapping[str, _Field]) -> Callable[..., None]:
    """`__init__`, with the fields as its parameters: the code of that number of fields, under their names."""
    parameters = {name: each for name, each in fields.items() if each.init}
    finish = _finisher(cls, {name: each for name, each in fields.items() if not each.init})
    puts = [_putter(cls, name, each) for name, each in parameters.items()]
    unrolled = _UNROLLED.get(len(parameters))
    init = _signed(len(parameters))(_filler(puts, finish)) if unrolled is None else unrolled(finish, *puts)
    defaults = [each.default for each in parameters.values() if not each.required]
    return _named(init, "__init__", cls.__qualname__, "self", list(parameters), defaults)


def _putter(cls: type, name: str, each: _Field) -> Callable[[Any, Any], None]:
    """Setter of a field of a new object, in its slot or in its dictionary."""
    slot = getattr(cls, name, None)
    if type(slot) is MemberDescriptorType:
        put = slot.__set__
    else:

        def put(self: Any, value: Any) -> None:
            self.__dict__[name] = value

    if each.default_factory is _NOTHING:
        return put
    return lambda self, value: put(self, each.default_factory() if value is _NOTHING else value)


def _finisher(cls: type, unasked: Mapping[str, _Field]) -> Callable[[Any], None] | None:
    """The last step of `__init__`: sets the fields that are no parameters and calls `__post_init__`. None if there
    is neither."""
    post_init: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)
    if not unasked:
        return post_init

    def finish(self: Any) -> None:
        for name, each in unasked.items():
            _put(self, name, each.default if each.default_factory is _NOTHING else each.default_factory())
        if post_init is not None:
            post_init(self)

    return finish


def _of_one(finish: Any, a: Any) -> Any:
    def init(self: Any, /, x: Any) -> None:
        a(self, x)
        finish and finish(self)

    return init


def _of_two(finish: Any, a: Any, b: Any) -> Any:
    def init(self: Any, /, x: Any, y: Any) -> None:
        a(self, x)
        b(self, y)
        finish and finish(self)

    return init


def _of_three(finish: Any, a: Any, b: Any, c: Any) -> Any:
    def init(self: Any, /, x: Any, y: Any, z: Any) -> None:
        a(self, x)
        b(self, y)
        c(self, z)
        finish and finish(self)

    return init


_UNROLLED: Final[Mapping[int, Callable[..., Any]]] = {1: _of_one, 2: _of_two, 3: _of_three}
"""By the number of fields that most objects have: each field is set by a line of its own."""
# fmt: off
_SIGNED: Final[Sequence[Callable[..., Any]]] = (
    lambda fill: lambda self, /: fill(self),
    lambda fill: lambda self, /, a: fill(self, a),
    lambda fill: lambda self, /, a, b: fill(self, a, b),
    lambda fill: lambda self, /, a, b, c: fill(self, a, b, c),
    lambda fill: lambda self, /, a, b, c, d: fill(self, a, b, c, d),
    lambda fill: lambda self, /, a, b, c, d, e: fill(self, a, b, c, d, e),
    lambda fill: lambda self, /, a, b, c, d, e, f: fill(self, a, b, c, d, e, f),
    lambda fill: lambda self, /, a, b, c, d, e, f, g: fill(self, a, b, c, d, e, f, g),
    lambda fill: lambda self, /, a, b, c, d, e, f, g, h: fill(self, a, b, c, d, e, f, g, h),
    lambda fill: lambda self, /, a, b, c, d, e, f, g, h, i: fill(self, a, b, c, d, e, f, g, h, i),
)
# fmt: on
"""By the number of fields: a function of so many, which gives them to `fill`. Written out, since compiling each of them
takes longer than all that a class needs besides."""


@cache
def _signed(count: int) -> Callable[..., Any]:
    """The function of `_SIGNED` for any number of parameters."""
    if count < len(_SIGNED):
        return _SIGNED[count]
    values = ", ".join(f"a{at}" for at in range(count))
    known: dict[str, Any] = {}
    exec(f"make = lambda fill: lambda self, /, {values}: fill(self, {values})", known)  # noqa: S102 - of numbers alone
    make: Callable[..., Any] = known["make"]
    return make


def _named(function: Any, name: str, cls_name: str, first: str, fields: Sequence[str], defaults: Sequence[Any]) -> Any:
    """A function of a class with the fields as its parameters. first: the name of its first parameter."""
    function.__code__ = function.__code__.replace(co_varnames=(first, *fields))
    function.__defaults__ = tuple(defaults) or None
    function.__name__, function.__qualname__ = name, f"{cls_name}.{name}"
    return function


def _filler(puts: Iterable[Callable[[Any, Any], None]], finish: Callable[[Any], None] | None) -> Callable[..., None]:
    def fill(self: Any, *values: Any) -> None:
        for put, value in zip(puts, values):  # noqa: B905  there are as many
            put(self, value)
        if finish is not None:
            finish(self)

    return fill


def _reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Getter of the values of fields, as a tuple."""
    if len(names) > 1:
        get = attrgetter(*names)
        return lambda self: get(self)
    return lambda self: tuple(getattr(self, name) for name in names)


def _comparer(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


@recursive_repr()
def _represent(self: Any) -> str:
    names = [name for name, each in getattr(self, _FIELDS).items() if each.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _restorer(names: list[str]) -> Callable[[Any, Iterable[Any]], None]:
    def __setstate__(self: Any, state: Iterable[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            _put(self, name, value)

    return __setstate__


def _refuse(self: Any, name: str, *_: Any) -> None:
    """Setting or deleting a field of what is frozen."""
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"{type(self).__name__} is frozen: '{name}' stays as it is")


# --- named tuples


class _TupleMaker(type):
    """Makes the classes that are named tuples; what inherits from one of these is a class like any other."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if _NAMED not in [vars(base).get("_fields", ()) for base in bases]:
            return super().__new__(cls, name, bases, namespace)
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace[field] for field in fields if field in namespace}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"{name} has a field without default after one with a default")
        namespace |= {field: _tuplegetter(at, "") for at, field in enumerate(fields)}
        namespace |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
        new = _signed(len(fields))(_tuple_of)
        namespace["__new__"] = _named(new, "__new__", name, "_cls", fields, list(defaults.values()))
        return super().__new__(cls, name, bases, namespace)


def _tuple_of(cls: Any, *values: Any) -> Any:
    return tuple.__new__(cls, values)


_NAMED: Final = None
"""The value of `_fields` in the base of named tuples alone."""


class _NamedTuple(tuple, metaclass=_TupleMaker):
    __slots__ = ()
    _fields: Any = _NAMED

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        """One of the values in the order of the fields."""
        return cls(*values)

    def _replace(self, /, **changes: Any) -> Any:
        """A copy with other values of some fields."""
        copy = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"{type(self).__name__} has no field {', '.join(changes)}")
        return copy

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({fields})"


# --- what the standard library asks of a dataclass


class _Params:
    """Asked by `dataclasses` of the bases of a class."""

    __slots__ = ("frozen",)

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen


_FROZEN, _MUTABLE = _Params(True), _Params(False)


@cache
def _twin(cls: type) -> type:
    """A dataclass of the standard library with the same fields."""
    import dataclasses

    bases = [vars(base).get("__annotations__", {}) for base in reversed(cls.__mro__)]
    kinds = {name: kind for annotations in bases for name, kind in annotations.items()}
    rows = []
    for name, each in getattr(cls, _FIELDS).items():
        options = {"default": each.default, "default_factory": each.default_factory}
        options = {key: value for key, value in options.items() if value is not _NOTHING}
        rows.append(
            (name, kinds[name], dataclasses.field(init=each.init, repr=each.repr, compare=each.compare, **options))
        )
    return dataclasses.make_dataclass(cls.__name__, rows)


class _Fields:
    """`__dataclass_fields__`, made when it is asked for."""

    def __get__(self, item: object, owner: type) -> Any:
        light = next(base for base in owner.__mro__ if _FIELDS in vars(base))
        return _twin(light).__dataclass_fields__  # type: ignore[attr-defined]


class _Signature:
    """`__signature__`, of the class itself: one that inherits from it may have another."""

    def __get__(self, item: object, owner: type) -> Any:
        from inspect import signature

        if vars(owner).get("__signature__") is not self or item is not None:
            raise AttributeError("__signature__")
        return signature(_twin(owner))


_LAZY_FIELDS, _LAZY_SIGNATURE = _Fields(), _Signature()


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
    from typing import NamedTuple
else:
    dataclass, field, replace, NamedTuple = _dataclass, _Field, _replace, _NamedTuple
