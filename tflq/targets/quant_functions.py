"""What a kernel's constraint makes of the parameters of its ports: the value of a target's table.

A `QuantFunction` gets the types of all inputs and outputs that can be quantized, and the numbers of the constraint. A
port whose parameters are not known yet is an `AnyQuantizedType` of its storage. It puts uniform types in the lists and
returns the indices of the inputs and of the outputs that it updated.

Those of packages are found by entry points in the group `tflq.targets`, under the name by which a target's line asks
for them; those of a program are entered by `quant_function`.

Source: the RFC on quantization in MLIR, Target Constraints; which port is followed where all have one scale is that of
TensorFlow Lite's quantization driver (GetQuantParamsForSameScaleConstraint).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import TypeAlias

import numpy as np

from tflq.ir.core import Op
from tflq.ir.types import (
    AnyQuantizedType,
    ElementType,
    QuantizedType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    is_quantized,
)
from tflq.targets.constraints import CONSTRAINTS, Constraint

__all__ = ["QuantFunction", "load_quant_functions", "quant_function", "quant_functions"]

Types: TypeAlias = list[ElementType]
QuantFunction: TypeAlias = Callable[..., tuple[list[int], list[int]]]

_GROUP = "tflq.targets"
_FUNCTIONS: dict[str, QuantFunction] = {}
_BIAS_TOLERANCE = 0.02


def quant_function(name: str, *numbers: str) -> Callable[[QuantFunction], QuantFunction]:
    """Enters a function under a name; `numbers` as of `tflq.targets.constraint`. A kernel keeps the constraint if the
    function has nothing to update."""

    def register(function: QuantFunction) -> QuantFunction:
        _FUNCTIONS[name] = function
        CONSTRAINTS.setdefault(name, Constraint(_held(name, function), numbers))
        return function

    return register


def _held(name: str, function: QuantFunction) -> Callable[..., str | None]:
    def broken(op: Op, *numbers: float) -> str | None:
        sides = [[v.type.element for v in values if v is not None] for values in (op.operands, op.results)]
        inputs, outputs = ([t for t in side if is_quantized(t)] for side in sides)
        return f"its parameters are not those of {name}" if any(function(inputs, outputs, *numbers)) else None

    return broken


@cache
def load_quant_functions() -> None:
    """Enters those of installed packages."""
    for entry in entry_points(group=_GROUP):
        quant_function(entry.name)(entry.load())


def quant_functions(
    constraints: Sequence[tuple[str, tuple[float, ...]]],
) -> list[tuple[str, QuantFunction, tuple[float, ...]]]:
    """Of a signature's constraints those that give ports parameters."""
    return [(name, _FUNCTIONS[name], numbers) for name, numbers in constraints if name in _FUNCTIONS]


def _alike(kind: ElementType, stored: ElementType) -> ElementType:
    """Parameters, on the storage of a port."""
    if not isinstance(kind, UniformQuantizedType) or not isinstance(stored, (AnyQuantizedType, UniformQuantizedType)):
        return kind
    if kind.storage != stored.storage:
        return stored
    if isinstance(stored, UniformQuantizedType):
        same = (stored.scale, stored.zero_point) == (kind.scale, kind.zero_point)
        return stored if same else kind
    low, high = max(kind.storage_min, stored.storage_min), min(kind.storage_max, stored.storage_max)
    return UniformQuantizedType(kind.storage, kind.expressed, kind.scale, kind.zero_point, low, high)


def _follow(types: Types, places: Sequence[int], kind: ElementType) -> list[int]:
    """Gives ports the parameters; which of them did not have them."""
    changed = []
    for place in places:
        made = _alike(kind, types[place])
        if made != types[place]:
            types[place] = made
            changed.append(place)
    return changed


def _quantizable(types: Types) -> list[int]:
    return [i for i, t in enumerate(types) if is_quantized(t) or isinstance(t, AnyQuantizedType)]


