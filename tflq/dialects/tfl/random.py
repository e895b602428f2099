"""Random numbers."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.traits.constants import NonNegative
from tflq.dialects.traits.effects import Impure, Unquantized
from tflq.dialects.traits.memory import SizedBy
from tflq.ir.core import Value

__all__ = ["Multinomial", "RandomStandardNormal", "RandomUniform"]


class RandomUniform(Operator, name="tfl.random_uniform"):
    """Uniform ones in [0, 1). Source: kernels/random_ops.cc."""

    __slots__ = ()
    shape: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (NonNegative(shape), Impure(), Unquantized("it draws random numbers, as floats or bits"), SizedBy(shape))

    def infer(self, site: Stated) -> Dims:
        return tuple(site.ints(self.shape))


class RandomStandardNormal(Operator, name="tfl.random_standard_normal"):
    """Normal ones. Source: kernels/random_ops.cc."""

    __slots__ = ()
    shape: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (NonNegative(shape), Impure(), Unquantized("it draws random numbers, as floats or bits"), SizedBy(shape))

    def infer(self, site: Stated) -> Dims:
        return tuple(site.ints(self.shape))


class Multinomial(Operator, name="tfl.multinomial"):
    """Samples of classes by their logits. Source: kernels/random_ops.cc."""

    __slots__ = ()
    logits: Value = operand()
    samples: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (
        NonNegative(samples),
        Impure(),
        Unquantized("it draws random numbers, as floats or bits"),
        SizedBy(logits, samples),
    )

    def infer(self, site: Stated) -> Dims:
        return (site.dims(self.logits, 2)[0], *site.ints(self.samples, 1))
