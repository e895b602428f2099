"""Connections of kernels: a `quant.rescale` on an edge whose two ends have different parameters, chains of one scale,
coupled points, calls, and the order of the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.regions import CoupledRef, Region, Rescale, Stats
from tflq.formats.mlir.dialects.linalg import Call
from tflq.ir.facts import final, walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import copied, replace_values
from tflq.ir.text.print_types import type_text
from tflq.ir.types import (
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    ScalarType,
    UniformQuantizedType,
    is_quantized,
)
from tflq.targets.constraints import quant_functions
from tflq.targets.signature import Port as Kind
from tflq.tools.quantize.regions.lookup import Match, Port, ports, regions_of, sides_of, stored_as
from tflq.tools.quantize.regions.ranges import faked_type, is_dequantizing, same_value, source_of, statement_before

# Edges.


@dataclass(frozen=True)
class Edges:
    """Edges by the types of all ports. output_ports: the ports that result in values. overridden: annotations of ports
    to which a constraint gave something else."""

    types: Mapping[Port, ElementType]
    output_ports: Mapping[Value, Port]
    overridden: Mapping[Port, ElementType]

    def rescale(self, function: Function) -> bool:
        """Puts the rescales of a function. Returns whether there are any."""
        ops: list[Op] = []
        modified = False
        for op in function.ops:
            for port in ports(op) if isinstance(op, Region) else ():
                if not port.is_output:
                    port.connect(self._before_statistics(port))
                    rescale = _rescaled(port.value, self._source(port), self.types[port], op)
                    if rescale is not None:
                        ops.append(rescale)
                        port.connect(rescale.result)
                        modified = True
            ops.append(op)
        outputs = list(function.outputs)
        for place, value in enumerate(outputs):
            output = self.output_ports.get(same_value(value))
            if output is not None and output in self.overridden:
                rescale = _rescaled(value, self.types[output], self.overridden[output], output.region)
                if rescale is not None:
                    ops.append(rescale)
                    rescale.result.name, value.name = value.name, ""
                    outputs[place] = rescale.result
                    modified = True
        function.ops, function.outputs = ops, outputs
        return modified

    def _before_statistics(self, port: Port) -> Value:
        """The value of a port before statistics of it, which say no more if the port has parameters."""
        value = port.value
        while is_quantized(self.types[port]) and isinstance(value.producer, Stats):
            value = value.producer.arg
        return value

    def _source(self, port: Port) -> ElementType | None:
        """The parameters that a value has when it comes to a port, if it is quantized before."""
        value = same_value(port.value)
        if value in self.output_ports:
            return self.types[self.output_ports[value]]
        if isinstance(value.producer, Rescale):
            return value.producer.target
        op = value.producer
        if op is not None and (faked_type(op) is not None or (is_dequantizing(op) and source_of(op).is_constant)):
            return None  # reals, and constants are quantized for each
        return statement_before(value).spec or self.overridden.get(port)


def _rescaled(value: Value, source: ElementType | None, target: ElementType, op: Op) -> Op | None:
    if not is_quantized(target) or source is None or not is_quantized(source) or source == target:
        return None
    return Op(Rescale.op_name, [value], [Value(value.type)], {"from": source, "to": target}, op.location)


# Along kernels of one scale one range decides: which ports with a range of their own take the parameters of others.
#
# A constraint binds a port if it gives it what another port has, or what the kernel always has: a pooling its result, a
# concatenation its operands, a softmax its result. The range of a bound result yields, and with it that of the value's
# consumers, which is the same. The range of a value whose consumers all bind it yields to theirs, and so on before it.
# Reals that no kernel makes are quantized for each consumer: beside other operands their range yields where that binds
# them, whatever else reads them. It would decide for the others. What yields then gets its parameters by the
# constraint, or as a neighbour; where consumers differ, or a value is a result of the model, its own range stays, and a
# rescale stands between.


class OneRange:
    """The ports of some regions whose ranges yield."""

    def __init__(
        self,
        order: Sequence[Region],
        initial: Mapping[Port, ElementType],
        types: Mapping[Port, ElementType],
        matches: Mapping[Region, Match | None],
        of_value: Callable[[Port], Sequence[Port]],
        is_free: Callable[[Value], bool],
    ) -> None:
        """order: the regions, each after those that it needs; initial: annotations of all ports; types: what is known
        of them since constraints were applied; matches: the signatures of the regions; of_value: the ports that have
        the value of one; is_free: whether only regions use a value."""
        self.initial = initial
        self.types = types
        self.matches = matches
        self.of_value = of_value
        self.is_free = is_free
        self.yielding: set[Port] = set()
        self.apart: set[Port] = set()
        """Yielding ports that get parameters by their kernel's constraint alone, not by other kernels' results of the
        same reals."""
        self._demanded: set[Port] = set()  # results that take what their consumers bind them to
        for region in reversed(order):
            self._demand(region)
        for region in order:
            self._give(region)

    def _is_range(self, port: Port) -> bool:
        return isinstance(self.types[port], CalibratedQuantizedType)

    def _demand(self, region: Region) -> None:
        """Results whose consumers all bind them, as far as these are this region's: consumers come before it."""
        outputs = [port for port in ports(region) if port.is_output and self._is_range(port)]
        for port in outputs:
            consumers = [other for other in self.of_value(port) if other != port]
            if not consumers or any(other.is_output for other in consumers) or not self.is_free(port.value):
                continue
            if all(other in self._bound(other.region) for other in consumers):
                self._demanded.add(port)
                self.yielding.update([port, *filter(self._is_range, consumers)])
        kinds = match.inputs if (match := self.matches[region]) else ()
        operands = [port for port, kind in zip(ports(region), kinds, strict=False) if kind.kinds]
        if len(operands) > 1:
            bound = self._bound(region)
            self.apart.update(port for port in operands if port in bound and self._is_of_reals(port))
            self.yielding |= self.apart

    def _is_of_reals(self, port: Port) -> bool:
        """Whether an operand is computed, but by no kernel."""
        makers = [other.region for other in self.of_value(port) if other.is_output]
        by_kernel = any(self.matches[region] is not None for region in makers)
        return not by_kernel and self._is_range(port) and not same_value(port.value).is_constant

    def _give(self, region: Region) -> None:
        """Results that the region's own constraint binds."""
        bound = self._bound(region, self.yielding)
        for port in (port for port in ports(region) if port.is_output and port not in self._demanded):
            spec = self.initial[port]
            changed = port in bound or self.types[port] != spec
            if changed and isinstance(spec, CalibratedQuantizedType):
                self.yielding.update(other for other in self.of_value(port) if self.types[other] == spec)

    def _bound(self, region: Region, yielding: Set[Port] | None = None) -> Set[Port]:
        """The ports that a kernel's constraint gives what others have. That of a demanded result is what counts: ranges
        of operands are then as good as unknown. yielding: those of them that yield, once that is known."""
        match = self.matches[region]
        if match is None:
            return frozenset()
        sides = sides_of(region)
        demanded = not self._demanded.isdisjoint(sides[1])
        bound: set[Port] = set()
        for _, function, numbers in quant_functions(match.signature.constraints):
            views = [
                [
                    self._view(port, kind, place, open_range=demanded and self._may_yield(port, yielding))
                    for place, (port, kind) in enumerate(zip(side, kinds, strict=True))
                ]
                for side, kinds in zip(sides, (match.inputs, match.outputs), strict=True)
            ]
            for side, places in zip(sides, function(*views, *numbers), strict=True):
                bound.update(side[place] for place in places)
        return bound

    def _may_yield(self, port: Port, yielding: Set[Port] | None) -> bool:
        return not port.is_output and (yielding is None or port in yielding)

    def _view(self, port: Port, kind: Kind, place: int, *, open_range: bool) -> ElementType:
        """The type that a constraint's function sees: unique parameters where there will be some, else the storage."""
        spec = self.types[port]
        stored = stored_as(kind, spec)
        if is_quantized(spec):
            stored = AnyQuantizedType(spec.storage, spec.expressed, spec.storage_min, spec.storage_max)
        known = is_quantized(spec) or (self._is_range(port) and not open_range)
        if stored is None or stored.expressed is None or not known:
            return stored or spec
        scale = 0.5 ** (1 + 2 * place + port.is_output)
        return UniformQuantizedType(stored.storage, stored.expressed, scale, 0, stored.storage_min, stored.storage_max)


