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
from tflq.legalize.reference import indexing
from tflq.legalize.reference.generic import movement, stored
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

RULES: Final[Rules] = {
    Gather: (movement.move,),
    GatherND: (movement.move,),
    ScatterND: (indexing.scatter_nd,),
    SparseToDense: (indexing.sparse_to_dense,),
    DynamicUpdateSlice: (movement.move,),
    OneHot: (stored.one_hot,),
    MatrixDiag: (stored.matrix_diag,),
    MatrixSetDiag: (stored.matrix_set_diag,),
    EmbeddingLookup: (stored.embedding_lookup,),
    HashtableLookup: (stored.hashtable_lookup,),
    Unique: (movement.move,),
    Bucketize: (stored.bucketize,),
}
