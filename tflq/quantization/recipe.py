"""What a user asks of single operators: which stay floats."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.errors import OptionError, Reason, nearest
from tflq.ir.core import Module
from tflq.ir.types import NoQuantizedType, ScalarType
from tflq.passes.regions.lookup import ports, regions_of
from tflq.passes.regions.tensor_constraints import matcher


def keep_as_floats(module: Module, patterns: Sequence[str]) -> None:
    """Makes kernels that give a tensor of such a name stay as they are. OptionError for a pattern that fits none."""
    regions = [region for function in module.functions for region in regions_of(function.ops)]
    names = [value.name for region in regions for value in region.results if value.name]
    for pattern in patterns:
        fits = matcher(pattern)
        if not any(map(fits, names)):
            remedy = nearest(pattern, names) or "see `tflq inspect` for names"
            raise OptionError(Reason(f"no operator makes a tensor '{pattern}'", value=pattern, remedy=remedy))
        for region in regions:
            if any(value.name and fits(value.name) for value in region.results):
                for port in ports(region):
                    element = port.value.type.element
                    if isinstance(element, ScalarType) and element.is_float:
                        port.set(NoQuantizedType(element))
