"""Whether a model is quantized, and what it lacks for that."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.dialects.quant.regions import Region
from tflq.ir.core import Module
from tflq.ir.types import is_quantized
from tflq.passes.regions.ports import ORIGINS, is_quantizable, ports, regions_of

__all__ = ["PortReport", "is_fully_quantized", "is_quantized_model", "report"]


@dataclass(frozen=True, slots=True)
class PortReport:
    """A port of a kernel, by the place of its region in its function, and where its parameters come from; "none" if it
    has none."""

    function: str
    region: int
    kernel: str
    port: str
    origin: str


def report(module: Module) -> list[PortReport]:
    """All ports that can have parameters, in order."""
    found = []
    for function in module.functions:
        for place, region in enumerate(regions_of(function.ops)):
            found += _of(region, function.name or "", place)
    return found


def _of(region: Region, function: str, place: int) -> list[PortReport]:
    origins = region.attributes.get(ORIGINS) or ()
    found = []
    for index, port in enumerate(ports(region)):
        if not is_quantizable(port.spec):
            continue
        stated = origins[index] if index < len(origins) else "annotation"
        origin = stated if is_quantized(port.spec) else "none"
        found.append(PortReport(function, place, region.kernel, str(port), origin))
    return found


def is_quantized_model(module: Module) -> bool:
    """Whether some kernel has parameters for a port."""
    return any(row.origin != "none" for row in report(module))


def is_fully_quantized(module: Module) -> bool:
    """Whether there are kernels, and each has parameters for all its ports that can have some. `report` says which lack
    them."""
    rows = report(module)
    return bool(rows) and all(row.origin != "none" for row in rows)
