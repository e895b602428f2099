"""Parameters that runtimes refuse: a file with them is not loaded, or ends the process.

The factor by which a kernel scales its sums has an upper bound. For each channel of a product of int8 it is the scale
of the input times that of the weights, over the result's, and has to be below 256 (XNNPACK's qs8 operators, in their
constructors; `numerics.xnnpack`). Other bounds are constraints of the target: `scale_ratio_below` of ADD (TFLite's
Prepare asks for a multiplier below 1) and HARD_SWISH, `multiplier_scale` of SQUARED_DIFFERENCE.

A wider range of the result makes the factor smaller, and each step of the result larger. Up to `WIDEST` a range is
widened; an operator that would need more stays float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tflq.dialects.regions import Region
from tflq.ir.module import Module
from tflq.ir.types import ElementType, UniformQuantizedPerAxisType, UniformQuantizedType, i8
from tflq.numerics.xnnpack import LARGEST_FACTOR
from tflq.targets.load import Kernels
from tflq.tools.quantize.regions.lookup import Match, lookup, origins_of, regions_of
from tflq.tools.quantize.report import QuantizedRow

WIDEST: Final = 2.0
"""A range is widened by so much at most: one bit."""
_MARGIN: Final = 1.001
"""Room for the rounding of scales to float32."""
_ACCUMULATES: Final = "multiplier_accumulator_scale"


def beyond_limits(module: Module, kernels: Kernels) -> dict[Region, float]:
    """The regions whose parameters are refused, and by how much the scale of the result has to grow, in times."""
    excesses: dict[Region, float] = {}
    for region in regions_of(module.ops()):
        match = lookup(kernels, region, region.input_specs, region.output_specs)
        excess = max(_excesses(region, match), default=0.0) if match is not None else 0.0
        if excess >= 1:
            excesses[region] = excess * _MARGIN
    return excesses


def widen(beyond: Mapping[Region, float], widened: dict[str, float]) -> bool:
    """Enters the results whose ranges are to be widened, by name. Returns whether there are any: those whose range is
    that of samples, which were not widened before, and need not more than `WIDEST`."""
    further = {
        region.result.name: excess
        for region, excess in beyond.items()
        if excess <= WIDEST and origins_of(region)[-1] == "calibration" and region.result.name not in (*widened, "")
    }
    widened |= further
    return bool(further)


def refused_rows(beyond: Mapping[Region, float]) -> list[QuantizedRow]:
    """The rows of regions that stay float."""
    return [
        QuantizedRow(
            region.kernel,
            region.result.name,
            quantized=False,
            why=f"the factor of its scales is {excess:.2f} times what runtimes take",
        )
        for region, excess in beyond.items()
    ]


def noted(rows: Sequence[QuantizedRow], widened: Mapping[str, float]) -> list[QuantizedRow]:
    """The rows, with a note where a range was widened."""
    return [
        replace(
            row,
            note=f"range {widened[row.tensor]:.2f} times as wide as seen, so that runtimes take the factor of scales",
        )
        if row.tensor in widened
        else row
        for row in rows
    ]


def _excesses(region: Region, match: Match) -> Iterator[float]:
    """The factors of a region over their bounds, each of those that the kernel has."""
    inputs = [scales for spec in region.input_specs if (scales := _scales(spec)) is not None]
    outputs = [scales for spec in region.output_specs if (scales := _scales(spec)) is not None]
    if len(inputs) == 0 or len(outputs) != 1:
        return
    least = outputs[0].min()
    constraints = dict(match.signature.constraints)
    if _ACCUMULATES in constraints:
        bytes_alone = isinstance(spec := region.output_specs[0], UniformQuantizedType) and spec.storage is i8
        if len(inputs) > 1 and bytes_alone:
            yield float((inputs[0] * inputs[1]).max() / least) / LARGEST_FACTOR
        return
    if bound := constraints.get("scale_ratio_below"):
        yield max(float(scales.max()) for scales in inputs) / least / bound[0]
    if bound := constraints.get("multiplier_scale"):
        yield float(np.prod([scales.max() for scales in inputs])) / least / bound[0]


def _scales(spec: ElementType) -> np.ndarray | None:
    if isinstance(spec, UniformQuantizedType):
        return np.asarray([spec.scale], np.float64)
    return spec.scales.astype(np.float64) if isinstance(spec, UniformQuantizedPerAxisType) else None
