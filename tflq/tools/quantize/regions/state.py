"""Whether a network is quantized: of each operator, the reals that have no parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.regions import Region, Rescale, Return
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import Annotates
from tflq.ir.module import Module
from tflq.ir.ops import Op
from tflq.ir.types import is_quantized
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.lookup import is_quantizable, ports

_BETWEEN = (Qcast, Dcast, Scast, Quantize, Dequantize, Rescale, Return)
"""Casts: one side of each is real."""


@dataclass(frozen=True, slots=True)
class Unquantized:
    """An input or output of an operator that is real, and has no parameters.

    subgraph: its index. operator: the place in it of the operator, or of the last one of several that are one kernel.
    opcode: what it is called. port: "input 0", "output 0". tensor: its name, empty if it has none.
    """

    subgraph: int
    operator: int
    opcode: str
    port: str
    tensor: str


@dataclass(frozen=True, slots=True)
class QuantizationState:
    """Quantized and unquantized operators of a network.

    operators: how many compute reals, quantized or not; several that are one kernel count once. quantized: of these,
    how many have parameters for all that is real. unquantized: what the others lack, in order.
    """

    operators: int
    quantized: int
    unquantized: tuple[Unquantized, ...]

    @property
    def full(self) -> bool:
        """Whether there are operators on reals, and all of them are quantized."""
        return 0 < self.operators == self.quantized


def quantization_state(module: Module) -> QuantizationState:
    """The state of a module in the tfl form, or of one of logical kernels. The module is not to be used any more.

    Ops become kernels first (`kernel-fusion`), so that casts and statistics around an op count as its parameters. What
    is annotated to stay as it is, is not counted; statistics alone are not parameters.
    """
    module = KernelFusion().run(module).module
    operators, quantized, missing = 0, 0, list[Unquantized]()
    for index, function in enumerate(module.functions):
        for place, op in enumerate(function.ops):
            real_ports = list(_ports(op))
            lacking = [(port, tensor) for port, tensor, known in real_ports if not known]
            operators += bool(real_ports)
            quantized += bool(real_ports) and not lacking
            where = place if op.location is None else op.location.operator
            missing += [Unquantized(index, where, _opcode(op), port, tensor) for port, tensor in lacking]
    return QuantizationState(operators, quantized, tuple(missing))


def _ports(op: Op) -> Iterator[tuple[str, str, bool]]:
    """The reals that an op takes and gives: port, tensor, and whether it has parameters."""
    if isinstance(op, Region):
        for each in ports(op):
            if is_quantizable(each.spec):
                yield str(each), each.value.name, is_quantized(each.spec)
    elif not isinstance(op, _BETWEEN) and not (isinstance(op, Operator) and op.has(Annotates)):
        for side, values in (("input", op.operands), ("output", op.results)):
            for number, value in enumerate(values):
                if value is not None and is_quantizable(value.type.element):
                    yield f"{side} {number}", value.name, is_quantized(value.type.element)


def _opcode(op: Op) -> str:
    if isinstance(op, Region):
        return op.kernel.upper()
    return op.location.opcode if op.location and op.location.opcode else op.short_name.upper()
