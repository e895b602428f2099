"""Elements and rows taken or placed by index: what most conversions need of `indexing`."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Misfit, NotInferred, Stated, agree, text
from tflq.dialects.tfl import Needs
from tflq.dialects.traits.operands import Axis, ComputedEarly, Indices, MovesElements, NonNegative, SizedBy
from tflq.dialects.traits.quantization import HybridKernel, Misreads, ParametersUnread, SameScale
from tflq.dialects.traits.types import SameElementType
from tflq.ir.core import Value
from tflq.ir.types import i1, i2, i4, i8, i16, ui8


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
        Indices(indices, input, axis=axis),
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

    def infer(self, site: Stated) -> Dims:
        """[batch, before axis, indices, after axis]."""
        dims, indices = site.dims(self.input), site.dims(self.indices)
        axis = site.axis(self.axis, len(dims))
        batch = self.batch_dims
        batch += len(indices) if batch < 0 else 0
        if not 0 <= batch <= min(axis, len(indices)):
            raise Misfit(f"batch_dims {batch} does not fit {text(dims)} and indices {text(indices)}")
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

    def infer(self, site: Stated) -> Dims:
        dims, indices = site.dims(self.input), site.dims(self.indices)
        if not indices or indices[-1] is None:
            raise NotInferred(f"how many dims the indices {text(indices)} name is not known")
        if indices[-1] > len(dims):
            raise Misfit(f"indices {text(indices)} name more dims than {text(dims)} has")
        return (*indices[:-1], *dims[indices[-1] :])


class EmbeddingLookup(Operator, name="tfl.embedding_lookup", newest=5):
    """Rows of a table by index. Source: kernels/embedding_lookup.cc."""

    ids: Value = operand(indices=True)
    values: Value = operand()
    output: Value = result()
    traits = (Misreads("result type", "packed"), HybridKernel((i2, i4, i8, ui8), blockwise=(i2, i4)))

    def infer(self, site: Stated) -> Dims:
        return (*site.dims(self.ids, 1), *site.dims(self.values)[1:])


class ScatterND(Operator, name="tfl.scatter_nd"):
    """Updates, added into zeros by index tuples. Source: kernels/scatter_nd.cc."""

    indices: Value = operand(indices=True)
    updates: Value = operand()
    shape: Value = operand(indices=True)
    output: Value = result()
    traits = (SameScale(updates, output), NonNegative(indices, shape), Misreads("result type"), SizedBy(shape))

    def infer(self, site: Stated) -> Dims:
        return tuple(site.ints(self.shape))
