"""The factors of TFLite's reference kernels, operator by operator, by release and machine.

A factor for channels is a `Factor` of `tflq.numerics.requantize`; a `Multiplier` is MultiplyByQuantizedMultiplier's for
one number. Where a kernel refuses scales, a ValueError says why. Sources: as named in `tflq.numerics.convolution`,
`elementwise`, `activation`.

    Reference10       FULLY_CONNECTED by the legacy product, or by channels in double, rounded twice
    KernelSet         ai-edge-litert 2.0 to 2.3 on x86-64
    ReferenceArm64    other float kernels for RESIZE_BILINEAR of uint8, GELU and LOG of int16
    Reference24       products of scales in double (LiteRT, commit 4845da412)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tflq.numerics.activation import Leaky, activation_range, leaky_multipliers, multiplier_16bit, prelu_multipliers
from tflq.numerics.convolution import (
    double_scales,
    hidden_scale,
    legacy_scale,
    mean_multiplier,
    peephole_scale,
    product_scale,
)
from tflq.numerics.elementwise import (
    Addition,
    addition,
    comparison_multiplier,
    division_multiplier,
    multiplication,
    power_of_two_shifts,
    squared_difference,
)
from tflq.numerics.fixed_point import Multiplier, float_ratio, quantize_multiplier, quotient, ratio_multiplier
from tflq.numerics.requantize.scaling import Factor, Float64, QuantizedMultiplier
from tflq.numerics.unary import FloatFunction, table_8bit


class Storage(Protocol):
    """An integer type."""

    @property
    def bits(self) -> int: ...

    @property
    def signed(self) -> bool: ...

    @property
    def minimum(self) -> int: ...

    @property
    def maximum(self) -> int: ...

    @property
    def dtype(self) -> np.dtype: ...


class Parameters(Protocol):
    """Parameters of a tensor that is quantized per layer."""

    @property
    def storage(self) -> Storage: ...

    @property
    def scale(self) -> float: ...

    @property
    def zero_point(self) -> int: ...


_INT8, _UINT8, _INT16 = (8, True), (8, False), (16, True)
_WEIGHTS = _INT8, (4, True), (2, True)


class WeightedSum(NamedTuple):
    """ADD's and SUB's integers: (first (x - zero) + second (y - zero) + 2^(shift - 1)) >> shift."""

    first: int
    second: int
    shift: int


class Slopes(NamedTuple):
    """(d m + 2^(shift - 1)) >> shift of d = x - zero, m the first number for d >= 0, else the second."""

    above: int
    below: int
    shift: int


class FixedTaps(NamedTuple):
    """Positions of RESIZE_BILINEAR in fixed point, two for each row or column of the result. `weight`, of the upper,
    is in parts of 2^11. int64 [N] each."""

    lower: np.ndarray
    upper: np.ndarray
    weight: np.ndarray


class KernelSet:
    """TFLite's reference kernels, as ai-edge-litert 2.0 to 2.3 has them on x86-64. Another set is a class that says
    what its kernels do otherwise.

    delegated: the kernels of a delegate for the nodes that it takes, if there is one. inexact: the kernels whose
    arithmetic is not known here, by operator and types, as `tflq.legalize.delegate.words_of` names them.
    """

    name: str = "reference-2.3"
    delegated: KernelSet | None = None
    inexact: frozenset[str] = frozenset()

    def of(self, *, delegated: bool) -> KernelSet:
        """The kernels that compute an operator: those of the delegate, if there is one that takes it."""
        return self.delegated if delegated and self.delegated is not None else self

    def activation(self, name: str, y: Parameters) -> tuple[int, int]:
        """The stored values that a fused activation clamps to."""
        storage = y.storage
        return activation_range(name, storage.minimum, storage.maximum, y.scale, y.zero_point)

    def table(self, function: FloatFunction, x: Parameters, y: Parameters) -> np.ndarray:
        """The table of a function of 8 bits in float32, entry of the smallest value first."""
        return table_8bit(function, x.storage.dtype, x.scale, x.zero_point, y.scale, y.zero_point)

    def reciprocal(self, y: Parameters) -> np.float32 | None:  # noqa: ARG002
        """The float32 that QUANTIZE multiplies floats by, before it rounds halves to even. None where it divides by
        the scale, and rounds halves away from zero."""
        return None

    def bilinear(self, size: int, out: int, *, align_corners: bool, half_pixel: bool) -> FixedTaps | None:  # noqa: ARG002
        """RESIZE_BILINEAR along an axis, by two interpolations; None where it is the reference kernel's."""
        return None

    # Sums of products. Weights have float32 scales, [1 or C].

    def convolution(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        """CONV_2D and TRANSPOSE_CONV; of uint8 with one scale of the weights."""
        if _type(x.storage) == _UINT8:
            return QuantizedMultiplier(self.scale_of_products(x, weights, y))
        return QuantizedMultiplier(double_scales(x.scale, weights, y.scale))

    def scale_of_products(self, x: Parameters, weights: np.ndarray, y: Parameters) -> np.ndarray:
        """The real scale of products where there is one, float64 [1]: the product of two in float32."""
        return np.asarray([legacy_scale(x.scale, float(weights[0]), y.scale)])

    def depthwise(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        """DEPTHWISE_CONV_2D."""
        return self.convolution(x, weights, y)

    def fully_connected(self, x: Parameters, storage: Storage, weights: np.ndarray, y: Parameters) -> Factor | None:
        """FULLY_CONNECTED for weights of a storage type; None if there is no kernel for the types."""
        types, stored = (_type(x.storage), _type(y.storage)), _type(storage)
        if types == (_INT16, _INT16) and (x.zero_point or y.zero_point):
            return None
        if types in ((_INT8, _INT8), (_INT16, _INT16)) and stored in _WEIGHTS:
            return self.fully_connected_bytes(x, weights, y)
        if types[0] == stored == _UINT8 and weights.size == 1:
            return self.fully_connected_bytes(x, weights, y) if types[1] in (_UINT8, _INT16) else None
        if types != (_INT16, _INT16) or stored != _INT16:
            return None
        if weights.size == 1:
            return QuantizedMultiplier(self.scale_of_products(x, weights, y))
        return QuantizedMultiplier(double_scales(x.scale, weights, y.scale))

    def fully_connected_bytes(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        """FULLY_CONNECTED with weights of at most 8 bits, whatever types the kernel reads the bytes as."""
        return Float64(double_scales(x.scale, weights, y.scale))

    def batch_matmul(self, x: Parameters, y: Parameters, result: Parameters) -> Factor:
        return QuantizedMultiplier(self.scale_of_products(x, np.asarray([y.scale]), result))

    def svdf(self, x: Parameters, weights: Parameters, y: Parameters) -> Factor:
        """SVDF's products with the weights of features, and of time."""
        return QuantizedMultiplier(np.asarray([float_ratio(x.scale, y.scale, weights.scale)]))

    # Arithmetic of two.

    def addition(
        self, x: Parameters, y: Parameters, result: Parameters, *, subtract: bool = False
    ) -> Addition | WeightedSum:
        """ADD and SUB."""
        return addition(x.scale, y.scale, result.scale, result.storage.bits, subtract=subtract)

    def vector_part(self, count: int) -> int:  # noqa: ARG002
        """The number of elements of ADD of int16, of `count` from the first on, whose operands are scaled with one
        rounding, half up: those that a kernel adds several at a time."""
        return 0

    def shifted_addition(self, x: Parameters, y: Parameters, result: Parameters) -> tuple[int, int] | None:
        """The right shifts of operands of ADD and SUB of int16 with `pot_scale_int16`; None if they are scaled."""
        return power_of_two_shifts(x.scale, y.scale, result.scale)

    def squared_difference(self, x: Parameters, y: Parameters, result: Parameters) -> Addition:
        return squared_difference(x.scale, y.scale, result.scale)

    def multiplication(self, x: Parameters, y: Parameters, result: Parameters) -> Multiplier | Factor:
        return multiplication(x.scale, y.scale, result.scale)

    def division(self, x: Parameters, y: Parameters, result: Parameters) -> Multiplier:
        return division_multiplier(x.scale, y.scale, result.scale)

    def comparison(self, x: Parameters) -> Multiplier:
        """An operand of EQUAL, LESS and their kin; a shift above 0 stands for the sign alone."""
        return comparison_multiplier(x.scale)

    # Functions of one, and reductions.

    def requantization(self, x: Parameters, y: Parameters) -> Multiplier | Slopes:
        """QUANTIZE of integers."""
        return ratio_multiplier(x.scale, y.scale)

    def absolute(self, x: Parameters, y: Parameters) -> Multiplier:
        same = x.scale == y.scale  # also where both are 0
        return quantize_multiplier(1.0 if same else float_ratio(x.scale, y.scale))

    def relu(self, x: Parameters, y: Parameters) -> Multiplier:
        return quantize_multiplier(float_ratio(x.scale, y.scale))

    def leaky_relu(self, x: Parameters, y: Parameters, alpha: float) -> Leaky | Slopes:
        return leaky_multipliers(x.scale, y.scale, alpha)

    def prelu(self, x: Parameters, alpha: Parameters, y: Parameters) -> tuple[Multiplier, Multiplier]:
        """From the zero point up, and of products with alpha below it."""
        return prelu_multipliers(x.scale, alpha.scale, y.scale)

    def softmax(self, x: Parameters, beta: float) -> Multiplier:
        """SOFTMAX of int16: of differences."""
        return multiplier_16bit(beta, x.scale)

    def extreme(self, x: Parameters, y: Parameters) -> Multiplier:
        """REDUCE_MAX and REDUCE_MIN with another scale."""
        return ratio_multiplier(x.scale, y.scale)

    def average(self, x: Parameters, y: Parameters, count: int, *, divided: bool) -> Factor | None:  # noqa: ARG002
        """MEAN, or SUM if not `divided`, of `count` elements less their zero points, as a factor; None where it is
        `mean` or `total`."""
        return None

    def total(self, x: Parameters, y: Parameters) -> Multiplier:
        """SUM; MEAN, before its number of elements is known."""
        return ratio_multiplier(x.scale, y.scale)

    def mean(self, x: Parameters, y: Parameters, count: int) -> Multiplier:
        return mean_multiplier(x.scale, y.scale, count)

    def product(self, x: Parameters, y: Parameters, count: int) -> QuantizedMultiplier:
        """REDUCE_PROD after each of `count` factors."""
        return QuantizedMultiplier(np.asarray([product_scale(x.scale, y.scale, count)]))

    # LSTM.

    def lstm_gates(self, x: float, weights: Sequence[float], gates: Sequence[float], cells: int) -> QuantizedMultiplier:
        """Products with the input or the output state, for each gate's cells."""
        scales = [float_ratio(w, gate, x) for w, gate in zip(weights, gates, strict=True)]
        return QuantizedMultiplier(np.repeat(np.asarray(scales, np.float64), cells))

    def lstm_sums(self, bias: float) -> Multiplier:
        """The sums of the kernel of uint8, with the scale of its bias, in Q3.12."""
        return quantize_multiplier(4096 * bias)

    def lstm_norm(self, scale: float) -> Multiplier:
        """Layer normalization by weights of a scale."""
        mantissa, left = quantize_multiplier(scale)
        return Multiplier(mantissa, left + 12)

    def lstm_peephole(self, cell_exponent: int, weights: float, gate: float) -> Multiplier:
        return quantize_multiplier(peephole_scale(cell_exponent, weights, gate))

    def lstm_hidden(self, hidden: float) -> Multiplier:
        return quantize_multiplier(hidden_scale(hidden))

    def lstm_projection(self, weights: float, hidden: float, state: float) -> Factor:
        return QuantizedMultiplier(np.asarray([float_ratio(weights, state, hidden)]))


def _type(storage: Storage) -> tuple[int, bool]:
    return storage.bits, storage.signed


class Reference10(KernelSet):
    """The reference kernels of ai-edge-litert 1.0."""

    name = "reference-1.0"
    inexact = frozenset({"EQUAL of i16"})

    def fully_connected_bytes(self, x: Parameters, weights: np.ndarray, y: Parameters) -> Factor:
        if weights.size == 1:
            return QuantizedMultiplier(self.scale_of_products(x, weights, y))
        return QuantizedMultiplier(double_scales(x.scale, weights, y.scale))


class ReferenceArm64(KernelSet):
    """The reference kernels of ai-edge-litert 2.3 on aarch64."""

    name = "reference-2.3-arm64"
    inexact = frozenset({"RESIZE_BILINEAR of ui8", "GELU of i16", "LOG of i16"})


class Reference24(KernelSet):
    """The reference kernels of the nightly of ai-edge-litert 2.4: products of scales are doubles."""

    name = "reference-2.4-dev"
    inexact = frozenset({"PRELU of i16"})

    def scale_of_products(self, x: Parameters, weights: np.ndarray, y: Parameters) -> np.ndarray:
        return double_scales(x.scale, weights, y.scale)

    def svdf(self, x: Parameters, weights: Parameters, y: Parameters) -> Factor:
        return QuantizedMultiplier(np.asarray([_in_double(y.scale, x.scale, weights.scale)]))

    def multiplication(self, x: Parameters, y: Parameters, result: Parameters) -> Multiplier | Factor:
        return quantize_multiplier(_in_double(result.scale, x.scale, y.scale))

    def division(self, x: Parameters, y: Parameters, result: Parameters) -> Multiplier:
        return quantize_multiplier(quotient(_float32(x.scale), _float32(y.scale) * _float32(result.scale)))

    def absolute(self, x: Parameters, y: Parameters) -> Multiplier:
        return quantize_multiplier(1.0 if x.scale == y.scale else _in_double(y.scale, x.scale))

    def relu(self, x: Parameters, y: Parameters) -> Multiplier:
        return quantize_multiplier(_in_double(y.scale, x.scale))

    def leaky_relu(self, x: Parameters, y: Parameters, alpha: float) -> Leaky | Slopes:
        mantissa, shift = quantize_multiplier(_in_double(y.scale, x.scale, alpha))
        return Leaky(self.relu(x, y), Multiplier(abs(mantissa), shift), mantissa < 0)

    def prelu(self, x: Parameters, alpha: Parameters, y: Parameters) -> tuple[Multiplier, Multiplier]:
        return self.relu(x, y), quantize_multiplier(_in_double(y.scale, x.scale, alpha.scale))


def _float32(x: float) -> float:
    return float(np.float32(x))


def _in_double(denominator: float, *factors: float) -> float:
    """The product of float32 factors by a float32 denominator, in double."""
    return quotient(math.prod(map(_float32, factors)), _float32(denominator))
