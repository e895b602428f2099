"""Elements and rows taken or placed by index, by key or by their order."""

from __future__ import annotations

from typing import Any

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, NotInferred, agree, fitting, product, text, with_dim
from tflq.dialects.parameters import HybridKernel, LacksKernel, Misreads, ParametersUnread, SameScale
from tflq.dialects.tfl import Needs
from tflq.dialects.traits import (
    Axis,
    ComputedEarly,
    Elementwise,
    InPlace,
    MovesElements,
    NonNegative,
    OneElement,
    OnePerDim,
    SameElementType,
    SameShape,
    SetsElementType,
    SizedBy,
    Surrounded,
    Unquantized,
)
from tflq.ir.ops import Value
from tflq.ir.types import Shape, i1, i2, i4, i8, i16, i32, i64, ui8


class Gather(Operator, name="tfl.gather", newest=8):
    """Rows of an axis by index. Source: kernels/gather.cc."""

    input: Value = operand()
    indices: Value = operand(indices=True)
    output: Value = result()
    axis: int = attribute(default=0)
    batch_dims: int = attribute(default=0)
    traits = (
        SameScale(input, output),
        Axis(axis, input),
        SameElementType(input, output),
        Misreads("packed"),
        ParametersUnread(input, output),
        MovesElements(input),
        ComputedEarly(),
    )
    versions = (
        Needs(6, indices, i16),
        Needs(5, attribute=batch_dims),
        Needs(4, input, i16),
        Needs(3, input, i1),
        Needs(2, input, i8),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """[batch, before axis, indices, after axis]."""
        dims, indices = site.dims(self.input), site.dims(self.indices)
        axis = site.axis(self.axis, len(dims))
        batch = self.batch_dims
        batch += len(indices) if batch < 0 else 0
        if not 0 <= batch <= min(axis, len(indices)):
            raise Misfit(f"batch_dims {batch} does not fit {text(dims)} and indices {text(indices)}")
        site.check_indices(self.indices, dims[axis : axis + 1], f"'{self.input.name}'")
        lead = [agree(a, b, "batch dims") for a, b in zip(dims[:batch], indices[:batch], strict=True)]
        return (*lead, *dims[batch:axis], *indices[batch:], *dims[axis + 1 :])


class GatherND(Operator, name="tfl.gather_nd", newest=6):
    """Blocks by index tuples. Source: kernels/gather_nd.cc."""

    input: Value = operand()
    indices: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, output),
        NonNegative(indices),
        SameElementType(input, output),
        Misreads("copied"),
        MovesElements(input),
    )
    versions = (Needs(5, input, i1), Needs(4, indices, i16), Needs(3, input, i16))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, indices = site.dims(self.input), site.dims(self.indices)
        if not indices:
            raise Misfit("its indices are one number, where each is a list of them")
        if indices[-1] is None:
            raise NotInferred(f"how many dims the indices {text(indices)} name is not known")
        if indices[-1] > len(dims):
            raise Misfit(f"indices {text(indices)} name more dims than {text(dims)} has")
        site.check_indices(self.indices, dims[: indices[-1]], f"'{self.input.name}'")
        return (*indices[:-1], *dims[indices[-1] :])


class EmbeddingLookup(Operator, name="tfl.embedding_lookup", newest=5):
    """Rows of a table by index. Source: kernels/embedding_lookup.cc."""

    ids: Value = operand(indices=True)
    values: Value = operand()
    output: Value = result()
    traits = (Misreads("result type", "packed"), HybridKernel((i2, i4, i8, ui8), blockwise=(i2, i4)))

    def infer(self, site: DeclaredShapes) -> Dims:
        rows = site.dims(self.values, least=1)
        site.check_indices(self.ids, rows[:1], f"'{self.values.name}'")
        return (*site.dims(self.ids, 1), *rows[1:])


class ScatterND(Operator, name="tfl.scatter_nd"):
    """Updates, added into zeros by index tuples. Source: kernels/scatter_nd.cc."""

    indices: Value = operand(indices=True)
    updates: Value = operand()
    shape: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(updates, output),
        SameElementType(updates, output, unless_quantized=True),
        NonNegative(indices, shape),
        Misreads("result type"),
        SizedBy(shape),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """An update for each tuple of indices: a block of the dims that these do not name."""
        dims, indices = tuple(site.ints(self.shape)), site.dims(self.indices, least=1)
        named = indices[-1]
        if named is None:
            return dims
        if named > len(dims):
            raise Misfit(f"indices {text(indices)} name more dims than the shape {text(dims)} has")
        wanted = (*indices[:-1], *dims[named:])
        for update, dim in zip(site.dims(self.updates, len(wanted)), wanted, strict=True):
            agree(update, dim, f"updates, which the indices {text(indices)} ask to be {text(wanted)}")
        site.check_indices(self.indices, dims[:named], "the shape")
        return dims


