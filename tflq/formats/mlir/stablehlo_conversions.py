"""Passes on text of `stablehlo`: conversions of reductions, and weight-only quantization written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tflq.dialects.builder import expressed
from tflq.dialects.constraints import baseline
from tflq.dialects.declare import Operator
from tflq.dialects.stablehlo.convolution import (
    Accumulating,
    Functions,
    Hybrid,
    identity_region,
    is_hybrid,
    rescale_region,
)
from tflq.dialects.stablehlo.elementwise import Reduce, ReduceWindow, UniformDequantize, UniformQuantize
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.rewriting import remove_ops, rewrite_all_ops
from tflq.ir.types import TensorType
from tflq.transforms.pass_manager import Pass, PassResult


def _accumulating(module: Module) -> Iterator[tuple[Function, Accumulating]]:
    for function in module.functions:
        for op in list(walk(function.ops)):
            if isinstance(op, Accumulating):
                yield function, op


def _state(op: Accumulating, functions: Functions) -> None:
    """Gives an op its functions as regions, after those that accumulate nothing."""
    others = list(op.regions)[: len(op.regions) - len(op.accumulation_regions)]
    op.regions = [*others, *(region for region in functions if region is not None)]


class DefaultConversions(Pass):
    """Writes the conversions that a reduction of quantized values leaves out: identity functions."""

    name: ClassVar[str] = "default-conversions"

    def run(self, module: Module) -> PassResult:
        modified = False
        for _, op in _accumulating(module):
            functions = op.functions
            if functions is None or None not in functions or not all(v.type.quantized for v in op.inputs):
                continue
            _state(
                op,
                Functions(
                    functions.input_conversion or identity_region([v.type.element for v in op.inputs]),
                    functions.body,
                    functions.output_conversion or identity_region([v.type.element for v in op.results]),
                ),
            )
            modified = True
        return PassResult(module, modified)


class FuseConversions(Pass):
    """Draws a `uniform_quantize` before a reduce or reduce_window, and one after it, into it as its conversions.

    That turns option 2 of the proposal "StableHLO quantization for reduction ops" into option 1: the former casts to
    the accumulator's type, the latter from it. The inputs' type must express the init value exactly: converted, it is
    the same again.
    """

    name: ClassVar[str] = "fuse-conversions"

    def run(self, module: Module) -> PassResult:
        modified = False
        for function, op in _accumulating(module):
            if op in function.ops and isinstance(op, (Reduce, ReduceWindow)):
                modified |= _fused(function, op)
        return PassResult(module, modified)


def _fused(function: Function, op: Reduce | ReduceWindow) -> bool:
    functions, users = op.functions, function.users()
    if functions is None or functions.input_conversion or functions.output_conversion:
        return False
    before = [_rescale(value) for value in op.inputs]
    after: list[UniformQuantize] = []
    for value in op.results:
        (user, *more) = users.get(value, [None])
        if more or not isinstance(user, UniformQuantize) or value in function.outputs or user not in function.ops:
            return False
        after.append(user)
    sources = [step.input for step in before if step is not None]
    if len(sources) != len(before) or [baseline(v.type) for v in sources] != [baseline(u.result.type) for u in after]:
        return False
    inits = [_narrow(init, source.type) for init, source in zip(op.inits, sources, strict=True)]
    if None in inits:
        return False
    wide = [v.type.element for v in op.inputs]
    op.operands = [*sources, *inits]
    results = [user.result for user in after]
    remove_ops(function, set(after))
    op.results = results
    for value in results:
        value.producer = op
    sides = (
        rescale_region([v.type.element for v in sources], wide),
        rescale_region(wide, [v.type.element for v in results]),
    )
    _state(op, Functions(sides[0], functions.body, sides[1]))
    still = function.users()
    remove_ops(
        function, {s for s in before if s is not None and s.result not in still and s.result not in function.outputs}
    )
    return True


def _rescale(value: Value) -> UniformQuantize | None:
    """The cast between quantized types that made a value."""
    step = value.producer
    return step if isinstance(step, UniformQuantize) and step.input.type.quantized else None


def _narrow(init: Value, source: TensorType) -> Value | None:
    """The init value in the type of the inputs, if it is the same again once it is converted; else None."""
    from tflq.analysis.evaluate.registry import evaluate_op

    kind = TensorType((), source.element)
    step = _rescale(init)
    if step is not None and step.input.type == kind:
        return step.input
    if not init.is_constant:
        return None
    narrow = Value(kind)
    there = evaluate_op(UniformQuantize(UniformQuantize.op_name, [init], [narrow]), [init.array])
    if there is None:
        return None
    back = evaluate_op(UniformQuantize(UniformQuantize.op_name, [narrow], [Value(init.type)]), [there[0]])
    if back is None or not np.array_equal(back[0], init.array):
        return None
    return Value(kind, init.name, buffer=Buffer.of(there[0]))


class HybridDequantizeThenOp(Pass):
    """Writes out what weight-only quantization means: ops of a floating-point lhs and a quantized rhs take the rhs
    dequantized, `op(lhs, dequantize(rhs))`."""

    name: ClassVar[str] = "hybrid-dequantize-then-op"

    def run(self, module: Module) -> PassResult:
        return PassResult(module, rewrite_all_ops(module, _written_out))


def _written_out(op: Op) -> list[Op] | None:
    if not isinstance(op, Operator) or not op.has(Hybrid) or not is_hybrid(op):
        return None
    lhs, rhs, *_ = op.tensors
    real = Value(expressed(rhs.type))
    op.operands = [lhs, real]
    return [UniformDequantize(UniformDequantize.op_name, [rhs], [real], location=op.location), op]
