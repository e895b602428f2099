"""Canonicalization: casts that undo each other disappear.

    qcast(dcast(q)) → q    if the quantized types are equal
    dcast(qcast(x)) → x    if the float types are equal
    scast(scast(x)) → x    if the outer types are equal
    cast(x) → x            if the types are equal

`semantics` says whether a rounding may go. `real`: all of the above, as the `quant` dialect has them. `interpreter`:
what changes no number: never a dcast of a qcast; a qcast of a dcast if it gives back every stored value.

The sources are the canonicalization sections of the `quant` dialect. A function's output keeps its name: where
folding would give it another tensor's name, the casts stay.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.calls import called_functions
from tflq.dialects.effects import reachable
from tflq.dialects.quant.casts import Dcast, Qcast, Scast
from tflq.dialects.tfl import casts as tfl
from tflq.dialects.tosa import casts as tosa
from tflq.dialects.tosa.movement import Identity
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops, replace_values, take_over
from tflq.ir.types import (
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    is_narrowed,
)
from tflq.light import dataclass

__all__ = ["Canonicalize"]

_Cast: TypeAlias = Qcast | Dcast | Scast | tfl.Cast | tosa.Cast | Identity


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Removes casts that undo each other or do nothing, also inside of other ops, but for those of a quant.region."""

    name: ClassVar[str] = "canonicalize"
    semantics: Literal["real", "interpreter"] = "real"

    def run(self, module: Module) -> PassResult:
        modified, called = False, set(called_functions(module))
        for function in module.functions:
            modified |= self._function(module, function, function in called)
        return PassResult(module, modified)

    def _function(self, module: Module, function: Function, called: bool) -> bool:
        replacements: dict[Value, Value] = {}
        folded: set[Op] = set()
        outputs = set(function.outputs)
        for op in reachable(function.ops):
            source = self._source(op, replacements)
            if source is None:
                continue
            returned = op.result in outputs
            if called and returned and not _may_return(source, outputs):
                continue
            if op.result.name and take_over(source, op.result):
                replacements[source] = op.result
                if source in outputs:
                    outputs.add(op.result)
            elif returned and op.result.name and op.result.name != source.name:
                continue
            else:
                replacements[op.result] = source
                if returned:
                    outputs.add(source)
            folded.add(op)
        replace_values(module, function, replacements)
        remove_ops(function, folded)
        return bool(folded)

    def _source(self, op: Op, replacements: dict[Value, Value]) -> Value | None:
        """The value that the cast's result equals, if it does."""
        if not isinstance(op, _Cast):
            return None
        operand = _final(op.input, replacements)
        if operand.type == op.result.type and not isinstance(op, (Qcast, Dcast)):
            return operand
        match op, operand.producer:
            case (Scast(), Scast() as before) | (Qcast(), Dcast() as before):
                pass
            case Dcast(), Qcast() as before if self.semantics == "real":
                pass
            case _:
                return None
        source = _final(before.input, replacements)
        if source.type != op.result.type:
            return None
        lossy = isinstance(op, Qcast) and self.semantics == "interpreter" and not _gives_back(op)
        return None if lossy else source


def _gives_back(qcast: Qcast) -> bool:
    """Whether quantizing what a stored value expresses gives that value: none is clamped, and the quotient of the
    product, each rounded to the expressed type, is within half of it."""
    element = qcast.result.type.element
    assert isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType))
    if is_narrowed(element) or qcast.rounding == "toward_zero" or not element.expressed.numpy:
        return False
    limits = np.finfo(element.expressed.dtype)
    one = isinstance(element, UniformQuantizedType)
    scales = np.asarray(element.scale if one else element.scales, np.float64)  # type: ignore[union-attr]
    zeros = np.asarray(element.zero_point if one else element.zero_points, np.float64)  # type: ignore[union-attr]
    reach = np.maximum(element.storage_max - zeros, zeros - element.storage_min)
    finite = (scales >= limits.tiny) & (reach * scales <= float(limits.max))
    return bool((finite & (reach < 2.0 ** (limits.nmant - 1))).all())


def _may_return(source: Value, outputs: set[Value]) -> bool:
    """Whether a function that is called may return the source as it is: of an argument, or of a value that it returns
    twice, interpreters of control flow take no copy.
    """
    return source.producer is not None and source not in outputs


def _final(value: Value, replacements: dict[Value, Value]) -> Value:
    while value in replacements:
        value = replacements[value]
    return value
