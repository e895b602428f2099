"""Types: scalar element types, quantized element types and tensors of them.

All types are immutable and hashable. The quantized types and their invariants are those of MLIR's `quant`
dialect: a stored integer `q` expresses the real value `(q - zero_point) * scale`; `storage_min` and `storage_max`
bound `q`. Scales are positive, but files also have 0 (pruned channels, constants that are all zero) and infinity (dead
ranges): kernels run on them. Scales and zero points of per-axis types are read-only numpy
arrays, compared and hashed by their bytes, since a layer can have thousands of channels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeGuard

import numpy as np

from tflq.base.errors import Refused, UnsupportedError

if TYPE_CHECKING:
    import numpy.typing as npt


class NoNumbers(Refused, TypeError):  # noqa: N818 an answer, not an error
    """Elements of a type that numpy lacks were asked for: what needs them has no form."""


# Scalar element types: integers, floats, and those that have a name alone.


class ScalarType:
    """A plain element type, named as in MLIR (`i8`, `ui8`, `f32`, ...); `bits` is its packed width. Types are compared
    by identity: there is one object of each name, also after a copy or a pickle (`scalar_type`)."""

    __slots__ = ("_dtype", "bits", "is_float", "is_integer", "kind", "maximum", "minimum", "name", "numpy", "signed")

    def __init__(self, name: str, bits: int, kind: str, numpy: str) -> None:
        signed, span = kind == "int", 1 << bits
        self.name: Final = name
        self.bits: Final = bits
        self.kind: Final = kind  # "int", "uint", "bool", "float", "complex" or "opaque"
        self.numpy: Final = numpy  # name of the numpy dtype of one unpacked element; "" if it has none
        self.is_integer: Final = kind in ("int", "uint")
        self.is_float: Final = kind == "float"
        self.signed: Final = signed
        self.minimum: Final = -(span // 2) if signed else 0  # of an integer type, its smallest value
        self.maximum: Final = (span // 2 if signed else span) - 1  # and its largest
        self._dtype: Final = np.dtype(numpy) if numpy else None

    def __reduce__(self) -> tuple[Callable[..., ScalarType], tuple[str, int, str, str]]:
        return scalar_type, (self.name, self.bits, self.kind, self.numpy)

    def __repr__(self) -> str:
        return f"ScalarType(name={self.name!r}, bits={self.bits!r}, kind={self.kind!r}, numpy={self.numpy!r})"

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of an unpacked element (int4 unpacks to int8). TypeError if there is none."""
        if self._dtype is None:
            raise NoNumbers(f"{self.name} has no numpy element type")
        return self._dtype

    def less(self, zero_point: int) -> tuple[int, int]:
        """The least and the greatest number of an integer type, less a zero point."""
        return self.minimum - zero_point, self.maximum - zero_point

    def __str__(self) -> str:
        return self.name


_SCALARS_BY_NAME: dict[str, ScalarType] = {}


def scalar_type(name: str, bits: int, kind: str, numpy: str) -> ScalarType:
    """The type of a name, which there is once; of a new name with these properties."""
    if name not in _SCALARS_BY_NAME:
        return _SCALARS_BY_NAME.setdefault(name, ScalarType(name, bits, kind, numpy))
    return _SCALARS_BY_NAME[name]


