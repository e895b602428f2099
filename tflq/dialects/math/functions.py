"""Functions of one float. But for the square root, the last bit is not the specification's to say."""

from __future__ import annotations

from tflq.dialects.core_rules import FLAGS, FLOATS, declared, elementwise
from tflq.dialects.declare import OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = [
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Cbrt",
    "Cos",
    "Cosh",
    "Erf",
    "Erfc",
    "Exp",
    "Exp2",
    "ExpM1",
    "Log",
    "Log1p",
    "Log2",
    "Log10",
    "Rsqrt",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
]


_ONE = OneOf(FLOATS)


class _Function(Operator):
    """Of one float."""

    __slots__ = ()
    input: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class Acos(_Function, name="math.acos"):
    """the arc cosine"""

    __slots__ = ()


class Acosh(_Function, name="math.acosh"):
    """the inverse hyperbolic cosine"""

    __slots__ = ()


class Asin(_Function, name="math.asin"):
    """the arc sine"""

    __slots__ = ()


class Asinh(_Function, name="math.asinh"):
    """the inverse hyperbolic sine"""

    __slots__ = ()


class Atan(_Function, name="math.atan"):
    """the arc tangent"""

    __slots__ = ()


class Atanh(_Function, name="math.atanh"):
    """the inverse hyperbolic tangent"""

    __slots__ = ()


class Cbrt(_Function, name="math.cbrt"):
    """the cube root"""

    __slots__ = ()


class Cos(_Function, name="math.cos"):
    """the cosine"""

    __slots__ = ()


class Cosh(_Function, name="math.cosh"):
    """the hyperbolic cosine"""

    __slots__ = ()


class Erf(_Function, name="math.erf"):
    """the error function"""

    __slots__ = ()


class Erfc(_Function, name="math.erfc"):
    """1 less the error function"""

    __slots__ = ()


class Exp(_Function, name="math.exp"):
    """e^input"""

    __slots__ = ()


class Exp2(_Function, name="math.exp2"):
    """2^input"""

    __slots__ = ()


class ExpM1(_Function, name="math.expm1"):
    """e^input - 1"""

    __slots__ = ()


class Log(_Function, name="math.log"):
    """the natural logarithm"""

    __slots__ = ()


class Log10(_Function, name="math.log10"):
    """the logarithm to base 10"""

    __slots__ = ()


class Log1p(_Function, name="math.log1p"):
    """the natural logarithm of 1 + input"""

    __slots__ = ()


class Log2(_Function, name="math.log2"):
    """the logarithm to base 2"""

    __slots__ = ()


class Rsqrt(_Function, name="math.rsqrt"):
    """1 / the square root"""

    __slots__ = ()


class Sin(_Function, name="math.sin"):
    """the sine"""

    __slots__ = ()


class Sinh(_Function, name="math.sinh"):
    """the hyperbolic sine"""

    __slots__ = ()


class Sqrt(_Function, name="math.sqrt"):
    """the square root, rounded once"""

    __slots__ = ()


class Tan(_Function, name="math.tan"):
    """the tangent"""

    __slots__ = ()


class Tanh(_Function, name="math.tanh"):
    """the hyperbolic tangent"""

    __slots__ = ()
