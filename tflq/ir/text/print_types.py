"""Types, attributes and elements as text: MLIR's builtin ones, and the `!quant` types of the `quant` dialect; constants
of a module: their elements where they are used, the table of buffers, and resources.
"""

from __future__ import annotations

import math
from binascii import b2a_hex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tflq.ir.attributes import AffineMap, Opaque, TypedArray, TypedFloat, TypedInt, TypedString
from tflq.ir.module import Module
from tflq.ir.ops import NO_DATA, Buffer, Value
from tflq.ir.text.lexer import BARE_KEY, INLINE_LIMIT, SCALAR_OF_DTYPE, Symbol, bits_text, float_text, quote
from tflq.ir.types import (
    AnyQuantizedType,
    BareType,
    CalibratedQuantizedType,
    ElementType,
    FunctionType,
    NoQuantizedType,
    QuantizedType,
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    bf16,
    element_storage,
    i1,
    index,
    scale_dtype,
)
from tflq.numerics.signless import bfloat16_bits, bfloat16_values, packed

ALIAS_FROM = 9
"""A quantized type with at least so many scales is written once, as an alias."""


class TypePrinter:
    """Prints types and remembers their texts. With `aliases`, types with many scales get one (`!q0`)."""

    def __init__(self, *, aliases: bool = True) -> None:
        self.aliases: dict[ElementType, str] = {}
        self._use_aliases = aliases
        self._texts: dict[TensorType | ElementType, str] = {}

    def alias_lines(self) -> list[str]:
        """The definitions of the aliases used so far."""
        return [f"{name} = {_element(element)}" for element, name in self.aliases.items()]

    def text(self, type: TensorType | ElementType) -> str:
        known = self._texts.get(type)
        if known is None:
            known = self._texts[type] = self._text(type)
        return known

    def _text(self, type: TensorType | ElementType) -> str:
        if isinstance(type, BareType):
            return self.text(type.element)
        if isinstance(type, TensorType):
            return f"tensor<{_dims(type.shape)}{self.text(type.element)}>"
        if isinstance(type, FunctionType):
            inputs, results = (", ".join(map(self.text, side)) for side in (type.inputs, type.results))
            plain = len(type.results) == 1 and not isinstance(type.results[0].element, FunctionType)
            return f"({inputs}) -> {results if plain else f'({results})'}"
        if self._use_aliases and _scale_count(type) >= ALIAS_FROM:
            return self.aliases.setdefault(type, f"!q{len(self.aliases)}")
        return _element(type)


def _scale_count(type: ElementType) -> int:
    many = (UniformQuantizedPerAxisType, UniformQuantizedSubChannelType)
    return type.scales.size if isinstance(type, many) else 0


def type_text(type: TensorType | ElementType) -> str:
    """A type on its own, without aliases."""
    return TypePrinter(aliases=False).text(type)


def _dims(shape: Shape) -> str:
    return "*x" if shape is None else "".join("?x" if dim is None else f"{dim}x" for dim in shape)


def _element(type: ElementType) -> str:
    if isinstance(type, ScalarType):
        return type.name
    if isinstance(type, FunctionType):
        return type_text(type)
    if isinstance(type, CalibratedQuantizedType):
        low, high = (float_text(_expressed(end, type.expressed)) for end in (type.minimum, type.maximum))
        return f"!quant.calibrated<{type.expressed.name}<{low}:{high}>>"
    if isinstance(type, NoQuantizedType):
        return f"!quant.none<{type.expressed.name}>"
    if isinstance(type, AnyQuantizedType):
        expressed = "" if type.expressed is None else f":{type.expressed.name}"
        return f"!quant.any<{_storage(type)}{expressed}>"
    head = f"!quant.uniform<{_storage(type)}:{type.expressed.name}"
    if isinstance(type, UniformQuantizedType):
        return f"{head}, {_pair(_expressed(type.scale, type.expressed), type.zero_point)}>"
    if isinstance(type, UniformQuantizedPerAxisType):
        pairs = map(_pair, type.scales, type.zero_points.tolist())
        return f"{head}:{type.axis}, {{{', '.join(pairs)}}}>"
    blocks = ", ".join(f"{axis}:{size}" for axis, size in zip(type.axes, type.block_sizes, strict=True))
    return f"{head}:{{{blocks}}}, {_nested_pairs(type.scales, type.zero_points)}>"


def _expressed(value: float, expressed: ScalarType) -> np.floating:
    """A number rounded to the expressed type."""
    scalar: np.floating = np.float64(value).astype(scale_dtype(expressed))
    return scalar