i1 = scalar_type("i1", 8, "bool", "bool")
i2 = scalar_type("i2", 2, "int", "int8")
i4 = scalar_type("i4", 4, "int", "int8")
i8 = scalar_type("i8", 8, "int", "int8")
i16 = scalar_type("i16", 16, "int", "int16")
i32 = scalar_type("i32", 32, "int", "int32")
i64 = scalar_type("i64", 64, "int", "int64")
ui4 = scalar_type("ui4", 4, "uint", "uint8")
ui8 = scalar_type("ui8", 8, "uint", "uint8")
ui16 = scalar_type("ui16", 16, "uint", "uint16")
ui32 = scalar_type("ui32", 32, "uint", "uint32")
ui64 = scalar_type("ui64", 64, "uint", "uint64")
f16 = scalar_type("f16", 16, "float", "float16")
f32 = scalar_type("f32", 32, "float", "float32")
f64 = scalar_type("f64", 64, "float", "float64")
bf16 = scalar_type("bf16", 16, "float", "")
f8e4m3fn = scalar_type("f8E4M3FN", 8, "float", "")
f8e5m2 = scalar_type("f8E5M2", 8, "float", "")
complex64 = scalar_type("complex<f32>", 64, "complex", "complex64")
complex128 = scalar_type("complex<f64>", 128, "complex", "complex128")
string = scalar_type("!tfl.string", 0, "opaque", "")
resource = scalar_type("!tfl.resource", 0, "opaque", "")
variant = scalar_type("!tfl.variant", 0, "opaque", "")
index = scalar_type("index", 64, "index", "int64")  # of shapes, in the text form only; no file stores it

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
        container = next((size for size in (8, 16, 32, 64) if bits <= size), 0)
        signed = integer[1] == "i"
        dtype = f"{'' if signed else 'u'}int{container}" if container else ""
        return scalar_type(name, bits, "int" if signed else "uint", dtype)
    number = re.fullmatch(_FLOAT, name)
    return None if number is None else scalar_type(name, int(number[1] or number[2] or 19), "float", "")


@cache
def signless(scalar: ScalarType) -> ScalarType:
    """The signless integer of an integer's width: `i8` of `ui8`."""
    if scalar.kind != "uint":
        return scalar
    counterpart = named_scalar(scalar.name.removeprefix("u"))
    assert counterpart is not None
    return counterpart


Shape: TypeAlias = tuple[int | None, ...] | None
"""Dims in order, `None` for an unknown dim; `None` for an unknown rank."""


def _bounds(storage: ScalarType, low: int | None, high: int | None) -> tuple[int, int]:
    """The range of stored integers, by default all of the storage type. ValueError if it is not one within that."""
    if not storage.is_integer:
        raise ValueError(f"storage type {storage} is not an integer type")
    if not 2 <= storage.bits <= 64:
        raise ValueError(f"storage type {storage} has a width of {storage.bits}; quantized integers have 2 to 64 bits")
    low, high = storage.minimum if low is None else low, storage.maximum if high is None else high
    if not storage.minimum <= low < high <= storage.maximum:
        raise ValueError(f"storage range <{low}:{high}> is not a range within {storage}")
    return low, high


def _frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype)
    if array.flags.writeable:
        array = array.copy() if array is values else array
        array.flags.writeable = False
    return array


def scale_dtype(expressed: ScalarType) -> np.dtype:
    """The type in which scales are stored: the expressed type, where numpy has it."""
    return expressed.dtype if expressed.numpy else np.dtype(np.float64 if expressed.bits > 32 else np.float32)


def _scales(values: npt.ArrayLike, expressed: ScalarType) -> np.ndarray:
    """Scales rounded to the expressed type."""
    if expressed is bf16:
        from tflq.numerics.signless import bfloat16_bits, bfloat16_values

        return np.asarray(bfloat16_values(bfloat16_bits(values)), np.float32)
    return np.asarray(values, scale_dtype(expressed))


def unrepresentable_scales(scales: np.ndarray, expressed: ScalarType) -> np.ndarray:
    """Whether each scale is not 0 and finite, but would be 0 or infinite in the expressed type."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = _scales(scales, expressed)
    return (np.isfinite(scales) & ~np.isfinite(rounded)) | ((scales != 0) & (rounded == 0))


def _check_scales(scales: np.ndarray) -> None:
    if scales.size and not scales.min() >= 0:  # the least of what has a NaN is one
        index = int(np.flatnonzero(~(scales >= 0))[0])
        raise ValueError(f"scale {scales.flat[index]} of index {index} is not a number from 0 up")


def _check_zero_points(storage: ScalarType, zero_points: np.ndarray) -> None:
    outside = (zero_points < storage.minimum) | (zero_points > storage.maximum)
    if outside.any():
        raise ValueError(f"zero point {zero_points[outside].flat[0]} is outside {storage}")


class _Uniform:
    """A type whose fields are the arguments of its class, `__match_args__`."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]

    def replace(self, **changes: Any) -> Self:
        """A copy with other values of some fields, which are not checked."""
        return type(self)(**{name: getattr(self, name) for name in self.__match_args__} | changes)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({fields})"


