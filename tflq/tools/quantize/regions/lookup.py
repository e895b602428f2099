"""Common functions of the passes on `quant.region`: the look-up of a kernel in a target's table, ports, constants,
and a report.

The key of the table is a kernel by its name and the specs of its ports. A spec may leave the type open: a plain one, a
range (calibrated) or a width (any). The first signature that fits supplies the rest; what it leaves open as well (`q`)
has 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from tflq.dialects.regions import Region
from tflq.dialects.tfl import fused_activation
from tflq.dialects.traits import ReadsShapes
from tflq.ir.facts import walk
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.text.print_types import type_text
from tflq.ir.types import (
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    NoQuantizedType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i8,
    is_quantized,
)
from tflq.targets.load import Kernels
from tflq.targets.signature import Port as Kind
from tflq.targets.signature import Signature
from tflq.targets.slots import Slot


@dataclass(frozen=True, slots=True)
class Match:
    """A signature, and what it says of each input and output."""

    signature: Signature
    inputs: tuple[Kind, ...]
    outputs: tuple[Kind, ...]


def lookup(
    kernels: Kernels, region: Region, inputs: Sequence[ElementType], outputs: Sequence[ElementType]
) -> Match | None:
    """The first signature of a region's kernel that the specs of its ports fit; None if there is none."""
    for signature in kernels.get(region.kernel, ()):
        if not _holds(signature, region):
            continue
        for sides in signature.alternatives:
            kinds = [_assigned(slots, specs) for slots, specs in zip(sides, (inputs, outputs), strict=True)]
            if kinds[0] is not None and kinds[1] is not None:
                return Match(signature, kinds[0], kinds[1])
    return None


def _holds(signature: Signature, region: Region) -> bool:
    """Whether a signature has a kernel at all, and takes the fused activations inside."""
    names = {name for name, _ in signature.constraints}
    fused = any(fused_activation(op) != "NONE" for op in walk(region.regions[0].block.ops))
    return "lowered" not in names and not (fused and "no_activation" in names)


def _assigned(slots: Sequence[Slot], specs: Sequence[ElementType]) -> tuple[Kind, ...] | None:
    """The kinds that one side of a signature declares for each port; None if a port does not fit."""
    kinds = _spread(slots, len(specs))
    return tuple(kinds) if len(kinds) == len(specs) and all(map(admits, kinds, specs)) else None


def _spread(slots: Sequence[Slot], count: int) -> list[Kind]:
    """The kinds that one side of a signature declares for so many ports. Fewer if it has none for the last, more if it
    asks for more."""
    places: list[tuple[Kind, str]] = [(slot.ports[0], slot.many) for slot in slots]
    if places and places[-1][1] in ("*", "..."):
        places = [*places[:-1], *places[-1:] * max(count - len(places) + 1, 0)]
    while len(places) > count and places[-1][1]:
        places.pop()
    return [kind for kind, _ in places]


def admits(kind: Kind, spec: ElementType) -> bool:
    """Whether a port takes a spec, or what the spec will become. Integers that mean places or sizes have no parameters:
    any port takes them."""
    if kind.kinds is None or (isinstance(spec, ScalarType) and not spec.is_float):
        return True
    if isinstance(spec, NoQuantizedType):
        return not kind.kinds
    if isinstance(spec, ScalarType):
        return bool(kind.kinds) or kind.storage in (None, spec)
    if not kind.kinds:
        return False
    if isinstance(spec, CalibratedQuantizedType):
        return True
    if isinstance(spec, AnyQuantizedType):
        return kind.storage is None or kind.storage.bits >= spec.storage.bits
    return _takes(kind, spec)


def _takes(kind: Kind, spec: ElementType) -> bool:
    """Whether a port takes parameters."""
    if not is_quantized(spec) or not isinstance(spec, kind.kinds or ()):
        return False
    if kind.storage not in (None, spec.storage) or kind.axis not in (None, getattr(spec, "axis", None)):
        return False
    low, high = kind.low, kind.high
    if low is not None and high is not None and not low <= spec.storage_min < spec.storage_max <= high:
        return False
    zeros = spec.zero_point if isinstance(spec, UniformQuantizedType) else spec.zero_points
    return kind.zero_point is None or bool(np.all(zeros == kind.zero_point))


