"""Shapes of StableHLO operators that carry what they need in their options.

Sources: kernels/stablehlo_pad.cc, stablehlo_gather.cc, stablehlo_reduce_window.cc; for those without a kernel the
StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.dialects.tfl.stablehlo import (
    StablehloConcatenate,
    StablehloDotGeneral,
    StablehloDynamicSlice,
    StablehloGather,
    StablehloPad,
    StablehloReduce,
    StablehloReduceWindow,
    StablehloReshape,
    StablehloRngBitGenerator,
    StablehloSlice,
    StablehloSort,
    StablehloTranspose,
)
from tflq.ir.types import Shape
from tflq.shapes.movement import joined
from tflq.shapes.site import Misfit, NotInferred, Site, agree, product, shape, text

__all__: list[str] = []


def _option(site: Site, name: str, count: int | None = None, default: int | None = None) -> list[int]:
    """The numbers of an option; `count`: how many there must be, `default`: what each is if there are none."""
    stated = site.attributes[name]
    found = [] if stated is None else [int(v) for v in stated]
    if not found and default is not None:
        found = [default] * (count or 0)
    if count is not None and len(found) != count:
        raise Misfit(f"its {name} are {len(found)}, where {count} are expected")
    return found


def _axes(site: Site, name: str, rank: int) -> list[int]:
    """Dims that an option names."""
    return [site.axis(axis, rank) for axis in _option(site, name)]


@shape(StablehloTranspose)
def _transpose(site: Site) -> Shape:
    dims = site.dims()
    return tuple(dims[site.axis(p, len(dims))] for p in _option(site, "permutation", len(dims)))


@shape(StablehloConcatenate)
def _concatenate(site: Site) -> Shape:
    return joined(site, site.attributes["dimension"])


@shape(StablehloReshape)
def _reshape(site: Site) -> Shape:
    """What the file says: it is the only place that does."""
    stated, count = site.op.result.type.shape, product(site.dims())
    if stated is None or None in stated:
        raise NotInferred("the file does not say what shape it makes")
    if count not in (None, product(stated)):
        raise Misfit(f"{text(site.dims())} has not as many elements as the shape {text(stated)}")
    return stated


@shape(StablehloSlice)
def _slice(site: Site) -> Shape:
    rank = len(site.dims())
    parts = (_option(site, name, rank) for name in ("start_indices", "limit_indices", "strides"))
    return tuple(len(range(*part)) for part in zip(*parts, strict=True))


@shape(StablehloDynamicSlice)
def _dynamic_slice(site: Site) -> Shape:
    rank = len(site.dims())
    agree(len(site.op.operands) - 1, rank, "starts and dims")
    return tuple(_option(site, "slice_sizes", rank))


@shape(StablehloPad)
def _pad(site: Site) -> Shape:
    """Edges may be negative; between two elements `interior` are added."""
    dims = site.dims()
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    parts = (_option(site, name, len(dims)) for name in names)
    out: list[int | None] = []
    for dim, low, high, inner in zip(dims, *parts, strict=True):
        out.append(None if dim is None else max(dim + max(dim - 1, 0) * inner + low + high, 0))
    return tuple(out)


@shape(StablehloGather)
def _gather(site: Site) -> Shape:
    """Dims of the slices at `offset_dims`, those of the indices elsewhere."""
    dims, indices = site.dims(), site.dims(1)
    collapsed, offsets = set(_axes(site, "collapsed_slice_dims", len(dims))), _option(site, "offset_dims")
    sizes, mapped = _option(site, "slice_sizes", len(dims)), _axes(site, "start_index_map", len(dims))
    slices = [s for i, s in enumerate(sizes) if i not in collapsed]
    at = int(site.attributes["index_vector_dim"])
    agree((*indices, 1)[site.axis(at, len(indices) + 1)], len(mapped), "the lengths of indices and start_index_map")
    batch = [d for i, d in enumerate(indices) if i != at]
    rank = len(slices) + len(batch)
    if len(offsets) != len(slices) or any(not 0 <= o < rank for o in offsets):
        raise Misfit("its offset_dims do not fit its slices")
    inner: Iterator[int] = iter(slices)
    outer: Iterator[int | None] = iter(batch)
    return tuple(next(inner) if i in offsets else next(outer) for i in range(rank))


@shape(StablehloDotGeneral)
def _dot_general(site: Site) -> Shape:
    """Batch dims, then what is left of each side."""
    a, b = site.dims(0), site.dims(1)
    batch, inner = (_pairs(site, kind, len(a), len(b)) for kind in ("batching", "contracting"))
    gone_a, gone_b = {i for i, _ in batch}, {j for _, j in batch}
    for i, j in inner:
        agree(a[i], b[j], "the dims that are multiplied")
        gone_a.add(i)
        gone_b.add(j)
    lead = [agree(a[i], b[j], "the batch dims") for i, j in batch]
    return (
        *lead,
        *(d for i, d in enumerate(a) if i not in gone_a),
        *(d for j, d in enumerate(b) if j not in gone_b),
    )


def _pairs(site: Site, kind: str, left: int, right: int) -> list[tuple[int, int]]:
    """Dims of both sides that belong together."""
    sides = [_axes(site, f"{side}_{kind}_dimensions", rank) for side, rank in (("lhs", left), ("rhs", right))]
    if len(sides[0]) != len(sides[1]):
        raise Misfit(f"its {kind} dims are {len(sides[0])} on the left, {len(sides[1])} on the right")
    return list(zip(*sides, strict=True))


@shape(StablehloReduce)
def _reduce(site: Site) -> list[Shape]:
    gone = set(_axes(site, "dimensions", len(site.dims())))
    return [tuple(d for i, d in enumerate(site.dims(r)) if i not in gone) for r in range(len(site.op.results))]


@shape(StablehloReduceWindow)
def _reduce_window(site: Site) -> list[Shape]:
    """The input dilated, padded, then reduced over windows."""
    dims = site.dims()
    rank = len(dims)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    window, strides, base, dilations = (_option(site, name, rank, 1) for name in names)
    padding = _option(site, "padding", 2 * rank, 0)
    out = [
        _windows(*row, padding[2 * i : 2 * i + 2])
        for i, row in enumerate(zip(dims, window, strides, base, dilations, strict=True))
    ]
    return [tuple(out)] * len(site.op.results)


def _windows(dim: int | None, window: int, stride: int, base: int, dilation: int, sides: Sequence[int]) -> int | None:
    if dim is None:
        return None
    extent = (dim - 1) * base + 1 + sum(sides)
    reach = (window - 1) * dilation + 1
    return 0 if extent < reach else (extent - reach) // stride + 1


@shape(StablehloSort)
def _sort(site: Site) -> list[Shape]:
    return [site.dims(i) for i in range(len(site.op.results))]


@shape(StablehloRngBitGenerator)
def _random_bits(site: Site) -> list[Shape]:
    """What is drawn has the shape that the file states."""
    return [site.dims(), site.op.results[1].type.shape]
