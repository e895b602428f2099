"""The rules of elements by index: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.indexing import (
    Bucketize,
    DynamicUpdateSlice,
    EmbeddingLookup,
    Gather,
    GatherND,
    HashtableLookup,
    MatrixDiag,
    MatrixSetDiag,
    OneHot,
    ScatterND,
    SparseToDense,
    Unique,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

movement = later("reference.generic.movement")
lookup = later("reference.indexing.lookup")
scattering = later("reference.indexing.scattering")

RULES: Final[Rules] = {
    Gather: (movement.move,),
    GatherND: (movement.move,),
    ScatterND: (scattering.scatter_nd,),
    SparseToDense: (scattering.sparse_to_dense,),
    DynamicUpdateSlice: (movement.move,),
    OneHot: (lookup.one_hot,),
    MatrixDiag: (lookup.matrix_diag,),
    MatrixSetDiag: (lookup.matrix_set_diag,),
    EmbeddingLookup: (lookup.embedding_lookup,),
    HashtableLookup: (lookup.hashtable_lookup,),
    Unique: (movement.move,),
    Bucketize: (lookup.bucketize,),
}
