"""Whether quantization parameters move along with the elements that an operator moves, and which kernels ask for it.

Most kernels copy the stored integers and look at no parameters. A few refuse operands whose scale and zero point are
not the result's; of a tensor with several scales they see 0 and 0. Sources: kernels/expand_dims.cc, pack.cc, unpack.cc,
fill.cc, mirror_pad.cc, space_to_batch_nd.cc, batch_to_space_nd.cc, concatenation.cc, pad.cc; types without a kernel:
reverse_sequence.cc, space_to_depth.cc, depth_to_space.cc, one_hot.cc.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.tfl.comparison import Select, SelectV2
from tflq.dialects.traits.kernels import AsksSameScale, LacksKernel
from tflq.dialects.traits.movement import MovesElements
from tflq.evaluate import evaluator
from tflq.ir.core import Op, Value
from tflq.ir.parameters import parameters
from tflq.ir.types import TensorType, UniformQuantizedType, is_quantized

__all__ = ["follow", "parameters_differ", "refused", "seen_by_kernel"]

_LARGEST = 1 << 24
"""Elements of a tensor whose parameters are followed one by one."""


def parameters_differ(op: Op) -> bool:
    """Whether what the operator moves comes under other parameters, where some of it is another number under these."""
    return any(v.type.quantized for v in op.results) and not (follow(op) or _same_numbers(op))


def _same_numbers(op: Op) -> bool:
    """Whether all that is moved to an only result has its parameters, or is a constant of numbers that are stored
    alike under both. What a constant condition does not choose is not moved."""
    element, moved = op.result.type.element, [v for v in op.operands if v is not None and v.type.quantized]
    if len([v for v in op.results if v.type.quantized]) != 1 or not isinstance(element, UniformQuantizedType):
        return False
    if isinstance(op, (Select, SelectV2)) and op.condition.is_constant:
        chosen = op.condition.array
        if len(set(chosen.reshape(-1).tolist())) == 1:
            moved = [op.on_true if chosen.all() else op.on_false]
    return all(v.type.element == element or _stored_alike(v, element) for v in moved)


def _stored_alike(value: Value, target: UniformQuantizedType) -> bool:
    source = value.type.element
    if not value.is_constant or not isinstance(source, UniformQuantizedType) or source.storage != target.storage:
        return False
    with np.errstate(all="ignore"):
        stored = np.unique(value.array).astype(np.float64)
        steps = (stored - source.zero_point) * (np.float64(source.scale) / target.scale)
        held = np.clip(np.round(steps) + target.zero_point, target.storage_min, target.storage_max)
    return bool((held == stored).all())


def seen_by_kernel(value: Value) -> tuple[float, int]:
    """Scale and zero point that a kernel finds on a tensor."""
    element = value.type.element
    if not is_quantized(element):
        return 0.0, 0
    if isinstance(element, UniformQuantizedType):
        return element.scale, element.zero_point
    scale, zero = parameters(value.type)
    return (float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0])) if scale.size == 1 else (0.0, 0)


def refused(op: Op) -> bool:
    """Whether no kernel moves these types, or none from parameters to others."""
    quantized = [v for v in op.tensors if v.type.quantized]
    lacks, asks = trait_of(op, LacksKernel), trait_of(op, AsksSameScale)
    if lacks is not None and any(v.type.storage in lacks.storages for v in quantized):
        return True
    if asks is None or not any(v.type.storage in asks.storages for v in quantized):
        return False
    return len({seen_by_kernel(v) for v in quantized}) > 1


def follow(op: Op) -> bool:
    """Whether every element of the results has the scale and zero point of the one that is moved there."""
    quantized = [v for v in op.tensors if v.type.quantized]
    if all(isinstance(v.type.element, UniformQuantizedType) for v in quantized):
        return len({(v.type.element, v.type.storage) for v in quantized}) == 1
    whole = all(v.type.shape is not None and 0 < math.prod(_dims(v.type)) <= _LARGEST for v in op.tensors)
    return whole and _followed(op)


def _dims(type: TensorType) -> tuple[int, ...]:
    """An open dim has one element here, or as many as there are scales along it."""
    return tuple(n if d is None else d for d, n in zip(type.shape or (), _scales(type), strict=True))


def _scales(type: TensorType) -> tuple[int, ...]:
    """How many scales there are along each dim."""
    counts = parameters(type)[0].shape if type.quantized else ()
    return (1,) * (len(type.shape or ()) - len(counts)) + counts


def _followed(op: Op) -> bool:
    """The operator on numbers that stand for parameters."""
    known: dict[tuple[object, ...], int] = {}
    operands = [None if v is None else _numbers(v, _dims(v.type), known) for v in op.operands]
    if isinstance(op, (Select, SelectV2)):
        dims = _dims(op.result.type)
        return all(x is not None and _same(np.broadcast_to(x, dims), op.result, known) for x in operands[1:])
    compute = evaluator.get(type(op)) if isinstance(op, Operator) and op.has(MovesElements) else None
    if compute is None or any(v is not None and x is None for v, x in zip(op.operands, operands, strict=True)):
        return False
    try:
        moved = compute(op, *operands)
    except ValueError:  # the operator's own sizes, of dims that are open
        return False
    moved = moved if isinstance(moved, list) else [moved]
    return all(_same(m, v, known) for m, v in zip(moved, op.results, strict=True))


def _same(moved: np.ndarray, result: Value, known: dict[tuple[object, ...], int]) -> bool:
    """Whether the numbers that came there are those of a result, which may be open where they have a size."""
    dims = result.type.shape or ()
    if len(dims) != moved.ndim or any(d not in (None, n) for d, n in zip(dims, moved.shape, strict=True)):
        return False
    if any(n not in (1, m) for n, m in zip(_scales(result.type), moved.shape, strict=True)):
        return False
    wanted = _numbers(result, moved.shape, known)
    return wanted is not None and bool((moved == wanted).all())


def _numbers(value: Value, dims: tuple[int, ...], known: dict[tuple[object, ...], int]) -> np.ndarray | None:
    """A number for the parameters of each element; a constant that has none is itself; None if there is neither."""
    if not value.type.quantized:
        return value.array if value.is_constant else None
    scale, zero = parameters(value.type)
    pairs = np.broadcast_arrays(scale, zero)
    storage = value.type.storage
    rows = zip(pairs[0].ravel().tolist(), pairs[1].ravel().tolist(), strict=True)
    numbers = [known.setdefault((storage, *row), len(known)) for row in rows]
    return np.broadcast_to(np.reshape(numbers, pairs[0].shape), dims)
