"""The rules of activations: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.activation import (
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    LogSoftmax,
    Prelu,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Softmax,
    Tanh,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

real_unary = later("real.unary")
arithmetic = later("real.arithmetic.arithmetic")
reference_unary = later("reference.unary")
log_softmax = later("reference.activation.log_softmax")
relu = later("reference.activation.relu")
sigmoid = later("reference.activation.sigmoid")
softmax = later("reference.activation.softmax")

RULES: Final[Rules] = {
    Relu: (relu.relu, real_unary.real_function),
    Relu6: (relu.relu, real_unary.real_function),
    ReluN1To1: (relu.relu, real_unary.real_function),
    Relu0To1: (relu.relu, real_unary.real_function),
    LeakyRelu: (relu.leaky_relu, real_unary.real_function),
    Prelu: (relu.prelu, arithmetic.prelu),
    Elu: (reference_unary.lookup, real_unary.real_function),
    Gelu: (reference_unary.lookup, real_unary.real_function),
    HardSwish: (relu.hard_swish, real_unary.real_function),
    Logistic: (sigmoid.logistic_tanh, real_unary.real_function),
    Tanh: (sigmoid.logistic_tanh, real_unary.real_function),
    Softmax: (softmax.softmax,),
    LogSoftmax: (log_softmax.log_softmax,),
}
