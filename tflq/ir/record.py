"""What passes note on a module for later passes and for whoever ran them."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Record"]

Item = TypeVar("Item")


class Record:
    """At most one object of each class. It is no part of the model: not printed, not compared, not written."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[type, object] = {}

    def note(self, item: object) -> None:
        """Notes an object, in the place of another of its class."""
        self._items[type(item)] = item

    def find(self, kind: type[Item]) -> Item | None:
        """The object of a class, if there is one."""
        found = self._items.get(kind)
        assert found is None or isinstance(found, kind)
        return found

    def join(self, other: Record) -> None:
        """Notes what another record has beyond this one."""
        self._items = other._items | self._items
