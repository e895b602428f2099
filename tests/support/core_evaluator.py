"""What ops of arith, math, tensor, shape and linalg compute, in numpy, for the texts that tests lower to them.

Integers are held signed, whatever they stand for; a float outside of an integer's range is not converted, since the
result is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tflq.ir.core import Function, Op, Value
from tflq.ir.types import ScalarType

__all__ = ["run"]


def run(function: Function, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a function; quantized values are their stored integers."""
    env = dict(zip(function.inputs, arguments, strict=True))
    _ops(function.ops, env)
    return [_value(env, value) for value in function.outputs]


def _value(env: Mapping[Value, np.ndarray], value: Value) -> np.ndarray:
    known = env.get(value)
    return value.array if known is None else known


def _ops(ops: Sequence[Op], env: dict[Value, np.ndarray]) -> list[np.ndarray]:
    """Runs ops; the operands of the last one, if that has no results."""
    for op in ops:
        operands = [_value(env, v) for v in op.operands if v is not None]
        if not op.results:
            return operands
        if op.name == "linalg.generic":
            made = [_generic(op, operands, env)]
        else:
            found = _OPS[op.name](op, *operands)
            made = found if isinstance(found, list) else [found]
        env.update(zip(op.results, made, strict=True))
    return []


def _generic(op: Op, operands: list[np.ndarray], env: dict[Value, np.ndarray]) -> np.ndarray:
    """Element by element, as the maps say."""
    out = np.array(operands[-1])
    maps = op.attributes["indexing_maps"]
    block = op.regions[0].block
    for place in np.ndindex(out.shape):
        names = dict(zip(maps[-1].dims, place, strict=True))
        picked = []
        for operand, where in zip(operands, maps, strict=True):
            index = tuple(_place(expression, names) for expression in where.results)
            picked.append(operand[index])
        inner = {**env, **dict(zip(block.arguments, picked, strict=True))}
        (out[place],) = _ops(block.ops, inner)
    return out


def _place(expression: str, names: Mapping[str, int]) -> int:
    """`d0`, `d0 floordiv 2` or `0`"""
    name, _, size = expression.partition(" floordiv ")
    return names[name] // int(size or 1) if name in names else int(name)


def _to_integer(op: Op, x: Any, signed: bool) -> np.ndarray:
    storage = op.result.type.storage
    whole = np.trunc(np.asarray(x, np.float64))
    low, high = (storage.minimum, storage.maximum) if signed else (0, (1 << storage.bits) - 1)
    assert ((whole >= low) & (whole <= high)).all(), "the conversion is undefined"
    wide = whole.astype(np.int64)
    return np.asarray(_signed(wide, storage), storage.dtype)


def _signed(wide: np.ndarray, storage: ScalarType) -> np.ndarray:
    return np.where(wide > storage.maximum, wide - (1 << storage.bits), wide)


def _unsigned(op: Op, x: Any) -> np.ndarray:
    source = op.operand(0).type.storage
    wide = np.asarray(x, np.int64)
    return wide if source.kind == "bool" else np.where(wide < 0, wide + (1 << source.bits), wide)


def _of_unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda op, a, b: np.where(function(_unsigned(op, a), _unsigned(op, b)) == _unsigned(op, a), a, b)


def _away(x: Any) -> np.ndarray:
    whole = np.trunc(x)
    return whole + np.sign(x) * (np.abs(x - whole) >= 0.5)


def _float(op: Op, x: Any) -> np.ndarray:
    return np.asarray(x, op.result.type.storage.dtype)


_OPS: dict[str, Callable[..., Any]] = {
    "arith.addf": lambda _, a, b: a + b,
    "arith.subf": lambda _, a, b: a - b,
    "arith.mulf": lambda _, a, b: a * b,
    "arith.divf": lambda _, a, b: a / b,
    "arith.remf": lambda _, a, b: np.fmod(a, b),
    "arith.maximumf": lambda _, a, b: np.maximum(a, b),
    "arith.minimumf": lambda _, a, b: np.minimum(a, b),
    "arith.maxsi": lambda _, a, b: np.maximum(a, b),
    "arith.minsi": lambda _, a, b: np.minimum(a, b),
    "arith.maxui": _of_unsigned(np.maximum),
    "arith.minui": _of_unsigned(np.minimum),
    "arith.cmpf": lambda op, a, b: {3: a >= b}[op.attributes["predicate"]],
    "arith.sitofp": _float,
    "arith.uitofp": lambda op, x: _float(op, _unsigned(op, x)),
    "arith.fptosi": lambda op, x: _to_integer(op, x, True),
    "arith.fptoui": lambda op, x: _to_integer(op, x, False),
    "math.floor": lambda _, x: np.floor(x),
    "math.round": lambda op, x: _float(op, _away(x)),
    "math.roundeven": lambda _, x: np.rint(x),
    "math.trunc": lambda _, x: np.trunc(x),
    "quant.scast": lambda _, x: x,
    "shape.num_elements": lambda _, dims: np.prod(dims),
    "shape.shape_of": lambda _, x: np.array(x.shape),
    "shape.split_at": lambda _, shape, axis: [shape[: int(axis)], shape[int(axis) :]],
    "tensor.dim": lambda _, x, axis: np.asarray(x.shape[int(axis)]),
    "tensor.empty": lambda op, *dims: np.zeros(_sizes(op, dims), op.result.type.storage.dtype),
    "tensor.from_elements": lambda _, *xs: np.array([int(x) for x in xs]),
    "tensor.reshape": lambda _, x, shape: x.reshape([int(n) for n in shape]),
    "tensor.splat": lambda op, x, *dims: np.full(_sizes(op, dims), x, op.result.type.storage.dtype),
}


def _sizes(op: Op, dims: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The shape of a result, with sizes for its unknown dims."""
    rest = iter(dims)
    return tuple(int(next(rest)) if dim is None else dim for dim in op.result.type.shape or ())
