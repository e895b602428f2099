"""Operators of a network with static ranges that have another scheme than the rest, or stay float."""

from __future__ import annotations

import os

from tflq.dialects.quant.regions import Region
from tflq.ir.core import Module
from tflq.ir.types import AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType, ScalarType, f32, i8, i16
from tflq.passes.regions.lookup import Port, is_real, ports, regions_of
from tflq.passes.regions.ranges import Range, parameters, same_value
from tflq.quantization.recipe import STATIC, Choices
from tflq.targets.load import JOINED

_STORAGES = {"int8": i8, "int16x8": i16}


def mixed_target(target: str | os.PathLike[str] | None, chosen: Choices) -> str:
    """The kernels that decide: of a device, or of the network's scheme, then of those that single operators have."""
    return str(target) if target else JOINED.join(_schemes(chosen))


def _schemes(chosen: Choices) -> list[str]:
    """The schemes with ranges of activations that are asked for, first that of the network."""
    return sorted(filter(chosen.uses, STATIC), key=lambda scheme: scheme != chosen.default.scheme)


def mark(module: Module, chosen: Choices) -> None:
    """Gives ports of regions what is asked of them: that they stay as they are, or parameters for their ranges on the
    storage of another scheme than the network's."""
    for region in (region for function in module.functions for region in regions_of(function.ops)):
        scheme = chosen.of_region(region).scheme
        if scheme not in STATIC:
            keep(region)
        elif scheme != _schemes(chosen)[0]:
            for port in _activations(region):
                spec, storage = port.spec, _STORAGES[scheme]
                if not isinstance(spec, CalibratedQuantizedType):
                    continue
                wide = AnyQuantizedType(storage, f32, storage.minimum, storage.maximum)
                zero = 0 if storage == i16 else None
                port.set(parameters(Range.of(spec), wide, zero))


def keep(region: Region) -> None:
    """Has a region stay float."""
    for port in ports(region):
        element = port.value.type.element
        if isinstance(element, ScalarType) and element.is_float:
            port.set(NoQuantizedType(element))


def _activations(region: Region) -> list[Port]:
    """The ports of reals that are not constants."""
    return [port for port in ports(region) if is_real(port.spec) and not same_value(port.value).is_constant]
