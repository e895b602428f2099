"""Requantization of a program in C, tried on sums of this module's choice.

A result of a product is a function of its sum, for each channel, and few inputs reach few of its steps: a multiplier
that is wrong by 2^-15 of itself changes one result in a thousand. So a program that is compiled with the hook of sums
computes its first row of results once more for each row of sums that stands in for its own. The interpreter runs the
operator, and those that the program computes along with it, on the same sums: as biases beside weights of 0.

The rows have all sums of which a result is the last of its level or the first of the next, and both ends of what the
weights can sum up to. A requantization does not fall, so one that is equal there is equal everywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tflq.dialects.tfl import activation, arithmetic, casts
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from tflq.formats.sources import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)
from tflq.tools.verify.compiled import CompiledSource, SumsRun
from tflq.tools.verify.model_file import entry_of
from tflq.tools.verify.tflite_runner import TfliteRunner

_Product: TypeAlias = Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv
_PRODUCTS: Final = (Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv)
_ELEMENTWISE: Final = (
    *(arithmetic.Add, arithmetic.Sub, arithmetic.Mul, arithmetic.Extreme),
    *(activation.ScaledActivation, activation.HardSwish, activation.Logistic, activation.Tanh, casts.Quantize),
)
_LEVELS: Final = 256
"""Levels of a result that are tried, at most."""
_BETWEEN: Final = 32
"""Sums tried besides, at even distances."""
_FILLS: Final = ("random", "least", "most")
"""Values of what is added to sums."""
_POINT: Final = {"stride_h": 1, "stride_w": 1, "padding": "VALID"}
_WINDOW: Final = _POINT | {"dilation_h_factor": 1, "dilation_w_factor": 1}


def try_sums(
    a: TfliteRunner, b: CompiledSource, key: str, inputs: Sequence[np.ndarray], timeout: float
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name of each result that is tried, and what the program and the interpreter compute: [runs, loops, rows,
    channels]. inputs: arrays in the shapes of the entry's inputs. RunError if either does not run."""
    entry, graph = entry_of(a.file, key)
    stored = b.names(key)
    chosen = list(trials(a.path, entry.graph, b.single(key), stored))
    operands = {name: value for each in chosen for name, value in each.operands.items()}
    names = [graph.tensor(t).name for _, t in entry.inputs]
    shapes = {name: b.shape_of(key, name) for name in operands if name in stored}  # without the open dims of the file
    shapes |= {name: array.shape for name, array in zip(names, inputs, strict=True)}
    runs, every = [], []
    sums = {each.tensor: each.sums for each in chosen}
    for fill in _FILLS if operands else _FILLS[:1]:
        rows = {name: _filled(v.type.sizes[-1:], v.type.storage.dtype, fill) for name, v in operands.items()}
        whole = {name: np.resize(row, shapes[name]) for name, row in rows.items()}
        inner = {name: _stored_as(array, b.type_of(key, name)) for name, array in whole.items() if name in stored}
        arrays = [
            whole[name] if name in whole else _filled(array.shape, array.dtype, fill)
            for name, array in zip(names, inputs, strict=True)
        ]
        every.append(rows)
        runs.append(SumsRun(arrays, inner, sums))
        sums = {each.tensor: each.sums for each in chosen if each.operands}
    results = b.try_sums(key, runs) if chosen else []
    for each in chosen:
        pairs = [*zip(every, results, strict=True)][: None if each.operands else 1]
        if all(each.tensor in tried for _, tried in pairs):
            got = np.stack([tried[each.tensor] for _, tried in pairs])
            want = np.stack([each.results(a, rows, timeout) for rows, _ in pairs])[:, None]
            yield each.tensor, got, np.broadcast_to(want, got.shape)


def _filled(shape: Sequence[int], dtype: np.dtype, fill: str) -> np.ndarray:
    """Elements that are the same integers at each call: random, or all of them one end of the type's range."""
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        return np.zeros(shape, dtype)
    ends = np.iinfo(dtype)
    if fill == "random":
        return np.random.default_rng(1).integers(ends.min, ends.max, shape, dtype, endpoint=True)
    return np.full(shape, ends.min if fill == "least" else ends.max, dtype)