class SparseToDense(Operator, name="tfl.sparse_to_dense", newest=3):
    """Values, placed by index tuples. Source: kernels/sparse_to_dense.cc."""

    indices: Value = operand(indices=True)
    shape: Value = operand(indices=True)
    values: Value = operand()
    default: Value = operand()
    output: Value = result()
    validate_indices: bool = attribute(default=False)
    traits = (OneElement(default), Misreads("result type"), SizedBy(shape))
    versions = (Needs(3, values, i8), Needs(3, values, ui8), Needs(2, values, i64))

    def infer(self, site: DeclaredShapes) -> Dims:
        """Tuples of indices are as long as the shape; a vector of indices has a vector as its result."""
        dims, indices = tuple(site.ints(self.shape)), site.dims(self.indices)
        if len(indices) > 2:
            raise Misfit(f"indices {text(indices)} have more than two dims")
        agree(indices[1] if len(indices) == 2 else 1, len(dims), "the indices of an element and the dims of the result")
        values = site.dims(self.values)
        if len(values) > 1:
            raise Misfit(f"values {text(values)} have more than one dim")
        if values:
            agree(values[0], indices[0] if indices else 1, "values and their places")
        site.check_indices(self.indices, dims, "the shape")
        return dims


class DynamicUpdateSlice(Operator, name="tfl.dynamic_update_slice", newest=6):
    """An operand with a block of it replaced. Source: kernels/dynamic_update_slice.cc."""

    input: Value = operand()
    update: Value = operand()
    starts: Value = operand(indices=True)
    output: Value = result()
    traits = (
        SameScale(input, update, output),
        SameElementType(input, update, output),
        SameShape(input, output),
        OnePerDim(starts, input),
        Misreads("copied"),
        InPlace(input),
        MovesElements(input, update),
    )
    versions = (Needs(4, input, i16), Needs(2, starts, i64))

    def infer(self, site: DeclaredShapes) -> Dims:
        """A vector with a start for each dim."""
        dims = site.dims(self.input)
        fitting(dims, site.dims(self.update, len(dims)), "the update")
        agree(site.dims(self.starts, 1)[0], len(dims), "starts and dims")
        return dims


