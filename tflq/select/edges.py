"""The edges of the plain integers: fewer copies between tensors with quantization parameters and tensors without.

Selection puts an identity CAST wherever a function's argument, result or kept operator has quantization parameters
and its neighbour has none. Some kernels disregard the parameters of what they read and write, in every resolver
(measured, with parameters on one side and on both): these stand at the edge themselves and the copy goes. Others
check them (PADV2, CONCATENATION, REDUCE_MAX), compute by them, or are handed to XNNPACK, which refuses to mix
(TRANSPOSE, SLICE): before these the copy stays. So it does where an operator that a target keeps ("kept" in `Op.info`,
which ends here) reads or writes the quantized side: it is kept for the parameters.
"""

from __future__ import annotations

from tflq.dialects.tfl.casts import Cast
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ScalarType

__all__ = ["trim_edges"]

_READS: dict[str, tuple[int, ...]] = {
    "tfl.batch_matmul": (0, 1),
    "tfl.bitcast": (0,),
    "tfl.cast": (0,),
    "tfl.gather": (0,),
    "tfl.reshape": (0,),
    "tfl.reverse_v2": (0,),
    "tfl.strided_slice": (0,),
}
"""Operands whose parameters a kernel disregards."""

_WRITES = frozenset({"tfl.bitcast", "tfl.cast", "tfl.gather", "tfl.reshape", "tfl.reverse_v2", "tfl.strided_slice"})
"""Kernels that disregard the parameters of their result."""

_NOT_BOTH = frozenset({"tfl.strided_slice"})
"""Kernels that XNNPACK takes, and refuses, where parameters stand on both sides and differ."""


def trim_edges(module: Module) -> bool:
    """Removes the copies that nothing needs, in place; whether there were any."""
    trimmed = [_trim(function) for function in module.functions]
    return any(trimmed)


def _is_copy(op: Op) -> bool:
    return isinstance(op, Cast) and op.operand(0).type.storage == op.result.type.storage


def _trim(function: Function) -> bool:
    users, outputs = function.users(), set(function.outputs)
    replaced: dict[Value, Value] = {}
    dropped: set[Op] = set()
    for op in function.ops:
        if not _is_copy(op):
            continue
        source, result = op.operand(0), op.result
        while source in replaced:
            source = replaced[source]
        if not result.name and result not in outputs and _readable(source, result, users):
            replaced[result] = source
            users.setdefault(source, []).extend(users.get(result, []))
            dropped.add(op)
        elif _writable(source, op, users, outputs, replaced):
            _hand_over(source, result)
            replaced[source] = result
            dropped.add(op)
    if dropped:
        function.ops = [op for op in function.ops if op not in dropped]
        function.replace(replaced)
    for op in function.ops:
        if "kept" in op.info:
            op.info = {key: value for key, value in op.info.items() if key != "kept"}
    return bool(dropped)


def _readable(source: Value, result: Value, users: dict[Value, list[Op]]) -> bool:
    """Whether all readers of the copy can read the original."""
    if source.type.element == result.type.element:
        return True
    return all(
        i in _READS.get(reader.name, ()) and "kept" not in reader.info
        for reader in users.get(result, [])
        for i, v in enumerate(reader.operands)
        if v is result
    )


def _writable(
    source: Value, copy: Op, users: dict[Value, list[Op]], outputs: set[Value], replaced: dict[Value, Value]
) -> bool:
    """Whether the kernel that makes the original can write the copy instead."""
    producer = source.producer
    if producer is None or source.name or source in outputs or users.get(source) != [copy]:
        return False
    if source.type.element == copy.result.type.element:
        return True
    if producer.name in _NOT_BOTH:
        read = producer.operand(0)
        if not isinstance(replaced.get(read, read).type.element, ScalarType):
            return False
    return producer.name in _WRITES and "kept" not in producer.info


def _hand_over(source: Value, result: Value) -> None:
    """Makes the producer of `source` write `result`."""
    producer = source.producer
    assert producer is not None
    producer.results = [result if v is source else v for v in producer.results]
    result.producer = producer
