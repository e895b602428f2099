"""`tflq.quantize`: a network of floats becomes one of quantized operators, by ranges that were seen."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from tflq.analysis.statistics import Statistics, read_statistics
from tflq.base.arguments import check_choice, check_flags, check_number, check_path
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, check_outputs, replace_files
from tflq.formats.backend import DEFAULT, named_by
from tflq.formats.sources import on_disk, read
from tflq.targets.load import check_kernel_target
from tflq.targets.target import RulesFile
from tflq.tools.quantize.building import Network, Work
from tflq.tools.quantize.choosing import (
    AUTO,
    FEWEST,
    Choice,
    by_range,
    chosen_methods,
    corrected_methods,
    corrected_network,
    equalized_by,
    equalized_work,
    fitted_network,
    noted_network,
    of_all_samples,
    seen_by,
)
from tflq.tools.quantize.evidence import (
    Evidence,
    OneStatistics,
    listed_statistics,
    need_of_samples,
    not_run,
    read_samples,
)
from tflq.tools.quantize.fidelity import Metric, Nearness
from tflq.tools.quantize.methods import Methods, methods_of, recipe_text
from tflq.tools.quantize.peer_recipe import PeerRecipe, is_peer_recipe, read_peer_recipe
from tflq.tools.quantize.recipe import (
    SCHEMES,
    STATIC,
    Recipe,
    Rule,
    Scheme,
    Settings,
    fits_weights,
    opened_recipe,
    read_recipe,
    rounds_by_products,
    whole_settings,
)
from tflq.tools.quantize.report import Quantization, Trial
from tflq.tools.quantize.search.bounds import DECIBELS, Bounds, Figures, shown
from tflq.tools.quantize.search.judging import Completed, search_network
from tflq.tools.quantize.search.outcome import Search
from tflq.tools.quantize.stored_edges import EDGES, Edges
from tflq.tools.quantize.weights import Placed, moments_of
from tflq.tools.samples.files import Images, Level, files_of
from tflq.tools.samples.reading import Spans
from tflq.tools.verify.metrics import Score, nearness_of

WeightMethod = Literal["minmax", "mse", "octav", "gptq", "reconstruct"]
_FAR: Final = 3.0
"""Decibels that a search can be ahead on the samples that judge without a warning."""


def quantize(
    source: FilePath,
    destination: FilePath | None = None,
    *,
    scheme: Scheme | None = None,
    statistics: OneStatistics | Sequence[OneStatistics] | None = None,
    calibration: Any = None,
    mean: Level | None = None,
    scale: Level | None = None,
    range: str = "auto",
    io: Edges = "float",
    target: FilePath | None = None,
    keep_float: Sequence[str] = (),
    recipe: Recipe | None = None,
    weights: Literal["int8", "int4", "int2"] | None = None,
    blocks: int | None = None,
    weight_method: WeightMethod | None = None,
    weight_range: WeightMethod | None = None,
    min_snr: float | None = None,
    labels: Any = None,
    metric: str | Metric | None = None,
    max_drop: float | None = None,
    max_bytes: int | None = None,
    max_time: float | None = None,
    save_recipe: FilePath | None = None,
    force: bool = False,
) -> Quantization:
    """Quantizes a float network.

    Args:
        source: The path of a TFLite model.
        destination: Where the result goes, a TFLite model. None: it is only returned.
        scheme: "int8": activations and weights of 8 bits. "int16x8": activations of 16 bits, weights of 8. "dynamic":
            weights of 8 bits, activations quantized as the network runs. "weight-only": weights of 8 bits,
            dequantized before use. "float16": weights as float16. None: as a recipe says, else "int8".
        statistics: What calibration saw, for "int8" and "int16x8": a file of `tflq calibrate`, or its result; or a list
            of these, each of another signature. A network that was trained with fake quantization needs neither these
            nor samples.
        calibration: Samples to calibrate with instead, as `tflq.calibrate` takes them; of several signatures also by
            key, {KEY: samples}. The signal-to-noise ratio of the outputs is measured on them, unless they are an
            iterator; for schemes of weights they are for that, and for equalized channels.
        mean: For images: subtracted from each pixel (0 to 255), a number or one for each channel.
        scale: For images: multiplies the difference, a number or one for each channel.
        range: Which range follows from statistics: "minmax", "ema", "percentile:99.9" or "mse". "auto": the
            one that is nearest on the last quarter of `calibration`; channels are equalized and biases corrected where
            that is nearer. It is "minmax" alone with `statistics`, a `recipe`, an iterator, or less than 8 samples.
        io: What inputs and outputs are: floats, with casts behind and before them, or stored integers.
        target: A target's file, or "int8", "int16x8" or "uint8", whose kernels decide what is quantized; by default
            those of the scheme.
        keep_float: Patterns of tensors' names (`*`, `?`, `re:`): an operator that makes one of them stays float. Rules
            of a recipe, before its own.
        recipe: What is asked of single operators: a file, or a list of its rules as mappings (docs/quantize.md); or a
            recipe of ai-edge-quantizer or litert-quantizer, a file of JSON, which says the scheme, too. What a file
            says of the whole network no other argument may contradict.
        weights: What weights become: "int8", the default, "int4" or, for "dynamic" and "weight-only", "int2"; those of
            operators whose kernel takes fewer bits.
        blocks: How many weights of FULLY_CONNECTED in a row have one scale: 32, 64, 128 or 256, for "weight-only", and
            for "dynamic" of "int4". 0, the default: a channel has one.
        weight_method: Which range weights have then: "minmax", the default, "mse" or "octav"; or "gptq": the range of
            "mse", and weights are rounded so that products are near on `calibration`, where that is better on the last
            quarter of its samples. "reconstruct": weights and biases of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED
            are fitted to the inputs that the quantized network gives on `calibration`, where that is better on the last
            quarter.
        weight_range: The former name of `weight_method`.
        min_snr: The least signal-to-noise ratio of the outputs, in decibels, on samples that nothing was calibrated
            with: the last quarter of `calibration`, or all where ranges are from `statistics`, or the scheme is of
            weights alone. With any bound, operators are searched that get 16 bits (int8), weights of 8 bits (of fewer),
            or stay float. An interruption (KeyboardInterrupt) ends the search with the best so far.
        labels: Where the labels of `calibration` are: the key of an array in it, a file, or an array (docs/data.md).
        metric: "top-1" or "top-5" of labels, "agreement", "cosine", "kl" or "mae": it is measured, too. Or a function
            of the float and of the quantized outputs, a list each with the list of arrays of each sample, which is
            measured in place of decibels: what it returns is to be at least `min_snr`.
        max_drop: By how much the metric may be worse than that of the float network. Without a metric it is "top-1" of
            labels that are classes, "mae" of others.
        max_bytes: The most bytes of the file. Without a bound of fidelity the outputs are as near as possible within.
        max_time: The longest time of a run, in milliseconds, on one thread of this machine.
        save_recipe: Where the recipe goes, TOML, that repeats the result with the same samples, io and target; none is
            written if the destination cannot be.
        force: Replaces the destination and the recipe if they are there.

    Returns:
        The quantized network, and what became of each operator.

    Raises:
        OptionError: Options that do not fit, statistics of another model, a pattern that fits nothing, an input or
            output that cannot be stored as integers, bounds that no network keeps within.
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
    method = weight_method if weight_range is None else weight_range
    check_path("source", source, optional=False)
    options = {"scheme": scheme, "range": range, "weights": weights, "blocks": blocks, "weight_method": method}
    peer, file, methods, default = _request(source, recipe, options)
    check_choice("io", io, EDGES)
    check_flags(force=force)
    check_kernel_target(target)
    images = Images.of(mean, scale)
    listed = listed_statistics(statistics)
    _check_suffix(destination)
    inputs = source, *listed, *files_of(calibration), labels, recipe, target
    check_outputs([("the result", destination), ("the recipe", save_recipe)], inputs=inputs, force=force)
    numbers = () if peer is None else peer.numbers
    rules = read_recipe(file, keep_float, default, path="" if peer is None else str(recipe), numbers=numbers)
    chooses = range == AUTO and recipe is None and not listed and not isinstance(calibration, Iterator)
    searches = any(bound is not None for bound in (min_snr, max_drop, max_bytes, max_time))
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        source = on_disk(source, folder)
        module = read(source)
        need = need_of_samples(rules, methods, default, searches=searches)
        samples, names, metric = read_samples(calibration, module, images, labels, need, metric, max_drop)
        bounds = _bounds(min_snr, metric, max_drop, max_bytes, max_time)
        work = Work(source, default, target, io, has_statistics=bool(listed))
        seen = [each if isinstance(each, Statistics) else read_statistics(each) for each in listed]
        evidence = Evidence(seen, samples, images, names, methods, chooses, bool(bounds))
        data, result = _quantized(work, rules, evidence, folder, bounds, metric)
        files = [(destination, data), (save_recipe, result.recipe.encode())]
        replace_files([(place, [content]) for place, content in files if place is not None], force=force)
    more = [*_renamed(weight_range), *(peer.warnings if peer else ())]
    if default.scheme in STATIC and samples is not None and not listed:
        more += not_run(module, samples)
    return replace(result, warnings=(*more, *result.warnings))


