"""The edges between kernels: a `quant.rescale` stands where the two ends have different parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.dialects.regions import Region, Rescale, Stats
from tflq.ir.core import Function, Op, Value
from tflq.ir.types import ElementType, is_quantized
from tflq.passes.regions.lookup import Port, ports
from tflq.passes.regions.ranges import faked_type, is_dequantizing, same_value, source_of, stated_before


@dataclass(frozen=True)
class Edges:
    """Edges by the types of all ports. made_at: the ports that result in values. overridden: what was annotated at
    ports to which a constraint gave something else."""

    types: Mapping[Port, ElementType]
    made_at: Mapping[Value, Port]
    overridden: Mapping[Port, ElementType]

    def rescale(self, function: Function) -> bool:
        """Puts the rescales of a function. Returns whether there are any."""
        ops: list[Op] = []
        modified = False
        for op in function.ops:
            for port in ports(op) if isinstance(op, Region) else ():
                if not port.is_output:
                    _reconnect(port, self._before_statistics(port))
                    rescale = _rescaled(port.value, self._source(port), self.types[port], op)
                    if rescale is not None:
                        ops.append(rescale)
                        _reconnect(port, rescale.result)
                        modified = True
            ops.append(op)
        outputs = list(function.outputs)
        for place, value in enumerate(outputs):
            output = self.made_at.get(same_value(value))
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
        if value in self.made_at:
            return self.types[self.made_at[value]]
        if isinstance(value.producer, Rescale):
            return value.producer.target
        op = value.producer
        if op is not None and (faked_type(op) is not None or (is_dequantizing(op) and source_of(op).is_constant)):
            return None  # reals, and constants are quantized for each
        return stated_before(value).spec or self.overridden.get(port)


def _reconnect(port: Port, value: Value) -> None:
    """Gives a region another operand."""
    operands = port.region.operands
    port.region.operands = [*operands[: port.index], value, *operands[port.index + 1 :]]


def _rescaled(value: Value, source: ElementType | None, target: ElementType, op: Op) -> Op | None:
    if not is_quantized(target) or source is None or not is_quantized(source) or source == target:
        return None
    return Op(Rescale.op_name, [value], [Value(value.type)], {"from": source, "to": target}, op.location)
