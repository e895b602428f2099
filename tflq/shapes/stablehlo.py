"""Shapes of StableHLO operators that carry what they need in their options.

Sources: kernels/stablehlo_pad.cc, stablehlo_gather.cc, stablehlo_reduce_window.cc; for those without a kernel the
StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.ir.types import Shape
from tflq.shapes.movement import joined
from tflq.shapes.site import NotInferred, Site, agree, shape

__all__: list[str] = []


def _option(site: Site, name: str, default: int | None = None, count: int = 0) -> list[int]:
    found = site.attributes[name]
    if found is None or not len(found):
        return [] if default is None else [default] * count
    return [int(v) for v in found]


@shape("tfl.stablehlo_transpose")
def _transpose(site: Site) -> Shape:
    dims = site.dims()
    return tuple(dims[site.axis(p, len(dims))] for p in _option(site, "permutation"))


@shape("tfl.stablehlo_concatenate")
def _concatenate(site: Site) -> Shape:
    return joined(site, site.attributes["dimension"])


@shape("tfl.stablehlo_slice")
def _slice(site: Site) -> Shape:
    parts = (_option(site, name) for name in ("start_indices", "limit_indices", "strides"))
    return tuple(len(range(*part)) for part in zip(*parts, strict=True))


@shape("tfl.stablehlo_dynamic_slice")
def _dynamic_slice(site: Site) -> Shape:
    return tuple(_option(site, "slice_sizes"))


@shape("tfl.stablehlo_pad")
def _pad(site: Site) -> Shape:
    """Edges may be negative; between two elements `interior` are added."""
    parts = (_option(site, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    out: list[int | None] = []
    for dim, low, high, inner in zip(site.dims(), *parts, strict=True):
        out.append(None if dim is None else max(dim + max(dim - 1, 0) * inner + low + high, 0))
    return tuple(out)


@shape("tfl.stablehlo_gather")
def _gather(site: Site) -> Shape:
    """Dims of the slices at `offset_dims`, those of the indices elsewhere."""
    collapsed, offsets = set(_option(site, "collapsed_slice_dims")), _option(site, "offset_dims")
    slices = [s for i, s in enumerate(_option(site, "slice_sizes")) if i not in collapsed]
    at = site.attributes["index_vector_dim"]
    batch = [d for i, d in enumerate(site.dims(1)) if i != at]
    rank = len(slices) + len(batch)
    if len(offsets) != len(slices) or any(not 0 <= o < rank for o in offsets):
        raise NotInferred("its offset_dims do not fit its slices")
    inner: Iterator[int] = iter(slices)
    outer: Iterator[int | None] = iter(batch)
    return tuple(next(inner) if i in offsets else next(outer) for i in range(rank))


@shape("tfl.stablehlo_dot_general")
def _dot_general(site: Site) -> Shape:
    """Batch dims, then what is left of each side."""
    a, b = site.dims(0), site.dims(1)
    batch = list(zip(_option(site, "lhs_batching_dimensions"), _option(site, "rhs_batching_dimensions"), strict=True))
    inner = zip(_option(site, "lhs_contracting_dimensions"), _option(site, "rhs_contracting_dimensions"), strict=True)
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


@shape("tfl.stablehlo_reduce")
def _reduce(site: Site) -> list[Shape]:
    gone = set(_option(site, "dimensions"))
    return [tuple(d for i, d in enumerate(site.dims(r)) if i not in gone) for r in range(len(site.op.results))]


@shape("tfl.stablehlo_reduce_window")
def _reduce_window(site: Site) -> list[Shape]:
    """The input dilated, padded, then reduced over windows."""
    dims = site.dims()
    rank = len(dims)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    window, strides, base, dilations = (_option(site, name, 1, rank) for name in names)
    padding = _option(site, "padding", 0, 2 * rank)
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


@shape("tfl.stablehlo_sort")
def _sort(site: Site) -> list[Shape]:
    return [site.dims(i) for i in range(len(site.op.results))]


@shape("tfl.stablehlo_rng_bit_generator")
def _random_bits(site: Site) -> list[Shape]:
    """What is drawn has the shape that the file states."""
    return [site.dims(), site.op.results[1].type.shape]
