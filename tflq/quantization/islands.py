"""Operators that nothing but floats come to and go from: quantized, they would be worth less than their casts.

Operators that no kernel of the target computes stay float. What is quantized between them needs a QUANTIZE before it
and a DEQUANTIZE behind, and rounds. Where there are sums of products among it, that is what quantization is for; where
there are none, it stays float, too: a mean, to which a number is added, between SQUARED_DIFFERENCE and RSQRT.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from tflq.dialects.declare import trait_of
from tflq.dialects.parameters import HybridKernel
from tflq.dialects.regions import Region
from tflq.ir.core import Function, Module, Op, Value, walk
from tflq.passes.regions.lookup import is_real, lookup, ports, regions_of
from tflq.passes.regions.ranges import is_dequantizing, is_quantizing, is_statement, same_value
from tflq.quantization.mixing import keep
from tflq.quantization.report import QuantizedRow
from tflq.targets.load import Kernels

BETWEEN: Final = "only operators that stay float are before and behind it"


def keep_islands(module: Module, kernels: Kernels, floats: Collection[Region]) -> list[QuantizedRow]:
    """Keeps regions float that would be quantized between floats alone. floats: those that stay so whatever their
    specs are. Returns their rows."""
    rows = []
    for function in module.functions:
        for region in _islands(function, kernels, floats):
            keep(region)
            rows.append(QuantizedRow(region.kernel, region.result.name, quantized=False, why=BETWEEN))
    return rows


def _islands(function: Function, kernels: Kernels, floats: Collection[Region]) -> list[Region]:
    """The regions that have a kernel and are joined by values only with such as have no sums of products, and with
    operators on floats."""
    regions = [region for region in regions_of(function.ops) if region not in floats]
    known = [each for each in regions if lookup(kernels, each, each.input_specs, each.output_specs) is not None]
    users, ends = function.users(), {same_value(value) for value in function.outputs}
    beside = {region: list(_beside(region, users, ends)) for region in known}
    waiting = [region for region in known if None in beside[region] or _has_products(region)]
    bound = set(waiting)
    while waiting:
        joined = [other for other in beside[waiting.pop()] if other in beside and other not in bound]
        bound.update(joined)
        waiting += joined
    return [region for region in known if region not in bound]


def _beside(region: Region, users: Mapping[Value, Sequence[Op]], ends: Collection[Value]) -> Iterator[Op | None]:
    """The operators that make and read a region's reals. None: it has reals that are at an end of the network or
    quantized already, or none but constants."""
    alone = True
    for port in (port for port in ports(region) if is_real(port.spec)):
        value = same_value(port.value)
        if value.is_constant:
            continue
        if value in ends:
            yield None
        if port.is_output:
            yield from _readers(value, users)
        else:
            alone = False
            yield None if is_dequantizing(value.producer) else value.producer
    if alone:
        yield None


def _readers(value: Value, users: Mapping[Value, Sequence[Op]]) -> Iterator[Op | None]:
    """The operators that read a value, also behind what only says something of it."""
    for op in users.get(value, ()):
        if is_quantizing(op):
            yield None
        elif is_statement(op):
            yield from _readers(op.result, users)
        else:
            yield op


def _has_products(region: Region) -> bool:
    """Whether there are sums of products inside, which kernels compute with stored weights."""
    return any(trait_of(op, HybridKernel) is not None for op in walk(region.regions[0].block.ops))