def _storage(type: QuantizedType | AnyQuantizedType) -> str:
    """The storage type, with its range if that is narrowed. `u8` is what is `ui8` elsewhere."""
    storage = type.storage
    name = f"u{storage.name[2:]}" if storage.kind == "uint" else storage.name
    full = (type.storage_min, type.storage_max) == (storage.minimum, storage.maximum)
    return name if full else f"{name}<{type.storage_min}:{type.storage_max}>"


def _pair(scale: np.floating, zero_point: int) -> str:
    return f"{float_text(scale)}:{zero_point}" if zero_point else float_text(scale)


def _nested_pairs(scales: np.ndarray, zero_points: np.ndarray) -> str:
    item: Callable[..., str] = _nested_pairs if scales.ndim > 1 else _pair
    return f"{{{', '.join(item(s, z) for s, z in zip(scales, zero_points, strict=True))}}}"


# Attributes as text.
#
# MLIR's builtin attributes where there are such: integers, floats, strings, booleans, `unit` for None, lists,
# dictionaries, types, `dense<...>` for arrays (of at most `INLINE_LIMIT` elements, else hexadecimal). tflq's own are
# `#tflq.bytes<"0x..">`, `#tflq.tuple<[...]>`, `#tflq.scalar<dense<..>>` for numpy scalars, `#tflq.value<"%0">`.
#
# In the standard form single floats are bits, listed ones have nine digits, or all are bits if one is not finite. Up to
# `LISTED` elements are listed; of i1, whose digits differ between versions of MLIR, and of index all are.

LISTED: Final = 16
"""The standard form lists up to so many elements."""
_LARGE: Final = 1 << 10
"""The text of an array with at least so many elements is not copied into that of its op."""
_PIECE: Final = 1 << 18
"""Elements that are compared, or written, at a time."""

_TYPES = (
    *(TensorType, ScalarType, UniformQuantizedType, UniformQuantizedPerAxisType, UniformQuantizedSubChannelType),
    *(AnyQuantizedType, CalibratedQuantizedType, NoQuantizedType, FunctionType),
)


@dataclass(eq=False)
class AttributePrinter:
    """Prints attributes. name: gives the SSA name of a value that an attribute refers to. standard: use the standard
    form."""

    types: TypePrinter
    name: Callable[[Value], str] | None = None
    standard: bool = False

    def text(self, value: Any) -> str:
        """The text of an attribute. TypeError if it has none."""
        if value is None:
            return "unit"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (TypedInt, TypedFloat, TypedString)):
            return f"{self._plain(value)} : {self.types.text(value.type)}"
        if isinstance(value, str):
            return _symbol(value) if isinstance(value, Symbol) else quote(value)
        if isinstance(value, np.generic):
            return f"#tflq.scalar<{self._array(np.asarray(value))}>"
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return float_text(value) if np.isfinite(value) else f"{float_text(value)} : f64"
        return self._compound(value)

    def _compound(self, value: Any) -> str:
        if isinstance(value, TypedArray) and value.element is not None:
            return self._typed_array(value, value.element)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, (AffineMap, Opaque)):
            return value.text
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f'#tflq.bytes<"0x{bytes(value).hex()}">'
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, tuple):
            return f"#tflq.tuple<[{', '.join(map(self.text, value))}]>"
        if isinstance(value, Mapping):
            return self.dictionary(value)
        if isinstance(value, _TYPES):
            return self.types.text(value)
        if isinstance(value, Value) and self.name is not None:
            return f"#tflq.value<{quote(self.name(value))}>"
        raise TypeError(f"the text form has no attribute for a {type(value).__name__}")

    def _array(self, array: np.ndarray) -> str:
        scalar = SCALAR_OF_DTYPE.get(array.dtype.str)
        if scalar is None:
            raise TypeError(f"the text form has no attribute for an array of {array.dtype}")
        return "".join(self._dense(array, scalar, TensorType(array.shape, scalar)))

    def _typed_array(self, array: TypedArray, element: ElementType) -> str:
        if array.type is not None:
            return "".join(self._dense(array, element, array.type))
        data = _readable(array, element)
        items = map(_literal, data) if data.dtype.kind == "f" else (str(item).lower() for item in data.tolist())
        literals = f": {', '.join(items)}" if array.size else ""
        return f"array<{self.types.text(element)}{literals}>"

    def _dense(self, array: np.ndarray, element: ElementType, type: TensorType) -> Iterator[str]:
        """`dense<...> : type`, in pieces."""
        data, storage = np.asarray(array), element_storage(element)
        shown = _standard_elements(data, storage) if self.standard else elements_text(_readable(data, element))
        if shown is None:
            yield 'dense<"0x'
            flat = data.reshape(-1)
            for at in range(0, flat.size, _PIECE):
                yield b2a_hex(_narrow(flat[at : at + _PIECE], storage).data).decode("ascii")
            yield f'"> : {self.types.text(type)}'
        else:
            yield f"dense<{shown}> : {self.types.text(type)}"

    def large(self, items: Mapping[str, Any]) -> tuple[str, Iterator[str]] | None:
        """The name and the elements, in pieces, of a large array that is all a dictionary has; else None."""
        (key, array), *others = items.items()
        if others or not isinstance(array, TypedArray) or array.size < _LARGE or not (array.element and array.type):
            return None
        return key, self._dense(array, array.element, array.type)

    def dictionary(self, items: Mapping[str, Any]) -> str:
        """`{key = value, flag}`; the value of a flag is None."""
        return f"{{{', '.join(self._entry(key, value) for key, value in items.items())}}}"

    def _entry(self, key: str, value: Any) -> str:
        name = key if BARE_KEY.fullmatch(key) else quote(key)
        return name if value is None else f"{name} = {self.text(value)}"

    def _plain(self, value: TypedInt | TypedFloat | TypedString) -> str:
        if isinstance(value, TypedInt):
            return int.__repr__(value)
        if isinstance(value, TypedString):
            return quote(value)
        return float_literal(float(value), value.type, bits=self.standard)


