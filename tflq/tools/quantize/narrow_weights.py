"""Weights of kernels on quantized activations, as operators ask for them: of fewer bits than the kernel's first choice,
or on another range than the whole of their numbers.

They are given to the ports of regions before parameters are propagated, where the target has a kernel for them. The
scale of a bias follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tflq.dialects.regions import Region
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.ir.types import AnyQuantizedType, QuantizedType, f32, is_quantized
from tflq.numerics.ranges import RECONSTRUCT, bounds, clips
from tflq.targets.load import Kernels
from tflq.tools.quantize.recipe import STATIC, Choices, Settings
from tflq.tools.quantize.regions.lookup import CONSTANT, Port, lookup, ports, regions_of
from tflq.tools.quantize.regions.ranges import Range, parameters, same_value
from tflq.tools.quantize.weights import AXES, NOT_4_BITS, STORAGES, is_constant_float

_PLACES: Final = {kind.op_name.removeprefix("tfl."): at for kind, at in AXES.items()}
_ALL: Final = 8
"""Bits of weights that every kernel takes."""
_PLAIN: Final = ("minmax", RECONSTRUCT)
"""Methods with which weights of 8 bits have the range that a kernel gives them."""


def mark_weights(module: Module, chosen: Choices, kernels: Kernels) -> None:
    """Gives ports of constant weights the parameters that are asked for, where the target has a kernel for them. Where
    it has none for so few bits, weights have 8."""
    for region in regions_of(module.ops()):
        settings = chosen.of_region(region)
        if region.kernel not in _PLACES or settings.scheme not in STATIC:
            continue
        place, axis = _PLACES[region.kernel]
        weights = Port(region, False, place)
        value = same_value(weights.value)
        if not is_constant_float(value) or is_quantized(weights.spec) or not np.isfinite(value.array).all():
            continue
        for kind in _kinds(region, value, axis, settings):
            specs = [kind if port == weights else port.spec for port in ports(region)[: len(region.operands)]]
            if lookup(kernels, region, specs, region.output_specs) is not None:
                weights.set(kind)
                region.origins = [CONSTANT if port == weights else "annotation" for port in ports(region)]
                break


def _kinds(region: Region, weights: Value, axis: int, settings: Settings) -> Iterator[QuantizedType]:
    """The types that weights may have, the first choice first: of the bits that are asked for, then of 8; with a scale
    for each channel, then with one. None where they are those that the kernel gives them."""
    narrow = {kind.op_name.removeprefix("tfl.") for kind in NOT_4_BITS}
    for bits in dict.fromkeys((_ALL if region.kernel in narrow else settings.bits, _ALL)):
        if bits == _ALL and settings.weight_method in _PLAIN:
            return
        yield _parameters(weights, axis, bits, settings.weight_method)
        yield _parameters(weights, None, bits, settings.weight_method)


def _parameters(weights: Value, axis: int | None, bits: int, method: str) -> QuantizedType:
    others = tuple(place for place in range(weights.array.ndim) if place != axis)
    ends = clips(weights.array, others, bits, method).reshape(-1 if axis is not None else ())
    stored = AnyQuantizedType(STORAGES[bits], f32, *bounds(bits))
    return parameters(Range(f32, -ends, ends, axis, exact=True), stored, 0)
