"""Float networks, annotated from their quantized twins, propagated and materialized: are they the twins?

    python scripts/quantized_twins.py FOLDER

FOLDER is searched for the pairs of files in PAIRS; other pairs are left out. A port of a float network is annotated
with the parameters that its twin has there, unless they have to follow: of a bias, of a port of one scale, of a fixed
scale, or of the value that another kernel gives. A row per pair: ports annotated, propagated, and in all; ports, and
constants, that are not the twin's; whether the interpreter gives the twin's results, bit for bit.

Needs `pip install '.[verify]'`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import tflq
from tflq.dialects.regions import Region
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.text.print_types import type_text
from tflq.ir.types import BareType, UniformQuantizedPerAxisType
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.lookup import Port, is_fully_quantized, is_quantizable, ports, regions_of, report
from tflq.tools.quantize.regions.materialize import QuantMaterialize
from tflq.tools.quantize.regions.propagate import QuantPropagate
from tflq.transforms.canonicalize import DeadCodeElimination

__all__ = ["PAIRS", "TARGET", "Twin", "found", "rebuilt"]

PAIRS = (
    ("pretrainedResnet_large_float.tflite", "pretrainedResnet_large_int8.tflite"),
    ("vww_96_float.tflite", "vww_96_int8.tflite"),
    ("model_ToyCar.tflite", "model_ToyCar_quant_fullint.tflite"),
    ("model_ToyCar.tflite", "model_ToyCar_quant_fullint_micro_intio.tflite"),
)
"""Float networks and what TensorFlow Lite's converter made of them."""

TARGET = """
[target]
name = "int8"

[kernels]
add = "qi8 qi8 -> qi8"
average_pool_2d = "qi8 -> qi8; same_scale"
conv_2d = [
    "qi8 qi8/axis0:0 qi32/axis0:0? -> qi8; multiplier_accumulator_scale",
    "qi8 qi8:0 qi32:0? -> qi8; multiplier_accumulator_scale",
]
depthwise_conv_2d = [
    "qi8 qi8/axis3:0 qi32/axis0:0? -> qi8; multiplier_accumulator_scale",
    "qi8 qi8:0 qi32:0? -> qi8; multiplier_accumulator_scale",
]
fully_connected = [
    "qi8 qi8/axis0:0 qi32/axis0:0? -> qi8; multiplier_accumulator_scale",
    "qi8 qi8:0 qi32:0? -> qi8; multiplier_accumulator_scale",
]
reshape = "qi8 any? -> qi8; same_scale"
softmax = "qi8 -> qi8; fixed_scale 0.00390625 -128"
"""
"""The kernels that the converter makes, with its constraints."""

_FOLLOWING = ("average_pool_2d", "reshape", "softmax")
"""Kernels of one scale, or of a fixed one."""


@dataclass
class Twin:
    """What became of a float network. `differences`: ports and constants that are not the twin's, in words."""

    annotated: int
    propagated: int
    ports: int
    full: bool
    module: Module
    differences: list[str] = field(default_factory=list)


def found(folder: Path) -> list[tuple[Path, Path]]:
    """The pairs of which both files are in a folder."""
    files = {path.name: path for path in sorted(folder.rglob("*.tflite"))}
    return [(files[a], files[b]) for a, b in PAIRS if a in files and b in files]


def rebuilt(real: Path, twin: Path) -> Twin:
    """The float network, quantized with the twin's parameters."""
    module, other = tflq.read(real), tflq.read(twin)
    KernelFusion().run(module)
    twins = [op for op in other.main.ops if not isinstance(op, (Quantize, Dequantize))]
    regions = list(regions_of(module.main.ops))
    annotated = sum(map(_annotate, regions, twins))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "int8.toml"
        target.write_text(TARGET)
        QuantPropagate(str(target)).run(module)
        rows = report(module)
        known = sum(row.origin != "none" for row in rows)
        made = Twin(annotated, known - annotated, len(rows), is_fully_quantized(module), module)
        QuantMaterialize(str(target), "tfl").run(module)
    DeadCodeElimination().run(module)
    if other.main.inputs[0].type.quantized:
        _take_integers(module, other.main)
    made.differences = list(_differences(module.main, other.main))
    return made


