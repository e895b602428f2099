"""Along kernels of one scale one range decides: which ports with a range of their own take the parameters of others.

A constraint binds a port if it gives it what another port has, or what the kernel always has: a pooling its result, a
concatenation its operands, a softmax its result. The range of a bound result yields, and with it that of the value's
consumers, which is the same. The range of a value whose consumers all bind it yields to theirs, and so on before it.
Reals that no kernel makes are quantized for each consumer: beside other operands their range yields where that binds
them, whatever else reads them. It would decide for the others.
What yields then gets its parameters by the constraint, or as a neighbour; where consumers differ, or a value is a
result of the model, its own range stays, and a rescale stands between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from tflq.dialects.regions import Region
from tflq.ir.core import Value
from tflq.ir.types import AnyQuantizedType, CalibratedQuantizedType, ElementType, UniformQuantizedType, is_quantized
from tflq.passes.regions.lookup import Match, Port, ports, stored_as
from tflq.passes.regions.ranges import same_value
from tflq.targets.constraints import quant_functions


class OneRange:
    """The ports of some regions whose ranges yield."""

    def __init__(
        self,
        order: Sequence[Region],
        stated: Mapping[Port, ElementType],
        types: Mapping[Port, ElementType],
        matches: Mapping[Region, Match | None],
        of_value: Callable[[Port], Sequence[Port]],
        is_free: Callable[[Value], bool],
    ) -> None:
        """order: the regions, each after those that it needs; stated: what was said of all ports; types: what is known
        of them since constraints were applied; matches: the signatures of the regions; of_value: the ports that have
        the value of one; is_free: whether only regions use a value."""
        self.stated = stated
        self.types = types
        self.matches = matches
        self.of_value = of_value
        self.is_free = is_free
        self.yielding: set[Port] = set()
        self.apart: set[Port] = set()
        """Those of them that only their kernel's constraint gives parameters, not what other kernels make of the same
        reals."""
        self._demanded: set[Port] = set()  # results that take what their consumers bind them to
        for region in reversed(order):
            self._demand(region)
        for region in order:
            self._give(region)

    def _is_range(self, port: Port) -> bool:
        return isinstance(self.types[port], CalibratedQuantizedType)

    def _demand(self, region: Region) -> None:
        """Results whose consumers all bind them, as far as these are this region's: consumers come before it."""
        made = [port for port in ports(region) if port.is_output and self._is_range(port)]
        for port in made:
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
        made = any(self.matches[region] is not None for region in makers)
        return not made and self._is_range(port) and not same_value(port.value).is_constant

    def _give(self, region: Region) -> None:
        """Results that the region's own constraint binds."""
        bound = self._bound(region, self.yielding)
        for port in (port for port in ports(region) if port.is_output and port not in self._demanded):
            spec = self.stated[port]
            given = port in bound or self.types[port] != spec
            if given and isinstance(spec, CalibratedQuantizedType):
                self.yielding.update(other for other in self.of_value(port) if self.types[other] == spec)

    def _bound(self, region: Region, yielding: Set[Port] | None = None) -> Set[Port]:
        """The ports that a kernel's constraint gives what others have. That of a demanded result is what counts: ranges
        of operands are then as good as unknown. yielding: those of them that yield, once that is known."""
        match = self.matches[region]
        if match is None:
            return frozenset()
        sides = [[port for port in ports(region) if port.is_output == side] for side in (False, True)]
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

    def _view(self, port: Port, kind: object, place: int, *, open_range: bool) -> ElementType:
        """What a constraint's function sees: parameters that no other port has where some will be, else the storage."""
        spec = self.types[port]
        stored = stored_as(kind, spec)  # type: ignore[arg-type]
        if is_quantized(spec):
            stored = AnyQuantizedType(spec.storage, spec.expressed, spec.storage_min, spec.storage_max)
        known = is_quantized(spec) or (self._is_range(port) and not open_range)
        if stored is None or stored.expressed is None or not known:
            return stored or spec
        scale = 0.5 ** (1 + 2 * place + port.is_output)
        return UniformQuantizedType(stored.storage, stored.expressed, scale, 0, stored.storage_min, stored.storage_max)