def _request(
    source: FilePath, recipe: Recipe | None, options: Mapping[str, Any]
) -> tuple[PeerRecipe | None, RulesFile | Recipe | None, Methods, Settings]:
    """A peer's recipe, if it is one; what the rules are read from; the methods; and the settings of the whole network.
    options: the settings of the call; None where it says nothing. OptionError where the recipe says otherwise."""
    if options["scheme"] is not None:
        check_choice("scheme", options["scheme"], SCHEMES)
    peer = read_peer_recipe(recipe, read(source)) if is_peer_recipe(recipe) else None
    file = opened_recipe(recipe if peer is None else peer.rules)
    top = file if isinstance(file, RulesFile) else None
    explicit = {key: value for key, value in options.items() if value not in (None, AUTO)}
    methods = methods_of(top, explicit.get("range", "minmax"))
    call = Settings(**{"scheme": "int8", **explicit, "range": methods.range})
    default = whole_settings(top, call if peer is None else replace(call, scheme=peer.scheme))
    for key, value in explicit.items():
        if (other := getattr(default, key)) != value:
            what = f"{key}={value!r} contradicts the recipe, by which {key} is {other!r}"
            raise OptionError(Reason(what, str(recipe), value=value, remedy="leave out one of them"))
    default.check()
    return peer, file, methods, default


