"""The shapes to run open inputs at: dims that a file leaves open hide differences where they are 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tflq.errors import OptionError, Reason

__all__ = ["Shapes", "bound", "chosen", "is_open", "open_in_both"]

Shapes = list[tuple[int, ...]]
"""One for each input, in order."""

Side = Sequence[tuple[str, dict[str, Any]]]

_BATCHES: Final = (2, 3)
_STEP: Final = 16
_FACTORS: Final = (1, 2, 4, 8, 14, 16, 32)
_ODD: Final = 7


def is_open(side: Side) -> bool:
    """Whether any input has a dim that the file leaves open."""
    return any(-1 in description["shape_signature"] for _, description in side)


def open_in_both(a: Side, b: Side) -> list[tuple[str, dict[str, Any]]]:
    """The inputs of a, with those dims open that are open in both models."""
    pairs = [(d["shape_signature"], e["shape_signature"]) for (_, d), (_, e) in zip(a, b, strict=True)]
    joint = [
        [max(dims) for dims in zip(*pair, strict=True)] if len(set(map(len, pair))) == 1 else pair[0] for pair in pairs
    ]
    return [(name, description | {"shape_signature": dims}) for (name, description), dims in zip(a, joint, strict=True)]


def bound(side: Side, batch: int | None, given: Mapping[str, Sequence[int]]) -> Shapes:
    """The shapes to run inputs with: those `given` by name, those of the file with first dims that are open bound to
    the batch. OptionError names an input that is not there or of another rank."""
    names = [name for name, _ in side]
    for name, shape in given.items():
        if name not in names:
            there = ", ".join(f"'{n}'" for n in names) or "none"
            raise OptionError(Reason(f"the model has no input '{name}'", value=name, remedy=f"its inputs are {there}"))
        stated = dict(side)[name]["shape_signature"]
        if stated and len(stated) != len(shape):
            what = f"input '{name}' is of rank {len(stated)}, the shape given for it of rank {len(shape)}"
            raise OptionError(Reason(what, tensor=name, value=list(shape)))
    return [tuple(given[name]) if name in given else _stated(description, batch) for name, description in side]


def _stated(description: Mapping[str, Any], batch: int | None) -> tuple[int, ...]:
    shape, signature = tuple(description["shape"]), description["shape_signature"]
    if batch is not None and signature and signature[0] == -1:
        return (batch, *shape[1:])
    return shape


def chosen(
    side: Side, window: int, stated: Shapes, fixed: Sequence[bool], batch: int | None, runs: Callable[[Shapes], bool]
) -> list[Shapes]:
    """Two choices for the dims that are open, the batch and others, larger than any window, of those with which the
    model `runs`; one or none if there are no more. `fixed` inputs have their shape from the user."""
    base = -(-(window + 1) // _STEP) * _STEP
    sized = any(-1 in d["shape_signature"][1:] for (_, d), kept in zip(side, fixed, strict=True) if not kept)
    found: list[Shapes] = []
    for batches, sizes in ((_BATCHES[0], _even(base)), (_BATCHES[1], _uneven(base))):
        for size in sizes if sized else (base,):
            ends = zip(side, stated, fixed, strict=True)
            shapes = [given if kept else _filled(d, batch or batches, size) for (_, d), given, kept in ends]
            if shapes not in found and runs(shapes):
                found.append(shapes)
                break
    return found


def _even(base: int) -> Iterator[int]:
    return (base * factor for factor in _FACTORS)


def _uneven(base: int) -> Iterator[int]:
    """Sizes that strides do not divide, then others."""
    yield base + _ODD
    yield from (base * n for factor in _FACTORS for n in (factor + 1, 2 * factor))


def _filled(description: Mapping[str, Any], batch: int, size: int) -> tuple[int, ...]:
    signature = description["shape_signature"]
    if -1 not in signature:
        return tuple(description["shape"])
    return tuple((size if i else batch) if d == -1 else d for i, d in enumerate(signature))
