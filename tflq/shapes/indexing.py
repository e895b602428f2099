"""Shapes of operators that gather, scatter, or make tensors of a given shape.

Sources: the kernels of these names in kernels/; sizes of RANGE: `GetSize` in kernels/range.cc.
"""

from __future__ import annotations

import math

from tflq.dialects.tfl.comparison import Where
from tflq.dialects.tfl.indexing import (
    Gather,
    GatherND,
    MatrixDiag,
    MatrixSetDiag,
    NonMaxSuppressionV4,
    NonMaxSuppressionV5,
    OneHot,
    ScatterND,
    SparseToDense,
    Unique,
)
from tflq.dialects.tfl.movement import Dilate
from tflq.dialects.tfl.pooling import ReduceWindow
from tflq.dialects.tfl.random import RandomStandardNormal, RandomUniform
from tflq.dialects.tfl.reduction import TopKV2
from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Range, Rank
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.dialects.tfl.state import Hashtable, HashtableFind, HashtableSize
from tflq.ir.types import Shape
from tflq.shapes.site import Misfit, NotInferred, Site, agree, shape, text

__all__: list[str] = []


@shape(Gather)
def _gather(site: Site) -> Shape:
    """[batch, before axis, indices, after axis]."""
    dims, indices = site.dims(), site.dims(1)
    axis = site.axis(site.attributes["axis"], len(dims))
    batch = site.attributes.get("batch_dims", 0)
    batch += len(indices) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(indices)):
        raise Misfit(f"batch_dims {batch} does not fit {text(dims)} and indices {text(indices)}")
    lead = [agree(a, b, "batch dims") for a, b in zip(dims[:batch], indices[:batch], strict=True)]
    return (*lead, *dims[batch:axis], *indices[batch:], *dims[axis + 1 :])


@shape(GatherND)
def _gather_nd(site: Site) -> Shape:
    dims, indices = site.dims(), site.dims(1)
    if not indices or indices[-1] is None:
        raise NotInferred(f"how many dims the indices {text(indices)} name is not known")
    if indices[-1] > len(dims):
        raise Misfit(f"indices {text(indices)} name more dims than {text(dims)} has")
    return (*indices[:-1], *dims[indices[-1] :])


@shape(OneHot)
def _one_hot(site: Site) -> Shape:
    dims, axis = site.dims(), site.attributes["axis"]
    (depth,) = site.ints(1, 1)
    at = len(dims) if axis == -1 else site.axis(axis, len(dims) + 1)
    return (*dims[:at], depth, *dims[at:])


@shape(ScatterND)
def _scatter_nd(site: Site) -> Shape:
    return tuple(site.ints(2))


@shape(SparseToDense)
def _sparse_to_dense(site: Site) -> Shape:
    return tuple(site.ints(1))


@shape(Fill, RandomStandardNormal, RandomUniform)
def _fill(site: Site) -> Shape:
    return tuple(site.ints(0))


@shape(Range)
def _range(site: Site) -> Shape:
    """ceil((limit - start) / delta) elements."""
    found = [known for known in site.known if known is not None]
    if len(found) != 3 or not all(known.complete for known in found):
        return (None,)
    start, limit, delta = (known.array.reshape(-1)[0] for known in found)
    if not delta or (limit - start) * delta < 0:
        raise Misfit(f"steps of {delta} do not lead from {start} to {limit}")
    if found[0].array.dtype.kind == "f":
        return (math.ceil(abs((limit - start) / delta)),)
    return (-(-abs(int(limit) - int(start)) // abs(int(delta))),)


@shape(TflShape)
def _shape(site: Site) -> Shape:
    return (len(site.dims()),)


@shape(Rank, Hashtable)
def _scalar(site: Site) -> Shape:
    return () if isinstance(site.op, Rank) else (1,)


@shape(HashtableFind)
def _hashtable_find(site: Site) -> Shape:
    return site.dims(1)


@shape(HashtableSize)
def _hashtable_size(_: Site) -> Shape:
    return (1,)


@shape(BroadcastArgs)
def _broadcast_args(site: Site) -> Shape:
    (a,), (b,) = site.dims(0, 1), site.dims(1, 1)
    return (None if a is None or b is None else max(a, b),)


@shape(TopKV2)
def _topk(site: Site) -> list[Shape]:
    dims = site.dims()
    (k,) = site.ints(1, 1)
    if not dims or (k is not None and dims[-1] is not None and k > dims[-1]):
        raise Misfit(f"{text(dims)} has no {k} elements in its last dim")
    out = (*dims[:-1], None if k is None else max(k, 0))
    return [out, out]


@shape(MatrixDiag)
def _matrix_diag(site: Site) -> Shape:
    dims = site.dims()
    return (*dims, *dims[-1:])


@shape(MatrixSetDiag)
def _matrix_set_diag(site: Site) -> Shape:
    """As many elements on the diagonal as the shorter of the last two dims has."""
    *outer, rows, columns = site.dims(least=2)
    diagonal = site.dims(1, len(outer) + 1)
    least = None if rows is None or columns is None else min(rows, columns)
    for a, b in zip((*outer, least), diagonal, strict=True):
        agree(a, b, "dims of input and diagonal")
    return (*outer, rows, columns)


@shape(Where)
def _where(site: Site) -> Shape:
    """As many rows as there are true elements."""
    known = site.known[0]
    rows = int((known.array != 0).sum()) if known is not None and known.complete else None
    return (rows, len(site.dims()))


@shape(Unique)
def _unique(site: Site) -> list[Shape]:
    """How many differ is seen only when the model runs."""
    return [(None,), site.dims(0, 1)]


@shape(NonMaxSuppressionV4, NonMaxSuppressionV5)
def _non_max_suppression(site: Site) -> list[Shape]:
    (most,) = site.ints(2, 1)
    return [*[(most,)] * (len(site.op.results) - 1), ()]


@shape(Dilate)
def _dilate(site: Site) -> Shape:
    dims = site.dims()
    factors = site.ints(1, len(dims))
    return tuple(None if d is None or f is None else (d - 1) * f + 1 for d, f in zip(dims, factors, strict=True))


@shape(ReduceWindow)
def _reduce_window(site: Site) -> Shape:
    dims = site.dims()
    window, strides, dilations = (site.ints(i, len(dims)) for i in (2, 3, 4))
    out: list[int | None] = []
    for dim, size, stride, dilation in zip(dims, window, strides, dilations, strict=True):
        if dim is None or size is None or not stride or dilation is None:
            out.append(None)
        else:
            out.append(max((dim - (size - 1) * dilation - 1) // stride + 1, 0))
    return tuple(out)
