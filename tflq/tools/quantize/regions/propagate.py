"""quant-propagate: the parameters of all ports, from those that are known, under a target's constraints.

Greedy, with a work-list over the regions in topological order. A port takes the first of these that exists:

    annotation    its spec, or casts at its value
    fixed_scale   the parameters that the kernel demands
    calibration   those for the range that was seen, on the kernel's storage
    neighbour     those of its value, or of the other ports by the kernel's constraint
    constant      those for the elements of a constant
    coupled       what is said of a value that `quant.coupled_ref` couples with its own

A kernel's constraint always holds. Where a value has other parameters than a consumer's port, a `quant.rescale` stands
before the consumer. `tflq.origins` of a region says where the parameters of each port come from, inputs first.

Topological order is that of the graph, from the results back, not that of the text: the order of the ops does not
matter.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np

from tflq.base.errors import OptionError
from tflq.dialects.regions import Region, Stats
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.ir.rewriting import remove_unneeded
from tflq.ir.types import (
    CalibratedQuantizedType,
    ElementType,
    ScalarType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    element_storage,
    is_quantized,
)
from tflq.targets.constraints import quant_functions
from tflq.targets.load import Kernels, load_kernels
from tflq.targets.signature import Port as Kind
from tflq.tools.quantize.regions.edges import COUPLED, Coupling, Edges, OneRange, common, inline_calls, topological
from tflq.tools.quantize.regions.lookup import (
    CONSTANT,
    Match,
    Port,
    admits,
    is_quantizable,
    lookup,
    ports,
    sides_of,
    stored_as,
)
from tflq.tools.quantize.regions.ranges import (
    ACCUMULATED,
    POINTS,
    Range,
    constant_range,
    is_quantizing,
    parameters,
    range_of,
    ranges_along,
    same_value,
    statement_after,
    statement_before,
    storages,
    stored_by,
    uniform,
)
from tflq.tools.quantize.regions.tensor_constraints import constrain_by_file, take_ranges
from tflq.transforms.pass_manager import Pass, PassResult

ACCUMULATES: Final = "multiplier_accumulator_scale"
"""The constraint whose third input has the product of the scales of the first two."""


@dataclass(frozen=True)
class QuantPropagate(Pass):
    """Gives the ports of regions their parameters. `target`: a target's file, whose kernels have the constraints.
    `annotations`: a file of constraints by names of tensors, in the place of the model's. `ranges`: which ports take
    the min and max that the model's file has of their tensors: those without constraints (`missing`), or all, in the
    place of parameters too; what `annotations` says comes before."""

    name: ClassVar[str] = "quant-propagate"
    target: str = ""
    annotations: str = ""
    ranges: Literal["none", "missing", "all"] = "none"

    def run(self, module: Module) -> PassResult:
        if not self.target:
            raise OptionError("pass 'quant-propagate' needs a target: quant-propagate{target=FILE.toml}")
        kernels = load_kernels(self.target)
        modified = self.ranges != "none" and take_ranges(module, all_ports=self.ranges == "all")
        if self.annotations:
            modified |= constrain_by_file(module, Path(self.annotations))
        modified |= inline_calls(module)
        before = [value for function in module.functions for value in function.outputs]
        modified |= propagate(module.functions, kernels)
        now = (value for function in module.functions for value in function.outputs)
        returned = dict(zip(before, now, strict=True))
        module.signatures = module.signatures and [s.with_outputs(returned) for s in module.signatures]
        modified |= modified and remove_unneeded(module, lambda op: isinstance(op, Stats))
        return PassResult(module, modified)


def propagate(functions: Sequence[Function], kernels: Kernels) -> bool:
    """Gives the ports of the regions in some functions their parameters. Returns whether anything changed.
    UnsupportedError if coupled points would get different ones."""
    return _Propagation(functions, kernels).run()


class _Propagation:
    """The parameters of the regions in some functions."""

    def __init__(self, functions: Sequence[Function], kernels: Kernels) -> None:
        self.functions = functions
        self.kernels = kernels
        self.order = [region for function in functions for region in topological(function)]
        self.sides = {region: sides_of(region) for region in self.order}
        self.place = {region: index for index, region in enumerate(self.order)}
        self.types: dict[Port, ElementType] = {}
        self.origins: dict[Port, str] = {}
        self.overridden: dict[Port, ElementType] = {}
        self.coupling = Coupling(functions)
        self.of_value: dict[Value, list[Port]] = {}
        self.output_ports: dict[Value, Port] = {}
        self.apart: Set[Port] = frozenset()
        self.listed = storages(kernels)
        self.users = {value: ops for function in functions for value, ops in function.users().items()}
        self.returned = frozenset(value for function in functions for value in function.outputs)

    def run(self) -> bool:
        self._annotations()
        self._couple()
        self.initial = dict(self.types)
        for region in self.order:
            self._settle(region)
        self._calibrations()
        self._constants()
        for region in self.order:
            self._fit_bias(region)
        self.coupling.check(self._type_of)
        modified = self._write()
        edges = Edges(self.types, self.output_ports, self.overridden)
        for function in self.functions:
            modified |= edges.rescale(function)
        return modified

    # --- the state

    def _annotations(self) -> None:
        for region in self.order:
            known = region.origins
            for place, port in enumerate(ports(region)):
                spec, origin = port.spec, "annotation"
                if place < len(known) and is_quantized(spec):
                    origin = known[place]
                if isinstance(spec, ScalarType):
                    spec = self._annotated(port) or spec
                self.types[port] = stored_by(self.listed, spec)
                self.origins[port] = origin if is_quantized(spec) else ""
                self.of_value.setdefault(self.coupling.shared(port.value), []).append(port)
                if port.is_output:
                    self.output_ports[port.value] = port

    def _annotated(self, port: Port) -> ElementType | None:
        """Type by casts and statistics of the value of a port whose spec says nothing."""
        if not is_quantizable(port.spec):
            return None
        if not port.is_output:
            return statement_before(port.value).spec
        casts = (op.result.type.element for op in self.users.get(port.value, ()) if is_quantizing(op))
        return next(casts, None) or statement_after(port.value, self.users, self.returned)[0]

    def _match(self, region: Region, assumed: dict[Port, ElementType]) -> Match | None:
        sides = ([assumed.get(p, self.types[p]) for p in side] for side in self.sides[region])
        return lookup(self.kernels, region, *sides)

    def _set(self, port: Port, kind: ElementType, origin: str) -> None:
        before = self.types[port]
        if is_quantized(before) and before != kind and self.origins[port] == "annotation":
            self.overridden[port] = before
        self.types[port], self.origins[port] = kind, origin

    # --- steps

    def _couple(self) -> None:
        """Gives what is said about one of several coupled values to the ports of all."""
        for points in self.coupling.points.values():
            values = [same_value(point.arg) for point in points]
            if len(values) < 2:
                continue
            ports = self.of_value.get(self.coupling.shared(values[0]), [])
            kind = common([*(self.types[port] for port in ports), *(value.type.element for value in values)])
            for port in ports if kind is not None else ():
                known = self.types[port]
                plain = is_quantizable(known) and isinstance(known, (ScalarType, CalibratedQuantizedType))
                if plain and kind is not None and self._takes(port, kind):
                    self._set(port, kind, COUPLED)

    def _takes(self, port: Port, kind: ElementType) -> bool:
        """Whether a kernel of the target takes parameters, or those for a range, at a port."""
        match = self._match(port.region, {port: kind})
        return match is not None and admits((match.outputs if port.is_output else match.inputs)[port.index], kind)

    def _settle(self, region: Region) -> list[Port]:
        """Applies a kernel's constraint. Returns the ports updated."""
        match = self._match(region, {})
        changed: list[Port] = []
        for name, function, numbers in quant_functions(match.signature.constraints) if match else ():
            assert match is not None
            sides = self.sides[region]
            views = [
                [self._view(port, kind) for port, kind in zip(side, kinds, strict=True)]
                for side, kinds in zip(sides, (match.inputs, match.outputs), strict=True)
            ]
            updated = function(*views, *numbers)
            updates = {
                side[place]: view[place]
                for side, view, places in zip(sides, views, updated, strict=True)
                for place in places
            }
            if updates and self._match(region, updates) is None:
                continue  # the target has no such kernel
            for port, kind in updates.items():
                self._set(port, kind, name)
            changed += updates
        return changed

    def _view(self, port: Port, kind: Kind) -> ElementType:
        """The type of a port that a constraint's function sees: its parameters, or the storage that these will have."""
        spec = self.types[port]
        return spec if is_quantized(spec) else stored_as(kind, spec) or spec

    def _calibrations(self) -> None:
        """Gives ports the parameters for their ranges, but those whose ranges yield to others: these take their own
        only if nothing else came to them."""
        matches = {region: self._match(region, {}) for region in self.order}
        ranges = OneRange(self.order, self.initial, self.types, matches, self._same, self._is_free)
        yielding, self.apart = ranges.yielding, ranges.apart
        for waiting in (yielding, frozenset[Port]()):
            for region in self.order:
                self._calibrate(region, waiting)
            self._neighbours()

    def _calibrate(self, region: Region, waiting: Set[Port]) -> None:
        match = self._match(region, {})
        kinds = (*match.inputs, *match.outputs) if match else ()
        updates = {}
        for port, kind in zip(ports(region), kinds, strict=False):
            if port not in waiting and (seen := self._range(port, kind)) is not None:
                updates[port] = self._parameters(port, kind, seen)
        for port, calibrated in updates.items():
            self._set(port, calibrated, "calibration")
        if updates:
            self._settle(region)

    def _range(self, port: Port, kind: Kind) -> Range | None:
        """The range of a port, as its kernel asks for it: of the whole tensor, or along an axis."""
        spec = self.types[port]
        if not isinstance(spec, CalibratedQuantizedType):
            return None
        seen = Range.of(spec, exact=same_value(port.value).is_constant)
        if not kind.wants_axis:
            return seen if kind.takes_one_scale else None
        ranges = ranges_along(port.value, self.users if port.is_output else None)
        known = [along for stats, along in ranges if range_of(stats) == spec]
        axis = next((along.axis for along in known), 0) if kind.axis is None else kind.axis
        shape = port.value.type.shape
        size = shape[axis] if shape is not None and axis is not None and axis < len(shape) else None
        whole = None if size is None or axis is None else seen.along(axis, size)
        return next((along for along in known if along.axis == axis), whole)

    def _parameters(self, port: Port, kind: Kind, seen: Range) -> ElementType:
        """The parameters for a range at a port; the type that it has if the port stays real."""
        stored = stored_as(kind, self.types[port])
        return self.types[port] if stored is None else parameters(seen, stored, kind.zero_point)

    def _constants(self) -> None:
        """Gives constants the parameters for their own elements, unless other ports would follow them: what was seen of
        activations decides for these."""
        for region in self.order:
            match = self._match(region, {})
            for port, kind in zip(ports(region), match.inputs if match else (), strict=False):
                accumulates = kind.storage is not None and kind.storage.bits >= ACCUMULATED
                if not self._is_open(port) or accumulates or not (kind.takes_one_scale or kind.wants_axis):
                    continue
                axis = (kind.axis or 0) if kind.wants_axis else None
                if (seen := constant_range(port.value, axis)) is not None:
                    self._take_constant(port, self._parameters(port, kind, seen))
        self._neighbours()

    def _take_constant(self, port: Port, kind: ElementType) -> None:
        """Gives a constant its parameters, if the kernel then gives none to ports that are not constant."""
        before = {p: (self.types[p], self.origins[p]) for p in ports(port.region)}
        self._set(port, kind, CONSTANT)
        if any(not same_value(p.value).is_constant for p in self._settle(port.region)):
            for p, (spec, origin) in before.items():
                self.types[p], self.origins[p] = spec, origin

    def _neighbours(self) -> None:
        waiting = list(range(len(self.order)))
        queued = set(waiting)
        while waiting:
            place = heapq.heappop(waiting)
            queued.discard(place)
            changed = self._visit(self.order[place])
            for port in changed:
                for other in self._same(port):
                    index = self.place[other.region]
                    if index not in queued and other.region is not port.region and self._is_open(other):
                        queued.add(index)
                        heapq.heappush(waiting, index)

    def _is_open(self, port: Port) -> bool:
        return not is_quantized(self.types[port]) and is_quantizable(self.types[port])

    def _visit(self, region: Region) -> list[Port]:
        """Open ports take over parameters of their values; then the constraint applies. Returns the ports updated."""
        open_ports = [port for port in ports(region) if self._is_open(port)]
        offered = {port: kind for port in open_ports if (kind := self._of_value(port)) is not None}
        match = self._match(region, offered) or self._match(region, {})
        if match is None:
            return []
        changed = []
        for port, kind in offered.items():
            slot = (match.outputs if port.is_output else match.inputs)[port.index]
            if slot.kinds and admits(slot, kind):
                self._set(port, kind, "neighbour")
                changed.append(port)
        return changed + self._settle(region)

    def _same(self, port: Port) -> list[Port]:
        """The ports of a port's value, and of those that are coupled with it."""
        return self.of_value[self.coupling.shared(port.value)]

    def _is_free(self, value: Value) -> bool:
        """Whether only regions use a value."""
        uses = self.users.get(value, ())
        marks = [op for op in uses if isinstance(op, (Stats, *POINTS))]
        others = (isinstance(op, Region) for op in uses if op not in marks)
        return value not in self.returned and all(others) and all(self._is_free(op.result) for op in marks)

    def _of_value(self, port: Port) -> ElementType | None:
        """The parameters that other ports give a port's value: those of the producer, or of the first consumer. Those
        for the elements of a constant are of one port only."""
        known = [p for p in self._same(port) if is_quantized(self.types[p]) and self.origins[p] != CONSTANT]
        others = [p for p in known if p != port]
        if not others or port in self.apart:
            return None
        first = min(others, key=lambda p: (not p.is_output, self.place[p.region], p.index))
        return self.overridden.get(first, self.types[first]) if first.is_output else self.types[first]

    def _fit_bias(self, region: Region) -> None:
        """Widens the scales of a constant bias that would not fit its storage, and of its constant weights, unless they
        are annotated."""
        match = self._match(region, {})
        names = [name for name, _ in match.signature.constraints] if match else []
        operands = [port for port in sides_of(region)[0] if is_quantizable(self.types[port])]
        if ACCUMULATES not in names or len(operands) < 3 or not same_value(operands[2].value).is_constant:
            return
        *factors, bias = operands[:3]
        constant = [port for port in factors if same_value(port.value).is_constant]
        if len(constant) != 1 or self.origins[constant[0]] == "annotation" or self.origins[bias] != ACCUMULATES:
            return
        (weights,), (x,) = constant, [port for port in factors if port not in constant]
        kinds = fitted(self.types[x], self.types[weights], self.types[bias], same_value(bias.value).array)
        for port, kind in zip((weights, bias), kinds or (), strict=False):
            self._set(port, kind, ACCUMULATES)

    # --- results

    def _write(self) -> bool:
        modified = False
        for region in self.order:
            origins = []
            for port in ports(region):
                kind = self.types[port]
                if is_quantized(kind) and kind != port.spec:
                    port.set(kind)
                    modified = True
                origins.append(self.origins[port] if is_quantized(kind) else "none")
            if region.origins != origins and any(origin != "none" for origin in origins):
                region.origins = origins
                modified = True
        return modified

    def _type_of(self, value: Value) -> ElementType | None:
        """The parameters that a value has: those of the port that makes it, else of its type, else of its first user's
        port; None if it has none."""
        port = self.output_ports.get(value)
        if port is None and not is_quantized(value.type.element):
            users = (p for p in self.of_value.get(self.coupling.shared(value), ()) if same_value(p.value) is value)
            port = next(users, None)
        kind = value.type.element if port is None else self.types[port]
        return kind if is_quantized(kind) else None