def _bounds(
    min_snr: float | None,
    metric: str | Metric | None,
    max_drop: float | None,
    max_bytes: int | None,
    max_time: float | None,
) -> Bounds:
    """The bounds of a call. OptionError for those that make no sense."""
    check_number("min_snr", min_snr, -math.inf, optional=True)
    check_number("max_drop", max_drop, 0, optional=True)
    if metric is None and max_drop is not None:
        raise OptionError(
            Reason("a drop is of a metric", value=max_drop, remedy="give --metric, or samples with labels")
        )
    if isinstance(metric, str):
        bounds = Bounds(min_snr, None, max_bytes, max_time, metric if max_drop is not None else DECIBELS, max_drop)
    elif metric is None:
        bounds = Bounds(min_snr, None, max_bytes, max_time)
    elif min_snr is None and max_drop is None:
        raise OptionError(
            Reason("a metric needs the number that it is to reach", remedy="give --max-drop, or --min-snr")
        )
    else:
        name = f"{getattr(metric, '__name__', 'metric')}()"
        bounds = Bounds(None, min_snr, max_bytes, max_time, name, max_drop)
    bounds.check()
    return bounds


def _quantized(
    work: Work, rules: tuple[Rule, ...], evidence: Evidence, folder: str, bounds: Bounds, metric: str | Metric | None
) -> tuple[bytes, Quantization]:
    """The file of the network, and what became of it, by a search if it has bounds. folder: for the networks
    between."""
    source, methods, spans = work.source, evidence.methods, evidence.spans
    trials, tensors, search = tuple[Trial, ...](), frozenset[str](), None
    chooses = evidence.chooses and spans is not None and spans.least >= FEWEST and work.default.scheme != "float16"
    if spans is not None and chooses:
        work, trials, tensors = equalized_work(work, rules, spans, folder)
        methods = replace(methods, equalize=bool(tensors))
    elif spans is not None and methods.equalize:
        work, tensors = equalized_by(work, spans, folder)
    moments: Placed = {}
    if spans is not None and rounds_by_products(rules, work.default):
        moments = moments_of(work.source, spans)
    choice: Choice | None = None
    if spans is not None and chooses and work.default.scheme in STATIC:
        choice = chosen_methods(work, rules, spans, biases=not bounds)
        methods, trials = replace(choice.methods, equalize=methods.equalize), trials + choice.trials
    completing = _Completing(work, evidence, methods, moments, choice)
    if bounds:
        completed, rules, search = _searched(completing, rules, bounds, metric)
    elif choice is not None and spans is not None:
        choice = choice._replace(methods=methods)
        completed = Completed(*of_all_samples(work, spans, choice, lambda by: completing.network(rules, by)))
    else:
        completed = Completed(completing.network(rules, methods), methods)
    network = noted_network(completed.network, tensors)
    near, scores = evidence.nearness(source, network)
    return network.data, Quantization(
        network.module,
        network.rows,
        work.default.scheme,
        os.path.getsize(source),
        len(network.data),
        near.decibels,
        search,
        near.agreement,
        (*network.warnings, *(_warnings(search, bounds, near, scores, evidence) if search else near.warnings())),
        trials + completed.trials,
        recipe_text(rules, completed.methods, work.default),
        scores,
    )


