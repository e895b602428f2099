"""The kernel sets under which an operator is computed otherwise.

A rule is a function of an operator and of the numbers that it asks its kernel set for. So an operator is the same under
two sets if these answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from types import MethodType
from typing import Any, Final

import numpy as np

from tflq.ir.ops import Op
from tflq.legalize.delegate import is_delegated, words_of
from tflq.numerics.kernel_sets import NAMES, kernel_set
from tflq.numerics.reference import KernelSet
from tflq.numerics.requantize.scaling import Factor


class Queries(KernelSet):
    """The kernels of a set for one operator after another, and what rules ask of them: `kernels`."""

    def __init__(self, kernels: KernelSet) -> None:
        self._chosen = kernels
        others = {name: kernel_set(name) for name in NAMES if name != kernels.name}
        self._others = [{name: other.of(delegated=d) for name, other in others.items()} for d in (False, True)]
        self._queries: list[tuple[str, tuple[Any, ...], dict[str, Any], set[str], Hashable]] = []
        self._called: set[str] | None = None  # by the query that is being answered
        self.kernels = kernels

    def begin(self, op: Op) -> None:
        """Turns to the kernels of an operator."""
        self._queries.clear()
        self._called = None
        self._op = op
        self._delegated = is_delegated(op)
        self.kernels = self._chosen.of(delegated=self._delegated)

    def unknown(self) -> str:
        """The operator and its types, if the arithmetic of its kernel is not known here; else empty."""
        return min(self._unknown(self.kernels), default="")

    def _unknown(self, kernels: KernelSet) -> frozenset[str]:
        """The words by which a set names the operator among kernels whose arithmetic is not known here."""
        if self._op.name not in _operators(kernels.inexact):
            return frozenset()
        return kernels.inexact.intersection(words_of(self._op))

    def differing(self) -> tuple[str, ...]:
        """The sets whose kernels answer otherwise, or compute the operator in a way that is not known."""
        others = self._others[self._delegated]  # some sets have kernels in common
        unlike = {k for k in set(others.values()) if self._unknown(k) or not self._answers_alike(k)}
        names = [self._chosen.name] if self.unknown() else []
        return (*names, *[name for name, kernels in others.items() if kernels in unlike])

    def _answers_alike(self, kernels: KernelSet) -> bool:
        """Whether kernels answer each query as those in use did."""
        changed = _changed(kernels) | _changed(self.kernels)
        return all(
            changed.isdisjoint(called) or _answer(getattr(kernels, name), arguments, options)[1] == key
            for name, arguments, options, called, key in self._queries
        )

    def answer(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The answer of the kernels in use, which is noted with the methods that it calls."""
        method = getattr(self.kernels, name)
        if method.__func__ is getattr(KernelSet, name):
            method = MethodType(method.__func__, self)  # what it calls is noted, too
        if self._called is not None:
            self._called.add(name)
            return method(*arguments, **options)
        self._called = called = {name}
        result, key = _answer(method, arguments, options)
        self._called = None
        self._queries.append((name, arguments, options, called, key))
        if isinstance(result, ValueError):
            raise result
        return result


def _answer(method: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> tuple[Any, Hashable]:
    """An answer, or the exception in its place, and a key that is equal for equal ones."""
    try:
        result = method(*arguments, **options)
    except ValueError as error:
        return error, ValueError
    return result, _key(result)


def _key(answer: object) -> Hashable:
    if isinstance(answer, Factor):
        return type(answer), answer.key
    if isinstance(answer, np.ndarray):
        return answer.tobytes()
    if isinstance(answer, tuple):
        return type(answer), tuple(map(_key, answer))
    assert isinstance(answer, Hashable)
    return answer  # None, or a number


@cache
def _operators(words: frozenset[str]) -> frozenset[str]:
    """The operators that words are of."""
    return frozenset(f"tfl.{word.partition(' ')[0].lower()}" for word in words)


@cache
def _changed(kernels: KernelSet) -> frozenset[str]:
    """The methods in which a set differs from the reference kernels."""
    kind = type(kernels)
    return frozenset(name for name in _METHODS if getattr(kind, name) is not getattr(KernelSet, name))


def _recording(name: str) -> Callable[..., Any]:
    def method(self: Queries, *arguments: Any, **options: Any) -> Any:
        return self.answer(name, arguments, options)

    return method


_METHODS: Final = tuple(n for n, member in vars(KernelSet).items() if callable(member) and n[0] != "_" and n != "of")
for _name in _METHODS:
    setattr(Queries, _name, _recording(_name))
