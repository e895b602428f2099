"""Ports of a `quant.region`: operands and results, each with its spec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tflq.dialects.quant.regions import Region
from tflq.ir.core import Op, Value
from tflq.ir.types import ElementType, NoQuantizedType, ScalarType

__all__ = ["ORIGINS", "Port", "is_quantizable", "ports", "regions_of"]

ORIGINS = "tflq.origins"
"""The attribute of a region that says where the parameters of each port come from, inputs first."""


@dataclass(frozen=True, slots=True)
class Port:
    """An operand or a result of a region, by its index."""

    region: Region
    is_output: bool
    index: int

    @property
    def value(self) -> Value:
        return self.region.results[self.index] if self.is_output else self.region.operand(self.index)

    @property
    def spec(self) -> ElementType:
        specs = self.region.output_specs if self.is_output else self.region.input_specs
        return specs[self.index]

    def set(self, spec: ElementType) -> None:
        """Another spec."""
        key = "output_specs" if self.is_output else "input_specs"
        specs = list(self.region.attributes[key])
        specs[self.index] = spec
        self.region.attributes[key] = specs

    def __str__(self) -> str:
        return f"{'output' if self.is_output else 'input'} {self.index}"


def ports(region: Region) -> list[Port]:
    """The inputs, then the outputs."""
    inputs = [Port(region, False, index) for index in range(len(region.operands))]
    return inputs + [Port(region, True, index) for index in range(len(region.results))]


def regions_of(ops: list[Op]) -> Iterator[Region]:
    """The regions among ops."""
    return (op for op in ops if isinstance(op, Region))


def is_quantizable(spec: ElementType) -> bool:
    """Whether a port could have parameters: it is of reals, and not to be kept as it is."""
    if isinstance(spec, ScalarType):
        return spec.is_float
    return not isinstance(spec, NoQuantizedType)