def stored_as(kind: Kind, spec: ElementType) -> AnyQuantizedType | None:
    """The storage of a port that has no parameters yet; None if it stays plain."""
    if not kind.kinds or isinstance(spec, NoQuantizedType) or (isinstance(spec, ScalarType) and not spec.is_float):
        return None
    wide = isinstance(spec, AnyQuantizedType)
    storage = kind.storage or (spec.storage if wide and spec.storage.bits > i8.bits else i8)  # type: ignore[union-attr]
    expressed = spec if isinstance(spec, ScalarType) else spec.expressed  # type: ignore[union-attr]
    if wide and kind.low is None and spec.storage == storage:  # type: ignore[union-attr]
        low, high = spec.storage_min, spec.storage_max  # type: ignore[union-attr]
    else:
        low = storage.minimum if kind.low is None else kind.low
        high = storage.maximum if kind.high is None else kind.high
    return AnyQuantizedType(storage, expressed, low, high)


# Ports.


CONSTANT = "constant"
"""The origin of parameters for the elements of a constant."""


@dataclass(frozen=True, slots=True)
class Port:
    """An operand or a result of a region, by its index, with its spec."""

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

    def connect(self, value: Value) -> None:
        """Gives the region another operand here."""
        operands = self.region.operands
        self.region.operands = [*operands[: self.index], value, *operands[self.index + 1 :]]

    def set(self, spec: ElementType) -> None:
        """Gives the port another spec."""
        key = "output_specs" if self.is_output else "input_specs"
        specs = list(self.region.attributes[key])
        specs[self.index] = spec
        self.region.attributes[key] = specs

    def __str__(self) -> str:
        return f"{'output' if self.is_output else 'input'} {self.index}"


def origins_of(region: Region) -> list[str]:
    """Where the parameters of each port come from, inputs first: "none" for all if nobody said."""
    return region.origins or ["none"] * (len(region.operands) + len(region.results))


def ports(region: Region) -> list[Port]:
    """The inputs, then the outputs."""
    inputs, outputs = sides_of(region)
    return inputs + outputs


def sides_of(region: Region) -> tuple[list[Port], list[Port]]:
    """The inputs, and the outputs."""
    inputs = [Port(region, False, index) for index in range(len(region.operands))]
    return inputs, [Port(region, True, index) for index in range(len(region.results))]


def regions_of(ops: Iterable[Op]) -> Iterator[Region]:
    """The regions among ops."""
    return (op for op in ops if isinstance(op, Region))


def is_real(element: ElementType) -> bool:
    """Whether a type holds or expresses reals."""
    return not isinstance(element, ScalarType) or element.is_float


def computes_with_reals(op: Op) -> bool:
    """Whether an op reads or makes elements that are reals: SHAPE and RANK do not."""
    return not op.matches(ReadsShapes) and any(is_real(value.type.element) for value in op.tensors)


def is_quantizable(spec: ElementType) -> bool:
    """Whether a port could have parameters: it is of reals, and not to be kept as it is."""
    return is_real(spec) and not isinstance(spec, NoQuantizedType)


# Constants.


def quantized_constant(value: Value, kind: ElementType) -> Value | None:
    """A float32 constant, quantized as by TensorFlow Lite's converter: round(x / scale) + zero point.

    Biases, which are stored in 32 bits or more: round(x · (1 / scale)). Half away from zero, in float32. None if it is
    not such a constant.
    """
    if not value.is_constant or value.type.element != f32 or value.type.shape is None:
        return None
    if not isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        return None
    scales, zeros = _parameters(kind, len(value.type.shape))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = value.array * (np.float32(1) / scales) if kind.storage.bits >= 32 else value.array / scales
    away = np.trunc(np.abs(ratio).astype(np.float64) + 0.5) * np.sign(ratio)
    stored = np.clip(np.nan_to_num(away) + zeros, kind.storage_min, kind.storage_max)
    quantized = constant(stored.astype(kind.storage.dtype), kind.storage, value.name)
    quantized.type = TensorType(value.type.shape, kind)
    return quantized


def real_constant(value: Value) -> Value | None:
    """The reals that a quantized constant stands for, scale · (x - zero point) in float32. None for other values."""
    kind = value.type.element
    if not value.is_constant or value.type.shape is None:
        return None
    if not isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType)) or kind.expressed != f32:
        return None
    scales, zeros = _parameters(kind, len(value.type.shape))
    return constant((value.array.astype(np.int64) - zeros).astype(np.float32) * scales, name=value.name)


