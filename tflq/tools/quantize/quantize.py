"""`tflq.quantize`: a network of floats becomes one of quantized operators, by ranges that were seen."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tflq.analysis.statistics import Method, Statistics, observed_range, read_statistics
from tflq.base.errors import OptionError, Reason, check_choice, check_flags, check_number
from tflq.base.files import FilePath, check_outputs, replace_file
from tflq.dialects.regions import Stats
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.traits import ReadsShapes
from tflq.formats.backend import DEFAULT, named_by
from tflq.formats.mlir.annotations import drop_annotations
from tflq.formats.sources import on_disk, read, write
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import forget_constants, insert_after, remove_unneeded, replace_values
from tflq.ir.types import ElementType, QuantizedType, ScalarType, f32, i8, i16, is_float, is_quantized, ui8
from tflq.targets.load import load_kernels
from tflq.tools.quantize.calibration.calibrate import calibrate, digests, points_of
from tflq.tools.quantize.fidelity import (
    CALIBRATED,
    MOST,
    FloatNetwork,
    Metric,
    Search,
    decibels,
    restore_float,
    rules_of,
)
from tflq.tools.quantize.quant_types import PrepareTfl
from tflq.tools.quantize.recipe import (
    SCHEMES,
    STATIC,
    Choices,
    Recipe,
    Rule,
    Scheme,
    Settings,
    keep_islands,
    leave_float,
    mark,
    mixed_target,
    read_recipe,
    rounds_by_products,
)
from tflq.tools.quantize.regions.fusion import KernelFusion
from tflq.tools.quantize.regions.materialize import of_tflite
from tflq.tools.quantize.regions.quantize import TflQuantizePipeline, quantize_kernels
from tflq.tools.quantize.regions.ranges import is_statement, other_sign
from tflq.tools.quantize.report import STAYS_FLOAT, Quantization, QuantizedRow, rows_of
from tflq.tools.quantize.weights import Moments, Placed, moments_of, quantize_weights
from tflq.tools.samples.files import Images, Level
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Span
from tflq.transforms.canonicalize import Fold
from tflq.transforms.pass_manager import Pipeline

OneStatistics = FilePath | Statistics
"""A file of statistics, or what it holds."""
Edges = Literal["float", "int8", "uint8", "int16"]
STORAGES: Final = {"int8": i8, "uint8": ui8, "int16": i16}
EDGES: Final = ("float", *STORAGES)
_LARGEST: Final = 2.0**100
"""A tensor with larger numbers, such as a mask of the least float32, stays float: products of its scale overflow in
kernels, and that of ADD then ends the process."""
_NAMED: Final = 3
"""Operators that an error names."""


def quantize(
    source: FilePath,
    destination: FilePath | None = None,
    *,
    scheme: Scheme = "int8",
    statistics: OneStatistics | Sequence[OneStatistics] | None = None,
    calibration: Any = None,
    mean: Level | None = None,
    scale: Level | None = None,
    range: str = "minmax",
    io: Edges = "float",
    target: FilePath | None = None,
    keep_float: Sequence[str] = (),
    recipe: Recipe | None = None,
    weights: Literal["int8", "int4"] = "int8",
    blocks: int = 0,
    weight_range: Literal["minmax", "mse", "octav", "gptq"] = "minmax",
    min_snr: float | None = None,
    metric: Metric | None = None,
    force: bool = False,
) -> Quantization:
    """Quantizes a float network.

    Args:
        source: The path of a TFLite model.
        destination: Where the result goes, a TFLite model. None: it is only returned.
        scheme: "int8": activations and weights of 8 bits. "int16x8": activations of 16 bits, weights of 8. "dynamic":
            weights of 8 bits, activations quantized as the network runs. "weight-only": weights of 8 bits,
            dequantized before use. "float16": weights as float16.
        statistics: What calibration saw, for "int8" and "int16x8": a file of `tflq calibrate`, or its result; or a list
            of these, each of another signature. A network that was trained with fake quantization needs neither these
            nor samples.
        calibration: Samples to calibrate with instead, as `tflq.calibrate` takes them. The signal-to-noise ratio of the
            outputs is measured on them, unless they are an iterator; for schemes of weights they are for that alone.
        mean: For images: subtracted from each pixel (0 to 255), a number or one for each channel.
        scale: For images: multiplies the difference, a number or one for each channel.
        range: Which range follows from statistics: "minmax", "ema", "percentile:99.9" or "mse".
        io: What inputs and outputs are: floats, with casts behind and before them, or stored integers.
        target: A target's file, whose kernels decide what is quantized; by default those of the scheme.
        keep_float: Patterns of tensors' names (`*`, `?`, `re:`): an operator that makes one of them stays float. Rules
            of a recipe, before its own.
        recipe: What is asked of single operators: a file, or a list of its rules as mappings (docs/quantize.md).
        weights: What weights become, for "dynamic" and "weight-only": "int8" or "int4".
        blocks: How many weights of FULLY_CONNECTED in a row have one scale: 32, 64, 128 or 256, for "dynamic" of
            "int4". 0: a channel has one.
        weight_range: Which range weights have then: "minmax", "mse" or "octav"; or "gptq": the range of "minmax", and
            weights of FULLY_CONNECTED and 1×1 CONV_2D are rounded so that products are near on `calibration`, where
            that is better on the last quarter of its samples.
        min_snr: Operators are given back to float, worst first, until the outputs' signal-to-noise ratio is so many
            decibels on samples that nothing was calibrated with: the last quarter of `calibration`, or all of it where
            ranges are from `statistics`, or the scheme is of weights alone.
        metric: Measured instead: a function of the float and of the quantized outputs, a list each with the list of
            arrays of each sample; what it returns is to be at least `min_snr`.
        force: Replaces the destination if it is there.

    Returns:
        The quantized network, and what became of each operator.

    Raises:
        OptionError: Options that do not fit, statistics of another model, a pattern that fits nothing, an input or
            output that cannot be stored as integers, outputs that do not come as near as asked.
        InvalidModelError: The source is not a valid model.
        FileError: A file cannot be read or written.

    Example:
        ```python
        import numpy as np

        samples = [np.random.rand(1, 8).astype(np.float32) for _ in range(10)]
        result = tflq.quantize("float.tflite", "int8.tflite", calibration=samples)
        print(result.summary(), result.decibels)
        ```
    """
    check_choice("scheme", scheme, SCHEMES)
    default = Settings(scheme, range, weights, blocks, weight_range)
    default.check()
    check_choice("io", io, EDGES)
    check_flags(force=force)
    images = Images.of(mean, scale)
    listed = _listed(statistics)
    check_number("min_snr", min_snr, -math.inf, optional=True)
    if destination is not None:
        if named_by(destination) != DEFAULT:
            what = f"the suffix says another format than {DEFAULT}"
            remedy = "quantize to a .tflite file, and convert this"
            raise OptionError(Reason(what, os.fspath(destination), remedy=remedy))
        check_outputs([("the result", destination)], inputs=[source, *listed, calibration], force=force)
    rules = read_recipe(recipe, keep_float, default)
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        source = on_disk(source, folder)
        work = _Work(source, default, target, io, has_statistics=bool(listed))
        search, decibels = None, None
        moments: Placed = {}
        if rounds_by_products(rules, default):
            calibration = _samples(source, calibration, images, "weights are rounded by gptq on samples")
            moments = _moments(source, calibration) if min_snr is None else {}
        if min_snr is not None:
            samples = _samples(source, calibration, images, "how near the outputs are is measured on samples")
            network, search = _near(work, rules, listed, samples, min_snr, metric)
            decibels = search.after if metric is None else None
        elif metric is not None:
            raise OptionError(Reason("a metric needs the number that it is to reach", remedy="give min_snr"))
        else:
            network = work.build(rules, lambda bins: _statistics(source, listed, calibration, images, bins), moments)
            if calibration is not None and not isinstance(calibration, Iterator):
                with closing(FloatNetwork(source)) as floats:
                    decibels = _measured(floats, network.data, calibration, images)
        if destination is not None:
            replace_file(destination, [network.data], force=force)
        return Quantization(
            network.module, network.rows, scheme, os.path.getsize(source), len(network.data), decibels, search
        )


class _Network(NamedTuple):
    """A quantized network, what became of each operator, and its file."""

    module: Module
    rows: tuple[QuantizedRow, ...]
    data: bytes


@dataclass(frozen=True)
class _Work:
    """Common parameters of all networks quantized from a source. has_statistics: whether the call gives statistics."""

    source: FilePath
    default: Settings
    target: FilePath | None
    io: Edges
    has_statistics: bool

    def build(self, rules: Sequence[Rule], statistics: Callable[[bool], list[Statistics]], moments: Placed) -> _Network:
        """The network by some rules. statistics: is called where ranges of activations are needed, and told
        whether these need histograms. moments: of what weights are multiplied with, by the function and the tensor."""
        module = read(self.source)
        _check_floats(module, self.source)
        chosen = Choices(module, rules, self.default)
        of_weights = {module.functions[at].tensors[tensor]: each for (at, tensor), each in moments.items()}
        if chosen.static:
            seen = statistics(chosen.needs_bins)
            if seen:
                _state_ranges(module, seen, chosen)
            rows = _static(module, self.target, chosen, self.io, of_weights)
        else:
            if self.has_statistics or self.target is not None or self.io != "float":
                what = f"scheme '{self.default.scheme}' is of weights alone"
                remedy = "leave out statistics, target and io, or take int8"
                raise OptionError(Reason(what, value=self.default.scheme, remedy=remedy))
            rows = quantize_weights(module, chosen, of_weights)
            if not _has_outcome(rows):
                why = "; ".join(dict.fromkeys(f"{row.operator}: {row.why}" for row in rows[:_NAMED]))
                raise OptionError(Reason(f"no operator has weights to quantize: {why}", remedy="take another scheme"))
        forget_constants(module)
        module.buffers, module.operator_codes = [], []  # the writer makes these tables anew
        return _Network(module, tuple(rows), write(module))


def _near(
    work: _Work,
    rules: tuple[Rule, ...],
    statistics: Sequence[OneStatistics],
    samples: Span,
    least: float,
    metric: Metric | None,
) -> tuple[_Network, Search]:
    """The network whose outputs are near enough, and the search for it."""
    chosen = Choices(read(work.source), rules, work.default)
    rounds = rounds_by_products(rules, work.default)
    split = math.ceil(len(samples) * CALIBRATED) if rounds or (chosen.static and not statistics) else 0
    if len(samples) <= split:
        what = f"{len(samples)} samples are too few to calibrate with some and judge by others"
        raise OptionError(Reason(what, value=len(samples), remedy="give two at least"))
    first, judge = samples.split(split)
    calibration = None if statistics else first
    seen = _statistics(work.source, statistics, calibration or None, None, chosen.needs_bins) if chosen.static else []
    moments = _moments(work.source, first) if rounds else {}

    def build(float_rules: Sequence[Rule]) -> _Network:
        return work.build((*float_rules, *rules), lambda _: seen, moments)

    named = "decibels" if metric is None else getattr(metric, "__name__", "metric")
    with closing(FloatNetwork(work.source)) as floats:

        def measure(float_rules: Sequence[Rule]) -> float:
            return _measured(floats, build(float_rules).data, judge, None, metric)

        attributes = {"metric": named, "calibrated": split, "judged": min(len(judge), MOST)}
        search = restore_float(build(()).rows, measure, least, attributes)
    return build(rules_of(search)), search


def _samples(source: FilePath, data: Any, images: Images | None, what: str) -> Span:
    """All samples, to go through several times. OptionError, which says what they are for, if none are given."""
    if data is None:
        raise OptionError(Reason(what, remedy="give samples (calibration)"))
    return Span.of(data, Entry.of(read(source)), images)


def _measured(
    floats: FloatNetwork, data: bytes, samples: Any, images: Images | None, metric: Metric | None = None
) -> float:
    """Fidelity of the outputs of a result on samples: in decibels, or by another metric."""
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = os.path.join(folder, "quantized.tflite")
        replace_file(path, [data])
        outputs = floats.beside(path, samples, images=images, called="the quantized network")
        if metric is None:
            return decibels(outputs)
        each, others = zip(*outputs, strict=True)
        return float(metric(list(each), list(others)))


def _listed(statistics: OneStatistics | Sequence[OneStatistics] | None) -> Sequence[OneStatistics]:
    if statistics is None:
        return ()
    return (statistics,) if isinstance(statistics, (str, os.PathLike, Statistics)) else tuple(statistics)


def _statistics(
    source: Any, statistics: Sequence[OneStatistics], calibration: Any, images: Images | None, bins: bool
) -> list[Statistics]:
    """The statistics of the call, read, or those of samples; empty without either."""
    if statistics and calibration is not None:
        what = "ranges come either from statistics or from samples to calibrate with"
        raise OptionError(Reason(what, remedy="give one of them"))
    if calibration is not None:
        levels: dict[str, Any] = {} if images is None else {"mean": images.mean, "scale": images.scale}
        return [calibrate(source, calibration, histogram=bins, **levels).statistics]
    return [each if isinstance(each, Statistics) else read_statistics(each) for each in statistics]


def _state_ranges(module: Module, seen: Sequence[Statistics], chosen: Choices) -> None:
    """Puts a `quant.stats` with its range behind each float value that was seen. OptionError if none was, if one was
    seen in another model, or in several runs."""
    stale, used = dict[str, Value](), set[str]()
    for function in module.functions:
        known = digests(function)
        behind: dict[Value, Op] = {}
        for value, key in points_of(function, known).items():
            points = [each.points[key] for each in seen if key in each.points]
            fitting = [point for point in points if point.digest in ("", known[value])]
            if not fitting:
                stale.update({key: value} if points else {})
                continue
            if len(fitting) > 1:
                what = f"{len(fitting)} statistics have ranges of '{key}'"
                remedy = "join those of one signature: tflq calibrate merge"
                raise OptionError(Reason(what, tensor=key, value=key, remedy=remedy))
            used.add(key)
            (point,) = fitting
            settings = chosen.of([value])
            levels = STATIC.get(settings.scheme, STATIC["int8"])
            ends = observed_range(point, Method.of(settings.range), key, levels)
            if ends is not None and max(map(abs, ends)) <= _LARGEST:
                stats = {"layerStats": np.array(ends, np.float32)}
                behind[value] = Op(Stats.op_name, [value], [Value(value.type)], stats)
        insert_after(module, function, behind)
    if others := [key for key in stale if key not in used]:
        what = f"the statistics of '{others[0]}' are of another model"
        remedy = "calibrate anew; --resume keeps what still holds"
        raise OptionError(Reason(what, tensor=others[0], value=others[0], remedy=remedy))
    if not used:
        remedy = "calibrate the model that is quantized"
        raise OptionError(Reason("the statistics have none of the model's tensors", remedy=remedy))


def _moments(source: FilePath, samples: Span) -> Placed:
    """The moments of the numbers that weights are multiplied with. OptionError if no samples could be held back."""
    if len(samples) < 2:
        what = f"{len(samples)} samples are too few to round weights by some and judge by others"
        raise OptionError(Reason(what, value=len(samples), remedy="give two at least"))
    return moments_of(source, samples)


def _static(
    module: Module, target: FilePath | None, chosen: Choices, io: Edges, moments: Mapping[Value, Moments]
) -> list[QuantizedRow]:
    """Quantizes activations and weights by a target's kernels. OptionError if nothing is known of any."""
    entries = [module.functions[s.function] for s in module.signatures or []] or [module.main]
    kernels = mixed_target(target, chosen)
    known = {row.tensor: row for row in quantize_weights(module, chosen, moments) if row.tensor}
    rows: list[QuantizedRow] = []
    has_ranges = any(isinstance(op, Stats) for op in module.ops())
    KernelFusion(kernels, reals=True).run(module)
    floats = mark(module, chosen, load_kernels(kernels))
    if has_ranges:  # of a network that was trained the training says it
        known |= {row.tensor: row for row in keep_islands(module, load_kernels(kernels), floats)}
    Pipeline(TflQuantizePipeline(kernels).propagation()).run(module)
    leave_float(floats)
    of_tflite(module)
    Pipeline([Fold(), PrepareTfl()]).run(module)
    quantize_kernels(module, kernels, propagated=lambda regions: rows.extend(rows_of(regions, kernels, known)))
    if not _has_outcome(rows):
        raise _nothing(rows, has_ranges=has_ranges)
    drop_annotations(module)
    store_edges(module, list(dict.fromkeys(entries)), io)
    return rows


