"""DENSIFY of a sparse constant is a dense one: what reads it reads a constant, as the kernels that take them do.

So is a sparse constant that a quantized operator reads itself, whose kernels take no sparse ones but in blocks.
"""

from __future__ import annotations

from tflq.dialects.tfl.movement import Densify
from tflq.ir.core import Buffer, Function, Op, Value

__all__ = ["densified"]


def densified(function: Function) -> tuple[Function, list[Op]]:
    """The function without its DENSIFY operators of constants, and these. One that the function returns stays, as
    does one that changes the type."""
    sparse = {v for op in function.ops if _is_quantized(op) for v in op.operands if v is not None and _is_sparse(v)}
    dense = {v: _dense(v) for v in sparse}
    gone: list[Op] = []
    for op in function.ops:
        source = op.input if isinstance(op, Densify) else None
        if source is None or not source.is_constant or op.result in function.outputs:
            continue
        if source.type == op.result.type and source.type.storage.bits >= 8:
            dense[op.result] = _dense(source, op.result.name)
            gone.append(op)
    if not dense:
        return function, []
    ops = [_reading(op, dense) for op in function.ops if op not in gone]
    return Function(function.name, function.inputs, function.outputs, ops, info=function.info), gone


def _reading(op: Op, dense: dict[Value, Value]) -> Op:
    """The op on the dense constants."""
    kept = () if _is_quantized(op) else [v for v in op.operands if v is not None and _is_sparse(v)]
    operands = [v if v is None or v in kept else dense.get(v, v) for v in op.operands]
    if operands == op.operands:
        return op
    return Op(
        op.name,
        operands,
        op.results,
        op.attributes,
        op.location,
        info=op.info,
        intermediates=op.intermediates,
    )


def _is_quantized(op: Op) -> bool:
    return not isinstance(op, Densify) and any(v.type.quantized for v in op.results)


def _is_sparse(value: Value) -> bool:
    return value.is_constant and "sparsity" in value.info and value.type.storage.bits >= 8


def _dense(value: Value, name: str | None = None) -> Value:
    return Value(value.type, value.name if name is None else name, buffer=Buffer.of(value.array))
