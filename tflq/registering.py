"""What a stage does with each op: functions by class of op, imported by family.

    lowering: Registry[Lowering] = Registry("tflq.select")

    @lowering(MatMul)
    def matmul(op: MatMul, k: Kernels) -> Value: ...

The modules of a family are imported when its first op is met: that of the family's name and `generic`, unless the
registry says others. A function may also be registered for a trait: it serves the ops with that trait that have no
function otherwise.

Threads may ask and register at the same time, and no lock is taken: registering is part of an import, which holds
Python's own locks. What was found is kept only after all modules of the family are imported (another thread's import
of one is waited for), and in the table that was there before the functions were looked through: registering one puts
an empty table in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType, UnionType
from typing import Final, Generic, TypeVar, get_args

from tflq.dialects.declare import Operator, Trait
from tflq.ir.core import Op
from tflq.ir.registry import dialect, dialects, family, op_class

__all__ = ["Registry", "module_of"]

F = TypeVar("F")
G = TypeVar("G")


def module_of(package: str, name: str) -> ModuleType | None:
    """A module of a package, imported; None if there is none."""
    path = f"{package}.{name}"
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None


class Registry(Generic[F]):
    """Functions by class of op. `modules`: for an op ("tosa.conv3d") or a family ("tosa.casts"), the modules of
    `package` that register its functions, if they are not those of the family's name."""

    def __init__(self, package: str, modules: Mapping[str, Sequence[str]] | None = None) -> None:
        self.package = package
        self._modules: Final = modules or {}
        self._functions: dict[type[Op] | type[Trait], F] = {}
        self._found: dict[type[Op], F | None] = {}
        self._imported: set[str] = set()  # whole: a module under way is not in it

    def __call__(self, *kinds: type[Op] | type[Trait] | UnionType) -> Callable[[G], G]:
        """The decorator that enters a function for classes of ops, for unions of them or for traits. ValueError if one
        has a function already."""

        def register(function: G) -> G:
            for named in kinds:
                for kind in get_args(named) or (named,):
                    if self._functions.setdefault(kind, function) is not function:  # type: ignore[arg-type]
                        raise ValueError(f"{kind.__name__} has two functions in {self.package}")
            self._found = {}
            return function

        return register

    def get(self, kind: type[Op]) -> F | None:
        """The function of a class: its own, else that of a trait; None if it has none."""
        found = self._found
        if kind not in found:
            self._import(getattr(kind, "op_name", ""))
            found = self._found
            kinds = [kind, *map(type, kind.traits)] if issubclass(kind, Operator) else [kind]
            bases = (base for each in kinds for base in each.__mro__)
            found[kind] = next((self._functions[base] for base in bases if base in self._functions), None)
        return found[kind]

    def modules_of(self, name: str) -> Sequence[str]:
        """The modules, within the package, that have the function of an op if there is one."""
        place = family(name)
        of_family = self._modules.get(f"{name.partition('.')[0]}.{place}", (place, "generic") if place else ())
        return self._modules.get(name, of_family)

    def _import(self, name: str) -> None:
        """Imports the modules of an op; each is entered as imported when it is whole."""
        for module in self.modules_of(name):
            if module not in self._imported:
                module_of(self.package, module)
                self._imported.add(module)

    def names(self) -> frozenset[str]:
        """The names of all declared ops that have a function."""
        declared = (found for name in dialects() if (found := dialect(name)) is not None)
        return frozenset(c.op_name for found in declared for c in found.classes() if self.get(c) is not None)

    def named(self, name: str) -> F | None:
        """The function of the class of a name; None if it has none."""
        kind = op_class(name)
        return None if kind is None else self.get(kind)
