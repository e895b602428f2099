"""A graph in the making: operators with results whose shapes follow from the inputs', as a converter states them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matrix.draw import Draw
from support.harness import const

from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ElementType, ScalarType, Shape, TensorType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.transforms.shape_inference import Inference

NONE = {"fused_activation_function": "NONE"}

Size = Value | int
"""A size that the graph computes (a scalar of int32), or a number."""


class Sketch:
    """Grows one function. `sizes` are those that the inputs state; `shape` tells what any tensor has with them."""

    def __init__(self, draw: Draw, storage: ScalarType, functions: list[Function]) -> None:
        self.draw, self.storage, self.functions = draw, storage, functions
        self.ops: list[Op] = []
        self.inputs: list[Value] = []
        self.sizes: dict[Value, tuple[int, ...]] = {}
        self._shapes: dict[Value, Shape] = {}

    def input(self, signature: Shape, sizes: tuple[int, ...], element: ElementType | None = None) -> Value:
        value = Value(TensorType(signature, element or self.element()), f"x{len(self.inputs)}", info={"shape": sizes})
        self.inputs.append(value)
        self.sizes[value] = sizes
        return value

    def element(self, scale: float = 0.05) -> UniformQuantizedType:
        zero = 0 if self.storage == i16 else self.draw.whole(-20, 20) + (128 if self.storage == ui8 else 0)
        return UniformQuantizedType.of(self.storage, float(np.float32(scale * self.draw.one(1, 1.3, 0.7))), zero)

    def op(self, name: str, operands: Sequence[Value | None], results: Sequence[ElementType], **options: Any) -> Op:
        """Any operator; of the version that `version` says."""
        version = options.pop("version", 1)
        values = [Value(TensorType(None, element), f"t{len(self.ops)}.{i}") for i, element in enumerate(results)]
        op = Op(f"tfl.{name}", list(operands), values, options, info={"version": version})
        self.ops.append(op)
        self._shapes = {}
        return op

    def emit(self, name: str, operands: Sequence[Value | None], element: ElementType, **options: Any) -> Value:
        return self.op(name, operands, [element], **options).result

    def shape(self, value: Value) -> tuple[int, ...]:
        """What a tensor is allocated with before anything is resized. ValueError if that is not known."""
        if value.is_constant:
            found: Shape = value.type.shape
        else:
            found = self.shapes(self.sizes).get(value)
        if found is None or None in found:
            raise ValueError(f"the shape of {value.name} is not known")
        return tuple(d or 0 for d in found)

    def shapes(self, sizes: dict[Value, Any]) -> dict[Value, Shape]:
        if sizes is not self.sizes:
            return Inference(self._module(), sizes).shapes
        if not self._shapes:
            inference = Inference(self._module(), sizes)
            if inference.misfits:
                raise ValueError(str(inference.misfits))
            self._shapes = inference.shapes
        return self._shapes

    def _module(self) -> Module:
        return Module([Function("main", self.inputs, [], self.ops), *self.functions[1:]])

    def drop(self, count: int) -> None:
        """Takes back all operators but the first `count`."""
        del self.ops[count:]
        self._shapes = {}

    # Sizes, as a converter computes them.

    def size_of(self, x: Value, wide: bool = False) -> Value:
        kind = i64 if wide else i32
        return self.emit("shape", [x], kind, out_type="INT64" if wide else "INT32")

    def dim(self, x: Value, axis: int) -> Value:
        """shape(x)[axis]."""
        masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"), 0)
        bounds = [self.ints(axis), self.ints(axis + 1), self.ints(1)]
        return self.emit("strided_slice", [self.size_of(x), *bounds], i32, **masks, shrink_axis_mask=1)

    def dims(self, x: Value, start: int, stop: int) -> Value:
        """shape(x)[start:stop]."""
        masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        bounds = [self.ints(start), self.ints(stop), self.ints(1)]
        return self.emit("strided_slice", [self.size_of(x), *bounds], i32, **dict.fromkeys(masks, 0))

    def ints(self, *values: int) -> Value:
        return const(np.asarray(values, np.int32), i32, f"c{len(self.ops)}")

    def number(self, value: Size) -> Value:
        """A scalar."""
        return value if isinstance(value, Value) else const(np.asarray(value, np.int32), i32, f"c{len(self.ops)}")

    def pack(self, *sizes: Size) -> Value:
        values = [self.number(size) for size in sizes]
        return self.emit("pack", values, i32, values_count=len(values), axis=0)

    def compute(self, name: str, a: Size, b: Size) -> Value:
        options: dict[str, Any] = dict(NONE) if name in ("add", "sub", "mul") else {}
        if name in ("add", "sub"):
            options["pot_scale_int16"] = False
        return self.emit(name, [self.number(a), self.number(b)], i32, **options)

    # What all layers share.

    def weights(self, *shape: int) -> Value:
        """Constants of the storage of weights."""
        stored = ui8 if self.storage == ui8 else i8
        zero = 120 if stored == ui8 else 0
        array = self.draw.rng.integers(-100, 100, shape) + (120 if stored == ui8 else 0)
        return const(array, UniformQuantizedType.of(stored, 0.01, zero), f"w{len(self.ops)}")

    def constant(self, *shape: int) -> Value:
        element = self.element()
        array = self.draw.rng.integers(-100, 100, shape) + (element.zero_point if self.storage == ui8 else 0)
        return const(array, element, f"k{len(self.ops)}")

    def bias(self, x: Value, weights: Value, count: int) -> Value:
        scale = float(np.float32(x.type.element.scale) * np.float32(weights.type.element.scale))  # type: ignore[union-attr]
        wide = i64 if self.storage == i16 else i32
        element = UniformQuantizedType.of(wide, scale)
        return const(self.draw.rng.integers(-3000, 3000, count), element, f"b{len(self.ops)}")

    def image(self, x: Value) -> bool:
        return x.type.quantized and len(self.shape(x)) == 4
