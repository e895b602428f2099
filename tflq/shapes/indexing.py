"""Shapes of operators that take or place elements by index.

Sources: the kernels of these names in kernels/.
"""

from __future__ import annotations

from tflq.dialects.inference import Dims, Misfit, NotInferred, agree, product, text
from tflq.dialects.tfl.indexing import (
    DynamicUpdateSlice,
    EmbeddingLookup,
    Gather,
    GatherND,
    HashtableLookup,
    LSHProjection,
    MatrixDiag,
    MatrixSetDiag,
    NonMaxSuppressionV4,
    NonMaxSuppressionV5,
    OneHot,
    ScatterND,
    SparseToDense,
    Unique,
)
from tflq.ir.core import Value
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__ = ["updated"]


@shape_of(Gather)
def _gather(op: Gather, site: Site) -> Shape:
    """[batch, before axis, indices, after axis]."""
    dims, indices = site.dims(op.input), site.dims(op.indices)
    axis = site.axis(op.axis, len(dims))
    batch = op.batch_dims
    batch += len(indices) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(indices)):
        raise Misfit(f"batch_dims {batch} does not fit {text(dims)} and indices {text(indices)}")
    lead = [agree(a, b, "batch dims") for a, b in zip(dims[:batch], indices[:batch], strict=True)]
    return (*lead, *dims[batch:axis], *indices[batch:], *dims[axis + 1 :])


@shape_of(GatherND)
def _gather_nd(op: GatherND, site: Site) -> Shape:
    dims, indices = site.dims(op.input), site.dims(op.indices)
    if not indices or indices[-1] is None:
        raise NotInferred(f"how many dims the indices {text(indices)} name is not known")
    if indices[-1] > len(dims):
        raise Misfit(f"indices {text(indices)} name more dims than {text(dims)} has")
    return (*indices[:-1], *dims[indices[-1] :])


@shape_of(OneHot)
def _one_hot(op: OneHot, site: Site) -> Shape:
    dims, axis = site.dims(op.indices), op.axis
    (depth,) = site.ints(op.depth, 1)
    at = len(dims) if axis == -1 else site.axis(axis, len(dims) + 1)
    return (*dims[:at], depth, *dims[at:])


@shape_of(ScatterND)
def _scatter_nd(op: ScatterND, site: Site) -> Shape:
    return tuple(site.ints(op.shape))


@shape_of(SparseToDense)
def _sparse_to_dense(op: SparseToDense, site: Site) -> Shape:
    return tuple(site.ints(op.shape))


@shape_of(MatrixDiag)
def _matrix_diag(op: MatrixDiag, site: Site) -> Shape:
    dims = site.dims(op.input)
    return (*dims, *dims[-1:])


@shape_of(MatrixSetDiag)
def _matrix_set_diag(op: MatrixSetDiag, site: Site) -> Shape:
    """As many elements on the diagonal as the shorter of the last two dims has."""
    *outer, rows, columns = site.dims(op.input, least=2)
    diagonal = site.dims(op.diagonal, len(outer) + 1)
    least = None if rows is None or columns is None else min(rows, columns)
    for a, b in zip((*outer, least), diagonal, strict=True):
        agree(a, b, "dims of input and diagonal")
    return (*outer, rows, columns)


@shape_of(Unique)
def _unique(op: Unique, site: Site) -> list[Shape]:
    """How many differ is seen only when the model runs."""
    return [(None,), site.dims(op.input, 1)]


@shape_of(NonMaxSuppressionV4, NonMaxSuppressionV5)
def _non_max_suppression(op: NonMaxSuppressionV4 | NonMaxSuppressionV5, site: Site) -> list[Shape]:
    (most,) = site.ints(op.max_output_size, 1)
    return [*[(most,)] * (len(op.results) - 1), ()]


@shape_of(EmbeddingLookup)
def _embedding_lookup(op: EmbeddingLookup, site: Site) -> Shape:
    return (*site.dims(op.ids, 1), *site.dims(op.values)[1:])


@shape_of(HashtableLookup)
def _hashtable_lookup(op: HashtableLookup, site: Site) -> list[Shape]:
    count = site.dims(op.lookup, 1)
    return [(*count, *site.dims(op.values)[1:]), count]


@shape_of(LSHProjection)
def _lsh_projection(op: LSHProjection, site: Site) -> Shape:
    hashes, bits = site.dims(op.hash, 2)
    return (hashes,) if op.type == "SPARSE" else (product((hashes, bits)),)


@shape_of(DynamicUpdateSlice)
def _dynamic_update_slice(op: DynamicUpdateSlice, site: Site) -> Shape:
    """A vector with a start for each dim."""
    dims = updated(site, op.input, op.update)
    agree(site.dims(op.starts, 1)[0], len(dims), "starts and dims")
    return dims


def updated(site: Site, value: Value, update: Value) -> Dims:
    """The shape of a tensor with a block of the same rank, no larger, put into it."""
    dims = site.dims(value)
    block = site.dims(update, len(dims))
    if any(a is not None and b is not None and a < b for a, b in zip(dims, block, strict=True)):
        raise Misfit(f"the update {text(block)} is larger than {text(dims)}")
    return dims
