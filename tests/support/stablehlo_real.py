"""StableHLO operators on real arrays, as their specification has them; interpreters have no kernels for these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Real = Callable[[Sequence[np.ndarray], Mapping[str, Any]], np.ndarray]

_ELEMENTWISE: Mapping[str, Callable[..., np.ndarray]] = {
    "abs": np.abs,
    "cbrt": np.cbrt,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "convert": lambda x: x,
    "cosine": np.cos,
    "divide": np.divide,
    "exponential": np.exp,
    "floor": np.floor,
    "log": np.log,
    "logistic": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))),
    "negate": np.negative,
    "power": np.power,
    "remainder": np.fmod,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "select": np.where,
    "subtract": np.subtract,
    "tanh": np.tanh,
}


def _each(of: Callable[..., np.ndarray]) -> Real:
    return lambda arrays, _: of(*arrays)


def _broadcast(arrays: Sequence[np.ndarray], options: Mapping[str, Any]) -> np.ndarray:
    """A row to a matrix of two rows."""
    return np.broadcast_to(arrays[0], (2, *arrays[0].shape))


def _dynamic_slice(arrays: Sequence[np.ndarray], options: Mapping[str, Any]) -> np.ndarray:
    return arrays[0][_places(arrays[0], arrays[1:], options["slice_sizes"])]


def _dynamic_update(arrays: Sequence[np.ndarray], options: Mapping[str, Any]) -> np.ndarray:
    made = arrays[0].copy()
    made[_places(made, arrays[2:], arrays[1].shape)] = arrays[1]
    return made


def _places(x: np.ndarray, starts: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[slice, ...]:
    first = [min(max(int(s), 0), n - k) for s, n, k in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(a, a + int(k)) for a, k in zip(first, sizes, strict=True))


def _slice(arrays: Sequence[np.ndarray], options: Mapping[str, Any]) -> np.ndarray:
    words = (options[name] for name in ("start_indices", "limit_indices", "strides"))
    return arrays[0][tuple(slice(a, b, c) for a, b, c in zip(*words, strict=True))]


_STABLEHLO: Mapping[str, Real] = {
    **{name: _each(of) for name, of in _ELEMENTWISE.items()},
    "broadcast_in_dim": _broadcast,
    "compare": lambda arrays, _: np.less(*arrays),
    "concatenate": lambda arrays, options: np.concatenate(arrays, options["dimension"]),
    "dot_general": lambda arrays, _: arrays[0] @ arrays[1],
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "reshape": lambda arrays, _: arrays[0].reshape(3, 2),
    "slice": _slice,
    "transpose": lambda arrays, options: arrays[0].transpose(options["permutation"]),
}
REAL: Mapping[str, Real] = {f"stablehlo_{name}": real for name, real in _STABLEHLO.items()}
"""Functions on reals of operators that no interpreter has, by name."""