# Points of one `quant.coupled_ref` key: their values get one type, in whichever functions they are.


COUPLED: Final = "coupled"
"""Where the parameters of a port come from that a coupled value has them from."""
_REMEDY: Final = "give both points the same parameters, or other keys"


class Coupling:
    """The points of some functions, by their keys. A value with points of several keys joins these."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.points: dict[str, list[CoupledRef]] = {}
        self._joined: dict[Value, Value] = {}
        for op in (op for function in functions for op in walk(function.ops) if isinstance(op, CoupledRef)):
            self.points.setdefault(op.coupled_key, []).append(op)
        for points in self.points.values():
            first, *rest = (self.shared(op.arg) for op in points)
            for value in rest:
                if self.shared(value) is not self.shared(first):
                    self._joined[self.shared(value)] = self.shared(first)

    def shared(self, value: Value) -> Value:
        """The value that stands for all that are coupled with one; most values stand for themselves."""
        return final(same_value(value), self._joined)

    def check(self, type_of: Callable[[Value], ElementType | None]) -> None:
        """UnsupportedError names two points of one key whose values have different parameters. type_of: the parameters
        of a value, None if it has none."""
        reasons = []
        for key, points in self.points.items():
            known = [(op, kind) for op in points if (kind := type_of(same_value(op.arg))) is not None]
            other = next((pair for pair in known if pair[1] != known[0][1]), None)
            if other is not None:
                (op, kind), (conflicting, its_kind) = known[0], other
                what = (
                    f"the points of '{key}' must have one type: {op.arg.label} has {_shown(kind)}, and "
                    f"{conflicting.arg.label} {_shown(its_kind)}"
                )
                reasons.append(Reason.at(conflicting.location, what, value=key, remedy=_REMEDY))
        if reasons:
            raise UnsupportedError("coupled points have different types", reasons)


def common(kinds: Iterable[ElementType]) -> ElementType | None:
    """Common annotation of coupled values, from that of each: parameters, else a range that holds all ranges;
    None without annotations."""
    kinds = list(kinds)
    known = next((kind for kind in kinds if is_quantized(kind)), None)
    if known is not None:
        return known
    ranges = [kind for kind in kinds if isinstance(kind, CalibratedQuantizedType)]
    if not ranges or not isinstance(ranges[0].expressed, ScalarType):
        return None
    low, high = min(kind.minimum for kind in ranges), max(kind.maximum for kind in ranges)
    return CalibratedQuantizedType.of(ranges[0].expressed, low, high)


def _shown(kind: ElementType) -> str:
    return type_text(BareType.of(kind))


# Functions: calls are inlined, since each call of a function may have other parameters, and regions are in an order
# that is the graph's, not the text's.


def inline_calls(module: Module) -> bool:
    """Inlines every `func.call` of a function that holds regions, or calls one that does: each call may have other
    parameters. Private functions that nothing refers to any more go. Returns whether there were any. UnsupportedError
    if one calls itself."""
    by_name = {str(function.name): function for function in module.functions}
    holding = {name for name, function in by_name.items() if any(isinstance(op, Region) for op in function.ops)}
    calls = {name: {str(op.callee) for op in walk(f.ops) if isinstance(op, Call)} for name, f in by_name.items()}
    while wider := {name for name, called in calls.items() if called & holding and name not in holding}:
        holding |= wider
    done: set[str] = set()
    modified = False
    for name in by_name:
        modified |= _inline(module, by_name, name, holding, done, ())
    if modified:
        _drop_unused(module, holding)
    return modified


def _inline(
    module: Module,
    by_name: Mapping[str, Function],
    name: str,
    holding: set[str],
    done: set[str],
    path: tuple[str, ...],
) -> bool:
    """Inlines the calls in a function, after those in the functions that it calls."""
    if name in path and name in holding:
        what = f"function @{name} calls itself, by way of {', '.join('@' + n for n in path)}"
        raise UnsupportedError(what, [Reason(what, remedy="regions are quantized per call, so write the calls out")])
    if name in done:
        return False
    function = by_name[name]
    ops: list[Op] = []
    replacements: dict[Value, Value] = {}
    for op in function.ops:
        callee = str(op.callee) if isinstance(op, Call) else ""
        if callee not in holding:
            ops.append(op)
            continue
        _inline(module, by_name, callee, holding, done, (*path, name))
        called = by_name[callee]
        known: dict[Value, Value] = {
            inner: value for inner, value in zip(called.inputs, op.operands, strict=True) if value is not None
        }
        ops += copied(called.ops, known)
        replacements |= {r: known.get(v, v) for r, v in zip(op.results, called.outputs, strict=True)}
    done.add(name)
    if not replacements and ops == function.ops:
        return False
    function.ops = ops
    replace_values(module, function, replacements)
    return True


def _drop_unused(module: Module, holding: set[str]) -> None:
    """Drops private functions that were inlined and that nothing names any more."""
    named = {str(item) for op in walk(list(module.ops())) for item in op.attributes.values() if isinstance(item, str)}
    remaining = [
        f
        for f in module.functions
        if f.info.get("visibility") != "private" or str(f.name) in named or str(f.name) not in holding
    ]
    if not module.signatures and len(remaining) < len(module.functions):
        module.functions = remaining


def topological(function: Function) -> Sequence[Region]:
    """The regions, each after those that it needs, in the order in which the results need them. Regions that no result
    needs are last, ordered by their descriptions."""
    order: list[Region] = []
    seen: set[Op] = set()
    for value in function.outputs:
        _visit(value.producer, seen, order)
    if unneeded := [region for region in regions_of(function.ops) if region not in seen]:
        for region in sorted(unneeded, key=_descriptions(function).__getitem__):
            _visit(region, seen, order)
    return order


def _visit(start: Op | None, seen: set[Op], order: list[Region]) -> None:
    """Adds an op's regions to an order, if it is one, behind those that it needs. seen: the ops that were visited."""
    stack: list[tuple[Op | None, bool]] = [(start, False)]
    while stack:
        op, finished = stack.pop()
        if op is None or (op in seen and not finished):
            continue
        if finished:
            if isinstance(op, Region):
                order.append(op)
            continue
        seen.add(op)
        stack.append((op, True))
        stack += [(value.producer, False) for value in reversed(op.operands) if value is not None]


def _descriptions(function: Function) -> dict[Op, tuple[str, str]]:
    """A description of each op, and a hash of it and of all that the op needs: independent of the order of the ops."""
    known = {value: f"argument {place}" for place, value in enumerate(function.inputs)}
    descriptions = {}
    for op in function.ops:
        text = f"{op.name} {[str(op.attributes.get(key)) for key in ('kernel', 'input_specs', 'output_specs')]}"
        needed = [known.get(v, f"{v.name} {v.type}") if v is not None else "" for v in op.operands]
        total = hashlib.sha256(f"{text} {needed}".encode()).hexdigest()
        descriptions[op] = text, total
        known |= {value: f"{total} {place}" for place, value in enumerate(op.results)}
    return descriptions
