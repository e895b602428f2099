"""`tflq.quantize`: a network of floats becomes one of quantized operators, by ranges that were seen."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from tflq.analysis.statistics import Statistics, read_statistics
from tflq.base.errors import OptionError, Reason, check_choice, check_flags, check_number, not_expected
from tflq.base.files import FilePath, check_outputs, on_disk, replace_file
from tflq.dialects.regions import Stats
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.formats.backend import DEFAULT, named_by
from tflq.formats.mlir.annotations import drop_annotations
from tflq.formats.sources import read, write
from tflq.ir.core import Module, Value
from tflq.ir.rewriting import forget_constants
from tflq.ir.types import f32
from tflq.targets.load import load_kernels
from tflq.tools.quantize.calibration.calibrate import Calibration, calibrate
from tflq.tools.quantize.fidelity import (
    CALIBRATED,
    MOST,
    FloatNetwork,
    Metric,
    Nearness,
    Outputs,
    Search,
    decibels,
    nearness,
    restore_float,
    rules_of,
)
from tflq.tools.quantize.limits import beyond_limits, noted, refused_rows, widen
from tflq.tools.quantize.preparing import spread_constants, state_ranges
from tflq.tools.quantize.quant_types import PrepareTfl
from tflq.tools.quantize.recipe import (
    SCHEMES,
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
from tflq.tools.quantize.regions.ranges import is_statement
from tflq.tools.quantize.report import STAYS_FLOAT, Quantization, QuantizedRow, rows_of
from tflq.tools.quantize.stored_edges import EDGES, Edges, store_edges
from tflq.tools.quantize.weights import Moments, Placed, moments_of, quantize_weights
from tflq.tools.samples.files import Images, Level
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Span
from tflq.transforms.canonicalize import Fold
from tflq.transforms.pass_manager import Pipeline

OneStatistics = FilePath | Statistics | Calibration
"""A file of statistics, what it holds, or the calibration that it is of."""
_INTEGERS: Final = ("dynamic", "weight-only")
"""Schemes in which constants that a file stores as integers have others made of them."""
_OF_STATISTICS: Final = "a file of tflq calibrate, its result, or a list of these"
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
        search, near = None, Nearness(None, None)
        moments: Placed = {}
        if rounds_by_products(rules, default):
            calibration = _samples(source, calibration, images, "weights are rounded by gptq on samples")
            moments = _moments(source, calibration) if min_snr is None else {}
        if min_snr is not None:
            samples = _samples(source, calibration, images, "how near the outputs are is measured on samples")
            network, search = _near(work, rules, listed, samples, min_snr, metric)
            near = Nearness(search.after if metric is None else None, None)
        elif metric is not None:
            raise OptionError(Reason("a metric needs the number that it is to reach", remedy="give min_snr"))
        else:
            network = work.build(rules, lambda bins: _statistics(source, listed, calibration, images, bins), moments)
            if calibration is not None and not isinstance(calibration, Iterator):
                with closing(FloatNetwork(source)) as floats:
                    near = nearness(_outputs(floats, network.data, calibration, images))
        if destination is not None:
            replace_file(destination, [network.data], force=force)
        return Quantization(
            network.module,
            network.rows,
            scheme,
            os.path.getsize(source),
            len(network.data),
            near.decibels,
            search,
            near.agreement,
            (*network.warnings, *(near.warnings() if search is None else ())),
        )


class _Network(NamedTuple):
    """A quantized network, what became of each operator, its file, and what to warn of."""

    module: Module
    rows: tuple[QuantizedRow, ...]
    data: bytes
    warnings: tuple[str, ...]


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
        module, chosen = self._read(rules)
        if not chosen.static:
            return self._of_weights(module, chosen, _placed(module, moments))
        seen, widened = statistics(chosen.needs_bins), dict[str, float]()
        while True:
            placed = _placed(module, moments)
            warnings = state_ranges(module, seen, chosen, widened) if seen else []
            spread_constants(module, integers=False)
            rows = _static(module, self.target, chosen, self.io, placed, widened)
            if rows is not None:
                return _written(module, rows, warnings)
            module, chosen = self._read(rules)

    def _read(self, rules: Sequence[Rule]) -> tuple[Module, Choices]:
        module = read(self.source)
        _check_floats(module, self.source)
        return module, Choices(module, rules, self.default)

    def _of_weights(self, module: Module, chosen: Choices, moments: Mapping[Value, Moments]) -> _Network:
        """The network with other weights alone. OptionError if it has none."""
        if self.has_statistics or self.target is not None or self.io != "float":
            what = f"scheme '{self.default.scheme}' is of weights alone"
            remedy = "leave out statistics, target and io, or take int8"
            raise OptionError(Reason(what, value=self.default.scheme, remedy=remedy))
        spread_constants(module, integers=self.default.scheme in _INTEGERS)
        rows = quantize_weights(module, chosen, moments)
        if not _has_outcome(rows):
            why = "; ".join(dict.fromkeys(f"{row.operator}: {row.why}" for row in rows[:_NAMED]))
            raise OptionError(Reason(f"no operator has weights to quantize: {why}", remedy="take another scheme"))
        return _written(module, rows)


def _placed(module: Module, moments: Placed) -> dict[Value, Moments]:
    """The moments of the weights of a module."""
    return {module.functions[at].tensors[tensor]: each for (at, tensor), each in moments.items()}


def _written(module: Module, rows: Sequence[QuantizedRow], warnings: Sequence[str] = ()) -> _Network:
    """A quantized module as a file."""
    forget_constants(module)
    module.buffers, module.operator_codes = [], []  # the writer makes these tables anew
    return _Network(module, tuple(rows), write(module), tuple(warnings))


def _near(
    work: _Work,
    rules: tuple[Rule, ...],
    statistics: Sequence[FilePath | Statistics],
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
            outputs = _outputs(floats, build(float_rules).data, judge)
            if metric is None:
                return decibels(outputs)
            each, others = zip(*outputs, strict=True)
            return float(metric(list(each), list(others)))

        attributes = {"metric": named, "calibrated": split, "judged": min(len(judge), MOST)}
        search = restore_float(build(()).rows, measure, least, attributes)
    return build(rules_of(search)), search


def _samples(source: FilePath, data: Any, images: Images | None, what: str) -> Span:
    """All samples, to go through several times. OptionError, which says what they are for, if none are given."""
    if data is None:
        raise OptionError(Reason(what, remedy="give samples (calibration)"))
    return Span.of(data, Entry.of(read(source)), images)


@contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    """The path of a result, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        path = os.path.join(folder, "quantized.tflite")
        replace_file(path, [data])
        yield path