def _check_floats(module: Module, source: FilePath) -> None:
    """OptionError if operators compute on quantized numbers, and none on floats."""
    computing = [op for op in module.ops() if not isinstance(op, (Quantize, Dequantize)) and not is_statement(op)]
    if any(v.type.quantized for op in computing for v in op.results) and not any(
        v.type.element == f32 for op in computing for v in op.tensors
    ):
        what = f"the network is quantized already: none of its {len(computing)} operators computes on floats"
        raise OptionError(Reason(what, os.fspath(source), remedy="give the float network that it was made of"))


def _has_outcome(rows: Sequence[QuantizedRow]) -> bool:
    """Whether an operator is quantized, or stays float because the caller asked for it."""
    return any(row.quantized or row.why == STAYS_FLOAT for row in rows)


def _nothing(rows: Sequence[QuantizedRow], *, has_ranges: bool) -> OptionError:
    """The error where no operator is quantized. has_ranges: whether ranges were stated."""
    if has_ranges and rows:
        text = f"the target has no kernel for any operator of the network: {rows[0].operator}: {rows[0].why}"
        return OptionError(Reason(text, value=rows[0].operator, remedy="list kernels for quantized numbers in it"))
    what = "nothing in the network says how its activations are to be quantized"
    return OptionError(Reason(what, remedy="give --statistics (a file of tflq calibrate) or --calibration (samples)"))


