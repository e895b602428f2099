"""The quantization of a model whose casts say how: TensorFlow Lite's own algorithm, on logical kernels.

Source: "Quantization", TFLite Native Quantization (MLIR's documentation), a general algorithm of six steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.contract import Pass, PassResult, Pipeline
from tflq.ir.core import Function, Module, Op, Value, walk
from tflq.ir.rewriting import remove_ops, remove_unneeded, replace_values, take_over
from tflq.passes.canonicalize import Fold
from tflq.passes.regions.fusion import KernelFusion
from tflq.passes.regions.lookup import quantized_constant
from tflq.passes.regions.materialize import QuantMaterialize
from tflq.passes.regions.propagate import QuantPropagate
from tflq.passes.regions.ranges import POINTS, is_dequantizing, is_quantizing, is_statement
from tflq.passes.simulated import LegalizeTf, PrepareTfl


@dataclass(frozen=True)
class TflQuantize(Pass):
    """Replaces dequantize → operator → quantize by the quantized operator, and quantized float constants by integers.

    Logical kernels are fused and materialized by what the casts around them say. With a `target`, a file of kernels,
    only these are made, and what their constraints give is propagated before: parameters of biases, and of ops that
    keep a scale; `annotations`: as of `quant-propagate`. What no kernel takes stays in float between casts.
    """

    name: ClassVar[str] = "quantize"
    target: str = ""
    annotations: str = ""

    def run(self, module: Module) -> PassResult:
        before = {function: _read(function) for function in module.functions}
        passes: list[Pass] = [KernelFusion(self.target)]
        if self.target:
            passes.append(QuantPropagate(self.target, self.annotations))
        module, modified = Pipeline([*passes, QuantMaterialize(self.target, "tfl")]).run(module)
        for function in module.functions:
            modified |= _quantize_constants(function)
            modified |= _cancel(module, function)
        modified |= remove_unneeded(module, lambda op: is_statement(op) and not isinstance(op, POINTS))
        for function in module.functions:
            gone = before[function] - _read(function)
            function.tensors = [value for value in function.tensors if value not in gone]
        return PassResult(module, modified)


def _read(function: Function) -> set[Value]:
    """The constants that ops read."""
    return {v for op in walk(function.ops) for v in op.operands if v is not None and v.is_constant}


def _quantize_constants(function: Function) -> bool:
    """Quantizes float constants that are only cast. Returns whether there were any."""
    stored: dict[Value, Value] = {}
    for op in function.ops:
        if is_quantizing(op) and op.operand(0).is_constant:
            quantized = quantized_constant(op.operand(0), op.result.type.element)
            if quantized is not None:
                stored[op.result] = quantized
    function.replace(stored)
    remove_ops(function, {value.producer for value in stored if value.producer is not None})
    return bool(stored)


def _cancel(module: Module, function: Function) -> bool:
    """Takes out casts to reals and back to the same type. Returns whether there were any."""
    replacements: dict[Value, Value] = {}
    done: set[Op] = set()
    for op in function.ops:
        back = op.operand(0).producer if is_quantizing(op) else None
        if back is None or not is_dequantizing(back) or back.operand(0).type != op.result.type:
            continue
        stored = replacements.get(back.operand(0), back.operand(0))
        if take_over(stored, op.result):
            replacements[stored] = op.result
        elif op.result in function.outputs and op.result.name != stored.name:
            continue
        else:
            replacements[op.result] = stored
        done.add(op)
    replace_values(module, function, replacements)
    remove_ops(function, done)
    return bool(done)


@dataclass(frozen=True)
class TflQuantizePipeline(Pass):
    """Quantizes a model by what its training simulated, as TensorFlow Lite does it, in six steps.

    1. Ranges of inputs and outputs are the user's: `annotations`, a file of constraints by names of tensors.
    2. `legalize-tf`: fake quantizations get casts behind them.
    3. `kernel-fusion`, `quant-propagate`: all parameters that follow from those.
    4. `fold`: constants, rounded as in training.
    5. `prepare-tfl`: fake quantizations that are left become casts.
    6. `quantize`: casts around operators become quantized operators.

    target: the file of a target, whose kernels are used. Errors as of these passes.
    """

    name: ClassVar[str] = "tfl-quantize-pipeline"
    target: str = ""
    annotations: str = ""

    def run(self, module: Module) -> PassResult:
        passes = [
            LegalizeTf(),
            *(KernelFusion(self.target), QuantPropagate(self.target, self.annotations)),
            Fold(),
            PrepareTfl(),
            TflQuantize(self.target),
        ]
        return Pipeline(passes).run(module)
