"""Patterns of kernel fusion, `rules/fusion.toml`: chains of ops that become one logical kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from tflq.dialects.declare import Operator
from tflq.files import resource
from tflq.ir.core import Op, Value
from tflq.passes.regions.batch_norm import is_foldable
from tflq.passes.regions.ranges import same_value
from tflq.targets.target import RulesFile

Follower = Callable[[Op], tuple[Op, list[Op]] | None]
"""The only op that uses an op's result, and the casts and statistics between them."""


def _is_bias(op: Op, chained: Value | None) -> bool:
    others = [value for value in op.reads if value is not chained]
    return bool(others) and all(same_value(value).is_constant and value.type.rank == 1 for value in others)


def _is_biased(op: Op, _: Value | None) -> bool:
    slot = op.slot("bias") if isinstance(op, Operator) else None
    return slot is not None and slot.value(op) is not None


_NOTES: Final[Mapping[str, Callable[[Op, Value | None], bool]]] = {
    "bias": _is_bias,
    "biased": _is_biased,
    "unbiased": lambda op, chained: not _is_biased(op, chained),
    "folded": is_foldable,
}


@dataclass(frozen=True, slots=True)
class Link:
    """One op of a chain."""

    names: frozenset[str]
    optional: bool
    note: str

    def fits(self, op: Op, chained: Value | None) -> bool:
        """Whether an op is this one; `chained`: the operand by which the chain comes to it, unless it starts there."""
        return op.short_name in self.names and (not self.note or _NOTES[self.note](op, chained))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A chain of ops, and the kernel that it becomes. `parts`: also if a target lists only the ops."""

    kernel: str
    links: tuple[Link, ...]
    parts: bool

    def match(self, op: Op, following: Follower, free: Callable[[Op], bool]) -> list[Op]:
        """The chain that starts with an op, with the casts and statistics in it; empty if none does."""
        return self._match(op, None, [], self.links, following, free) or []

    def _match(
        self,
        op: Op | None,
        chained: Value | None,
        between: list[Op],
        links: Sequence[Link],
        following: Follower,
        free: Callable[[Op], bool],
    ) -> list[Op] | None:
        """The ops of the links, from an op on; None if a required link is missing."""
        if not links:
            return []
        link, *rest = links
        if op is not None and free(op) and link.fits(op, chained):
            next_op = following(op)
            behind = self._match(
                next_op[0] if next_op else None,
                next_op and (next_op[1][-1] if next_op[1] else op).result,
                next_op[1] if next_op else [],
                rest,
                following,
                free,
            )
            if behind is not None:
                return [*between, op, *behind]
        return self._match(op, chained, between, rest, following, free) if link.optional else None


def patterns(path: str | os.PathLike[str] | None = None) -> Sequence[Pattern]:
    """The patterns of a file, by default `rules/fusion.toml`. OptionError if it has faults."""
    return _patterns(os.fspath(path or resource("rules/fusion.toml")))


@cache
def _patterns(path: str) -> Sequence[Pattern]:
    file = RulesFile(path)
    file.check_sections(("pattern",))
    file.check_faults()
    return tuple(_pattern(file, item) for item in file.content.get("pattern", []))


def _pattern(file: RulesFile, item: object) -> Pattern:
    known = {"kernel", "ops", "parts"}
    if not isinstance(item, dict) or not {"kernel", "ops"} <= item.keys() <= known:
        file.fail("a pattern has kernel, ops and, if wanted, parts", "", "pattern", known=sorted(known))
    links = tuple(_link(word) for word in item["ops"])
    for link in links:
        if link.note and link.note not in _NOTES:
            file.fail(f"'{item['kernel']}': ':{link.note}' is not known", "", "pattern", known=_NOTES)
    if all(link.optional for link in links):
        file.fail(f"all ops of '{item['kernel']}' may be missing", "", "pattern")
    return Pattern(item["kernel"], links, bool(item.get("parts", False)))


def _link(word: str) -> Link:
    head, _, note = word.removesuffix("?").partition(":")
    return Link(frozenset(head.split("|")), word.endswith("?"), note)