def _annotate(region: Region, twin: Op) -> int:
    """Annotates the ports of a region that have to be; how many."""
    if region.kernel != twin.short_name:
        raise ValueError(f"the twin of {region.kernel} is {twin.short_name}: the networks differ")
    counted = 0
    for port, value in zip(ports(region), (*twin.operands, *twin.results), strict=True):
        if value is not None and value.type.quantized and not _follows(port):
            port.set(value.type.element)
            counted += 1
    return counted


def _follows(port: Port) -> bool:
    """Whether a port's parameters follow from others."""
    is_bias = not port.is_output and port.index == 2
    is_made = not port.is_output and isinstance(port.value.producer, Region)
    return is_bias or is_made or not is_quantizable(port.spec) or port.region.kernel in _FOLLOWING


def _take_integers(module: Module, twin: Function) -> None:
    """Leaves out the casts at the ends: inputs and outputs are quantized, under the twin's names."""
    function = module.main
    ends: dict[Value, Value] = {}
    for op in list(function.ops):
        if isinstance(op, Quantize) and op.input in function.inputs:
            ends[op.input] = op.result
            op.result.producer = None
            function.ops.remove(op)
        elif isinstance(op, Dequantize) and op.result in function.outputs:
            ends[op.result] = op.input
            function.ops.remove(op)
    function.inputs = [ends.get(value, value) for value in function.inputs]
    function.outputs = [ends.get(value, value) for value in function.outputs]
    for made, wanted in zip((*function.inputs, *function.outputs), (*twin.inputs, *twin.outputs), strict=True):
        made.name = wanted.name
    module.signatures = module.signatures and [
        Signature(
            signature.key,
            signature.function,
            [(name, ends.get(value, value)) for name, value in signature.inputs or ()],
            [(name, ends.get(value, value)) for name, value in signature.outputs or ()],
            signature.info,
        )
        for signature in module.signatures
    ]


def _differences(made: Function, twin: Function) -> Iterator[str]:
    """What of one network is not that of the other."""
    names = [[op.short_name for op in function.ops] for function in (made, twin)]
    if names[0] != names[1]:
        yield f"operators: {names[0]}, not {names[1]}"
        return
    for index, (op, other) in enumerate(zip(made.ops, twin.ops, strict=True)):
        pairs = zip((*op.operands, *op.results), (*other.operands, *other.results), strict=True)
        for place, (value, wanted) in enumerate(pairs):
            where = f"operator {index} {op.short_name}, port {place}"
            yield from (f"{where}: {what}" for what in _port(value, wanted))


def _port(value: Value | None, wanted: Value | None) -> Sequence[str]:
    if value is None or wanted is None:
        return [] if value is wanted else ["left out"]
    if value.type.element != wanted.type.element:
        return [_parameters(value, wanted)]
    if not wanted.is_constant:
        return []
    if not value.is_constant or value.array.shape != wanted.array.shape:
        return ["not the constant"]
    apart = np.abs(value.array.astype(np.int64) - wanted.array.astype(np.int64))
    return [f"{np.count_nonzero(apart)} of {apart.size} integers differ, by {apart.max()}"] if apart.any() else []


def _parameters(value: Value, wanted: Value) -> str:
    """How the element types of two tensors differ."""
    one, other = value.type.element, wanted.type.element
    if not isinstance(one, UniformQuantizedPerAxisType) or not isinstance(other, UniformQuantizedPerAxisType):
        return f"{type_text(BareType.of(one))}, not {type_text(BareType.of(other))}"
    if one.scales.shape != other.scales.shape:
        return f"{one.scales.size} scales, not {other.scales.size}"
    apart = np.flatnonzero(one.scales != other.scales)
    listed = ", ".join(f"{one.scales[i]!r} for {other.scales[i]!r}" for i in apart[:5])
    return f"{apart.size} of {one.scales.size} scales differ: {listed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for real, twin in found(parser.parse_args().folder):
        made = rebuilt(real, twin)
        said = f"{made.annotated} annotated, {made.propagated} propagated of {made.ports}"
        result = tflq.verify(twin, bytes(write(made.module)))
        outputs = [str(difference) for difference in result.outputs.values()]
        print(f"{real.name} as {twin.name}: {said}; differences: {len(made.differences)}; {result.verdict}: {outputs}")
        print(*(f"    {line}" for line in (*made.differences[:20], *result.interface)), sep="\n")


if __name__ == "__main__":
    main()