class OneHot(Operator, name="tfl.one_hot"):
    """`on` at each index, `off` elsewhere. Source: kernels/one_hot.cc."""

    indices: Value = operand(indices=True)
    depth: Value = operand(indices=True)
    on: Value = operand()
    off: Value = operand()
    output: Value = result()
    axis: int = attribute(default=0)
    traits = (
        SameScale(on, off, output),
        NonNegative(depth),
        OneElement(depth, on, off),
        Axis(axis, indices, more=1),
        SameElementType(on, off, output),
        LacksKernel(i16),
        MovesElements(on, off),
        SizedBy(depth),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, axis = site.dims(self.indices), self.axis
        (depth,) = site.ints(self.depth, 1)
        at = len(dims) if axis == -1 else site.axis(axis, len(dims) + 1)
        return with_dim(dims, at, depth)


class MatrixDiag(Operator, name="tfl.matrix_diag"):
    """Vectors as diagonals of matrices. Source: kernels/matrix_diag.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (SameScale(input, output), Misreads("result type", "packed"), MovesElements(input), Surrounded())

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input, least=1)
        return (*dims, *dims[-1:])


class MatrixSetDiag(Operator, name="tfl.matrix_set_diag"):
    """Matrices with another diagonal. Source: kernels/matrix_set_diag.cc."""

    input: Value = operand()
    diagonal: Value = operand()
    output: Value = result()
    traits = (
        SameScale(input, diagonal, output),
        Misreads("result type", "packed", "floats"),
        MovesElements(input, diagonal),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """The input's shape; the diagonal has the length of the shorter of the last two dims."""
        *outer, rows, columns = site.dims(self.input, least=2)
        diagonal = site.dims(self.diagonal, len(outer) + 1)
        least = None if rows is None or columns is None else min(rows, columns)
        for a, b in zip((*outer, least), diagonal, strict=True):
            agree(a, b, "dims of input and diagonal")
        return (*outer, rows, columns)


class EmbeddingLookupSparse(Operator, name="tfl.embedding_lookup_sparse"):
    """Rows of a table, combined. Source: kernels/embedding_lookup_sparse.cc."""

    ids: Value = operand(indices=True)
    indices: Value = operand(indices=True)
    shape: Value = operand(indices=True)
    weights: Value = operand()
    values: Value = operand()
    output: Value = result()
    combiner: str = attribute(default="SUM")
    traits = (Unquantized("it combines rows of floats"),)


class HashtableLookup(Operator, name="tfl.hashtable_lookup"):
    """Rows of a table by key; zeros for a key that it does not have. Source: kernels/hashtable_lookup.cc."""

    lookup: Value = operand(i32)
    keys: Value = operand(i32)
    values: Value = operand()
    output: Value = result()
    hits: Value = result()
    traits = (Misreads("packed"),)

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        count, values = site.dims(self.lookup, 1), site.dims(self.values, least=1)
        agree(site.dims(self.keys, 1)[0], values[0], "keys and values")
        return [(*count, *values[1:]), count]


class LSHProjection(Operator, name="tfl.lsh_projection"):
    """Bits of hashes of the input. Source: kernels/lsh_projection.cc."""

    hash: Value = operand()
    input: Value = operand()
    weight: Value | None = operand(optional=True)
    output: Value = result()
    type: str = attribute(default="UNKNOWN")
    traits = (Unquantized("it hashes bytes into buckets"),)

    def infer(self, site: DeclaredShapes) -> Dims:
        hashes, bits = site.dims(self.hash, 2)
        return (hashes,) if self.type == "SPARSE" else (product((hashes, bits)),)


class Unique(Operator, name="tfl.unique"):
    """The elements without repetition, and where each went. Source: kernels/unique.cc."""

    input: Value = operand()
    output: Value = result()
    indices: Value = result()
    idx_out_type: str = attribute(default="INT32")
    traits = (SizedBy(input),)

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        """An open dim: the number of distinct elements is known only when the model runs."""
        return [(None,), site.dims(self.input, 1)]


class Bucketize(Operator, name="tfl.bucketize"):
    """The bucket of each element, by boundaries. Source: kernels/bucketize.cc."""

    input: Value = operand()
    output: Value = result(i32)
    boundaries: Any = attribute(default=None)
    traits = (
        SetsElementType(output, i32),
        Elementwise(input, output, strict=False),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        if self.boundaries is None:
            raise Misfit("it has no boundaries")
        return site.dims(self.input)


class BoxesChosen(Operator):
    """Boxes that do not overlap better ones."""

    boxes: Value = operand()
    scores: Value = operand()
    max_output_size: Value = operand(indices=True)
    iou_threshold: Value = operand()
    score_threshold: Value = operand()
    traits = (NonNegative(max_output_size), SizedBy(max_output_size))

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        (most,) = site.ints(self.max_output_size, 1)
        return [*[(most,)] * (len(self.results) - 1), ()]


class NonMaxSuppressionV4(BoxesChosen, name="tfl.non_max_suppression_v4"):
    """Boxes that do not overlap better ones. Source: kernels/non_max_suppression.cc."""

    indices: Value = result()
    count: Value = result()


class NonMaxSuppressionV5(BoxesChosen, name="tfl.non_max_suppression_v5"):
    """Boxes that do not overlap better ones, with softened scores. Source: kernels/non_max_suppression.cc."""

    sigma: Value = operand()
    indices: Value = result()
    selected_scores: Value = result()
    count: Value = result()


class SkipGram(Operator, name="tfl.skip_gram"):
    """Pairs of words near each other. Source: kernels/skip_gram.cc."""

    input: Value = operand()
    output: Value = result()
    ngram_size: int = attribute(default=0)
    max_skip_size: int = attribute(default=0)
    include_all_ngrams: bool = attribute(default=False)
    traits = (Unquantized("its tensors are handles, keys and strings"),)


class ConcatEmbeddings(Operator, name="tfl.concat_embeddings"):
    """Embeddings side by side; no kernel exists."""

    inputs: list[Value | None] = operand(variadic=True)
    output: Value = result()
    num_channels: int = attribute(default=0)
    num_columns_per_channel: Any = attribute(default=None)
    embedding_dim_per_channel: Any = attribute(default=None)
    traits = (Unquantized("TFLite has no kernel and no description of it"),)
