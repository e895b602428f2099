"""The arithmetic of result shapes that operators of several dialects share. A dim is None where it is not known."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tflq.dialects.inference import Dims, Misfit, agree, broadcast, plus, product, text

__all__ = [
    "cut",
    "divided",
    "fitting",
    "matrix_product",
    "padded",
    "permuted",
    "reduced",
    "replaced",
    "reshaped",
    "subscripted",
    "with_dim",
    "without_dim",
]


def permuted(dims: Dims, perms: Sequence[int | None]) -> Dims:
    """Dim i is dim perms[i] of `dims`, counted from either end; all are open where a place is not known."""
    rank, known = len(dims), [p for p in perms if p is not None]
    if len(perms) != rank:
        raise Misfit(f"a permutation of {len(perms)} dims for {text(dims)}")
    if len(known) != rank:
        return (None,) * rank
    if sorted(p % rank for p in known) != list(range(rank)) or not all(-rank <= p < rank for p in known):
        raise Misfit(f"{known} is no permutation of the dims of {text(dims)}")
    return tuple(dims[p] for p in known)


def reduced(dims: Dims, axes: Collection[int], *, keep: bool = False) -> Dims:
    """Without axes, counted from 0; with `keep` they stay, of size 1."""
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)


def with_dim(dims: Dims, at: int, size: int | None) -> Dims:
    """With one more dim, which is then at a place."""
    return (*dims[:at], size, *dims[at:])


def without_dim(dims: Dims, at: int) -> Dims:
    return (*dims[:at], *dims[at + 1 :])


def padded(
    dims: Sequence[int | None],
    low: Sequence[int | None],
    high: Sequence[int | None],
    between: Sequence[int] | None = None,
) -> Dims:
    """With elements before and after each dim, and so many between two elements."""
    inner = [0] * len(dims) if between is None else between
    rows = zip(dims, low, high, inner, strict=True)
    return tuple(plus(d, a, b, None if d is None else max(d - 1, 0) * n) for d, a, b, n in rows)


def fitting(dims: Dims, block: Dims, what: str) -> Dims:
    """The shape of a tensor that a block of the same rank, no larger, is put into."""
    if any(a is not None and b is not None and a < b for a, b in zip(dims, block, strict=True)):
        raise Misfit(f"{what} {text(block)} is larger than {text(dims)}")
    return dims


def reshaped(dims: Dims, wanted: Sequence[int | None]) -> Dims:
    """A wanted shape for the elements of `dims`: one -1, or else one unknown dim, is what is left."""
    total, left = product(dims), [i for i, d in enumerate(wanted) if d == -1]
    unknown = [i for i, d in enumerate(wanted) if d is None]
    if len(left) > 1:
        raise Misfit(f"the shape {text(tuple(wanted))} leaves more than one dim open")
    if not left and not unknown:
        if total is not None and product(wanted) != total:
            raise Misfit(f"{text(dims)} has not as many elements as the shape {text(tuple(wanted))}")
        return tuple(wanted)
    free = unknown or left
    rest = product(d for i, d in enumerate(wanted) if i not in free)
    if len(left) + len(unknown) > 1 or total is None or not rest:
        return tuple(None if d == -1 else d for d in wanted)
    if total % rest:
        raise Misfit(f"{text(dims)} does not fill the shape {text(tuple(wanted))}")
    return tuple(total // rest if i in free else d for i, d in enumerate(wanted))


def matrix_product(a: Dims, b: Dims) -> Dims:
    """[..., M, K] times [..., K, N]; the dims before the last two broadcast."""
    if len(a) < 2 or len(b) < 2:
        raise Misfit(f"{text(a)} and {text(b)} are not matrices")
    agree(a[-1], b[-2], "the dims that are multiplied")
    return (*(broadcast(a[:-2], b[:-2]) or ()), a[-2], b[-1])


def replaced(dims: Dims, at: int, size: int | None) -> Dims:
    """With another size of one dim."""
    return (*dims[:at], size, *dims[at + 1 :])


def divided(dim: int | None, block: int | None) -> int | None:
    """How many blocks a dim has."""
    if dim is None or block is None:
        return None
    if not block or dim % block:
        raise Misfit(f"{dim} is no multiple of the block's {block}")
    return dim // block


def cut(dims: Dims, starts: Sequence[int | None], counts: Sequence[int | None]) -> Dims:
    """A block from the starts on; a count of -1 is the rest of a dim."""
    out: list[int | None] = []
    for dim, start, count in zip(dims, starts, counts, strict=True):
        if count == -1:
            out.append(None if dim is None or start is None else dim - start)
            continue
        if dim is not None and start is not None and count is not None and start + count > dim:
            raise Misfit(f"{count} elements from {start} on are not within {text(dims)}")
        out.append(count)
    return tuple(out)


def subscripted(
    dims: Dims,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    strides: Sequence[int | None],
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Dims:
    """The shape of a block that subscripts choose as Python's do. The masks have a bit for each: its begin or end is
    left out; it is an ellipsis, a new dim, or one index.

    An ellipsis stands for one dim at least; what then exceeds the rank is disregarded; dims not named are whole.
    Source: `BuildStridedSliceParams` in kernels/strided_slice.cc.
    """
    count = len(begin)
    added = (new_axis_mask & ~ellipsis_mask & ((1 << count) - 1)).bit_count()
    places: list[int] = []  # of each dim and new dim its subscript
    for i in range(count):
        places += [i] * (max(1, len(dims) + added - count + 1) if ellipsis_mask >> i & 1 else 1)
    left, out = list(dims), list[int | None]()
    for i in places[: len(dims) + added]:
        bit = 1 << i
        if new_axis_mask & ~ellipsis_mask & bit:
            out.append(1)
            continue
        if not left:
            raise Misfit("it names more dims than its input has")
        dim = left.pop(0)
        if ellipsis_mask & bit:
            out.append(dim)
        elif not shrink_axis_mask & bit:
            out.append(_steps(dim, begin[i], end[i], strides[i], not begin_mask & bit, not end_mask & bit))
    return (*out, *left)


def _steps(
    dim: int | None, begin: int | None, end: int | None, stride: int | None, has_begin: bool, has_end: bool
) -> int | None:
    """How many elements a slice of a dim has."""
    if not has_begin and not has_end and stride in (1, -1):
        return dim
    if dim is None or stride is None or (begin is None and has_begin) or (end is None and has_end):
        return None
    if not stride:
        raise Misfit("a stride is 0")
    return len(range(*slice(begin if has_begin else None, end if has_end else None, stride).indices(dim)))
