"""Dataclasses whose methods are not compiled, for what every conversion imports.

    from tflq.light import dataclass, field, replace

`dataclasses` and `typing.NamedTuple` write the methods of each class as text and compile it, up to half a millisecond a
class: a hundred of them take longer than the conversion of a small model. Here the methods are closures over the names
of the fields. They do the same; what tflq does not use (`order`, `kw_only`) is not here.

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


class _Field:
    """What is said of a field: its default or what makes it, and which methods leave it out."""

    __slots__ = ("compare", "default", "default_factory", "init", "repr")

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

    @property
    def required(self) -> bool:
        return self.default is _NOTHING and self.default_factory is _NOTHING


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
    own, inherited = _own_fields(cls), _inherited_fields(cls)
    fields = inherited | own
    _refuse_hidden(cls, own, inherited)
    _check_order(cls, fields)
    for name, each in own.items():
        if each.default is not _NOTHING and not slots:
            setattr(cls, name, each.default)
        elif name in vars(cls):
            delattr(cls, name)
    if slots:
        cls = _with_slots(cls, own)
    methods: dict[str, Any] = {"__init__": _initializer(cls, fields)} if init else {}
    if repr:
        methods["__repr__"] = _representer([name for name, each in fields.items() if each.repr])
    if eq:
        values = _reader([name for name, each in fields.items() if each.compare])
        methods["__eq__"] = _comparer(values)
        methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if slots:
        methods |= {"__getstate__": _reader(list(fields)), "__setstate__": _restorer(list(fields))}
    for name, method in methods.items():
        if vars(cls).get(name) is None:  # what the class says itself stays
            setattr(cls, name, method)
    more = {
        "__match_args__": tuple(name for name, each in fields.items() if each.init),
        "__dataclass_params__": _Params(frozen),
        _FIELDS: fields,
    }
    more["__dataclass_fields__"] = _Fields(cls)
    if init and vars(cls)["__init__"] is methods["__init__"]:
        more["__signature__"] = _Signature(cls)
    for name, value in more.items():
        setattr(cls, name, value)
    return cls


def _own_fields(cls: type) -> dict[str, _Field]:
    """The fields that a class itself declares. ValueError for a default that all would share, and could change."""
    found = {}
    for name, kind in cls.__annotations__.items():
        if not str(kind).removeprefix("typing.").startswith("ClassVar"):
            given = vars(cls).get(name, _NOTHING)
            found[name] = given if isinstance(given, _Field) else _Field(default=given)
            if type(found[name].default).__hash__ is None:
                raise ValueError(f"{cls.__name__}.{name} needs a default_factory")
    return found


def _refuse_hidden(cls: type, own: Mapping[str, _Field], inherited: Mapping[str, _Field]) -> None:
    """TypeError for a field without default over an attribute of a base: the standard library takes that for it."""
    for name, each in own.items():
        if each.required and name not in inherited and any(name in vars(base) for base in cls.__mro__[1:]):
            raise TypeError(f"{cls.__name__}.{name} has no default, and hides an attribute of a base")


def _inherited_fields(cls: type) -> dict[str, _Field]:
    found: dict[str, _Field] = {}
    for base in cls.__mro__[:0:-1]:
        if _FIELDS in vars(base):
            found |= vars(base)[_FIELDS]
        elif "__dataclass_fields__" in vars(base):
            raise TypeError(f"{cls.__name__} is light, and {base.__name__} a dataclass of the standard library")
    return found


def _check_order(cls: type, fields: Mapping[str, _Field]) -> None:
    required = [each.required for each in fields.values()]
    if required != sorted(required, reverse=True):
        raise TypeError(f"{cls.__name__} has a field without default after one with a default")


def _with_slots(cls: type, own: Iterable[str]) -> type:
    taken = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    namespace = {key: value for key, value in vars(cls).items() if key not in ("__dict__", "__weakref__")}
    namespace["__slots__"] = tuple(name for name in own if name not in taken)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _initializer(cls: type, fields: Mapping[str, _Field]) -> Callable[..., None]:
    names = tuple(name for name, each in fields.items() if each.init)
    unasked = [name for name, each in fields.items() if not each.init]
    finish = getattr(cls, "__post_init__", None)
    fill = _filler(cls, names)

    def completed(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all fields that are asked for, where some are given by name or left out."""
        rest = names[len(args) :]
        args += tuple([given.pop(name) if name in given else _default(cls, name, fields[name]) for name in rest])
        if given or len(args) > len(names):
            what = f"'{next(iter(given))}' unasked for" if given else f"{len(args)} arguments for {len(names)}"
            raise TypeError(f"{cls.__name__}() was given {what}")
        return args

    def __init__(self: Any, /, *args: Any, **given: Any) -> None:  # noqa: N807
        if given or len(args) != len(names):
            args = completed(args, given)
        fill(self, args)
        for name in unasked:
            _put(self, name, _default(cls, name, fields[name]))
        if finish is not None:
            finish(self)

    def of_two(self: Any, /, *args: Any, **given: Any) -> None:
        if given or len(args) != 2:
            __init__(self, *args, **given)
        else:
            put_first(self, args[0])
            put_second(self, args[1])

    if len(names) != 2 or unasked or finish is not None or "__slots__" not in vars(cls):
        return __init__
    put_first, put_second = (getattr(cls, name).__set__ for name in names)  # of the most common types
    return of_two


def _filler(cls: type, names: tuple[str, ...]) -> Callable[[Any, tuple[Any, ...]], None]:
    """What sets the fields of a new object: in their slots, or in its dictionary."""
    slots = [getattr(cls, name, None) for name in names]
    puts = [slot.__set__ for slot in slots if type(slot) is MemberDescriptorType]

    def in_slots(self: Any, values: tuple[Any, ...]) -> None:
        for put, value in zip(puts, values):  # noqa: B905  there are as many
            put(self, value)

    def in_dictionary(self: Any, values: tuple[Any, ...]) -> None:
        vars(self).update(zip(names, values))  # noqa: B905  there are as many

    def in_both(self: Any, values: tuple[Any, ...]) -> None:
        for name, value in zip(names, values):  # noqa: B905  there are as many
            _put(self, name, value)

    return in_slots if len(puts) == len(names) else in_both if puts else in_dictionary


def _default(cls: type, name: str, each: _Field) -> Any:
    if each.default_factory is not _NOTHING:
        return each.default_factory()
    if each.default is _NOTHING:
        raise TypeError(f"{cls.__name__}() needs '{name}'")
    return each.default


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


def _representer(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


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

    __slots__ = ("_cls",)

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, item: object, owner: type) -> Any:
        return _twin(self._cls).__dataclass_fields__  # type: ignore[attr-defined]


class _Signature(_Fields):
    """`__signature__`, of the class itself: one that inherits from it may have another."""

    __slots__ = ()

    def __get__(self, item: object, owner: type) -> Any:
        from inspect import signature

        if owner is not self._cls or item is not None:
            raise AttributeError("__signature__")
        return signature(_twin(owner))


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _Field, _replace
