"""Functions of a stage by class of op, in modules that `tflq/ir/index.py` lists.

    lowering: Registry[Lowering] = Registry("tflq.formats.tflite.lowering")

    @lowering(MatMul)
    def matmul(op: MatMul, k: Kernels) -> Value: ...

A module is imported when the first op is met that it has a function for. A function may also be registered for a
trait: it serves the ops with that trait that have no function of their own.

Threads may ask and register at the same time, without a lock: registering is part of an import, which holds Python's
own locks. An answer is kept only after all modules of the op are imported (if another thread imports one, we wait), in
the table that was there before we looked: registering a function puts an empty table in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Final, Generic, TypeVar, get_args

from tflq.base.errors import Refused
from tflq.dialects.declare import Operator, Trait
from tflq.dialects.tfl.state import Custom
from tflq.ir.index import ANY, DIALECTS, ROOMS
from tflq.ir.ops import Op, dialect, dialects, op_class

F = TypeVar("F")
G = TypeVar("G")


def description(kind: type) -> str:
    """The docstring of a class: from its source if the interpreter has left docstrings out (`-OO`)."""
    if sys.flags.optimize < 2:
        return kind.__doc__ or ""
    import ast
    from inspect import getsource
    from textwrap import dedent

    (parsed,) = ast.parse(dedent(getsource(kind))).body
    return (ast.get_docstring(parsed) if isinstance(parsed, ast.ClassDef) else None) or ""


@cache
def _by_op(package: str, dialect: str) -> Mapping[str, Sequence[str]]:
    """By the op's name in its dialect, the modules that have a function of a stage for it."""
    modules: dict[str, list[str]] = {}
    for module, names in ROOMS.get(package, {}).get(dialect, {}).items():
        for name in names.split():
            modules.setdefault(name, []).append(module)
    return modules


def modules_of(package: str, name: str) -> Sequence[str]:
    """The modules that have a function of a stage for an op, in the order of the index. For an op from outside,
    those that have one for a trait."""
    dialect, _, short = name.partition(".")
    known = dialect in DIALECTS
    return _by_op(package, dialect if known else ANY).get(short if known else ANY, ())


REGISTRIES: Final[list[Registry]] = []
"""All of them: `scripts/make_index.py` writes the index from what they hold."""


def _bases(kind: type[Op]) -> Iterator[type]:
    """The classes for which a function for an op may be registered: its class, its traits, and their bases."""
    kinds = [kind, *map(type, kind.traits)] if issubclass(kind, Operator) else [kind]
    return (base for each in kinds for base in each.__mro__)


class Registry(Generic[F]):
    """Functions by class of op: what a stage does, which is named by its package."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._functions: dict[type[Op] | type[Trait], F] = {}
        self._places: dict[type[Op] | type[Trait], str] = {}
        self._by_class: dict[type[Op], F | None] = {}
        self._imported: set[str] = set()  # whole: a module under way is not in it
        REGISTRIES.append(self)

    def __call__(self, *kinds: type[Op] | type[Trait] | UnionType, module: str = "") -> Callable[[G], G]:
        """The decorator that enters a function for classes of ops, for unions of them or for traits. ValueError if one
        has a function already. module: the one to import for it, if it is not the one that calls the decorator."""

        def register(function: G) -> G:
            place: str = module or sys._getframe(1).f_globals["__name__"]
            for named in kinds:
                for kind in get_args(named) or (named,):
                    if self._functions.setdefault(kind, function) is not function:  # type: ignore[arg-type]
                        raise ValueError(f"{kind.__name__} has two functions in {self.package}")
                    self._places[kind] = place
            self._by_class = {}
            return function

        return register

    def get(self, kind: type[Op]) -> F | None:
        """The function of a class: its own, else that of a trait; None if it has none."""
        table = self._by_class
        if kind not in table:
            self._import(getattr(kind, "op_name", ""))
            table = self._by_class
            table[kind] = self.registered(kind)
        return table[kind]

    def registered(self, kind: type[Op]) -> F | None:
        """The function of a class among the imported ones."""
        return next((self._functions[base] for base in _bases(kind) if base in self._functions), None)

    def place(self, kind: type[Op]) -> str | None:
        """The module that registered the function of a class, among what is imported already."""
        return next((self._places[base] for base in _bases(kind) if base in self._places), None)

    def places_of_traits(self) -> Sequence[str]:
        """The modules that registered functions of traits."""
        return [place for kind, place in self._places.items() if issubclass(kind, Trait)]

    def _import(self, name: str) -> None:
        """Imports the modules of an op; each is entered as imported when it is whole."""
        for module in modules_of(self.package, name):
            if module not in self._imported:
                import_module(module)
                self._imported.add(module)

    def names(self) -> frozenset[str]:
        """The names of all declared ops that have a function."""
        declared = (declaring for name in dialects() if (declaring := dialect(name)) is not None)
        return frozenset(c.op_name for declaring in declared for c in declaring.classes() if self.get(c) is not None)

    def named(self, name: str) -> F | None:
        """The function of an op by its name; None if it has none."""
        kind = op_class(name)
        return None if kind is None else self.get(kind)


def form_of(functions: Registry[F], op: Op, format: str) -> F:
    """The function of an op in a stage that lowers to a format, such as "TOSA". Refused if the op has no form there."""
    function = functions.get(type(op))
    if function is not None:
        return function
    if isinstance(op, Custom):
        remedy = "convert the part before it (--cut-before-custom), or give a rule for it (--rules FILE.py)"
        raise Refused(f"{format} has no form of the custom operator '{op.code}'", remedy)
    raise Refused(f"{format} has no form of {op.name} yet")
