"""The edges of the plain integers: fewer copies between tensors with quantization parameters and tensors without.

Selection puts an identity CAST wherever a function's argument, result or kept operator has quantization parameters
and its neighbour has none. Some kernels disregard the parameters of what they read and write (`ParametersUnread`):
these stand at the edge themselves and the copy goes. Others
check them (PADV2, CONCATENATION, REDUCE_MAX), compute by them, or are handed to XNNPACK, which refuses to mix
(TRANSPOSE, SLICE): before these the copy stays. So it does where an operator that a target keeps ("kept" in `Op.info`,
which ends here) reads or writes the quantized side: it is kept for the parameters.
"""

from __future__ import annotations

from typing import ClassVar, TypeGuard

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import trait_of
from tflq.dialects.forms import Form
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.traits.quantization import ParametersUnread
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import ScalarType

__all__ = ["TrimEdges"]


class TrimEdges(Pass):
    """Drops copies between tensors with parameters and tensors without, where a kernel disregards them."""

    name: ClassVar[str] = "trim-edges"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        trimmed = [_trim(function) for function in module.functions]
        return PassResult(module, any(trimmed))


def _is_copy(op: Op) -> TypeGuard[Cast]:
    return isinstance(op, Cast) and op.input.type.storage == op.output.type.storage


def _trim(function: Function) -> bool:
    users, outputs = function.users(), set(function.outputs)
    replaced: dict[Value, Value] = {}
    dropped: set[Op] = set()
    for op in function.ops:
        if not _is_copy(op):
            continue
        source, result = op.input, op.output
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
        i in _read_as_stored(reader)
        for reader in users.get(result, [])
        for i, v in enumerate(reader.operands)
        if v is result
    )


def _read_as_stored(op: Op) -> set[int]:
    """The operands whose parameters a kernel disregards."""
    trait = _unread(op)
    return set() if trait is None else {slot.index for slot in trait.slots if not slot.is_result}


def _unread(op: Op) -> ParametersUnread | None:
    """What an op says of parameters that its kernel disregards; of one that a target keeps, nothing."""
    return None if "kept" in op.info else trait_of(op, ParametersUnread)


def _writable(
    source: Value, copy: Cast, users: dict[Value, list[Op]], outputs: set[Value], replaced: dict[Value, Value]
) -> bool:
    """Whether the kernel that makes the original can write the copy instead."""
    producer = source.producer
    if producer is None or source.name or source in outputs or users.get(source) != [copy]:
        return False
    if source.type.element == copy.output.type.element:
        return True
    trait = _unread(producer)
    if trait is None or not any(slot.is_result for slot in trait.slots):
        return False
    read = producer.operands[0]
    return trait.both or read is None or isinstance(replaced.get(read, read).type.element, ScalarType)


def _hand_over(source: Value, result: Value) -> None:
    """Makes the producer of `source` write `result`."""
    producer = source.producer
    assert producer is not None
    producer.results = [result if v is source else v for v in producer.results]
    result.producer = producer