class _Completing(NamedTuple):
    """The last step: the network of all samples. choice: of the methods, if samples chose them."""

    work: Work
    evidence: Evidence
    methods: Methods
    moments: Placed
    choice: Choice | None

    def network(self, rules: tuple[Rule, ...], methods: Methods) -> Network:
        """The network by rules and methods."""
        work, spans = self.work, self.evidence.spans
        by = by_range(work, methods.range)
        network = by.build(rules, lambda bins: self.evidence.seen(work, methods, bins), self.moments)
        if spans is not None and methods.correct_biases and work.default.scheme in STATIC:
            network = corrected_network(work, network, spans)
        if spans is not None and fits_weights(rules, work.default):
            network = fitted_network(work, rules, network, spans)
        return network

    def after(self, rules: tuple[Rule, ...], search: Search) -> Completed:
        """The network by the rules that a search ends with, biases corrected where that is nearer."""
        methods, trials, spans = self.methods, tuple[Trial, ...](), self.evidence.spans
        if self.choice is not None and spans is not None and not search.interrupted:
            choice = self.choice._replace(methods=methods)
            methods, trials = corrected_methods(self.work, rules, spans, choice, search.after.decibels)
        return Completed(self.network(rules, methods), methods, trials)


def _warnings(
    search: Search, bounds: Bounds, near: Nearness, scores: Sequence[Score], evidence: Evidence
) -> Sequence[str]:
    """The warnings of a search, and one if outputs are less near on all samples than they have to be. Where that is not
    bounded, it is for outputs far less near than on those that judge."""
    warnings = search.warnings()
    if not search.reached or near.decibels is None or bounds.metric not in (DECIBELS, *evidence.metrics):
        return warnings
    figures = Figures(near.decibels, near.decibels, search.after.bytes)
    if bounds.metric != DECIBELS:
        bounds = bounds.below(nearness_of(replace(scores[0], value=scores[0].original)))
        figures = replace(figures, value=nearness_of(scores[0]))
    what = f"on all samples it has {shown(figures, bounds.metric)}"
    if not bounds.near_enough(figures):
        what += f", less near than it has to be, and is on the {search.judged} that judge"
    elif not bounds.of_fidelity and near.decibels < search.after.decibels - _FAR:
        what += f", and {search.after.decibels:.2f} dB on the {search.judged} that judge"
    else:
        return warnings
    return [*warnings, f"{what}: give more samples, or another --range"]


def _searched(
    completing: _Completing, rules: tuple[Rule, ...], bounds: Bounds, metric: str | Metric | None
) -> tuple[Completed, tuple[Rule, ...], Search]:
    """The network within bounds, its rules, and the search for it."""
    work, evidence, methods, _, choice = completing
    assert evidence.spans is not None

    def seen(first: Spans) -> Sequence[Statistics]:
        return seen_by(work, first, methods) if choice is None else choice.seen

    return search_network(
        by_range(work, methods.range),
        rules,
        evidence.spans,
        bounds,
        completing.after,
        seen=evidence.statistics or seen,
        metric=metric if bounds.metric != DECIBELS else None,
        is_chosen=choice is not None,
    )


def _check_suffix(destination: FilePath | None) -> None:
    """OptionError for a destination of another format."""
    if destination is not None and named_by(destination) != DEFAULT:
        what = f"the suffix says another format than {DEFAULT}"
        remedy = "quantize to a .tflite file, and convert this"
        raise OptionError(Reason(what, os.fspath(destination), remedy=remedy))


def _renamed(weight_range: str | None) -> list[str]:
    return [] if weight_range is None else ["weight_range has the name weight_method now"]
