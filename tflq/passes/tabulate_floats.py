"""Float functions between casts of integers as tables of integers, for targets without floats.

    quant.dcast, functions of one float, quant.qcast        of 8 or 16 bits

The table has what the evaluators of these ops, which round as the kernels do, give for each stored number. Functions
that libraries round each in their own way (EXP, TANH) have no evaluator: an operator with one of them stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from tflq.builder import Builder
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import trait_of
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.traits import Elementwise
from tflq.evaluate.registry import evaluate_op, evaluator
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import stand_for
from tflq.ir.types import UniformQuantizedType, i8, i16, ui8

_RESULTS: Final = {i8: (i8, i16), ui8: (ui8,), i16: (i16,)}
"""Entries of tables, by what they are looked up with."""


@dataclass(frozen=True)
class TabulateFloats(Pass):
    """Puts tables in the place of float functions between casts of integers."""

    name: ClassVar[str] = "tabulate-floats"

    def run(self, module: Module) -> PassResult:
        modified = [_tabulated(function) for function in module.functions]
        return PassResult(module, any(modified))


def _tabulated(function: Function) -> bool:
    ops: list[Op] = []
    modified = False
    for op in function.ops:
        chain = _chain(op)
        if chain is None:
            ops.append(op)
            continue
        b, source = Builder(ops), _operand(chain[0])
        b.location = op.location
        stored = b.emit(Scast, [source], source.type.with_element(source.type.storage))
        found = b.table(stored, _entries(chain))
        stand_for(b.emit(Scast, [found], op.result.type), op.result)
        modified = True
    function.ops = ops
    return modified


def _chain(op: Op) -> list[Op] | None:
    """The casts and functions that end in `op`, in order; None if they are not a function of one number."""
    if not isinstance(op, Qcast):
        return None
    chain: list[Op] = [op]
    while not isinstance(chain[-1], Dcast):
        producer = _operand(chain[-1]).producer
        if producer is None or not (isinstance(producer, Dcast) or _is_function(producer)):
            return None
        chain.append(producer)
    source, result = _operand(chain[-1]).type, op.result.type
    fits = result.storage in _RESULTS.get(source.storage, ())
    return chain[::-1] if fits and all(isinstance(t.element, UniformQuantizedType) for t in (source, result)) else None


def _operand(op: Op) -> Value:
    (operand,) = op.operands
    assert operand is not None
    return operand


def _is_function(op: Op) -> bool:
    floats = [value is not None and value.type.storage.is_float for value in op.operands]
    return floats == [True] and trait_of(op, Elementwise) is not None and evaluator.get(type(op)) is not None


def _entries(chain: list[Op]) -> np.ndarray:
    """What each stored number becomes, the least first."""
    storage = _operand(chain[0]).type.storage
    numbers = np.arange(storage.minimum, storage.maximum + 1).astype(storage.dtype)
    for op in chain:
        results = evaluate_op(op, [numbers])
        assert results is not None
        (numbers,) = results
    return numbers
