"""The elements of constants from text: `dense<...>`, `array<...>`; the counterpart of `print_elements`."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tflq.ir.attributes import Opaque, TypedArray
from tflq.ir.parse_types import TypeParser
from tflq.ir.print_types import type_text
from tflq.ir.syntax import SCALAR_OF_DTYPE
from tflq.ir.types import ElementType, ScalarType, TensorType, bf16
from tflq.numerics.bfloat16 import bfloat16_bits, bfloat16_values

__all__ = ["ElementParser"]

_RAW_ELEMENTS = re.compile(r"[^<>\"]*")
_TOKENS = re.compile(r"[\[\],]|[^\s\[\],]+")
_LARGEST = 1 << 31


class ElementParser(TypeParser):
    """A scanner that reads elements."""

    def array(self) -> TypedArray:
        """`array<i32: 1, 2>`"""
        self.word("array")
        self.expect("<")
        at = self.pos
        kind = self.scalar(at)
        raw = self.take(_RAW_ELEMENTS, "elements").strip().removeprefix(":").strip() if self.peek(":") else ""
        self.expect(">")
        tokens = [item.strip() for item in raw.split(",")] if raw else []
        return TypedArray.of(self._values(tokens, kind, at), kind)

    def dense(self) -> tuple[Any, TensorType | ElementType]:
        """`dense<...> : tensor<...>`: the unpacked elements and their type; a type that numpy has not by its text."""
        self.word("dense")
        start = self.pos
        self.expect("<")
        at = self.pos
        data = self.string_or_none()
        raw = "" if data is not None else self.take(_RAW_ELEMENTS, "elements")
        if not self.accept(">"):  # strings
            self.pos = start
            text = self.balanced()
            self.expect(":")
            kind = self.type()
            return Opaque(f"dense{text} : {type_text(kind)}"), kind
        self.expect(":")
        kind = self.type()
        if isinstance(kind, ScalarType) and kind.kind == "opaque":
            shown = self.text[start : self.text.index(">", start) + 1]
            return Opaque(f"dense{shown} : {type_text(kind)}"), kind
        if not isinstance(kind, TensorType) or not kind.is_static or not (kind.storage.numpy or kind.storage is bf16):
            self.fail("elements need a tensor type of known shape", at)
        array = self._array_of(kind, data, raw, at)
        element = kind.element
        if isinstance(element, ScalarType) and SCALAR_OF_DTYPE.get(array.dtype.str) is element:
            return array, kind
        return TypedArray.of(array, element, kind), kind

    def _array_of(self, kind: TensorType, data: str | None, raw: str, at: int) -> np.ndarray:
        shape, storage = tuple(dim or 0 for dim in kind.shape or ()), kind.storage
        dtype = np.dtype(np.uint16) if storage is bf16 else storage.dtype
        count = math.prod(shape)
        if data is not None:
            return self._from_hex(data, shape, storage, dtype, at)
        tokens = _TOKENS.findall(raw)
        if tokens and tokens[0] != "[":
            if len(tokens) != 1:
                self.fail("expected one element or a list", at)
            if count * dtype.itemsize > _LARGEST:
                self.fail("a constant is limited to 2 GiB", at)
            return np.full(shape, self._values(tokens, storage, at)[0], dtype)
        values = self._values([item for item in tokens if item not in "[],"], storage, at)
        if values.size != count or (count and self._nesting(tokens, at) != shape):
            self.fail(f"these elements are not in the shape of {'x'.join(map(str, shape)) or 'a scalar'}", at)
        return values.reshape(shape)

    def hexadecimal(self, text: str, at: int) -> bytes:
        """`0x` and digits."""
        if not text.startswith("0x"):
            self.fail("hexadecimal data starts with 0x", at)
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            self.fail("this is not hexadecimal data", at)

    def _from_hex(self, data: str, shape: tuple[int, ...], storage: ScalarType, dtype: np.dtype, at: int) -> np.ndarray:
        """The elements of bytes: as many each as their bits need."""
        raw = np.frombuffer(self.hexadecimal(data, at), np.uint8)
        size, count = max(1, -(-storage.bits // 8)), math.prod(shape)
        if raw.size == count * size != count * dtype.itemsize:
            wide = np.zeros((count, dtype.itemsize), np.uint8)
            wide[:, :size] = raw.reshape(count, size)
            if storage.signed:
                wide[:, size:] = np.where(wide[:, size - 1 : size] & 0x80, 0xFF, 0)
            raw = wide.reshape(-1)
        if raw.size != dtype.itemsize * count:
            self.fail(f"{raw.size} bytes are not what the type needs", at)
        return raw.view(dtype).reshape(shape)

    def _nesting(self, tokens: list[str], at: int) -> tuple[int, ...]:
        """The shape that the brackets give; they must be even."""
        stack: list[list[tuple[int, ...]]] = [[]]
        for item in tokens:
            if item == "[":
                stack.append([])
            elif item == "]":
                if len(stack) < 2:
                    self.fail("a bracket is closed that is not open", at)
                items = stack.pop()
                if len(set(items)) > 1:
                    self.fail("the lists in these elements have different lengths", at)
                stack[-1].append((len(items), *(items[0] if items else ())))
            elif item != ",":
                stack[-1].append(())
        if len(stack) != 1 or len(stack[0]) != 1:
            self.fail("a bracket is open that is not closed", at)
        return stack[0][0]

    def _values(self, tokens: list[str], kind: ScalarType, at: int) -> np.ndarray:
        try:
            if kind.kind == "bool":
                return np.array([{"true": True, "false": False, "1": True, "0": False}[t] for t in tokens], bool)
            if kind.is_float:
                floats = [self.float_bits(t, kind, at) if t.startswith("0x") else float(t) for t in tokens]
                return self._floats(floats, kind)
            numbers = [int(item, 0) for item in tokens]
            if kind.is_integer and any(not kind.minimum <= n <= kind.maximum for n in numbers):
                self.fail(f"an element is not within {kind}", at)
            return np.array(numbers, kind.dtype)
        except (KeyError, ValueError, OverflowError, TypeError):
            self.fail(f"these are not elements of {kind}", at)

    def _floats(self, values: list[float | np.floating], kind: ScalarType) -> np.ndarray:
        if kind is bf16:
            return bfloat16_bits(np.array(values, np.float64))
        out = np.empty(len(values), kind.dtype)
        for index, value in enumerate(values):
            out[index] = value
        return out

    def float_bits(self, text: str, kind: ScalarType, at: int) -> np.floating:
        """A float of the bits that a hexadecimal number gives."""
        if kind is bf16:
            found: np.floating = bfloat16_values(np.array([int(text, 16) & 0xFFFF], np.uint16))[0]
            return found
        if not kind.numpy:
            self.fail(f"a {kind} cannot be given by its bits", at)
        size = kind.dtype.itemsize
        bits: np.floating = np.array([int(text, 16) & ((1 << 8 * size) - 1)], f"u{size}").view(kind.dtype)[0]
        return bits

    def rounded(self, value: float, kind: ScalarType) -> float:
        """A number as a float type has it, if numpy has the type."""
        if kind is bf16:
            return float(bfloat16_values(bfloat16_bits(value)))
        with np.errstate(over="ignore"):
            return float(np.asarray(value, kind.dtype)) if kind.numpy else value
