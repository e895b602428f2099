"""Shapes of matrix products. Sources: kernels/fully_connected.cc, batch_matmul.cc."""

from __future__ import annotations

from tflq.dialects.inference import Misfit, agree, broadcast, product, text
from tflq.dialects.tfl.matmul import BatchMatMul, FullyConnected
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(FullyConnected)
def _fully_connected(op: FullyConnected, site: Site) -> list[Shape]:
    """All elements in rows of the weights' length, unless the dims are to be kept; the kernel leaves out what does not
    fill the last row."""
    dims = site.dims(op.input)
    units, length = site.dims(op.weights, 2)
    spare = [v.type.shape for v in op.results[1:]]
    if op.keep_num_dims:
        agree(dims[-1] if dims else None, length, "the input's last dim and the weights' length")
        return [(*dims[:-1], units), *spare]
    total = product(dims)
    if total is not None and length:
        return [(total // length, units), *spare]
    if dims and dims[-1] is not None and dims[-1] == length:
        return [(product(dims[:-1]), units), *spare]
    return [(None, units), *spare]


@shape_of(BatchMatMul)
def _batch_matmul(op: BatchMatMul, site: Site) -> Shape:
    a, b = site.dims(op.lhs), site.dims(op.rhs)
    if len(a) < 2 or len(b) < 2:
        raise Misfit(f"{text(a)} and {text(b)} are not matrices")
    rows, inner = reversed(a[-2:]) if op.adj_x else a[-2:]
    depth, columns = reversed(b[-2:]) if op.adj_y else b[-2:]
    agree(inner, depth, "the dims that are multiplied")
    try:
        batch = broadcast(a[:-2], b[:-2]) if len(a) > 2 or len(b) > 2 else ()
    except ValueError as error:
        raise Misfit(str(error)) from None
    return (*(batch or ()), rows, columns)
