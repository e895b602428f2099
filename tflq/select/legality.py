"""What a converted module may hold: the last check before it is written.

Legal are the integer kernels that `rules/integer.toml` lists, on tensors without quantization parameters; what stands for an operator that the
report lists as kept or computed in float; float kernels for operators that compute in float themselves, and for multiply-accumulate if that was asked for.
Parameters may be on the model's inputs and outputs, and on tensors of a kept operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tflq.errors import UnsupportedError
from tflq.ir.core import Function, Location, Module, Op, Value
from tflq.select.kernel_rules import load_rules
from tflq.select.lowering import Mac

if TYPE_CHECKING:
    from tflq.legalize import Decision

__all__ = ["check"]

_FLOAT_KERNELS = frozenset({"tfl.quantize", "tfl.dequantize", "tfl.resize_bilinear"})
"""Operators whose reference kernel itself computes in float (RESIZE_BILINEAR: on uint8)."""


def check(module: Module, decisions: Iterable[Decision], mac: Mac = "integer") -> None:
    """UnsupportedError lists every operator of a module on kernels that must not be there, and why."""
    exempt: set[Location | None] = set()
    in_float: set[Location | None] = set()
    for decision in decisions:
        if decision.path != "integer":
            exempt.add(decision.op.location)
        elif decision.op.name in _FLOAT_KERNELS:
            in_float.add(decision.op.location)
    illegal = [reason for function in module.functions for reason in _illegal(function, exempt, in_float, mac)]
    if illegal:
        raise UnsupportedError(f"{len(illegal)} operator(s) of the result are not legal:", illegal)


def _illegal(
    function: Function, exempt: set[Location | None], in_float: set[Location | None], mac: Mac
) -> Iterable[str]:
    rules = load_rules()
    edges: set[Value] = {*function.inputs, *function.outputs}
    for op in function.ops:
        if op.location in exempt:
            edges.update(op.values)
    for op in function.ops:
        if op.location in exempt:
            continue
        if not (
            rules["integer"].admit(op)
            or (mac == "float32" and rules["float32"].admit(op))
            or (op.location in in_float and rules["float_kernels"].admit(op))
        ):
            yield f"{op.location}: {op.name} on {_types(op)} is not an operator of the target"
        for value in op.values:
            if value.type.quantized and value not in edges and not value.info.get("is_variable", False):
                yield f"{op.location}: tensor '{value.name}' of {op.name} has quantization parameters"


def _types(op: Op) -> str:
    operands = ", ".join("none" if v is None else str(v.type.storage) for v in op.operands)
    return f"({operands}) → {', '.join(str(v.type.storage) for v in op.results)}"
