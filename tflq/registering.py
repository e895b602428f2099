"""What a stage does with each op: functions by class of op, imported by family.

    lowering: Registry[Lowering] = Registry("tflq.select", {"tosa.matmul": ("matmul",)})

    @lowering(MatMul)
    def matmul(op: MatMul, k: Kernels) -> Value: ...

The modules of a family are imported when its first op is met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, Generic, TypeVar

from tflq.ir.core import Op
from tflq.ir.registry import family, op_class

__all__ = ["Registry"]

F = TypeVar("F")
G = TypeVar("G")


class Registry(Generic[F]):
    """Functions by class of op. `modules`: for each family ("tosa.matmul"), the modules of `package` that register its
    functions."""

    def __init__(self, package: str, modules: Mapping[str, Sequence[str]]) -> None:
        self._package = package
        self._modules: Final = modules
        self._functions: dict[type[Op], F] = {}
        self._met: set[type[Op]] = set()

    def __call__(self, *kinds: type[Op] | str) -> Callable[[G], G]:
        """The decorator that enters a function for classes of ops. ValueError if one has a function already."""

        def register(function: G) -> G:
            for named in kinds:
                kind = op_class(named) if isinstance(named, str) else named
                if self._functions.setdefault(kind, function) is not function:  # type: ignore[arg-type]
                    raise ValueError(f"{kind.__name__} has two functions in {self._package}")
            return function

        return register

    def get(self, kind: type[Op]) -> F | None:
        """The function of a class; None if it has none."""
        if kind not in self._met:
            self._met.add(kind)
            name = getattr(kind, "op_name", "")
            for module in self._modules.get(f"{name.partition('.')[0]}.{family(name)}", ()):
                import_module(f"{self._package}.{module}")
        return self._functions.get(kind)

    def names(self) -> frozenset[str]:
        """The names of all ops that have a function."""
        for modules in self._modules.values():
            for module in modules:
                import_module(f"{self._package}.{module}")
        return frozenset(getattr(kind, "op_name", "") for kind in self._functions)

    def named(self, name: str) -> F | None:
        """The function of the class of a name; None if it has none."""
        kind = op_class(name)
        return None if kind is None else self.get(kind)