# Scales under which a constant bias fits its storage.


_LARGEST: Final = {32: (2**31 - 1) // 2, 64: 2**34}
"""Of a stored bias, by its bits: half of what an accumulator holds; and of int64 what leaves less than 4 steps of a
result where its multiplier is below 2^-32, which kernels take for 0 (`fixed_point.quantize_multiplier`)."""


def fitted(
    x: ElementType, weights: ElementType, bias: ElementType, values: np.ndarray
) -> tuple[ElementType, ElementType] | None:
    """Wider scales of weights and of a constant bias, under which the bias fits its storage, with room for the
    accumulator.

    Weights are of 8 bits at most; the bias of 32 bits, or of 64 for 16 bits of input. None if the scales are wide
    enough, or the types are others.

    If a bias would exceed half of the largest int32, or 2^34, under its scale, the product of the two others, its scale
    becomes |b| / that, and that of the weights follows: scale of the bias / scale of the input. `values`: the
    bias, one real for each scale, or any number for a single one. Source: TensorFlow Lite's quantization driver,
    SetBiasParamsWithAdjustments.
    """
    if not isinstance(x, UniformQuantizedType) or not isinstance(
        bias, (UniformQuantizedType, UniformQuantizedPerAxisType)
    ):
        return None
    bits = x.storage.bits, bias.storage.bits
    if type(weights) is not type(bias) or element_storage(weights).bits > 8 or bits not in ((8, 32), (16, 64)):
        return None
    most = _LARGEST[bias.storage.bits]
    largest = np.abs(values.reshape(-1).astype(np.float64))
    if isinstance(bias, UniformQuantizedType):
        largest = largest.max(initial=0.0, keepdims=True)
    before, others = (
        np.atleast_1d(np.asarray(kind.scale if isinstance(kind, UniformQuantizedType) else kind.scales, np.float64))
        for kind in (bias, weights)
    )
    if before.shape != largest.shape or before.shape != others.shape or not np.isfinite(largest).all() or not x.scale:
        return None
    wide = largest > before * most
    if not wide.any():
        return None
    scales = np.where(wide, largest / most, before)
    return _scaled(weights, np.where(wide, scales / x.scale, others)), _scaled(bias, scales)


def _scaled(kind: ElementType, scales: np.ndarray) -> ElementType:
    """A type with other scales."""
    assert isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType))
    more = {"expressed": kind.expressed, "storage_min": kind.storage_min, "storage_max": kind.storage_max}
    axis, zero = (None, kind.zero_point) if isinstance(kind, UniformQuantizedType) else (kind.axis, kind.zero_points)
    return uniform(kind.storage, axis, scales, zero, **more)