class UniformQuantizedType(_Uniform):
    """Per-layer quantization: `!quant.uniform<i8<-127:127>:f32, 0.5:3>`."""

    __slots__ = ("expressed", "scale", "storage", "storage_max", "storage_min", "zero_point")
    __match_args__ = ("storage", "expressed", "scale", "zero_point", "storage_min", "storage_max")

    def __init__(
        self,
        storage: ScalarType,
        expressed: ScalarType,
        scale: float,
        zero_point: int,
        storage_min: int,
        storage_max: int,
    ) -> None:
        self.storage: Final = storage
        self.expressed: Final = expressed
        self.scale: Final = scale
        self.zero_point: Final = zero_point
        self.storage_min: Final = storage_min
        self.storage_max: Final = storage_max

    @property
    def _key(self) -> tuple[object, ...]:
        return self.storage, self.expressed, self.scale, self.zero_point, self.storage_min, self.storage_max

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def has_zero_point(self) -> bool:
        """Whether the zero point is another than 0."""
        return self.zero_point != 0

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest number of its storage type, less the zero point."""
        return self.storage.less(self.zero_point)

    @classmethod
    def of(
        cls,
        storage: ScalarType,
        scale: float,
        zero_point: int = 0,
        *,
        expressed: ScalarType = f32,
        storage_min: int | None = None,
        storage_max: int | None = None,
    ) -> UniformQuantizedType:
        """Checked constructor; `scale` is rounded to the expressed type. ValueError if an invariant is broken."""
        low, high = _bounds(storage, storage_min, storage_max)
        rounded = float(_scales(scale, expressed))
        if not rounded >= 0:
            _check_scales(_scales(scale, expressed))
        if not storage.minimum <= zero_point <= storage.maximum:
            _check_zero_points(storage, np.asarray(zero_point))
        return cls(storage, expressed, rounded, int(zero_point), low, high)


class _ManyScales(_Uniform):
    """A type with arrays of scales and zero points: it is compared and hashed by their bytes."""

    def __init__(
        self,
        storage: ScalarType,
        expressed: ScalarType,
        scales: np.ndarray,
        zero_points: np.ndarray,
        storage_min: int,
        storage_max: int,
    ) -> None:
        self.storage: Final = storage
        self.expressed: Final = expressed
        self.scales: Final = scales  # of the expressed type, read-only
        self.zero_points: Final = zero_points  # int64, of the same shape, read-only
        self.storage_min: Final = storage_min
        self.storage_max: Final = storage_max

    @cached_property
    def has_zero_point(self) -> bool:
        """Whether a zero point is another than 0."""
        return bool(self.zero_points.any())

    def _checked(self) -> Self:
        """The type. ValueError if a zero point is outside the storage type."""
        if self.has_zero_point:
            _check_zero_points(self.storage, self.zero_points)
        return self

    @cached_property
    def _key(self) -> tuple[object, ...]:
        fields = (getattr(self, name) for name in self.__match_args__)
        return tuple([(f.shape, f.tobytes()) if isinstance(f, np.ndarray) else f for f in fields])

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class UniformQuantizedPerAxisType(_ManyScales):
    """Per-axis quantization: `!quant.uniform<i8:f32:1, {2.0:10, 3.0:20}>`; one scale and zero point per index of
    `axis`."""

    __match_args__ = ("storage", "expressed", "axis", "scales", "zero_points", "storage_min", "storage_max")

    def __init__(
        self,
        storage: ScalarType,
        expressed: ScalarType,
        axis: int,
        scales: np.ndarray,
        zero_points: np.ndarray,
        storage_min: int,
        storage_max: int,
    ) -> None:
        super().__init__(storage, expressed, scales, zero_points, storage_min, storage_max)
        self.axis: Final = axis

    @classmethod
    def of(
        cls,
        storage: ScalarType,
        axis: int,
        scales: npt.ArrayLike,
        zero_points: npt.ArrayLike = 0,
        *,
        expressed: ScalarType = f32,
        storage_min: int | None = None,
        storage_max: int | None = None,
    ) -> UniformQuantizedPerAxisType:
        """Checked constructor; one zero point for all scales is allowed. ValueError if an invariant is broken."""
        low, high = _bounds(storage, storage_min, storage_max)
        scale = _frozen(_scales(scales, expressed) if expressed is bf16 else scales, scale_dtype(expressed))
        if scale.ndim != 1 or not scale.size:
            raise ValueError("per-axis scales are not a non-empty list")
        _check_scales(scale)
        zero = _frozen(zero_points, np.int64)
        if zero.size == 1:
            zero = _frozen(np.full(scale.shape, zero.reshape(())), np.int64)
        if zero.shape != scale.shape:
            raise ValueError(f"{zero.size} zero points for {scale.size} scales")
        checked = cls(storage, expressed, axis, scale, zero, low, high)._checked()
        if axis < 0:
            raise ValueError(f"axis {axis} is negative")
        return checked


class UniformQuantizedSubChannelType(_ManyScales):
    """Blockwise quantization: one scale and zero point per block of `block_sizes` along `axes`.

    `scales` and `zero_points` have one dim per dim of the tensor (the number of blocks along it).
    """

    __match_args__ = (
        *("storage", "expressed", "axes", "block_sizes", "scales", "zero_points"),
        *("storage_min", "storage_max"),
    )

    def __init__(
        self,
        storage: ScalarType,
        expressed: ScalarType,
        axes: tuple[int, ...],
        block_sizes: tuple[int, ...],
        scales: np.ndarray,
        zero_points: np.ndarray,
        storage_min: int,
        storage_max: int,
    ) -> None:
        super().__init__(storage, expressed, scales, zero_points, storage_min, storage_max)
        self.axes: Final = axes
        self.block_sizes: Final = block_sizes

    @classmethod
    def of(
        cls,
        storage: ScalarType,
        axes: tuple[int, ...],
        block_sizes: tuple[int, ...],
        scales: npt.ArrayLike,
        zero_points: npt.ArrayLike = 0,
        *,
        expressed: ScalarType = f32,
        storage_min: int | None = None,
        storage_max: int | None = None,
    ) -> UniformQuantizedSubChannelType:
        """Checked constructor. ValueError if an invariant is broken."""
        low, high = _bounds(storage, storage_min, storage_max)
        if len(axes) != len(block_sizes) or len(set(axes)) != len(axes):
            raise ValueError(f"axes {axes} and block sizes {block_sizes} do not pair")
        if any(a < 0 for a in axes) or any(b <= 0 for b in block_sizes):
            raise ValueError(f"axes {axes} or block sizes {block_sizes} out of range")
        scale = _frozen(_scales(scales, expressed), scale_dtype(expressed))
        _check_scales(scale)
        zero = np.broadcast_to(np.asarray(zero_points, np.int64), scale.shape)
        zero = _frozen(zero, np.int64)
        return cls(storage, expressed, tuple(axes), tuple(block_sizes), scale, zero, low, high)._checked()


class AnyQuantizedType:
    """Quantized, parameters not yet known: `!quant.any<i8<-16:7>:f32>`."""

    __slots__ = ("expressed", "storage", "storage_max", "storage_min")

    def __init__(self, storage: ScalarType, expressed: ScalarType | None, storage_min: int, storage_max: int) -> None:
        self.storage: Final = storage
        self.expressed: Final = expressed
        self.storage_min: Final = storage_min
        self.storage_max: Final = storage_max

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyQuantizedType) and (
            self.storage,
            self.expressed,
            self.storage_min,
            self.storage_max,
        ) == (other.storage, other.expressed, other.storage_min, other.storage_max)

    def __hash__(self) -> int:
        return hash((self.storage, self.expressed, self.storage_min, self.storage_max))

    def __repr__(self) -> str:
        ends = f"storage_min={self.storage_min}, storage_max={self.storage_max}"
        return f"AnyQuantizedType(storage={self.storage!r}, expressed={self.expressed!r}, {ends})"

    @classmethod
    def of(
        cls, storage: ScalarType, expressed: ScalarType | None, storage_min: int, storage_max: int
    ) -> AnyQuantizedType:
        """Checked constructor. ValueError if the range is not one within the storage type."""
        return cls(storage, expressed, *_bounds(storage, storage_min, storage_max))


LEAST_WIDTH: Final = 1e-6
"""Of a range of reals, from its minimum to its maximum, for which there are parameters."""


class CalibratedQuantizedType:
    """Statistics only: `!quant.calibrated<f32<-0.998:1.2321>>`."""

    __slots__ = ("expressed", "maximum", "minimum")

    def __init__(self, expressed: ScalarType, minimum: float, maximum: float) -> None:
        self.expressed: Final = expressed
        self.minimum: Final = minimum
        self.maximum: Final = maximum

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CalibratedQuantizedType) and (self.expressed, self.minimum, self.maximum) == (
            other.expressed,
            other.minimum,
            other.maximum,
        )

    def __hash__(self) -> int:
        return hash((self.expressed, self.minimum, self.maximum))

    def __repr__(self) -> str:
        return (
            f"CalibratedQuantizedType(expressed={self.expressed!r}, minimum={self.minimum!r}, maximum={self.maximum!r})"
        )

    @classmethod
    def of(cls, expressed: ScalarType, minimum: float, maximum: float) -> CalibratedQuantizedType:
        """Checked constructor; both ends are rounded to the expressed type. Where they are equal, as of a dead tensor,
        the range is widened to contain 0, and that of 0 alone to `LEAST_WIDTH`. ValueError unless they make a range."""
        low, high = _scales([minimum, maximum], expressed).tolist()
        if low == high:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = _scales([-LEAST_WIDTH / 2, LEAST_WIDTH / 2], expressed).tolist()
        if not low < high:
            raise ValueError(f"calibrated range <{minimum}:{maximum}> is empty")
        return cls(expressed, low, high)

    @property
    def storage(self) -> ScalarType:
        return self.expressed


class NoQuantizedType:
    """Not to be quantized, even where a quantized kernel is at hand: `!quant.none<f32>`."""

    __slots__ = ("expressed",)

    def __init__(self, expressed: ScalarType) -> None:
        self.expressed: Final = expressed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoQuantizedType) and self.expressed == other.expressed

    def __hash__(self) -> int:
        return hash(self.expressed)

    def __repr__(self) -> str:
        return f"NoQuantizedType(expressed={self.expressed!r})"

    @property
    def storage(self) -> ScalarType:
        return self.expressed


class FunctionType:
    """The types of a function's inputs and results, as its reference has them: `(tensor<3xi8>) -> tensor<3xi8>`."""

    __slots__ = ("inputs", "results")

    def __init__(self, inputs: tuple[TensorType, ...], results: tuple[TensorType, ...]) -> None:
        self.inputs: Final = inputs
        self.results: Final = results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionType) and (self.inputs, self.results) == (other.inputs, other.results)

    def __hash__(self) -> int:
        return hash((self.inputs, self.results))

    def __repr__(self) -> str:
        return f"FunctionType(inputs={self.inputs!r}, results={self.results!r})"

    @property
    def storage(self) -> ScalarType:
        return _REFERENCE


