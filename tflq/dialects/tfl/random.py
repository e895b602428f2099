"""Random numbers."""

from __future__ import annotations

from typing import Final

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.traits.operands import Impure, NonNegative, SizedBy, Unquantized
from tflq.ir.core import Value

_DRAWN: Final = Unquantized("it draws random numbers, as floats or bits")


class RandomTensor(Operator):
    """Random numbers in a given shape."""

    shape: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (NonNegative(shape), Impure(), _DRAWN, SizedBy(shape))

    def infer(self, site: Stated) -> Dims:
        return tuple(site.ints(self.shape))


class RandomUniform(RandomTensor, name="tfl.random_uniform"):
    """Uniform ones in [0, 1). Source: kernels/random_ops.cc."""


class RandomStandardNormal(RandomTensor, name="tfl.random_standard_normal"):
    """Normal ones. Source: kernels/random_ops.cc."""


class Multinomial(Operator, name="tfl.multinomial"):
    """Samples of classes by their logits. Source: kernels/random_ops.cc."""

    logits: Value = operand()
    samples: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (NonNegative(samples), Impure(), _DRAWN, SizedBy(logits, samples))

    def infer(self, site: Stated) -> Dims:
        return (site.dims(self.logits, 2)[0], *site.ints(self.samples, 1))
