"""Shapes of products, reductions and lookups.

Sources: kernels/fully_connected.cc, batch_matmul.cc, reduce.cc, arg_min_max.cc, embedding_lookup.cc,
hashtable_lookup.cc, segment_sum.cc, unsorted_segment.cc, multinomial.cc, lsh_projection.cc, rfft2d.cc.
"""

from __future__ import annotations

from tflq.builder import broadcast
from tflq.dialects.tfl.indexing import EmbeddingLookup, HashtableLookup, LSHProjection
from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.dialects.tfl.random import Multinomial
from tflq.dialects.tfl.reduction import ArgMax, ArgMin, SegmentSum
from tflq.dialects.tfl.signal import RFFT2D
from tflq.ir.types import Shape
from tflq.shapes.site import Misfit, Site, agree, product, shape, text

__all__: list[str] = []


@shape(FullyConnected)
def _fully_connected(site: Site) -> list[Shape]:
    """All elements in rows of the weights' length, unless the dims are to be kept."""
    dims = site.dims()
    units, length = site.dims(1, 2)
    spare = [v.type.shape for v in site.op.results[1:]]
    if site.attributes["keep_num_dims"]:
        agree(dims[-1] if dims else None, length, "the input's last dim and the weights' length")
        return [(*dims[:-1], units), *spare]
    total = product(dims)
    if total is not None and length:
        if total % length:
            raise Misfit(f"the input {text(dims)} has no whole number of rows of {length}")
        return [(total // length, units), *spare]
    if dims and dims[-1] is not None and dims[-1] == length:
        return [(product(dims[:-1]), units), *spare]
    return [(None, units), *spare]


@shape(BatchMatMul)
def _batch_matmul(site: Site) -> Shape:
    a, b = site.dims(0), site.dims(1)
    if len(a) < 2 or len(b) < 2:
        raise Misfit(f"{text(a)} and {text(b)} are not matrices")
    rows, inner = reversed(a[-2:]) if site.attributes["adj_x"] else a[-2:]
    depth, columns = reversed(b[-2:]) if site.attributes["adj_y"] else b[-2:]
    agree(inner, depth, "the dims that are multiplied")
    try:
        batch = broadcast(a[:-2], b[:-2]) if len(a) > 2 or len(b) > 2 else ()
    except ValueError as error:
        raise Misfit(str(error)) from None
    return (*(batch or ()), rows, columns)


@shape(*(f"tfl.{n}" for n in ("mean", "sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")))
def _reduce(site: Site) -> Shape:
    dims = site.dims()
    keep = site.attributes["keep_dims"]
    axes = site.ints(1)
    if None in axes:
        if keep:
            return (None,) * len(dims)
        site.whole(1)
    if not dims:
        return ()
    reduced = {site.axis(a, len(dims)) for a in axes if a is not None}
    if keep:
        return tuple(1 if i in reduced else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in reduced)


@shape(ArgMax, ArgMin)
def _arg(site: Site) -> Shape:
    dims = site.dims()
    (axis,) = site.ints(1, 1)
    if axis is None:
        return (None,) * (len(dims) - 1)
    along = site.axis(axis, len(dims))
    return (*dims[:along], *dims[along + 1 :])


@shape(EmbeddingLookup)
def _embedding_lookup(site: Site) -> Shape:
    return (*site.dims(0, 1), *site.dims(1)[1:])


@shape(HashtableLookup)
def _hashtable_lookup(site: Site) -> list[Shape]:
    count = site.dims(0, 1)
    return [(*count, *site.dims(2)[1:]), count]


@shape(SegmentSum)
def _segment_sum(site: Site) -> Shape:
    """As many rows as the last segment says."""
    segments = site.ints(1)
    rows = None if not segments or None in segments else max(s for s in segments if s is not None) + 1
    return (rows, *site.dims()[1:])


@shape(*(f"tfl.unsorted_segment_{kind}" for kind in ("sum", "prod", "min", "max")))
def _unsorted_segment(site: Site) -> Shape:
    (count,) = site.ints(2, 1)
    return (count, *site.dims()[len(site.dims(1)) :])


@shape(Multinomial)
def _multinomial(site: Site) -> Shape:
    return (site.dims(0, 2)[0], *site.ints(1, 1))


@shape(LSHProjection)
def _lsh_projection(site: Site) -> Shape:
    hashes, bits = site.dims(0, 2)
    return (hashes,) if site.attributes["type"] == "SPARSE" else (product((hashes, bits)),)


@shape(RFFT2D)
def _rfft2d(site: Site) -> Shape:
    height, width = site.ints(1, 2)
    return (*site.dims(least=2)[:-2], height, None if width is None else width // 2 + 1)
