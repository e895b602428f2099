"""Functions that regions hold, on whole arrays: of ops that compute element by element all at once, else one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.stablehlo.control import Return
from tflq.evaluate.registry import evaluate_op
from tflq.evaluate.stablehlo.elementwise import ELEMENTWISE
from tflq.ir.core import Region, Value

__all__ = ["apply"]


def apply(region: Region | None, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What a region makes of scalars, for all places of arrays of one shape; without a region the arrays as they
    are. NotImplementedError if an op in it has no evaluator, or it uses what is computed outside."""
    if region is None:
        return list(arrays)
    shape = arrays[0].shape
    if all(type(op) in ELEMENTWISE or isinstance(op, Return) for op in region.block.ops):
        return [np.broadcast_to(made, shape) for made in _once(region, arrays)]
    results = [np.empty(shape, v.type.storage.dtype) for v in region.block.ops[-1].operands if v is not None]
    for place in np.ndindex(*shape):
        for result, made in zip(results, _once(region, [a[place] for a in arrays]), strict=True):
            result[place] = made
    return results


def _once(region: Region, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    env: dict[Value, np.ndarray] = dict(zip(region.block.arguments, map(np.asarray, arrays), strict=True))

    def array(value: Value) -> np.ndarray:
        if value in env:
            return env[value]
        if value.is_constant:
            return value.array
        raise NotImplementedError(f"a region uses {value.label}, which is computed outside of it")

    for op in region.block.ops:
        given: list[np.ndarray | None] = [None if v is None else array(v) for v in op.operands]
        if isinstance(op, Return):
            return [a for a in given if a is not None]
        made = evaluate_op(op, given)
        if made is None:
            raise NotImplementedError(f"{op.name} has no evaluator")
        env.update(zip(op.results, made, strict=True))
    raise NotImplementedError("a region does not end in stablehlo.return")
