"""Shapes of operators on elements: the operand's, or numpy's broadcast of the operands'.

Sources: the kernels of these names in kernels/; `CalculateShapeForBroadcast` in kernels/kernel_util.cc.
"""

from __future__ import annotations

from typing import Final

from tflq.builder import broadcast
from tflq.dialects.tfl.activation import Prelu
from tflq.dialects.tfl.bits import Bitcast
from tflq.dialects.tfl.comparison import Select
from tflq.dialects.tfl.stablehlo import StablehloClamp, StablehloSelect
from tflq.ir.types import Shape
from tflq.shapes.site import Dims, Misfit, Site, agree, shape, text

__all__: list[str] = []

_SAME: Final = """
    abs bucketize cast ceil complex_abs cos cumsum dequantize elu exp fake_quant floor gelu
    hard_swish imag l2_normalization leaky_relu local_response_normalization log log_softmax logical_not logistic neg
    quantize real relu relu6 relu_0_to_1 relu_n1_to_1 reverse_sequence reverse_v2 round rsqrt sign sin softmax sqrt
    square tanh zeros_like densify
    stablehlo_abs stablehlo_cbrt stablehlo_convert stablehlo_cosine stablehlo_exponential stablehlo_floor stablehlo_log
    stablehlo_logistic stablehlo_negate stablehlo_rsqrt stablehlo_tanh stablehlo_scatter
""".split()

_BROADCAST: Final = """
    add atan2 bitwise_xor div equal floor_div floor_mod greater greater_equal less less_equal logical_and logical_or
    maximum minimum mul not_equal pow right_shift select_v2 squared_difference sub
""".split()

_CONGRUENT: Final = """
    add_n stablehlo_add stablehlo_and stablehlo_compare stablehlo_divide stablehlo_maximum stablehlo_minimum
    stablehlo_multiply stablehlo_or stablehlo_power stablehlo_remainder stablehlo_shift_left stablehlo_subtract
""".split()


@shape(*(f"tfl.{name}" for name in _SAME))
def _same(site: Site) -> Shape:
    return site.dims()


@shape(*(f"tfl.{name}" for name in _BROADCAST))
def _broadcast(site: Site) -> Dims:
    shapes = [site.dims(i) for i in range(len(site.op.operands))]
    try:
        return broadcast(*shapes) or ()
    except ValueError:
        raise Misfit(f"its operands {' and '.join(map(text, shapes))} do not broadcast") from None


@shape(*(f"tfl.{name}" for name in _CONGRUENT))
def _congruent(site: Site) -> Shape:
    first = site.dims()
    for index in range(1, len(site.op.operands)):
        other = site.dims(index, len(first))
        first = tuple(agree(a, b, "dims of its operands") for a, b in zip(first, other, strict=True))
    return first


@shape(Prelu)
def _prelu(site: Site) -> Shape:
    """The slopes broadcast to the input, never the input to them."""
    dims = site.dims()
    found = _broadcast(site)
    if len(found) != len(dims):
        raise Misfit(f"alpha {text(site.dims(1))} has more dims than the input {text(dims)}")
    return tuple(agree(a, b, "input and result") for a, b in zip(dims, found, strict=True))


@shape(Select)
def _select(site: Site) -> Shape:
    """A condition of rank 1 chooses rows."""
    dims = site.dims(1)
    other = site.dims(2, len(dims))
    return tuple(agree(a, b, "dims of its operands") for a, b in zip(dims, other, strict=True))


@shape(StablehloSelect, StablehloClamp)
def _middle(site: Site) -> Shape:
    """The condition and the bounds may be scalars, or are of the shape of what they are for."""
    dims = site.dims(1)
    for index in (0, 2):
        if site.dims(index) or (index == 2 and isinstance(site.op, StablehloSelect)):
            other = site.dims(index, len(dims))
            dims = tuple(agree(a, b, "dims of its operands") for a, b in zip(dims, other, strict=True))
    return dims


@shape(Bitcast)
def _bitcast(site: Site) -> Shape:
    """Between widths the last dim appears or goes."""
    dims = site.dims()
    before, after = site.value(0).type.storage.bits, site.op.result.type.storage.bits
    if before > after:
        return (*dims, before // after)
    if before < after:
        agree(dims[-1] if dims else None, after // before, "last dim")
        return dims[:-1]
    return dims