# Inputs and outputs as stored integers, instead of reals with a cast.


def store_edges(module: Module, functions: Sequence[Function], edges: Edges) -> None:
    """Gives the float inputs and outputs of functions the parameters of the casts behind and before them, and drops
    these. Of the other sign than the network's numbers, they have a cast between the two signs. An input that float
    operators read, too, is dequantized for them.

    OptionError names an input of which nothing is quantized, an output that a float operator makes, or one whose
    numbers have another width.
    """
    for function in functions if edges != "float" else ():
        for value in list(function.inputs):
            if is_float(value.type.element):
                _store_input(module, function, value, STORAGES[edges])
        for place, value in enumerate(list(function.outputs)):
            if is_float(value.type.element):
                _store_output(module, function, place, STORAGES[edges])
    remove_unneeded(module, lambda op: isinstance(op, (Quantize, Dequantize)))


def _store_input(module: Module, function: Function, value: Value, storage: ScalarType) -> None:
    users = function.users().get(value, [])
    kinds = {op.result.type.element for op in users if isinstance(op, Quantize)}
    if not users:
        return
    if value in function.outputs:
        raise _stays("input", value, "it is an output, too")
    if len(kinds) != 1:
        raise _stays("input", value, "it has several parameters" if kinds else "only float operators read it")
    kind = _on(kinds.pop(), storage, "input", value)
    if not all(_reads_no_floats(op) for op in users):
        _dequantize(function, value)
    value.type = value.type.with_element(kind)
    replacements = {op.result: value for op in users if op.result.type.element == kind}
    replace_values(module, function, replacements)


