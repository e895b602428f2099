"""Tensors that kernels misread where they run: the result says nothing of the model, or is of another type than stated.

    per axis    the kernel asks a tensor of several scales for its one, and computes with 0
    result      the kernel takes the result to be of its operand's type, and says so to the interpreter, or writes past
                what it holds
    int4        the kernel reads two packed values as one byte, or copies them under other parameters
    floats      the kernel reads the stored integers of a constant as floats
    past        the kernel reads past the end of what there is: a state, or scales

Other kernels refuse these, or move them as they are. What is misread is computed as the model's types say, and the
report warns. Measured on BUILTIN_REF of ai-edge-litert 2.1, a sample of the coverage table for each.
"""

from __future__ import annotations

from tflq.dialects.declare import trait_of
from tflq.dialects.forms import is_recurrent
from tflq.dialects.tfl.activation import Softmax
from tflq.dialects.tfl.casts import Dequantize, FakeQuant, Quantize
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tfl.matmul import BatchMatMul
from tflq.dialects.tfl.pooling import AveragePool2D, MaxPool2D
from tflq.dialects.traits.kernels import Misreads
from tflq.ir.core import Op, Value
from tflq.ir.types import (
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    element_storage,
    f32,
    i4,
    i8,
    i16,
)
from tflq.legalize.reference.generic.moved_parameters import parameters_differ, refused, seen_by_kernel
from tflq.legalize.rule import AS_STATED

__all__ = ["misread"]


def misread(op: Op) -> dict[str, str]:
    """A warning, and the exception that it is, if a kernel runs the op and misreads a tensor of it; else nothing."""
    why = _why(op)
    return {f"{why}; {AS_STATED}": "broken"} if why else {}


def _why(op: Op) -> str:
    if why := _past_the_end(op) or (is_recurrent(op) and _unset(op)):
        return why
    trait = trait_of(op, Misreads)
    kinds = frozenset[str]() if trait is None else trait.kinds
    quantized = [v for v in op.tensors if v.type.quantized] if kinds else []
    if isinstance(op, Conv2D) and not op.output.type.quantized and op.filter.type.storage == i16:
        return f"the kernel reads the stored integers of '{op.filter.name}' as floats"
    if "floats" in kinds and (isinstance(op, FakeQuant) or not op.result.type.quantized):
        return f"the kernel reads the stored integers of '{quantized[0].name}' as floats" if quantized else ""
    if "scales" in kinds and (several := _of_several_scales(op)) is not None:
        return f"the kernel finds no scale in '{several.name}', which has several"
    pool = isinstance(op, (AveragePool2D, MaxPool2D)) and op.fused_activation_function != "NONE"
    if pool and isinstance(op.result.type.element, UniformQuantizedPerAxisType):
        return f"the kernel finds no scale for the fused activation in '{op.result.name}', which has several"
    if "packed" in kinds and (packed := next((v for v in quantized if v.type.storage == i4), None)) is not None:
        return f"the kernel reads '{packed.name}', which is packed int4, as int8"
    if "copied" in kinds and any(v.type.storage == i4 for v in quantized) and parameters_differ(op):
        return f"the kernel copies packed int4 to '{op.result.name}', which has other quantization parameters"
    if isinstance(op, Dequantize) and op.output.type.storage != f32:
        return f"the kernel writes f32 into '{op.output.name}', which is {op.output.type.storage}"
    return _of_operand(op) if "result type" in kinds else ""


def _of_several_scales(op: Op) -> Value | None:
    """The tensor that a kernel asks for its one scale, and that has several."""
    if isinstance(op, BatchMatMul):
        return op.output if isinstance(op.output.type.element, UniformQuantizedPerAxisType) else _in_blocks(op)
    asked = op.operands if isinstance(op, Quantize) else op.tensors
    return next((v for v in asked if v and isinstance(v.type.element, UniformQuantizedPerAxisType)), None)


def _of_operand(op: Op) -> str:
    """A result that the kernel takes to be of its operand's type."""
    source = next((v for v in op.operands if v is not None and v.type.quantized), None)
    result = next((v for v in op.results if v.type.quantized), None)
    if source is None or result is None or source.type.storage == result.type.storage or refused(op):
        return ""
    if isinstance(op, Softmax) and (source.type.storage != i16 or any(seen_by_kernel(v)[1] for v in (source, result))):
        return ""  # SOFTMAX makes int16 of 8 bits, and refuses int16 with zero points
    stored, stated = element_storage(source.type.element), element_storage(result.type.element)
    return f"the kernel takes '{result.name}', which is {stated}, for {stored} like '{source.name}'"


def _in_blocks(op: BatchMatMul) -> Value | None:
    """The int8 operand of a product on integers that has a scale per block."""
    x, y = op.lhs.type, op.rhs
    runs = op.output.type.quantized and x.storage in (i8, i16) and y.type.storage == i8
    return y if runs and isinstance(y.type.element, UniformQuantizedSubChannelType) else None


def _past_the_end(op: Op) -> str:
    """What float kernels with quantized constants look for behind a tensor."""
    if not op.results or op.result.type.quantized:
        return ""
    if isinstance(op, DepthwiseConv2D):
        weights, shape = op.filter, op.filter.type.shape or ()
        single = isinstance(weights.type.element, UniformQuantizedType) and shape[-1:] != (1,)
        single = single and weights.type.storage == i8 and not op.input.type.quantized
        return f"the kernel reads a scale per channel of '{weights.name}', which has only one" if single else ""
    return "the kernel reads past its state" if is_recurrent(op) and _reads_past_state(op) else ""


def _unset(op: Op) -> str:
    from tflq.legalize.recurrent.signatures import unset

    return unset(op)


def _reads_past_state(op: Op) -> bool:
    from tflq.legalize.recurrent.signatures import reads_past_state

    return reads_past_state(op)
