"""Unary functions that no kernel computes on the types at hand: the real function, rounded.

Tables, of any storage types and any quantized axes (`legalize.lookup`); ABS, NEG, SQUARE and the RELU family are scaled
where the tables would be large.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import (
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Tanh,
)
from tflq.dialects.tfl.casts import FakeQuant, Quantize
from tflq.dialects.tfl.unary import Abs, Ceil, Cos, Exp, Floor, Log, Neg, Round, Rsqrt, Sign, Sin, Sqrt, Square
from tflq.ir.core import Op, Value
from tflq.ir.types import i8, i16, i32, ui8
from tflq.legalize.real.arithmetic import NOTE
from tflq.legalize.real.grid import Grid, centred_by, finished, grid_of, grids_of
from tflq.legalize.real.lookup import looked_up_by, requantized_by
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder
from tflq.legalize.scaling import kernel_name
from tflq.numerics.activation import BOUNDS
from tflq.numerics.fake_quant import fake_quant
from tflq.numerics.tables import FloatFunction
from tflq.numerics.unary import REAL_FUNCTIONS, gelu

__all__: list[str] = []

_WITH_OPTIONS = ("FAKE_QUANT", "GELU", "LEAKY_RELU")
_NAMES = sorted({*REAL_FUNCTIONS, *BOUNDS, *_WITH_OPTIONS})


def real_function(
    op: Relu
    | Relu6
    | ReluN1To1
    | Relu0To1
    | LeakyRelu
    | HardSwish
    | Exp
    | Log
    | Elu
    | Gelu
    | Rsqrt
    | Sqrt
    | Abs
    | Neg
    | Logistic
    | Tanh
    | Ceil
    | Cos
    | FakeQuant
    | Floor
    | Round
    | Sign
    | Sin
    | Square,
    b: RuleBuilder,
) -> Answer:
    """Tables of the real function, or what is linear, scaled."""
    grids = grids_of(*op.tensors)
    if isinstance(grids, NotApplicable):
        return grids
    source, target = grids
    try:
        function = _function(op)
    except ValueError as error:
        return NotApplicable(str(error))
    made = looked_up_by(b, op.input, source, target, function)
    if isinstance(made, NotApplicable):
        made = _linear(op, b, source, target) or made
    return made if isinstance(made, NotApplicable) else Rewritten([made], note=NOTE)


def _function(op: Op) -> FloatFunction:
    """The real function, its options included. ValueError where these have no meaning."""
    name, options = kernel_name(op), op.attributes
    if name == "FAKE_QUANT":
        bounds = options["min"], options["max"], options["num_bits"]
        return fake_quant(*bounds, narrow_range=bool(options.get("narrow_range", False)))
    if name == "GELU":
        exact = gelu(bool(options.get("approximate", False)))
        return lambda x: exact(x.reshape(-1).astype(np.float32)).reshape(x.shape)
    if name == "LEAKY_RELU":
        alpha = options.get("alpha", 0.0)
        return lambda x: np.where(x >= 0, x, x * alpha)
    if name in BOUNDS:
        low, high = BOUNDS[name]
        return lambda x: np.clip(x, low, high)
    return REAL_FUNCTIONS[name]


def _linear(op: Op, b: RuleBuilder, source: Grid, target: Grid) -> Value | NotApplicable | None:
    """A function that scales x, -x, |x| or x x; None for others."""
    name, ratio = kernel_name(op), source.scales / target.scales
    x, zero = centred_by(b, op.operand(0), source), b.constant(np.asarray(0))
    reach = source.reach
    bounds = -reach, reach
    if name in BOUNDS:
        return finished(b, x, ratio, target, bounds, name)
    if name == "NEG":
        return finished(b, b.sub(zero, x), ratio, target, bounds)
    if name == "ABS":
        return finished(b, b.maximum(x, b.sub(zero, x)), ratio, target, bounds)
    if name == "SQUARE" and reach * reach < 1 << 31:
        return finished(b, b.mul(x, x), source.scales * ratio, target, (0, reach * reach))
    return None


def quantize(op: Quantize, b: RuleBuilder) -> Answer:
    """Between parameters per axis, or types that the kernel does not take."""
    source, target = (grid_of(v, storages=(i8, ui8, i16, i32)) for v in op.tensors)
    if isinstance(source, NotApplicable):
        return source
    if isinstance(target, NotApplicable):
        return target
    if i32 in (source.storage, target.storage) and (source.reach > 1 << 31 or target.zero is None):
        return NotApplicable("int32 with zero points leaves 32 bits")
    made = requantized_by(b, op.input, source, target)
    return made if isinstance(made, NotApplicable) else Rewritten([made], note=NOTE)