def float_literal(value: float, type: TensorType | ElementType, *, bits: bool = False) -> str:
    """A float of a type: the shortest decimal that reads back the same, or its bits if it is not finite or `bits`."""
    if type is bf16:
        decimal = np.isfinite(value) and not bits
        return float_text(np.float32(value)) if decimal else f"0x{int(bfloat16_bits(value)):04X}"
    dtype = type.dtype if isinstance(type, ScalarType) and type.numpy else np.dtype(np.float64)
    return bits_text(dtype.type(value)) if bits else float_text(dtype.type(value))


def _symbol(name: str) -> str:
    return f"@{name}" if BARE_KEY.fullmatch(name) else f"@{quote(name)}"


def _readable(array: np.ndarray, element: ElementType) -> np.ndarray:
    """Elements as numbers: bf16, which is stored as bits, as float32."""
    return bfloat16_values(np.asarray(array)) if element_storage(element) is bf16 else np.asarray(array)


def _narrow(array: np.ndarray, storage: ScalarType) -> np.ndarray:
    """The bytes of elements; each takes as many as the bits of its type need. ValueError if one needs more."""
    size = max(1, -(-storage.bits // 8))
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    if 1 < size < array.itemsize and ((array < storage.minimum) | (array > storage.maximum)).any():
        raise ValueError(f"a constant does not fit {storage}")
    return np.ascontiguousarray(data[:, :size])


def elements_text(array: np.ndarray) -> str | None:
    """The elements, nested like the shape; only one of them if they are all equal; None if they are too many."""
    if array.dtype.kind not in "biuf":
        return None
    if array.size > 1 and _is_splat(array):
        return _literal(array.flat[0])
    if array.size > INLINE_LIMIT:
        return None
    if not array.size:
        return ""
    if array.dtype.kind in "iu":
        return str(array.tolist())
    return _nested_elements(array)


def _standard_elements(array: np.ndarray, storage: ScalarType) -> str | None:
    """`elements_text` in the standard form. Elements of a float type that numpy does not have are bits."""
    if array.size > 1 and _is_splat(array):
        array = array.reshape(-1)[0]
    elif array.size > LISTED and storage not in (i1, index):
        return None
    if not storage.is_float:
        return str(array.tolist()).lower()
    flat = array.reshape(-1)
    if storage.numpy and np.isfinite(flat).all():
        numbers = [f"{number:.8e}" for number in flat.tolist()]
    else:
        numbers = [bits_text(number) for number in flat]
    return str(np.array(numbers, object).reshape(array.shape).tolist()).replace("'", "")


def _is_splat(array: np.ndarray) -> bool:
    bits, pieces = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}"), range(0, array.size, _PIECE)
    return bool(bits[0] == bits[-1]) and all((bits[at : at + _PIECE] == bits[0]).all() for at in pieces)


def _nested_elements(array: np.ndarray) -> str:
    return f"[{', '.join(map(_nested_elements, array))}]" if array.ndim else _literal(array.flat[0])


def _literal(value: np.generic) -> str:
    return float_text(value) if isinstance(value, np.floating) else str(value.item()).lower()


# Types, constants and attributes as short texts for people. Long ones are cut off.

SHOWN = 16
"""Elements of an array or a list that are shown."""


def shape_text(type: TensorType) -> str:
    """`int8[1,24,24,3]`, open dims as ?, an unknown rank as *."""
    dims = "*" if type.shape is None else ",".join("?" if dim is None else str(dim) for dim in type.shape)
    return f"{_dtype(type)}[{dims}]"


def quantization(element: ElementType) -> Mapping[str, str]:
    """The visible parameters of an element type; empty for a plain one. `quantization` is a key of Model Explorer:
    a formula for each scale."""
    if isinstance(element, UniformQuantizedType):
        shown = {"quantization": _formula(element.scale, element.zero_point)}
    elif isinstance(element, UniformQuantizedPerAxisType):
        pairs = zip(element.scales.tolist(), element.zero_points.tolist(), strict=True)
        formulas = [_formula(scale, zero) for scale, zero in pairs]
        shown = {"quantization": ",".join(formulas), "quantized_dimension": str(element.axis)}
    elif isinstance(element, UniformQuantizedSubChannelType):
        blocks = ", ".join(
            f"{size} of axis {axis}" for axis, size in zip(element.axes, element.block_sizes, strict=True)
        )
        return {"block_sizes": blocks, "scales": attribute_text(element.scales)}
    elif isinstance(element, CalibratedQuantizedType):
        return {"calibrated": f"{element.minimum:g} to {element.maximum:g}"}
    else:
        return {}
    storage = element.storage
    if (element.storage_min, element.storage_max) != (storage.minimum, storage.maximum):
        shown["storage_range"] = f"{element.storage_min} to {element.storage_max}"
    return shown


def constant_text(value: Value) -> str:
    """The first elements of a constant; nothing for a type that numpy does not have, such as strings."""
    if not value.is_constant or not value.type.storage.numpy:
        return ""
    return attribute_text(value.array)


def attribute_text(value: Any) -> str:
    """An attribute for people; a long one is cut off, and its length is said."""
    if isinstance(value, np.ndarray):
        text = ", ".join(_number(item) for item in value.reshape(-1)[:SHOWN].tolist())
        return f"[{text}]" if value.size <= SHOWN else f"[{text}, …] ({'×'.join(map(str, value.shape))})"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(attribute_text, value[:SHOWN]))
        return f"[{text}]" if len(value) <= SHOWN else f"[{text}, …] ({len(value)})"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {attribute_text(item)}" for name, item in value.items())
    if isinstance(value, Value):
        return value.name
    return _number(value)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _formula(scale: float, zero: int) -> str:
    """The real value that a stored integer q stands for."""
    shown = f"{scale:.9g}"
    return f"{shown} * q" if not zero else f"{shown} * (q {'-' if zero > 0 else '+'} {abs(zero)})"