_REFERENCE = scalar_type("function", 0, "opaque", "")

QuantizedType: TypeAlias = UniformQuantizedType | UniformQuantizedPerAxisType | UniformQuantizedSubChannelType
ElementType: TypeAlias = (
    ScalarType | QuantizedType | AnyQuantizedType | CalibratedQuantizedType | NoQuantizedType | FunctionType
)


QUANTIZED_TYPES = (UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType)
"""The classes of `QuantizedType`."""


def is_quantized(element: ElementType) -> TypeGuard[QuantizedType]:
    """Whether `element` is a uniform quantized type (per-layer, per-axis or sub-channel)."""
    return isinstance(element, QUANTIZED_TYPES)


def is_float(element: ElementType) -> TypeGuard[ScalarType]:
    """Whether `element` is a plain floating-point type."""
    return isinstance(element, ScalarType) and element.is_float


def is_narrowed(element: ElementType) -> bool:
    """Whether a quantized type bounds stored integers more than its storage type does."""
    if isinstance(element, (ScalarType, CalibratedQuantizedType, NoQuantizedType, FunctionType)):
        return False
    return element.storage_min > element.storage.minimum or element.storage_max < element.storage.maximum


def element_storage(element: ElementType) -> ScalarType:
    """The plain type an element is stored as: the storage type of a quantized one, else the type itself."""
    return element if isinstance(element, ScalarType) else element.storage


