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
from tflq.legalize.real import unary as real_unary
from tflq.legalize.real.arithmetic import arithmetic
from tflq.legalize.reference import unary as reference_unary
from tflq.legalize.reference.activation import log_softmax, relu, sigmoid, softmax
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

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
