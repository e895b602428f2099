"""`tflq.quantize`: a network of floats becomes one of quantized operators, by ranges that were seen."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final, Literal, NamedTuple

from tflq.analysis.statistics import Statistics, read_statistics
from tflq.base.errors import OptionError, Reason, check_choice, check_flags, check_number, check_path, not_expected
from tflq.base.files import FilePath, check_outputs, replace_file
from tflq.formats.backend import DEFAULT, named_by
from tflq.formats.sources import on_disk, read
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.calibration.calibrate import Calibration, calibrate
from tflq.tools.quantize.choosing import (
    AUTO,
    FEWEST,
    chosen_network,
    equalized_work,
    fitted_network,
    noted_network,
)
from tflq.tools.quantize.fidelity import (
    CALIBRATED,
    MOST,
    FloatNetwork,
    Metric,
    Nearness,
    Search,
    decibels,
    nearness,
    restore_float,
    rules_of,
)
from tflq.tools.quantize.recipe import (
    SCHEMES,
    STATIC,
    Choices,
    Recipe,
    Rule,
    Scheme,
    Settings,
    fits_weights,
    read_recipe,
    rounds_by_products,
)
from tflq.tools.quantize.report import Quantization, Trial
from tflq.tools.quantize.stored_edges import EDGES, Edges
from tflq.tools.quantize.weights import Placed, moments_of
from tflq.tools.samples.files import Images, Level
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Span

WeightMethod = Literal["minmax", "mse", "octav", "gptq", "reconstruct"]
OneStatistics = FilePath | Statistics | Calibration
"""A file of statistics, what it holds, or the calibration that it is of."""
_OF_STATISTICS: Final = "a file of tflq calibrate, its result, or a list of these"


def quantize(
    source: FilePath,
    destination: FilePath | None = None,
    *,
    scheme: Scheme = "int8",
    statistics: OneStatistics | Sequence[OneStatistics] | None = None,
    calibration: Any = None,
    mean: Level | None = None,
    scale: Level | None = None,
    range: str = "auto",
    io: Edges = "float",
    target: FilePath | None = None,
    keep_float: Sequence[str] = (),
    recipe: Recipe | None = None,
    weights: Literal["int8", "int4", "int2"] = "int8",
    blocks: int = 0,
    weight_method: WeightMethod = "minmax",
    weight_range: WeightMethod | None = None,
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
            outputs is measured on them, unless they are an iterator; for schemes of weights they are for that, and for
            equalized channels.
        mean: For images: subtracted from each pixel (0 to 255), a number or one for each channel.
        scale: For images: multiplies the difference, a number or one for each channel.
        range: Which range follows from statistics: "minmax", "ema", "percentile:99.9" or "mse". "auto": the
            one that is nearest on the last quarter of `calibration`; channels are equalized and biases corrected where
            that is nearer. It is "minmax" alone with `statistics`, a `recipe`, `min_snr`, an iterator, or less than 8
            samples.
        io: What inputs and outputs are: floats, with casts behind and before them, or stored integers.
        target: A target's file, whose kernels decide what is quantized; by default those of the scheme.
        keep_float: Patterns of tensors' names (`*`, `?`, `re:`): an operator that makes one of them stays float. Rules
            of a recipe, before its own.
        recipe: What is asked of single operators: a file, or a list of its rules as mappings (docs/quantize.md).
        weights: What weights become: "int8", "int4" or, for "dynamic" and "weight-only", "int2"; those of operators
            whose kernel takes fewer bits.
        blocks: How many weights of FULLY_CONNECTED in a row have one scale: 32, 64, 128 or 256, for "weight-only", and
            for "dynamic" of "int4". 0: a channel has one.
        weight_method: Which range weights have then: "minmax", "mse" or "octav"; or "gptq": the range of "mse", and
            weights are rounded so that products are near on `calibration`, where that is better on the last quarter of
            its samples. "reconstruct": weights and biases of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED are fitted
            to the inputs that the quantized network gives on `calibration`, where that is better on the last quarter.
        weight_range: The former name of `weight_method`.
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
    method = weight_method if weight_range is None else weight_range
    default = Settings(scheme, "minmax" if range == AUTO else range, weights, blocks, method)
    default.check()
    check_choice("io", io, EDGES)
    check_path("source", source, optional=False)
    check_flags(force=force)
    images = Images.of(mean, scale)
    listed = _listed(statistics)
    is_automatic = range == AUTO and recipe is None and not listed
    check_number("min_snr", min_snr, -math.inf, optional=True)
    if destination is not None:
        _check_suffix(destination)
        check_outputs([("the result", destination)], inputs=[source, *listed, calibration], force=force)
    if metric is not None and min_snr is None:
        raise OptionError(Reason("a metric needs the number that it is to reach", remedy="give min_snr"))
    rules = read_recipe(recipe, keep_float, default)
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        source = on_disk(source, folder)
        work = Work(source, default, target, io, has_statistics=bool(listed))
        evidence = _Evidence(listed, calibration, images, is_automatic and min_snr is None)
        network, search, near, trials = _quantized(work, rules, evidence, folder, min_snr, metric)
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
            (*_renamed(weight_range), *network.warnings, *(near.warnings() if search is None else ())),
            trials,
        )


class _Evidence(NamedTuple):
    """Where ranges come from: statistics, or samples. chooses: whether methods are chosen by samples held back."""

    statistics: Sequence[FilePath | Statistics]
    samples: Any
    images: Images | None
    chooses: bool

    def seen(self, source: FilePath, bins: bool) -> list[Statistics]:
        """The statistics of the call, read, or those of samples; empty without either."""
        return _statistics(source, self.statistics, self.samples, self.images, bins)

    def nearness(self, source: FilePath, network: Network) -> Nearness:
        """The nearness of outputs to those of the source on the samples, if they can be gone through once more."""
        if self.samples is None or isinstance(self.samples, Iterator):
            return Nearness(None, None)
        with closing(FloatNetwork(source)) as floats:
            return nearness(floats.beside_bytes(network.data, self.samples, images=self.images))


def _quantized(
    work: Work,
    rules: tuple[Rule, ...],
    evidence: _Evidence,
    folder: str,
    least: float | None,
    metric: Metric | None,
) -> tuple[Network, Search | None, Nearness, tuple[Trial, ...]]:
    """The network, the search for it if its outputs have to be as near as `least`, how near they are, and what was
    tried. folder: for the networks between."""
    source, search, trials, tensors = work.source, None, tuple[Trial, ...](), frozenset[str]()
    span = _enough(source, evidence, work.default.scheme)
    if span is not None:
        work, trials, tensors = equalized_work(work, rules, span, folder)
    evidence, moments = _for_weights(work, rules, evidence, with_moments=least is None)
    if least is not None:
        what = "how near the outputs are is measured on samples"
        samples = _samples(source, evidence.samples, evidence.images, what)
        network, search = _near(work, rules, evidence.statistics, samples, least, metric)
    elif span is not None and work.default.scheme in STATIC:
        network, more = chosen_network(work, rules, span)
        trials += more
    else:
        network = work.build(rules, lambda bins: evidence.seen(work.source, bins), moments)
    if fits_weights(rules, work.default):
        network = fitted_network(work, rules, network, evidence.samples)
    network = noted_network(network, tensors)
    if search is not None:
        return network, search, Nearness(search.after if metric is None else None, None), trials
    return network, None, evidence.nearness(source, network), trials


def _check_suffix(destination: FilePath) -> None:
    """OptionError for a destination of another format."""
    if named_by(destination) != DEFAULT:
        what = f"the suffix says another format than {DEFAULT}"
        remedy = "quantize to a .tflite file, and convert this"
        raise OptionError(Reason(what, os.fspath(destination), remedy=remedy))


def _for_weights(
    work: Work, rules: tuple[Rule, ...], evidence: _Evidence, *, with_moments: bool
) -> tuple[_Evidence, Placed]:
    """The samples, to go through several times where weights are fitted to them, and the moments of the numbers that
    weights are multiplied with. OptionError if weights are fitted to samples, and there are too few."""
    moments: Placed = {}
    data, images = evidence.samples, evidence.images
    if rounds_by_products(rules, work.default):
        data = _samples(work.source, data, images, "weights are rounded by gptq on samples")
        moments = _moments(work.source, data) if with_moments else {}
    if fits_weights(rules, work.default):
        data = _samples(work.source, data, images, "weights are fitted to samples")
        _check_enough(data)
    return evidence._replace(samples=data), moments


def _renamed(weight_range: str | None) -> list[str]:
    return [] if weight_range is None else ["weight_range has the name weight_method now"]


def _enough(source: FilePath, evidence: _Evidence, scheme: str) -> Span | None:
    """The samples to choose by; None if there are not enough, or nothing to choose. Samples that can be gone through
    only once are not enough."""
    data = evidence.samples
    if not evidence.chooses or data is None or isinstance(data, Iterator) or scheme == "float16":
        return None
    samples = data if isinstance(data, Span) else Span.of(data, Entry.of(read(source)), evidence.images)
    return samples if len(samples) >= FEWEST else None


def _near(
    work: Work,
    rules: tuple[Rule, ...],
    statistics: Sequence[FilePath | Statistics],
    samples: Span,
    least: float,
    metric: Metric | None,
) -> tuple[Network, Search]:
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

    def build(float_rules: Sequence[Rule]) -> Network:
        return work.build((*float_rules, *rules), lambda _: seen, moments)

    named = "decibels" if metric is None else getattr(metric, "__name__", "metric")
    with closing(FloatNetwork(work.source)) as floats:

        def measure(float_rules: Sequence[Rule]) -> float:
            outputs = floats.beside_bytes(build(float_rules).data, judge)
            if metric is None:
                return decibels(outputs)
            each, others = zip(*outputs, strict=True)
            return float(metric(list(each), list(others)))

        attributes = {"metric": named, "calibrated": split, "judged": min(len(judge), MOST)}
        search = restore_float(build(()).rows, measure, least, attributes)
    return build(rules_of(search)), search


def _samples(source: FilePath, data: Any, images: Images | None, what: str) -> Span:
    """All samples, to go through several times. OptionError, which says what they are for, if none are given."""
    if isinstance(data, Span):
        return data
    if data is None:
        raise OptionError(Reason(what, remedy="give samples: --calibration"))
    return Span.of(data, Entry.of(read(source)), images)


def _listed(statistics: OneStatistics | Sequence[OneStatistics] | None) -> list[FilePath | Statistics]:
    """The statistics of the call. OptionError for what is none."""
    if statistics is None:
        return []
    several = statistics if isinstance(statistics, (list, tuple)) else [statistics]
    listed: list[FilePath | Statistics] = []
    for each in several:
        one = each.statistics if isinstance(each, Calibration) else each
        if not isinstance(one, (str, os.PathLike, Statistics)):
            raise not_expected("statistics", one, _OF_STATISTICS)
        listed.append(one)
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
    _check_enough(samples)
    return moments_of(source, samples)


def _check_enough(samples: Span) -> None:
    """OptionError if no samples could be held back."""
    if len(samples) < 2:
        what = f"{len(samples)} samples are too few to round weights by some and judge by others"
        raise OptionError(Reason(what, value=len(samples), remedy="give two at least"))
