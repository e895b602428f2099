"""STABLEHLO_DOT_GENERAL and STABLEHLO_CONVOLUTION of TFLite files, and their counterparts in text, as builtins. No
interpreter computes them on quantized tensors.

They become builtins on the same types, which the rules of these lower with the parameters honoured. Beside floats the
weights are dequantized; what has several scales on its activations is computed in float.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tflq.builder import Emitter
from tflq.dialects.stablehlo.convolution import ConvNumbers, Convolution, Window
from tflq.dialects.stablehlo.matmul import DotGeneral, DotNumbers
from tflq.dialects.stablehlo.rules import integers
from tflq.dialects.tfl.stablehlo import StablehloConvolution, StablehloDotGeneral
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name
from tflq.legalize.stablehlo.builtins import as_builtin, option
from tflq.legalize.stablehlo.contractions import Contractions, Convolved
from tflq.legalize.stablehlo.kernels import builtin, by_rules

__all__ = ["Contraction", "spread"]

Contraction: TypeAlias = StablehloDotGeneral | StablehloConvolution
"""Of files."""


@rule(StablehloConvolution, StablehloDotGeneral)
def contraction(op: Contraction, b: RuleBuilder) -> Answer:
    """The rules of the builtins that compute it, one after the other."""
    if as_builtin(op) is not None:
        return builtin(op, b)
    emitted = Emitter()
    emitted.location = op.location
    try:
        made = spread(op, Contractions(emitted), op.lhs, op.rhs, op.output.type)
    except Refused as why:
        raise Refused(f"{kernel_name(op)} on quantized tensors has no form on builtins: {why}") from None
    several = next((v for v in (op.lhs, op.output) if isinstance(v.type.element, UniformQuantizedPerAxisType)), None)
    if several is not None:
        raise NotApplicable(f"'{several.name}' has several scales, and is no weights")
    for each in emitted.ops:
        b.became(each.result, by_rules(each, b).results[0])
    return b.value(made)


def spread(
    op: Contraction | DotGeneral | Convolution, to: Contractions, lhs: Value, rhs: Value, result: TensorType
) -> Value:
    """The builtins on these operands. Refused if there are none."""
    try:
        if isinstance(op, (StablehloDotGeneral, DotGeneral)):
            numbers = op.numbers if isinstance(op, DotGeneral) else _dot_numbers(op)
            element = op.rhs.type.element
            if isinstance(element, UniformQuantizedPerAxisType) and element.axis in numbers.rhs_contracting:
                raise Refused(f"the scales of '{op.rhs.name}' are along a dimension that is summed over")
            return to.dot(numbers, lhs, rhs, result)
        how = _convolved_of_text(op) if isinstance(op, Convolution) else _convolved(op)
        return to.convolution(how, lhs, rhs, result)
    except (ValueError, IndexError) as error:
        raise Refused(f"its dimension numbers and shapes do not fit together ({error})") from error


def _dot_numbers(op: StablehloDotGeneral) -> DotNumbers:
    stated = (
        op.lhs_batching_dimensions,
        op.rhs_batching_dimensions,
        op.lhs_contracting_dimensions,
        op.rhs_contracting_dimensions,
    )
    return DotNumbers(*(tuple(option(dims)) for dims in stated))


def _convolved(op: StablehloConvolution) -> Convolved:
    spatial = [
        tuple(option(dims))
        for dims in (op.input_spatial_dimensions, op.kernel_spatial_dimensions, op.output_spatial_dimensions)
    ]
    numbers = ConvNumbers(
        (op.input_batch_dimension, op.input_feature_dimension, spatial[0]),
        (op.kernel_input_feature_dimension, op.kernel_output_feature_dimension, spatial[1]),
        (op.output_batch_dimension, op.output_feature_dimension, spatial[2]),
    )
    rank, shape = len(spatial[1]), op.rhs.type.shape or ()
    padding = np.asarray(option(op.padding) or [0] * (2 * rank)).reshape(rank, 2)
    window = Window(
        tuple(shape[d] or 0 for d in spatial[1]),
        tuple(option(op.window_strides)) or (1,) * rank,
        tuple((int(low), int(high)) for low, high in padding),
        tuple(option(op.lhs_dilation)) or (1,) * rank,
        tuple(option(op.rhs_dilation)) or (1,) * rank,
    )
    return Convolved(
        numbers, window, option(op.window_reversal), op.feature_group_count or 1, op.batch_group_count or 1
    )


def _convolved_of_text(op: Convolution) -> Convolved:
    if op.numbers is None or op.window is None:
        raise Refused("its dimension numbers or its window are not known")
    reversal = integers(op, "window_reversal", (0,) * len(op.window.sizes)) or ()
    return Convolved(op.numbers, op.window, reversal, op.feature_group_count, op.batch_group_count)
