"""What the interpreter knows of tensors before it runs: results that it computes while it prepares, and results whose
size follows from values that it computes only later ("dynamic").

Source: SetTensorToPersistentRo and SetTensorToDynamic in tflite/kernels; the traits `SizedBy` and `ComputedEarly`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tflq.dialects.calls import callees
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.tfl.movement import Slice
from tflq.dialects.traits.memory import ComputedEarly, KeptIfConstant, SizedBy
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import SCALARS
from tflq.light import dataclass

__all__ = ["Prepared", "first_dynamic", "prepared"]

_UNSIZED: Final = (SCALARS["!tfl.string"], SCALARS["!tfl.variant"])


@dataclass(frozen=True)
class Prepared:
    """Of one function: the results that are `computed` before it runs, those that are `kept` from the first run on, and
    the first op whose result is `dynamic`."""

    computed: frozenset[Value] = frozenset()
    kept: frozenset[Value] = frozenset()
    dynamic: Op | None = None


def prepared(module: Module) -> list[Prepared]:
    """What is known of each function. An op that runs a function with dynamic results has some itself."""
    found: dict[int, Prepared] = {}
    for index in range(len(module.functions)):
        _prepare(module, index, found, ())
    return [found[index] for index in range(len(module.functions))]


def first_dynamic(module: Module, function: Function) -> Op | None:
    """The first op whose result is dynamic, of a function that calls those of the module."""
    return _look(module, function, {}, ()).dynamic


def _prepare(module: Module, index: int, found: dict[int, Prepared], within: Sequence[int]) -> Prepared:
    if index in found or index in within or index >= len(module.functions):
        return found.get(index, Prepared())
    found[index] = _look(module, module.functions[index], found, (*within, index))
    return found[index]


def _look(module: Module, function: Function, found: dict[int, Prepared], within: Sequence[int]) -> Prepared:
    computed: set[Value] = set()
    kept: set[Value] = set()
    dynamic: Op | None = None
    for op in function.ops:
        early = trait_of(op, ComputedEarly)
        if early is not None and (early.always or all(v is None or _is_known(v, computed) for v in op.operands)):
            computed.update(op.results)
        once = trait_of(op, KeptIfConstant)
        if once is not None and all(_is_constant(slot.value(op)) for slot in once.slots):
            kept.update(op.results)
        if dynamic is None:
            called = (_prepare(module, each, found, within) for each in callees(op))
            if _is_dynamic(op, computed) or (op.results and any(each.dynamic is not None for each in called)):
                dynamic = op
    return Prepared(frozenset(computed), frozenset(kept), dynamic)


def _is_dynamic(op: Op, computed: set[Value]) -> bool:
    if any(v.type.storage in _UNSIZED for v in op.results):
        return True
    sized = trait_of(op, SizedBy)
    if sized is None or (isinstance(op, Slice) and op.result.type.is_static):  # SLICE goes by the shape that is stated
        return False
    deciding = [slot.value(op) for slot in sized.slots]
    return not all(v is None or _is_known(v, computed) for v in deciding)


def _is_known(value: Value, computed: set[Value]) -> bool:
    return value in computed or _is_constant(value)


def _is_constant(value: Value | None) -> bool:
    return value is not None and value.is_constant and not is_variable(value)
