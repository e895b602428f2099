"""Inputs for the models of the coverage table."""

from __future__ import annotations

import numpy as np

from support.harness import edge_inputs
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import i1

_DIVISIONS = ("div", "floor_div", "floor_mod", "stablehlo_divide")
_ROOTS = ("rsqrt", "sqrt")
_INTEGERS = ("i32", "i64")


def inputs_of(module: Module, operator: str) -> list[list[np.ndarray]]:
    """`edge_inputs`; conditions are random, plain integers are indices of 0 and 1. Divisors are not zero, stored or
    real, roots are taken of positive values, and there is something to find: else kernels stop. The lowest integer has
    no negative."""
    inputs = module.main.inputs
    rng = np.random.default_rng(0)
    batches: list[list[np.ndarray]] = []
    for drawn in edge_inputs([v for v in inputs if not _small(v)]):
        rest = iter(drawn)
        batches.append([_draw(v, rng) if _small(v) else next(rest) for v in inputs])
    for batch in batches:
        if operator in _DIVISIONS and len(batch) > 1:
            batch[1] += np.isin(batch[1], (0, _zero(inputs[1]))).astype(batch[1].dtype)
        if operator == "stablehlo_negate":
            np.maximum(batch[0], np.iinfo(batch[0].dtype).min + 1, out=batch[0])
        if operator in _ROOTS:
            np.maximum(batch[0], np.asarray(_zero(inputs[0]) + 1).astype(batch[0].dtype), out=batch[0])
    return batches[:2] if operator == "where" else batches


def _zero(value: Value) -> int:
    return getattr(value.type.element, "zero_point", 0)


def _small(value: Value) -> bool:
    return value.type.storage == i1 or (not value.type.quantized and value.type.storage.name in _INTEGERS)


def _draw(value: Value, rng: np.random.Generator) -> np.ndarray:
    shape = [d or 1 for d in value.type.shape or ()]
    return (rng.random(shape) < 0.5).astype(value.type.storage.dtype)