def _outputs(
    floats: FloatNetwork, data: bytes, samples: Any, images: Images | None = None
) -> Iterator[tuple[Outputs, Outputs]]:
    """The outputs of the float network and of a result, sample by sample."""
    with _file_of(data) as path:
        yield from floats.beside(path, samples, images=images, called="the quantized network")


def _listed(statistics: OneStatistics | Sequence[OneStatistics] | None) -> list[FilePath | Statistics]:
    """The statistics of the call. OptionError for what is none."""
    if statistics is None:
        return []
    one = isinstance(statistics, (str, os.PathLike, Statistics, Calibration))
    if not one and not isinstance(statistics, (list, tuple)):
        raise not_expected("statistics", statistics, _OF_STATISTICS)
    listed = [
        each.statistics if isinstance(each, Calibration) else each for each in ([statistics] if one else statistics)
    ]
    for each in listed:
        if not isinstance(each, (str, os.PathLike, Statistics)):
            raise not_expected("statistics", each, _OF_STATISTICS)
    return listed


def _statistics(
    source: Any, statistics: Sequence[FilePath | Statistics], calibration: Any, images: Images | None, bins: bool
) -> list[Statistics]:
    """The statistics of the call, read, or those of samples; empty without either."""
    if statistics and calibration is not None:
        what = "ranges come either from statistics or from samples to calibrate with"
        raise OptionError(Reason(what, remedy="give one of them"))
    if calibration is not None:
        levels: dict[str, Any] = {} if images is None else {"mean": images.mean, "scale": images.scale}
        return [calibrate(source, calibration, histogram=bins, **levels).statistics]
    return [each if isinstance(each, Statistics) else read_statistics(each) for each in statistics]


def _moments(source: FilePath, samples: Span) -> Placed:
    """The moments of the numbers that weights are multiplied with. OptionError if no samples could be held back."""
    if len(samples) < 2:
        what = f"{len(samples)} samples are too few to round weights by some and judge by others"
        raise OptionError(Reason(what, value=len(samples), remedy="give two at least"))
    return moments_of(source, samples)


def _static(
    module: Module,
    target: FilePath | None,
    chosen: Choices,
    io: Edges,
    moments: Mapping[Value, Moments],
    widened: dict[str, float],
) -> list[QuantizedRow] | None:
    """Quantizes activations and weights by a target's kernels. widened: by how much the ranges of tensors are wider
    than seen, by name. None if it has to be done again, since `widened` has further ones. OptionError if nothing is
    known of any activation."""
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
    beyond = beyond_limits(module, load_kernels(kernels))
    if widen(beyond, widened):
        return None
    known |= {row.tensor: row for row in refused_rows(beyond)}
    leave_float([*floats, *beyond])
    of_tflite(module)
    Pipeline([Fold(), PrepareTfl()]).run(module)
    quantize_kernels(module, kernels, propagated=lambda regions: rows.extend(rows_of(regions, kernels, known)))
    if not _has_outcome(rows):
        raise _nothing(rows, has_ranges=has_ranges)
    drop_annotations(module)
    store_edges(module, list(dict.fromkeys(entries)), io)
    return noted(rows, widened)


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
    return OptionError(Reason(what, remedy="give a file of tflq calibrate (statistics), or samples (calibration)"))