def _parameters(kind: UniformQuantizedType | UniformQuantizedPerAxisType, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Scales in float32 and zero points, which broadcast to tensors of a rank."""
    if isinstance(kind, UniformQuantizedType):
        return np.asarray(kind.scale, np.float32), np.asarray(kind.zero_point, np.int64)
    shape = [1] * rank
    shape[kind.axis] = -1
    return kind.scales.reshape(shape).astype(np.float32), kind.zero_points.reshape(shape)


# What keeps a region from being a kernel.


def lacks(kernels: Kernels, region: Region) -> dict[Port | None, str]:
    """Why a target has no quantized kernel for a region, by port; None: why it has none for the region as a whole.
    Empty if it has one. Of several signatures the one counts from which the fewest ports keep the region."""
    match = lookup(kernels, region, region.input_specs, region.output_specs)
    if match is None:
        return _misfits(kernels, region)
    kinds = (*match.inputs, *match.outputs)
    return {
        port: f"it has no parameters, and the kernel takes {kind.text}"
        for port, kind in zip(ports(region), kinds, strict=True)
        if kind.kinds and is_quantizable(port.spec) and not is_quantized(port.spec)
    }


def _misfits(kernels: Kernels, region: Region) -> dict[Port | None, str]:
    signatures = [signature for signature in kernels.get(region.kernel, ()) if _holds(signature, region)]
    sides = [(signature, sides) for signature in signatures for sides in signature.alternatives]
    if not sides:
        listed = "takes its fused activation" if kernels.get(region.kernel) else "is listed"
        return {None: f"no kernel '{region.kernel}' {listed} in the target"}
    refusals = [(_refused(region, each), signature) for signature, each in sides]
    refused, signature = min(refusals, key=lambda pair: len(pair[0]))
    return refused or {None: f"it has other ports than the kernel: {signature.text}"}


def _refused(region: Region, sides: Sequence[Sequence[Slot]]) -> dict[Port | None, str]:
    """The ports that one signature refuses; None where it has none for them."""
    refused: dict[Port | None, str] = {}
    for noun, side, slots in zip(("operand", "result"), sides_of(region), sides, strict=True):
        for port, kind in zip_longest(side, _spread(slots, len(side))):
            if port is None:
                refused[None] = f"it has no {noun} for {kind.text} of the kernel"
            elif kind is None:
                refused[port] = "the kernel has no such port"
            elif not admits(kind, port.spec):
                refused[port] = f"it is {type_text(BareType.of(port.spec))}, and the kernel takes {kind.text}"
    return refused


# The report: whether a model is quantized, and what it lacks for that.


@dataclass(frozen=True, slots=True)
class PortReport:
    """A port of a kernel, by the place of its region in its function.

    origin: where its parameters come from; "none" if it has no parameters. lacks: why its region is not a quantized
    kernel of a target, if the port, or none of the region's ports, is the reason.
    """

    function: str
    region: int
    kernel: str
    port: str
    origin: str
    lacks: str = ""


def report(module: Module, kernels: Kernels | None = None) -> list[PortReport]:
    """All ports that can have parameters, in order. kernels: those of a target.

    With kernels, `lacks` says of every region that is no kernel of the target, and so is computed in floats, which
    ports keep it from being one, and why.
    """
    rows = []
    for function in module.functions:
        for place, region in enumerate(regions_of(function.ops)):
            known = {} if kernels is None else lacks(kernels, region)
            of_all = known.get(None, "")
            rows += [
                PortReport(function.name or "", place, region.kernel, str(port), origin, known.get(port, of_all))
                for port, origin in _origins(region)
            ]
    return rows


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Regions that `quant-materialize` left in floats, in the module's record: the rows of the report that say why."""

    rows: Sequence[PortReport]


def _origins(region: Region) -> Iterator[tuple[Port, str]]:
    origins = region.origins
    for index, port in enumerate(ports(region)):
        if is_quantizable(port.spec):
            origin = origins[index] if index < len(origins) else "annotation"
            yield port, origin if is_quantized(port.spec) else "none"


def is_fully_quantized(module: Module) -> bool:
    """Whether there are kernels, and each has parameters for all its ports that can have some. `report` says which lack
    them."""
    rows = report(module)
    return bool(rows) and all(row.origin != "none" for row in rows)
