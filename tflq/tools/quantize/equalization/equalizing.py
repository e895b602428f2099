"""A float network with equalized channels: the same outputs, by other weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.base.files import FilePath
from tflq.dialects.tfl.convolution import DepthwiseConv2D
from tflq.formats.sources import read, write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.rewriting import forget_constants, forget_tables
from tflq.numerics.equalization import equalizing_factors
from tflq.tools.quantize.calibration.collecting import Channels, channel_ranges
from tflq.tools.quantize.equalization.groups import PRODUCTS, Group, groups_of
from tflq.tools.quantize.preparing import spread_constants
from tflq.tools.quantize.regions.ranges import set_plain_types
from tflq.tools.samples.reading import Span, Spans

Places = Mapping[Value, tuple[int, int]]


def equalized(source: FilePath, samples: Spans, path: str) -> frozenset[str]:
    """Writes a network with channels of like ranges on samples; none if it has no channels to equalize.

    Returns the names of the tensors whose channels were multiplied. InvalidModelError if the interpreter refuses the
    network.
    """
    module = read(source)
    entries = {span.entry.function: span for span in samples.each}
    places = {value: place for span in entries.values() for value, place in span.entry.places(module).items()}
    spread_constants(module, integers=False)
    groups = [
        (number, group)
        for number in entries
        for group in groups_of(module.functions[number])
        if all(value in places for value in group.values) and not _is_shared(group, module.functions[number], module)
    ]
    for number, span in entries.items():
        _equalize([group for at, group in groups if at == number], module.functions[number], source, span, places)
    if groups:
        forget_constants(module)
        forget_tables(module)
        write(module, path)
    return frozenset(value.name for _, group in groups for value in group.values)


def _is_shared(group: Group, function: Function, module: Module) -> bool:
    """Whether other functions, in which channels would stay as they are, have constants of a group."""
    others = {v.buffer for other in module.functions if other is not function for v in other.tensors if v.is_constant}
    return any(v.buffer in others for op in (*group.writers, *group.readers) for v in op.present_operands)


def _equalize(
    groups: Sequence[Group],
    function: Function,
    source: FilePath,
    samples: Span,
    places: Mapping[Value, tuple[int, int]],
) -> None:
    """Equalizes channels of a function on samples."""
    if not groups:
        return
    watched = {value: Channels(places[value], group.channels) for group in groups for value in group.values}
    entry = samples.entry
    arrays = ([sample[input_.name] for input_ in entry.in_run_order] for sample in samples)
    ranges = dict(zip(watched, channel_ranges(source, entry.key, [*watched.values()], arrays), strict=True))
    changed = _Changed()
    for group in groups:
        changed.equalize(group, ranges)
        set_plain_types(group.values)
    changed.put(function)


class _Changed:
    """Constants that are multiplied, as float64, by the operators that read them and their places."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[Op, int], np.ndarray] = {}

    def equalize(self, group: Group, ranges: Mapping[Value, np.ndarray]) -> None:
        products = [_read(op, group.channels, ranges) for op in group.readers]
        factors = equalizing_factors([ranges[value] for value in group.values], products)
        for op in group.writers:
            weights = PRODUCTS[type(op)]
            self._multiply(op, weights.weights, factors, weights.written)
            if op.optional(weights.bias) is not None:
                self._multiply(op, weights.bias, factors, -1)
        for op in group.readers:
            weights = PRODUCTS[type(op)]
            self._multiply(op, weights.weights, _repeated(op, 1 / factors), weights.read)
        for op, place in group.constants:
            self._multiply(op, place, factors, -1)

    def _multiply(self, op: Op, place: int, factors: np.ndarray, axis: int) -> None:
        """Multiplies along an axis, whose channels follow each other again and again."""
        array = self._arrays.get((op, place), op.operand(place).array.astype(np.float64))
        along = np.moveaxis(array, axis, -1)
        each = np.tile(factors, along.shape[-1] // len(factors))
        self._arrays[op, place] = np.moveaxis(along * each, -1, axis)

    def put(self, function: Function) -> None:
        """Has the operators read the multiplied constants."""
        for (op, place), array in self._arrays.items():
            new = constant(array.astype(np.float32), name=op.operand(place).name)
            op.operands = [new if at == place else value for at, value in enumerate(op.operands)]
            function.tensors = [*function.tensors, new]


def _repeated(op: Op, factors: np.ndarray) -> np.ndarray:
    """The factors of what the weights of a product stand by: a depthwise one has several for a channel."""
    if not isinstance(op, DepthwiseConv2D):
        return factors
    channels = op.input.type.dims[-1] or 1
    return np.repeat(np.tile(factors, channels // len(factors)), op.filter.array.shape[-1] // channels)


def _read(op: Op, channels: int, ranges: Mapping[Value, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The range of what a product reads, and the largest of its weights, of each channel."""
    weights = PRODUCTS[type(op)]
    source = ranges[op.operand(weights.input)]
    if isinstance(op, DepthwiseConv2D):  # weights of each channel have a scale of their own
        return source, np.divide(1, source, out=np.zeros(source.shape), where=source > 0)
    magnitudes = np.abs(np.moveaxis(op.operand(weights.weights).array, weights.read, -1))
    return source, magnitudes.reshape(-1, channels).max(axis=0).astype(np.float64)
