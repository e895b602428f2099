"""Names of tensors in a TOSA flatbuffer, where they are what refers to a tensor: unique in the whole file."""

from __future__ import annotations

from collections.abc import Iterable

from tflq.ir.core import Value

__all__ = ["Names"]


class Names:
    """Gives each value a unique name: the one it has, if that is still free."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._of: dict[Value, str] = {}
        self._last: dict[str, int] = {}

    def __getitem__(self, value: Value) -> str:
        """The value's name."""
        name = self._of.get(value)
        if name is None:
            name = self._of[value] = self.free(value.name) if value.name else self.free("t", count=True)
        return name

    def reserve(self, values: Iterable[Value]) -> None:
        """Names the values that have a name, before any other can take it."""
        for value in values:
            if value.name:
                self[value]

    def free(self, name: str, *, count: bool = False) -> str:
        """A name no one has: this one, or with a number, which `count` asks for."""
        made = name
        while count or made in self._taken:
            number = self._last[name] = self._last.get(name, -1 if count else 0) + 1
            made = f"{name}{number}" if count else f"{name}_{number}"
            if made not in self._taken:
                break
        self._taken.add(made)
        return made