class TensorType:
    """A tensor: `shape` (see `Shape`), its element type, and `storage`, the plain type that elements are stored as.
    Nothing changes one. It is a plain class, since a conversion makes thousands of them."""

    __slots__ = ("element", "shape", "storage")
    __match_args__ = ("shape", "element")

    def __init__(self, shape: Shape, element: ElementType) -> None:
        self.shape = shape
        self.element = element
        self.storage: ScalarType = element if isinstance(element, ScalarType) else element.storage

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self.shape == other.shape and self.element == other.element

    def __hash__(self) -> int:
        return hash((self.shape, self.element))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape!r}, element={self.element!r})"

    @property
    def quantized(self) -> bool:
        return isinstance(self.element, QUANTIZED_TYPES)

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def dims(self) -> tuple[int | None, ...]:
        """The shape; none also where not even the rank is known."""
        return self.shape or ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dims, of which open ones are 0; none where the rank is not known."""
        return tuple([dim or 0 for dim in self.shape or ()])

    @property
    def is_static(self) -> bool:
        """Whether the rank and every dim are known."""
        return self.shape is not None and None not in self.shape

    @property
    def size(self) -> int:
        """The number of elements, where an open dim and an unknown rank count as 1."""
        size = 1
        for dim in self.dims:
            size *= 1 if dim is None else dim
        return size

    def __str__(self) -> str:
        """The form in messages: `?x49x10x1xi8`; `qi8` for any quantized type stored in i8."""
        dims = "*x" if self.shape is None else "".join(f"{'?' if d is None else d}x" for d in self.shape)
        return f"{dims}{'q' if self.quantized else ''}{self.storage}"

    def with_element(self, element: ElementType) -> TensorType:
        return TensorType(self.shape, element)

    def stripped(self) -> TensorType:
        """A tensor of the storage type, without quantization."""
        return self if isinstance(self.element, ScalarType) else TensorType(self.shape, self.storage)

    def stored(self) -> TensorType:
        """`stripped`, of signless integers: the type that `quant.scast` casts to and from."""
        plain = self.stripped()
        return plain if plain.storage.kind != "uint" else plain.with_element(signless(plain.storage))


class BareType(TensorType):
    """A scalar outside any tensor, as the text form has them (`f32`, `!quant.uniform<i8:f32, 2.0>`); shape ()."""

    __slots__ = ()

    @classmethod
    def of(cls, element: ElementType) -> BareType:
        return cls((), element)

    def with_element(self, element: ElementType) -> TensorType:
        return BareType((), element)

    def stripped(self) -> TensorType:
        return self if isinstance(self.element, (ScalarType, FunctionType)) else BareType((), self.storage)


# Scales and zero points of quantized tensors as arrays that broadcast to them.


def parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of a quantized tensor, shaped to broadcast to it. The scale is float32, or float64 where
    that is expressed; the zero point is int32, or int64 where it is beyond that."""
    element, rank = type.element, type.rank
    precision = np.float64 if getattr(element, "expressed", None) == f64 else np.float32
    if isinstance(element, UniformQuantizedType):
        return np.asarray(element.scale, precision), _zeros(element.zero_point)
    if isinstance(element, UniformQuantizedPerAxisType) and rank is not None:
        view = [-1 if i == element.axis else 1 for i in range(element.axis, rank)]
        scales, zeros = element.scales.astype(precision, copy=False), _zeros(element.zero_points)
        return scales.reshape(view), zeros.reshape(view)
    if isinstance(element, UniformQuantizedSubChannelType):
        scales, zeros = element.scales.astype(precision, copy=False), _zeros(element.zero_points)
        for axis, size in zip(element.axes, element.block_sizes, strict=True):
            scales, zeros = np.repeat(scales, size, axis), np.repeat(zeros, size, axis)
        return scales, zeros
    raise UnsupportedError(f"a tensor of type {type} has no known scales")


def _zeros(points: npt.ArrayLike) -> np.ndarray:
    wide = np.asarray(points, np.int64)
    narrow = wide.astype(np.int32)
    return narrow if (narrow == wide).all() else wide