def _dtype(type: TensorType) -> str:
    storage = type.storage
    if storage.is_integer:
        return f"{'int' if storage.signed else 'uint'}{storage.bits}"
    return storage.numpy or storage.name.removeprefix("!tfl.")


SMALL_BLOB = 64
"""A buffer of up to so many bytes that no constant shows is written in the table itself."""


class ConstantPrinter:
    """Of one module.

    keys: the number of each buffer that has a row in the table. shown: those whose data the body has. resources: those
    that it names.
    """

    def __init__(self, module: Module, types: TypePrinter, elide: bool) -> None:
        self.module = module
        self.types = types
        self.elide = elide
        self.resources: dict[str, Buffer] = {}
        self.shown: set[Buffer] = set()
        self.also_elsewhere: set[Buffer] = set()
        self.keys = self._numbered()

    def _numbered(self) -> dict[Buffer, int]:
        """A number for each buffer of the table, and for others that the line of a constant cannot hold."""
        keys: dict[Buffer, int] = {}
        for number, buffer in enumerate(self.module.buffers):
            keys.setdefault(buffer, number)
        seen: set[Buffer] = set()
        following = len(self.module.buffers)
        for buffer, fits_line in self._uses():
            if not fits_line:
                self.also_elsewhere.add(buffer)
            if buffer in keys:
                continue
            if buffer in seen or not fits_line or buffer.external is not None:
                keys[buffer] = following
                following += 1
            seen.add(buffer)
        return keys

    def _uses(self) -> Iterator[tuple[Buffer, bool]]:
        for function in self.module.functions:
            arguments = set(function.inputs)
            for value in dict.fromkeys((*function.values(), *function.tensors)):
                if value.buffer is not None:
                    yield value.buffer, value not in arguments and is_data(value)
        for entry in self.module.metadata or []:
            yield entry.buffer, False

    def rows(self) -> list[Any]:
        """The table: those of the module, then others with a key."""
        extra = [buffer for buffer, key in self.keys.items() if key >= len(self.module.buffers)]
        return [self._row(index, buffer) for index, buffer in enumerate((*self.module.buffers, *extra))]

    def _row(self, index: int, buffer: Buffer) -> Any:
        if self.keys[buffer] != index:
            return self.keys[buffer]
        data: Any = None
        if buffer not in self.shown or buffer in self.also_elsewhere or buffer.data is NO_DATA:
            small = buffer.data.size <= SMALL_BLOB
            data = buffer.data.tobytes() if small else Symbol(self.resource(buffer))
        extra: dict[str, Any] = {} if buffer.external is None else {"external": buffer.external}
        if data == b"" and buffer.data is not NO_DATA:
            extra["empty"] = True
        return {"data": data, **extra} if extra else data

    def resource(self, buffer: Buffer) -> str:
        """The name of the resource that holds a buffer's bytes."""
        if self.elide:
            return "__elided__"
        key = self.keys.get(buffer)
        name = f"c{len(self.resources)}" if key is None else f"b{key}"
        self.resources[name] = buffer
        return name

    def section(self) -> list[str]:
        """The lines after the module that hold what its resources name."""
        if not self.resources:
            return []
        blobs = ((name, buffer.data.tobytes().hex()) for name, buffer in self.resources.items())
        entries = ",\n".join(f'      {name}: "0x04000000{data}"' for name, data in blobs)
        return ["", "{-#", "  dialect_resources: {", "    builtin: {", entries, "    }", "  }", "#-}"]

    def literal(self, value: Value) -> str:
        """A scalar's value and type: `2.0 : f32`"""
        buffer, storage = value.buffer, value.type.storage
        assert buffer is not None
        self.shown.add(buffer)
        if storage.kind == "bool":
            return "true" if value.array else "false"
        number = _values(value).reshape(()).item()
        shown = float_literal(number, storage) if storage.is_float else str(number)
        return f"{shown} : {storage.name}"

    def elements(self, value: Value, *, signless: bool = False) -> str:
        """`dense<...> : type`. signless: print quantized unsigned storage as bits, as MLIR does."""
        buffer, stored = value.buffer, value.type.stripped()
        if signless and value.type.quantized and value.type.storage.bits >= 8:
            stored = value.type.stored()
            value = Value(stored, buffer=buffer)
        assert buffer is not None
        plain = TensorType(stored.shape, stored.element) if isinstance(stored, BareType) else stored
        self.shown.add(buffer)
        shown = inline(value)
        if shown is not None:
            return f"dense<{shown}> : {self.types.text(plain)}"
        name = self.resource(buffer)
        return f"dense_resource<{name}> : {self.types.text(plain)}"