def _reads_no_floats(op: Op) -> bool:
    return isinstance(op, Quantize) or op.matches(ReadsShapes)


def _dequantize(function: Function, value: Value) -> None:
    """Puts a DEQUANTIZE behind an input for the operators that read floats."""
    real = Value(value.type)
    for op in function.ops:
        if not _reads_no_floats(op):
            op.operands = [real if operand is value else operand for operand in op.operands]
    function.ops.insert(0, Op(Dequantize.op_name, [value], [real]))


def _store_output(module: Module, function: Function, place: int, storage: ScalarType) -> None:
    value = function.outputs[place]
    if not isinstance(cast := value.producer, Dequantize):
        raise _stays("output", value, "a float operator makes it")
    stored = cast.input
    kind = _on(stored.type.element, storage, "output", value)
    result = stored
    if kind != stored.type.element or stored in function.inputs or stored in function.outputs or stored.is_constant:
        result = Value(stored.type.with_element(kind))
        at = function.ops.index(cast)
        function.ops.insert(at + 1, Op(Quantize.op_name, [stored], [result], {}, cast.location))
    result.name, value.name = value.name, ""
    function.outputs[place] = result
    module.signatures = module.signatures and [s.with_outputs({value: result}) for s in module.signatures]


def _on(kind: ElementType, storage: ScalarType, what: str, value: Value) -> QuantizedType:
    """The parameters on a storage of the same width."""
    assert is_quantized(kind)
    if kind.storage == storage:
        return kind
    other = other_sign(kind)
    if other.storage != storage:
        raise _stays(what, value, f"its numbers are of {kind.storage.bits} bits")
    return other


def _stays(what: str, value: Value, why: str) -> OptionError:
    text = f"{what} '{value.name}' cannot be stored as integers: {why}"
    return OptionError(Reason(text, tensor=value.name, remedy="leave it as it is: --io float"))
