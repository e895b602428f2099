"""Operators of a network with static ranges that have another scheme than the rest, or stay float."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from tflq.dialects.regions import Region
from tflq.ir.core import Module
from tflq.ir.types import AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType, ScalarType, f32, i8, i16
from tflq.passes.regions.lookup import Port, is_real, lookup, ports, regions_of
from tflq.passes.regions.quantize import leave_real
from tflq.passes.regions.ranges import Range, parameters, same_value
from tflq.quantization.recipe import STATIC, Choices
from tflq.targets.load import JOINED, Kernels

SAME_SCALE: Final = "same_scale"
"""The constraint along which one range decides."""
_STORAGES = {"int8": i8, "int16x8": i16}


def mixed_target(target: str | os.PathLike[str] | None, chosen: Choices) -> str:
    """The kernels that decide: of a device, or of the network's scheme, then of those that single operators have."""
    return str(target) if target else JOINED.join(_schemes(chosen))


def _schemes(chosen: Choices) -> list[str]:
    """The schemes with ranges of activations that are asked for, first that of the network."""
    return sorted(filter(chosen.uses, STATIC), key=lambda scheme: scheme != chosen.default.scheme)


def mark(module: Module, chosen: Choices, kernels: Kernels) -> list[Region]:
    """Gives ports of regions what is asked of them: that they stay as they are, or parameters for their ranges on the
    storage of another scheme than the network's.

    Returns the regions along which one range decides, and that are to stay float: not before parameters have gone along
    them (`leave_float`), so that what is rounded before such an operator is rounded to the same steps behind it.
    """
    along = []
    for region in (region for function in module.functions for region in regions_of(function.ops)):
        scheme = chosen.of_region(region).scheme
        if scheme not in STATIC and _has_one_scale(region, kernels):
            along.append(region)
        elif scheme not in STATIC:
            keep(region)
        elif scheme != _schemes(chosen)[0]:
            for port in _activations(region):
                spec, storage = port.spec, _STORAGES[scheme]
                if not isinstance(spec, CalibratedQuantizedType):
                    continue
                wide = AnyQuantizedType(storage, f32, storage.minimum, storage.maximum)
                zero = 0 if storage == i16 else None
                port.set(parameters(Range.of(spec), wide, zero))
    return along


def _has_one_scale(region: Region, kernels: Kernels) -> bool:
    match = lookup(kernels, region, region.input_specs, region.output_specs)
    return match is not None and any(name == SAME_SCALE for name, _ in match.signature.constraints)


def leave_float(regions: Sequence[Region]) -> None:
    """Has regions stay float whose ports have parameters."""
    for region in regions:
        leave_real(region)
        keep(region)


def keep(region: Region) -> None:
    """Has a region stay float."""
    for port in ports(region):
        element = port.value.type.element
        if isinstance(element, ScalarType) and element.is_float:
            port.set(NoQuantizedType(element))


def _activations(region: Region) -> list[Port]:
    """The ports of reals that are not constants."""
    return [port for port in ports(region) if is_real(port.spec) and not same_value(port.value).is_constant]