def is_constant(value: Value) -> bool:
    """Whether a value is a constant, whatever its data."""
    return value.producer is None and value.buffer is not None


def _values(value: Value) -> np.ndarray:
    """The elements of a constant, bf16 as float32."""
    if value.type.storage is not bf16:
        return value.array
    assert value.buffer is not None
    return bfloat16_values(value.buffer.data.view(np.uint16)).reshape(value.type.sizes)


def is_data(value: Value) -> bool:
    """Whether a value is printed with its data: a constant, or a value whose data does not fit its type."""
    return value.producer is None and value.buffer is not None and (value.buffer.data.size > 0 or value.is_constant)


def inline(value: Value) -> str | None:
    """The elements of a constant, if they are few and reading them gives the same bytes."""
    buffer, storage, shape = value.buffer, value.type.storage, value.type.shape
    if buffer is None or shape is None or None in shape or not (storage.numpy or storage is bf16):
        return None
    count = math.prod(dim or 0 for dim in shape)
    if storage is bf16:
        return elements_text(_values(value)) if buffer.data.size == 2 * count else None
    if storage.bits < 8:
        fits = count <= INLINE_LIMIT and buffer.data.size == -(-count // (8 // storage.bits))
        same = fits and np.array_equal(packed(value.array, storage.bits), buffer.data)
        return elements_text(value.array) if same else None
    if buffer.data.size != count * storage.dtype.itemsize:
        return None
    if storage.kind == "bool" and (buffer.data > 1).any():
        return None
    return elements_text(value.array)
