"""Dataclasses whose methods are not compiled for each, for what every conversion imports.

    from tflq.light import dataclass, field, replace

`dataclasses` and `typing.NamedTuple` write the methods of each class as text and compile it, up to half a millisecond a
class: a hundred of them take longer than the conversion of a small model. Here `__init__` is compiled once for each
number of fields, and the other methods are closures over their names. They do the same; what tflq does not use
(`order`, `kw_only`) is not here.

To a type checker they are those of the standard library. So they are to `dataclasses.fields`, `asdict` and
`inspect.signature`: when one of these asks, a dataclass with the same fields is made, and answers (`_twin`). A
dataclass of the standard library may inherit from one of these, but not the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, TypeVar

__all__ = ["dataclass", "field", "replace"]

T = TypeVar("T")
_NOTHING: Final = object()
_put: Final = object.__setattr__
_FIELDS: Final = "_light_fields"
_ALONE: Final = (object,)


class _Field:
    """What is said of a field: its default or what makes it, and which methods leave it out."""

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
    kept = {name: getattr(item, name) for name, each in fields.items() if each.init and name not in changes}
    return type(item)(**kept, **changes)


def _finished(cls: type, init: bool, frozen: bool, slots: bool, eq: bool, repr: bool) -> type:
    """The class with its methods. With slots it is a new one: they are said when a class is made."""
    said = vars(cls)
    own = _own_fields(cls, said)
    fields = own
    if cls.__bases__ != _ALONE:
        inherited = _inherited_fields(cls)
        _refuse_hidden(cls, own, inherited)
        fields = {**inherited, **own}
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
    methods = {name: method for name, method in methods.items() if said.get(name) is None}  # the class's own stay
    methods["__match_args__"] = tuple([name for name, each in fields.items() if each.init])
    methods["__dataclass_params__"] = _FROZEN if frozen else _MUTABLE
    methods["__dataclass_fields__"] = _ASKED_FIELDS
    methods[_FIELDS] = fields
    if init := init and "__init__" not in said:
        methods["__signature__"] = _ASKED_SIGNATURE
    if slots:
        cls = _with_slots(cls, own, methods)
    else:
        for name, method in methods.items():
            setattr(cls, name, method)
        for name in [name for name in own if type(said.get(name)) is _Field]:
            if own[name].default is _NOTHING:
                delattr(cls, name)
            else:
                setattr(cls, name, own[name].default)
    if init:
        cls.__init__ = _first_of_all(cls)  # type: ignore[misc]
    return cls


def _own_fields(cls: type, said: Mapping[str, Any]) -> dict[str, _Field]:
    """The fields that a class itself declares. ValueError for a default that all would share, and could change."""
    found = {}
    for name, kind in cls.__annotations__.items():
        if (kind if type(kind) is str else str(kind)).startswith(("ClassVar", "typing.ClassVar")):
            continue
        if name not in said:
            found[name] = _PLAIN
            continue
        given = said[name]
        found[name] = each = given if type(given) is _Field else _Field(default=given)
        if type(each.default).__hash__ is None:
            raise ValueError(f"{cls.__name__}.{name} needs a default_factory")
    return found


def _refuse_hidden(cls: type, own: Mapping[str, _Field], inherited: Mapping[str, _Field]) -> None:
    """TypeError for a field without default over an attribute of a base: the standard library takes that for it."""
    bases = cls.__mro__[1:-1]
    for name, each in own.items():
        if each.required and name not in inherited and any(name in vars(base) for base in bases):
            raise TypeError(f"{cls.__name__}.{name} has no default, and hides an attribute of a base")


def _inherited_fields(cls: type) -> dict[str, _Field]:
    found: dict[str, _Field] = {}
    for base in cls.__mro__[-2:0:-1]:
        if _FIELDS in vars(base):
            found |= vars(base)[_FIELDS]
        elif "__dataclass_fields__" in vars(base):
            raise TypeError(f"{cls.__name__} is light, and {base.__name__} a dataclass of the standard library")
    return found


def _check_order(cls: type, fields: Mapping[str, _Field]) -> None:
    last = True
    for each in fields.values():
        if each.required and not last:
            raise TypeError(f"{cls.__name__} has a field without default after one with a default")
        last = each.required


def _with_slots(cls: type, own: Iterable[str], methods: Mapping[str, Any]) -> type:
    taken = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    left_out = {*own, "__dict__", "__weakref__"}  # a default would be in the way of its slot
    namespace = {name: value for name, value in vars(cls).items() if name not in left_out}
    namespace |= {**methods, "__slots__": tuple([name for name in own if name not in taken])}
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _first_of_all(cls: type) -> Callable[..., None]:
    """`__init__` until the first object is made, which most classes that a process imports never are: it then puts the
    true one in its place."""

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
        made = _initializer(cls, vars(cls)[_FIELDS])
        cls.__init__ = made  # type: ignore[misc]
        made(self, *values, **named)

    return __init__


def _initializer(cls: type, fields: Mapping[str, _Field]) -> Callable[..., None]:
    """`__init__`, with the fields as its parameters: the code of that number of fields, under their names."""
    asked = {name: each for name, each in fields.items() if each.init}
    finish = _finisher(cls, {name: each for name, each in fields.items() if not each.init})
    init: Any = _maker(len(asked))([_putter(cls, name, each) for name, each in asked.items()], finish)
    init.__code__ = init.__code__.replace(co_varnames=("self", *asked))
    init.__defaults__ = tuple([each.default for each in asked.values() if not each.required]) or None
    init.__name__, init.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    return init


def _putter(cls: type, name: str, each: _Field) -> Callable[[Any, Any], None]:
    """What sets a field of a new object, in its slot or in its dictionary."""
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
    """What is done with a new object after its fields are set that are asked for."""
    own: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)
    if not unasked:
        return own

    def finish(self: Any) -> None:
        for name, each in unasked.items():
            _put(self, name, each.default if each.default_factory is _NOTHING else each.default_factory())
        if own is not None:
            own(self)

    return finish


_UNROLLED: Final = (1, 2, 3)
"""Numbers of fields that most objects have: each field is set by a line of its own."""


@cache
def _maker(count: int) -> Callable[..., Any]:
    """What makes the `__init__` of a class with so many fields, from what sets each; its code is compiled once."""
    values = [f"a{at}" for at in range(count)]
    if count in _UNROLLED:
        puts = [f"p{at}" for at in range(count)]
        lines = [f"{put}(self, {value})" for put, value in zip(puts, values, strict=True)]
        text = f"def make(finish, {', '.join(puts)}):\n def init(self, /, {', '.join(values)}):\n  "
        text += "\n  ".join((*lines, "finish and finish(self)")) + "\n return init"
    else:
        text = f"make = lambda fill: lambda {', '.join(('self', '/', *values))}: fill(self, {', '.join(values)})"
    known: dict[str, Any] = {}
    exec(text, known)  # noqa: S102 - of numbers alone
    make: Callable[..., Any] = known["make"]
    if count in _UNROLLED:
        return lambda puts, finish: make(finish, *puts)
    return lambda puts, finish: make(_filler(puts, finish))


def _filler(puts: Iterable[Callable[[Any, Any], None]], finish: Callable[[Any], None] | None) -> Callable[..., None]:
    def fill(self: Any, *values: Any) -> None:
        for put, value in zip(puts, values):  # noqa: B905  there are as many
            put(self, value)
        if finish is not None:
            finish(self)

    return fill


def _reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads the values of fields as a tuple."""
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
        said = {"default": each.default, "default_factory": each.default_factory}
        said = {key: value for key, value in said.items() if value is not _NOTHING}
        rows.append(
            (name, kinds[name], dataclasses.field(init=each.init, repr=each.repr, compare=each.compare, **said))
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


_ASKED_FIELDS, _ASKED_SIGNATURE = _Fields(), _Signature()


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _Field, _replace
