"""Functions of one float. But for the square root, the last bit is not the specification's to say."""

from __future__ import annotations

from tflq.dialects.core_floats import OfFloat

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


class Acos(OfFloat, name="math.acos"):
    """the arc cosine"""

    __slots__ = ()


class Acosh(OfFloat, name="math.acosh"):
    """the inverse hyperbolic cosine"""

    __slots__ = ()


class Asin(OfFloat, name="math.asin"):
    """the arc sine"""

    __slots__ = ()


class Asinh(OfFloat, name="math.asinh"):
    """the inverse hyperbolic sine"""

    __slots__ = ()


class Atan(OfFloat, name="math.atan"):
    """the arc tangent"""

    __slots__ = ()


class Atanh(OfFloat, name="math.atanh"):
    """the inverse hyperbolic tangent"""

    __slots__ = ()


class Cbrt(OfFloat, name="math.cbrt"):
    """the cube root"""

    __slots__ = ()


class Cos(OfFloat, name="math.cos"):
    """the cosine"""

    __slots__ = ()


class Cosh(OfFloat, name="math.cosh"):
    """the hyperbolic cosine"""

    __slots__ = ()


class Erf(OfFloat, name="math.erf"):
    """the error function"""

    __slots__ = ()


class Erfc(OfFloat, name="math.erfc"):
    """1 less the error function"""

    __slots__ = ()


class Exp(OfFloat, name="math.exp"):
    """e^input"""

    __slots__ = ()


class Exp2(OfFloat, name="math.exp2"):
    """2^input"""

    __slots__ = ()


class ExpM1(OfFloat, name="math.expm1"):
    """e^input - 1"""

    __slots__ = ()


class Log(OfFloat, name="math.log"):
    """the natural logarithm"""

    __slots__ = ()


class Log10(OfFloat, name="math.log10"):
    """the logarithm to base 10"""

    __slots__ = ()


class Log1p(OfFloat, name="math.log1p"):
    """the natural logarithm of 1 + input"""

    __slots__ = ()


class Log2(OfFloat, name="math.log2"):
    """the logarithm to base 2"""

    __slots__ = ()


class Rsqrt(OfFloat, name="math.rsqrt"):
    """1 / the square root"""

    __slots__ = ()


class Sin(OfFloat, name="math.sin"):
    """the sine"""

    __slots__ = ()


class Sinh(OfFloat, name="math.sinh"):
    """the hyperbolic sine"""

    __slots__ = ()


class Sqrt(OfFloat, name="math.sqrt"):
    """the square root, rounded once"""

    __slots__ = ()


class Tan(OfFloat, name="math.tan"):
    """the tangent"""

    __slots__ = ()


class Tanh(OfFloat, name="math.tanh"):
    """the hyperbolic tangent"""

    __slots__ = ()
