"""Elements chosen or placed by index.

GATHER and SCATTER are of rows, per batch. A scattered row is picked, too: SCATTER_ND of the rows' numbers says for
each place of the result which row it takes, if any, and one GATHER takes it from the values and rows together.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tfl.indexing import Gather as TflGather
from tflq.dialects.tfl.indexing import ScatterND
from tflq.dialects.tosa.indexing import Gather, Scatter
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i32
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(Gather)
def gather(op: Gather, k: Kernels) -> Value:
    values, indices = k.value(op.values), k.value(op.indices)
    return k.emit(TflGather, [values, indices], op.output.type, axis=1, batch_dims=1)


@lowering(Scatter)
def scatter(op: Scatter, k: Kernels) -> Value:
    values, indices, rows = k.value(op.values_in), k.value(op.indices), k.value(op.input)
    batch, places, channels = (d or 0 for d in op.values_out.type.shape or ())
    count = (indices.type.shape or (0, 0))[1] or 0
    all_places, all_rows = batch * places, batch * count
    flat = k.add(indices, k.constant(np.arange(batch)[:, None] * places)) if batch > 1 else indices
    numbers = k.constant(np.arange(1, all_rows + 1))
    table = [k.reshape(flat, (all_rows, 1)), numbers, k.constant([all_places])]
    taken = k.emit(ScatterND, table, TensorType((all_places,), i32))
    own = k.constant(np.arange(all_places))
    index = k.emit(SelectV2, [k.greater(taken, k.constant(0)), k.add(taken, k.constant(all_places - 1)), own])
    both = [k.reshape(values, (all_places, channels)), k.reshape(rows, (all_rows, channels))]
    joined = k.concatenation(both, 0, (all_places + all_rows, channels))
    return k.reshape(k.gather(joined, index), (batch, places, channels))