def _stored_as(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array as a program stores it, which has inner uint8 as int8."""
    return (array ^ 128).view(np.int8) if array.dtype == np.uint8 and dtype == "int8" else array


class Trial(NamedTuple):
    """An operator result that is tried. sums: [rows, channels]. operands: by name, tensors of which what follows
    the product reads a row of channels. chain: the product, and what follows it, in order."""

    tensor: str
    sums: np.ndarray
    operands: Mapping[str, Value]
    chain: Sequence[Op]

    def results(self, beside: TfliteRunner, rows: Mapping[str, np.ndarray], timeout: float) -> np.ndarray:
        """Results of the interpreter: [rows, channels]. rows: of the operands. RunError if it does not run."""
        with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
            path = Path(folder, "sums.tflite")
            data, x = _Model(self.chain, self.sums).file(self.operands)
            path.write_bytes(data)
            del data
            runner = TfliteRunner(str(path), beside.resolver, timeout, beside)
            try:
                shape = (*x.shape[:-1], self.sums.size)
                further = [np.tile(rows[name], len(self.sums)).reshape(shape) for name in self.operands]
                return runner.run("", [x, *further])[0].reshape(self.sums.shape)
            finally:
                runner.close()


def trials(path: str, graph: int, tensors: Collection[str], stored: Collection[str]) -> Iterator[Trial]:
    """The trials of a model's graph: of those of the tensors whose results follow from one product with known weights.
    stored: names of tensors that the program has in memory, and does not compute along with others."""
    function = read(path).functions[graph]
    sources = {*stored, *(v.name for v in function.inputs)}
    for op in function.ops:
        if op.results and op.results[0].name in tensors:
            chain: list[Op] = []
            operands: dict[str, Value] = {}
            if _follow(op, sources, chain, operands):
                products = [each for each in chain if isinstance(each, _PRODUCTS)]
                if len(products) == 1 and _is_known(products[0], [*chain, *operands.values()]):
                    sums = _sums(products[0])
                    if _are_repeated(chain, operands.values(), sums.shape[1]):
                        yield Trial(op.results[0].name, sums, operands, chain)


def _follow(op: Op | None, sources: Collection[str], chain: list[Op], operands: dict[str, Value]) -> bool:
    """Whether an operator is computed from sums and stored operands alone. Enters these, and all operators in order."""
    if isinstance(op, _PRODUCTS):
        chain.append(op)
        return True
    if not isinstance(op, _ELEMENTWISE):
        return False
    for value in op.present_operands:
        if value.is_constant:
            continue
        if value.name in sources:
            if value.type.shape != op.results[0].type.shape:
                return False
            operands[value.name] = value
        elif not _follow(value.producer, sources, chain, operands):
            return False
    chain.append(op)
    return True


def _is_known(product: _Product, around: Sequence[Op | Value]) -> bool:
    """Whether weights and bias are constants, and all else is integers. around: operators, and what they read."""
    values = [each if isinstance(each, Value) else each.results[0] for each in around]
    weights, bias = _weights(product), product.bias
    return (
        all(isinstance(v.type.element, UniformQuantizedType) for v in (product.input, product.results[0]))
        and all(v.type.storage in (i8, ui8, i16) for v in (product.input, *values))
        and weights.is_constant
        and isinstance(weights.type.element, (UniformQuantizedType, UniformQuantizedPerAxisType))
        and weights.type.storage in (i8, ui8)
        and (bias is None or bias.is_constant)
    )


def _weights(product: _Product) -> Value:
    return product.weights if isinstance(product, FullyConnected) else product.filter


def _axis(product: _Product) -> int:
    """The dim of the weights that counts channels of the result."""
    return 3 if isinstance(product, DepthwiseConv2D) else 0


def _bias_element(product: _Product) -> ElementType:
    """The element type of the bias; where there is none, of one as kernels take it, at the scale of the products."""
    if product.bias is not None:
        return product.bias.type.element
    x, element = product.input.type.element, _weights(product).type.element
    assert isinstance(x, UniformQuantizedType)
    storage = i64 if x.storage == i16 else i32
    if isinstance(element, UniformQuantizedPerAxisType):
        return UniformQuantizedPerAxisType.of(storage, 0, element.scales * x.scale)
    assert isinstance(element, UniformQuantizedType)
    return UniformQuantizedType.of(storage, float(np.float32(element.scale * x.scale)))


def _sums(product: _Product) -> np.ndarray:
    """The sums to try, for each channel."""
    x: Any = product.input.type.element
    y: Any = product.results[0].type.element
    element: Any = _weights(product).type.element
    each = isinstance(element, UniformQuantizedPerAxisType)
    scales = element.scales.astype(np.float64) if each else np.asarray([element.scale])
    zeros = element.zero_points if each else np.asarray([element.zero_point])
    weights = np.moveaxis(_weights(product).array, _axis(product), 0).astype(np.int64)
    weights = weights.reshape(len(weights), -1) - zeros.reshape(-1, 1)
    least, most = x.storage.minimum - x.zero_point, x.storage.maximum - x.zero_point
    bias = 0 if product.bias is None else product.bias.array.astype(np.int64)
    low = np.where(weights > 0, weights * least, weights * most).sum(1) + bias
    high = np.where(weights > 0, weights * most, weights * least).sum(1) + bias
    levels = np.unique(np.linspace(y.storage.minimum, y.storage.maximum, _LEVELS).round())
    with np.errstate(divide="ignore", over="ignore"):  # a scale of 0 gives sums that are clipped
        ends = np.floor((levels.reshape(-1, 1) + 0.5 - y.zero_point) / (x.scale * scales / y.scale))
    if x.storage != i16:  # what kernels sum up in int32
        low, high = (np.clip(end, i32.minimum, i32.maximum) for end in (low, high))
    rows = [*(ends + n for n in (-1, 0, 1, 2)), np.linspace(low, high, _BETWEEN).round()]
    return np.concatenate([np.clip(row, low, high) for row in rows]).astype(np.int64 if x.storage == i16 else np.int32)


def _are_repeated(chain: Sequence[Op], operands: Collection[Value], channels: int) -> bool:
    """Whether all constants that operators read besides those of the product have one element, or one a channel."""
    results = {op.results[0] for op in chain}
    return all(
        value in results
        or value in operands
        or (value.is_constant and _one_scale(value) and value.array.size in (1, channels))
        for op in chain
        if not isinstance(op, _PRODUCTS)
        for value in op.present_operands
    )


def _one_scale(value: Value) -> bool:
    return not isinstance(value.type.element, UniformQuantizedPerAxisType)


class _Model:
    """A model in which a product has a channel for each of the sums, which are its biases, and weights of 0: it takes
    the product's input and a row of each operand for all sums, and returns all results."""

    def __init__(self, chain: Sequence[Op], sums: np.ndarray) -> None:
        product = next(op for op in chain if isinstance(op, _PRODUCTS))
        self._product: _Product = product
        self._following = [op for op in chain if op is not product]
        self._sums = sums
        self._flat = isinstance(product, FullyConnected)
        self._shape = (*[1] * (1 if self._flat else 3), sums.size)

    def file(self, operands: Mapping[str, Value]) -> tuple[bytes, np.ndarray]:
        """The file, and the product's input."""
        product = self._product
        element: Any = product.input.type.element
        shape = self._shape if isinstance(product, DepthwiseConv2D) else (1,) * len(self._shape)
        x = Value(TensorType(shape, element), "x")
        y = Value(TensorType(self._shape, product.results[0].type.element), "y")
        copies: dict[Value, Value] = {product.results[0]: y}
        copies |= {v: Value(TensorType(self._shape, v.type.element), name) for name, v in operands.items()}
        ops = [self._copy(x, y)]
        for op in self._following:
            copies |= {value: self._repeated(value) for value in op.present_operands if value not in copies}
            result = op.results[0]
            copies[result] = Value(TensorType(self._shape, result.type.element), result.name)
            ops.append(Op(op.name, [copies[v] for v in op.present_operands], [copies[result]], dict(op.attributes)))
        inputs = [x, *(copies[v] for v in operands.values())]
        data = bytes(write(Module([Function("main", inputs, [ops[-1].results[0]], ops)])))
        return data, np.full(shape, element.zero_point, element.storage.dtype)

    def _copy(self, x: Value, y: Value) -> Op:
        """The product with other weights and biases."""
        product, size = self._product, self._sums.size
        element: Any = _weights(product).type.element
        zero = 0 if isinstance(element, UniformQuantizedPerAxisType) else element.zero_point
        shape = tuple(size if at == _axis(product) else 1 for at in range(len(self._shape)))
        w = _constant(np.full(shape, zero), self._element(element), "w")
        b = _constant(self._sums.reshape(-1), self._element(_bias_element(product)), "b")
        changes: dict[str, object] = {"keep_num_dims": False} if self._flat else {**_WINDOW}
        if isinstance(product, TransposeConv):
            sizes = _constant(np.asarray(self._shape), i32, "s")
            return Op(product.name, [sizes, w, x, b], [y], {**product.attributes, **_POINT})
        if isinstance(product, DepthwiseConv2D):
            changes["depth_multiplier"] = 1
        return Op(product.name, [x, w, b], [y], {**product.attributes, **changes})

    def _element(self, element: ElementType) -> ElementType:
        """An element type of channels, with those of each row of sums."""
        if not isinstance(element, UniformQuantizedPerAxisType):
            return element
        scales, zeros = (np.tile(numbers, len(self._sums)) for numbers in (element.scales, element.zero_points))
        return element.replace(scales=scales, zero_points=zeros)

    def _repeated(self, value: Value) -> Value:
        """A constant for each row of sums."""
        if value.array.size == 1:
            return _constant(value.array.reshape(1), value.type.element, value.name)
        array = np.tile(value.array.reshape(-1), len(self._sums)).reshape(self._shape)
        return _constant(array, value.type.element, value.name)


def _constant(array: np.ndarray, element: ElementType, name: str) -> Value:
    storage = element if isinstance(element, ScalarType) else element.storage
    stored = Buffer.of(np.ascontiguousarray(array, storage.dtype))
    return Value(TensorType(array.shape, element), name, buffer=stored)