@quant_function("same_scale")
def _same_scale(inputs: Types, outputs: Types) -> tuple[list[int], list[int]]:
    """All ports follow the only input if it is known, else the only output, else the first that is known."""
    sides = [(types, _quantizable(types)) for types in (inputs, outputs)]
    known = [types[i] for types, places in sides for i in places if is_quantized(types[i])]
    if not known:
        return [], []
    alone = [types[places[0]] for types, places in sides if len(places) == 1 and is_quantized(types[places[0]])]
    kind = next(iter(alone), known[0])
    return _follow(*sides[0], kind), _follow(*sides[1], kind)


@quant_function("same_operand_scale")
def _same_operand_scale(inputs: Types, outputs: Types) -> tuple[list[int], list[int]]:
    return _same_scale(inputs, [])[0], []


@quant_function("fixed_scale", "positive", "integer")
def _fixed_scale(inputs: Types, outputs: Types, scale: float, zero_point: float) -> tuple[list[int], list[int]]:
    changed = []
    for place in _quantizable(outputs):
        stored = outputs[place]
        if not isinstance(stored, (AnyQuantizedType, UniformQuantizedType)) or stored.expressed is None:
            continue
        made = UniformQuantizedType.of(
            stored.storage,
            scale,
            int(zero_point),
            expressed=stored.expressed,
            storage_min=stored.storage_min,
            storage_max=stored.storage_max,
        )
        if made != stored:
            outputs[place] = made
            changed.append(place)
    return [], changed


@quant_function("multiplier_scale", "positive?")
def _multiplier_scale(inputs: Types, outputs: Types, bound: float = 0.0) -> tuple[list[int], list[int]]:
    """The multiplier follows from all ports, and no port from others."""
    return [], []


@quant_function("multiplier_accumulator_scale", "positive?")
def _multiplier_accumulator_scale(inputs: Types, outputs: Types, bound: float = 0.0) -> tuple[list[int], list[int]]:
    """The third input, a bias, has the product of the scales of the first two, and zero point 0."""
    places = _quantizable(inputs)
    if len(places) < 3 or not all(is_quantized(inputs[i]) for i in places[:2]):
        return [], []
    x, weights, bias = (inputs[i] for i in places[:3])
    product = _product(x, weights)  # type: ignore[arg-type]
    stored = bias.storage  # type: ignore[union-attr]
    low, high = bias.storage_min, bias.storage_max  # type: ignore[union-attr]
    expressed = x.expressed  # type: ignore[union-attr]
    if product is None or expressed is None:
        return [], []
    made: ElementType
    if product.ndim:
        made = UniformQuantizedPerAxisType.of(
            stored, 0, product, 0, expressed=expressed, storage_min=low, storage_max=high
        )
    else:
        made = UniformQuantizedType.of(
            stored, float(product), 0, expressed=expressed, storage_min=low, storage_max=high
        )
    if made == bias or _tolerated(bias, product, outputs):
        return [], []
    inputs[places[2]] = made
    return [places[2]], []


def _product(x: QuantizedType, weights: QuantizedType) -> np.ndarray | None:
    """The scales of an accumulator, one or one per index; None if they are neither."""
    one, other = _scales(x), _scales(weights)
    if one is None or other is None or (one.ndim and other.ndim):
        return None
    return np.asarray(one * other)


def _scales(kind: ElementType) -> np.ndarray | None:
    if isinstance(kind, UniformQuantizedType):
        return np.asarray(kind.scale, np.float64)
    if isinstance(kind, UniformQuantizedSubChannelType) or not isinstance(kind, UniformQuantizedPerAxisType):
        return None
    return np.asarray(kind.scales, np.float64)


def _tolerated(bias: ElementType, product: np.ndarray, outputs: Types) -> bool:
    """Whether a bias that has parameters already is as near to the product as kernels take it."""
    scales = _scales(bias)
    result = next((_scales(kind) for kind in outputs if isinstance(kind, UniformQuantizedType)), None)
    if scales is None or result is None or not result.all() or scales.size not in (1, product.size):
        return False
    zeros = bias.zero_point if isinstance(bias, UniformQuantizedType) else bias.zero_points  # type: ignore[union-attr]
    return not np.any(zeros) and bool((np.abs(product - scales) / result <= _BIAS_TOLERANCE).all())
