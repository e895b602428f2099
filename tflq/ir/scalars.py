"""Scalar element types: integers, floats, and those that have a name alone."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from tflq.light import dataclass, field

__all__ = [
    *("SCALARS", "ScalarType", "bf16", "complex64", "complex128", "f16", "f32", "f64", "f8e4m3fn", "f8e5m2"),
    *("i1", "i2", "i4", "i8", "i16", "i32", "i64", "index", "named_scalar", "resource", "signless", "string"),
    *("ui4", "ui8", "ui16", "ui32", "ui64", "variant"),
]


_MADE: dict[str, ScalarType] = {}


@dataclass(frozen=True, slots=True, eq=False, init=False)
class ScalarType:
    """A plain element type, named as in MLIR (`i8`, `ui8`, `f32`, ...); `bits` is its packed width. There is one object
    of a name, also after a copy or a pickle: types are compared by identity."""

    name: str
    bits: int
    kind: str  # "int", "uint", "bool", "float", "complex" or "opaque"
    numpy: str  # name of the numpy dtype of one unpacked element; "" if it has none
    is_integer: bool = field(repr=False)
    is_float: bool = field(repr=False)
    signed: bool = field(repr=False)
    minimum: int = field(repr=False)  # of an integer type, its smallest value
    maximum: int = field(repr=False)  # and its largest

    def __new__(cls, name: str, bits: int, kind: str, numpy: str) -> ScalarType:
        if name not in _MADE:
            signed = kind == "int"
            span = 1 << bits
            said = {"name": name, "bits": bits, "kind": kind, "numpy": numpy, "signed": signed}
            said |= {"is_integer": kind in ("int", "uint"), "is_float": kind == "float"}
            said |= {"minimum": -(span // 2) if signed else 0, "maximum": (span // 2 if signed else span) - 1}
            made = object.__new__(cls)
            for key, value in said.items():
                object.__setattr__(made, key, value)
            return _MADE.setdefault(name, made)
        return _MADE[name]

    def __reduce__(self) -> tuple[type[ScalarType], tuple[str, int, str, str]]:
        return ScalarType, (self.name, self.bits, self.kind, self.numpy)

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of an unpacked element (int4 unpacks to int8). TypeError if there is none."""
        if not self.numpy:
            raise TypeError(f"{self.name} has no numpy element type")
        return np.dtype(self.numpy)

    def __str__(self) -> str:
        return self.name


i1 = ScalarType("i1", 8, "bool", "bool")
i2 = ScalarType("i2", 2, "int", "int8")
i4 = ScalarType("i4", 4, "int", "int8")
i8 = ScalarType("i8", 8, "int", "int8")
i16 = ScalarType("i16", 16, "int", "int16")
i32 = ScalarType("i32", 32, "int", "int32")
i64 = ScalarType("i64", 64, "int", "int64")
ui4 = ScalarType("ui4", 4, "uint", "uint8")
ui8 = ScalarType("ui8", 8, "uint", "uint8")
ui16 = ScalarType("ui16", 16, "uint", "uint16")
ui32 = ScalarType("ui32", 32, "uint", "uint32")
ui64 = ScalarType("ui64", 64, "uint", "uint64")
f16 = ScalarType("f16", 16, "float", "float16")
f32 = ScalarType("f32", 32, "float", "float32")
f64 = ScalarType("f64", 64, "float", "float64")
bf16 = ScalarType("bf16", 16, "float", "")
f8e4m3fn = ScalarType("f8E4M3FN", 8, "float", "")
f8e5m2 = ScalarType("f8E5M2", 8, "float", "")
complex64 = ScalarType("complex<f32>", 64, "complex", "complex64")
complex128 = ScalarType("complex<f64>", 128, "complex", "complex128")
string = ScalarType("!tfl.string", 0, "opaque", "")
resource = ScalarType("!tfl.resource", 0, "opaque", "")
variant = ScalarType("!tfl.variant", 0, "opaque", "")
index = ScalarType("index", 64, "index", "int64")  # of shapes, in the text form only; no file stores it

SCALARS: dict[str, ScalarType] = {
    t.name: t
    for t in (
        index,  # before i64, so that a table by dtype says i64 for int64
        *(i1, i2, i4, i8, i16, i32, i64, ui4, ui8, ui16, ui32, ui64),
        *(f16, f32, f64, bf16, f8e4m3fn, f8e5m2, complex64, complex128, string, resource, variant),
    )
}


_WIDTH = r"(u?i)(\d+)"
_FLOAT = r"f(80|128)|f([468])E\d+M\d+\w*|tf32"
_LARGEST_WIDTH = (1 << 24) - 1  # of MLIR


@cache
def named_scalar(name: str) -> ScalarType | None:
    """A scalar type by its name: those of `SCALARS`, integers of any width, floats. None if it names none.

    Elements of up to 64 bits are unpacked into the next larger integer of numpy.
    """
    if name in SCALARS:
        return SCALARS[name]
    integer = re.fullmatch(_WIDTH, name)
    if integer is not None and 0 < int(integer[2]) <= _LARGEST_WIDTH:
        bits = int(integer[2])
        held = next((size for size in (8, 16, 32, 64) if bits <= size), 0)
        signed = integer[1] == "i"
        dtype = f"{'' if signed else 'u'}int{held}" if held else ""
        return ScalarType(name, bits, "int" if signed else "uint", dtype)
    number = re.fullmatch(_FLOAT, name)
    return None if number is None else ScalarType(name, int(number[1] or number[2] or 19), "float", "")


@cache
def signless(scalar: ScalarType) -> ScalarType:
    """The signless integer of an integer's width: `i8` of `ui8`."""
    if scalar.kind != "uint":
        return scalar
    found = named_scalar(scalar.name.removeprefix("u"))
    assert found is not None
    return found
