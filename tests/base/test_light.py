"""Light dataclasses and named tuples do what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from typing import Any, ClassVar

import pytest

from tflq.base import light


def _classes(dataclass: Any, field: Any) -> dict[str, type]:
    """The same classes, made by one decorator or the other."""

    @dataclass(frozen=True)
    class Frozen:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list, compare=False, repr=False)
        shared: ClassVar[int] = 3

    @dataclass(frozen=True)
    class Derived(Frozen):
        d: float = 0.5

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")

    @dataclass(slots=True)
    class Slots:
        a: int
        b: int = 2
        seen: dict[str, int] = field(default_factory=dict, init=False)

    @dataclass(frozen=True, slots=True)
    class FrozenSlots:
        a: int = 1

    @dataclass(eq=False)
    class Identity:
        a: int = 1

    @dataclass
    class Own:
        a: int = 1

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    @dataclass(frozen=True, slots=True, eq=False, init=False)
    class Single:
        a: int

        def __new__(cls, a: int) -> Any:
            made = object.__new__(cls)
            object.__setattr__(made, "a", a)
            return made

        def __reduce__(self) -> Any:
            return type(self), (self.a,)

    @dataclass(frozen=True)
    class Empty:
        pass

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


LIGHT = _classes(light.dataclass, light.field)
USUAL = _classes(dataclasses.dataclass, dataclasses.field)
BY_IDENTITY = ("Identity", "Single")
CALLS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("Frozen", (1,), {}),
    ("Frozen", (1, "x", [2]), {}),
    ("Frozen", (), {"a": 1, "c": [2]}),
    ("Frozen", (), {}),
    ("Frozen", (1,), {"a": 2}),
    ("Frozen", (1, "x", [], 4), {}),
    ("Frozen", (1,), {"none": 2}),
    ("Derived", (1,), {"d": 2.5}),
    ("Derived", (-1,), {}),
    ("Slots", (1,), {}),
    ("Slots", (1, 2, {}), {}),
    ("FrozenSlots", (), {}),
    ("Identity", (), {}),
    ("Own", (), {}),
    ("Empty", (), {}),
    ("Single", (1,), {}),
    ("Single", (), {}),
)


def _outcome(kinds: dict[str, type], call: tuple[str, tuple[Any, ...], dict[str, Any]], what: Any) -> Any:
    name, args, given = call
    try:
        return what(kinds[name](*args, **given))
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize(
    "what",
    [
        lambda item: repr(item) if type(item).__name__ not in BY_IDENTITY else "",
        lambda item: hash(item) if type(item).__name__ not in BY_IDENTITY else "",
        lambda item: item == type(item)(**{f.name: getattr(item, f.name) for f in dataclasses.fields(item) if f.init}),
        lambda item: item == object(),
        dataclasses.asdict,
        lambda item: repr(copy.deepcopy(item)) if type(item).__name__ not in BY_IDENTITY else "",
        lambda item: setattr(item, "a", 5),
        lambda item: delattr(item, "a"),
        lambda item: hasattr(item, "__dict__"),
        lambda item: [(f.name, f.type, f.repr, f.compare, f.init) for f in dataclasses.fields(item)],
        lambda item: str(inspect.signature(type(item))).replace("<factory>", "_"),
        lambda item: type(item).__match_args__,
        lambda item: type(item).__qualname__,
        lambda item: repr(dataclasses.replace(item, a=8)) if type(item).__name__ not in BY_IDENTITY else "",
    ],
)
def test_as_the_standard_library(call: tuple[str, tuple[Any, ...], dict[str, Any]], what: Any) -> None:
    assert _outcome(LIGHT, call, what) == _outcome(USUAL, call, what)


def test_replace() -> None:
    frozen = LIGHT["Frozen"](1, "x")
    assert repr(light.replace(frozen, a=2)) == repr(LIGHT["Frozen"](2, "x"))
    slots = LIGHT["Slots"](1)
    slots.seen["x"] = 1
    assert light.replace(slots, b=3).seen == {}
    with pytest.raises(TypeError):
        light.replace(frozen, none=2)


@light.dataclass(frozen=True, slots=True)
class Pickled:
    a: int
    b: tuple[int, ...] = ()


def test_pickles() -> None:
    item = Pickled(1, (2, 3))
    again = pickle.loads(pickle.dumps(item))  # noqa: S301
    assert again == item == copy.copy(item) == copy.deepcopy(item)


def test_a_dataclass_of_the_standard_library_inherits() -> None:
    @dataclasses.dataclass(frozen=True)
    class Derived(Pickled):
        c: int = 4

    assert Derived(1, c=5) == Derived(1, (), 5)
    assert [f.name for f in dataclasses.fields(Derived)] == ["a", "b", "c"]
    assert str(inspect.signature(Derived)).startswith("(a: 'int', b: 'tuple[int, ...]' = (), c: 'int' = 4)")


def test_not_the_other_way() -> None:
    with pytest.raises(TypeError, match="of the standard library"):
        light.dataclass(type("Derived", (USUAL["Frozen"],), {"__annotations__": {"e": "int"}, "e": 1}))


def test_faults_of_a_declaration() -> None:
    shared = type("Shared", (), {"__annotations__": {"a": "list"}, "a": []})
    with pytest.raises(ValueError, match="default_factory"):
        light.dataclass(shared)
    order = type("Order", (), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})
    with pytest.raises(TypeError, match="without default"):
        light.dataclass(order)


def test_no_attribute_of_a_base_is_a_default() -> None:
    base = type("Base", (), {"a": 1})
    declared: Any = type("Declared", (base,), {"__annotations__": {"a": "object"}})
    with pytest.raises(TypeError, match="hides an attribute"):
        light.dataclass(declared)
    assert dataclasses.dataclass(declared)().a == 1  # as nothing here does


def _tuples(base: Any) -> dict[str, Any]:
    """The same named tuples, on one base or the other."""

    class Plain(base):  # type: ignore[misc]
        """Two values."""

        a: int
        b: int = 2

        def total(self) -> int:
            return self.a + self.b

    class Derived(Plain):
        pass

    class Many(base):  # type: ignore[misc]
        a: int
        b: int
        c: int
        d: int
        e: int
        f: int
        g: int
        h: int
        i: int
        j: int
        k: str = "k"

    class Empty(base):  # type: ignore[misc]
        pass

    return {"Plain": Plain, "Derived": Derived, "Many": Many, "Empty": Empty}


TUPLES = {
    "light": _tuples(light.NamedTuple),
    "typing": _tuples(typing.NamedTuple),
}
OF_TUPLES: dict[str, Any] = {
    "by place": lambda k: k["Plain"](1, 3),
    "by name": lambda k: k["Plain"](b=4, a=1),
    "default": lambda k: k["Plain"](1),
    "too many": lambda k: k["Plain"](1, 2, 3),
    "too few": lambda k: k["Plain"](),
    "unknown name": lambda k: k["Plain"](1, c=3),
    "text": lambda k: repr([k["Plain"](1), k["Derived"](1), k["Many"](*range(10))]),
    "unpacked": lambda k: [*k["Plain"](1)],
    "compared": lambda k: (k["Plain"](1) == (1, 2), hash(k["Plain"](1)) == hash((1, 2)), k["Plain"](1) < (2,)),
    "fields": lambda k: [(c._fields, c._field_defaults, c.__match_args__) for c in k.values()],
    "changed": lambda k: k["Many"](*range(10))._replace(j=1, k="l"),
    "wrongly changed": lambda k: k["Plain"](1)._replace(c=1),
    "as a dictionary": lambda k: k["Plain"](1)._asdict(),
    "made of values": lambda k: k["Derived"]._make([5, 6]),
    "method": lambda k: k["Derived"](1).total(),
    "own dictionary": lambda k: [hasattr(k["Plain"](1), "__dict__"), hasattr(k["Derived"](1), "__dict__")],
    "set": lambda k: setattr(k["Plain"](1), "a", 2),
    "copied": lambda k: [type(copy.deepcopy(k["Plain"](1))).__name__, copy.copy(k["Derived"](1))],
    "signature": lambda k: [
        [(p.name, p.default) for p in inspect.signature(c).parameters.values()] for c in k.values()
    ],
    "of none": lambda k: (k["Empty"](), len(k["Empty"]())),
    "doc": lambda k: [k["Plain"].__doc__, k["Plain"].a.__get__(k["Plain"](7))],
}


def _outcome_of(kinds: dict[str, Any], what: Any) -> object:
    try:
        return what(kinds)
    except (AttributeError, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("what", OF_TUPLES)
def test_named_tuples_are_as_those_of_the_standard_library(what: str) -> None:
    found = {made: _outcome_of(kinds, OF_TUPLES[what]) for made, kinds in TUPLES.items()}
    assert found["light"] == found["typing"]


class PickledTuple(light.NamedTuple):
    a: int
    b: str = "b"


def test_a_named_tuple_pickles() -> None:
    again = pickle.loads(pickle.dumps(PickledTuple(1)))  # noqa: S301
    assert type(again) is PickledTuple
    assert again == (1, "b")


def test_a_field_of_a_tuple_without_default_stands_first() -> None:
    with pytest.raises(TypeError, match="default"):

        class Wrong(light.NamedTuple):
            a: int = 1
            b: int  # type: ignore[misc]
