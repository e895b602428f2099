"""`tflq.calibrate`: what a model's values are on samples, as a file of statistics."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from tflq.analysis.statistics import (
    FileFormat,
    Joining,
    PointStatistics,
    Statistics,
    check_form,
    keys_of,
    merge_statistics,
    read_statistics,
    write_in_form,
    write_statistics,
)
from tflq.base.arguments import check_flags, check_number
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, check_outputs
from tflq.dialects.effects import callees
from tflq.dialects.regions import StatsRef
from tflq.formats.mlir.annotations import drop_annotations
from tflq.formats.sources import on_disk, read, write
from tflq.formats.tflite.lowering.naming import NameTensors
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.text.print_types import type_text
from tflq.ir.types import CalibratedQuantizedType, ElementType, f32
from tflq.tools.quantize.calibration.collecting import Place, Seen, Watched, in_order, observe
from tflq.tools.quantize.calibration.inside import watch_inside
from tflq.tools.quantize.regions.ranges import same_value
from tflq.tools.samples.files import Images, Level, Samples, files_of
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Batches, drawn, samples_of

SAVED_EVERY: Final = 5.0
"""Seconds after which what was seen is saved, so that a run that is killed can be resumed."""
_LONGEST_STEM: Final = 250
"""Bytes of a name to which five can be added in all common file systems."""
Observer = Callable[[int, int | None], None]
"""Is told how many samples are done, of how many, if that is known."""


@dataclass(frozen=True)
class Calibration:
    """Statistics of a calibration.

    Attributes:
        statistics: Of each float tensor that is not a constant, by its name.
        reused: The points whose earlier statistics still held.
    """

    statistics: Statistics
    reused: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Output of `tflq calibrate --json`: docs/json.md."""
        return {
            "format": "tflq.calibration",
            "version": 1,
            "samples": len(self.statistics.samples),
            "points": len(self.statistics.points),
            "reused": list(self.reused),
        }


def calibrate(
    source: FilePath,
    data: Any,
    destination: FilePath | None = None,
    *,
    signature: str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    histogram: bool = True,
    ignore_nonfinite: bool = False,
    mean: Level | None = None,
    scale: Level | None = None,
    workers: int = 1,
    resume: bool = False,
    format: FileFormat = "tflq",
    range: str = "minmax",
    force: bool = False,
    observer: Observer | None = None,
) -> Calibration:
    """Runs a model on samples, and gathers what its float values are.

    Args:
        source: The path of a TFLite model, or of text (.mlir). Of text with points (`quant.stats_ref`, as
            quant-instrument puts them) those are gathered, under their keys, for quant-apply-stats.
        data: Samples, in any form of docs/data.md: the path of an .npz or .npy file or of a folder; arrays by input
            name whose first dims count samples; an iterable of arrays, of mappings by input name, or of lists in the
            order of the inputs; or a function that returns one.
        destination: Where the file of statistics goes.
        signature: The entry that is run, by its key; by default the only one, else the first subgraph.
        samples: At most so many samples: the first ones.
        seed: Draws `samples` at random instead, in their order.
        histogram: Whether elements are counted in bins, which the ranges `percentile` and `mse` need.
        ignore_nonfinite: Counts NaN and infinity and goes on. Without it they are an error.
        mean: For images: subtracted from each pixel (0 to 255), a number or one for each channel.
        scale: For images: multiplies the difference, a number or one for each channel.
        workers: Processes that run the model. The statistics do not depend on it.
        resume: Goes on with a run that was interrupted, from the file DESTINATION.part, and takes what still holds of
            DESTINATION.
        format: What the file is: "tflq", with all that was seen, or "ai-edge-quantizer", as its
            `save_calibration_result` writes it: a range of each tensor. `tflq.quantize` takes both.
        range: Which range goes into that: "minmax", "ema", "percentile:99.9" or "mse".
        force: Replaces the destination if it is there.
        observer: Is told how many samples are done.

    Returns:
        What was seen.

    Raises:
        OptionError: A model without float tensors; no samples; samples of another shape, dtype or name; values that
            are not finite; options that do not fit.
        InvalidModelError: The interpreter refuses the model.
        FileError: A file cannot be read or written.

    Example:
        ```python
        import numpy as np

        samples = [np.random.rand(1, 8).astype(np.float32) for _ in range(10)]
        calibration = tflq.calibrate("float.tflite", samples, "statistics.json")
        point = calibration.statistics.points["x"]
        print(point.minimum, point.maximum)
        ```
    """
    check_flags(histogram=histogram, ignore_nonfinite=ignore_nonfinite, resume=resume, force=force)
    check_number("samples", samples, 1, whole=True, optional=True)
    check_number("workers", workers, 1, whole=True)
    check_form(format, range, histogram=histogram)
    if destination is not None:
        check_outputs([("the statistics", destination)], inputs=[source, *files_of(data)], force=force or resume)
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        model = _Model(os.fspath(source), signature, folder, bins=histogram)
        if not model.digests:
            what = "none of its tensors is float: there is nothing to calibrate"
            raise OptionError(Reason(what, os.fspath(source), remedy="give the float network that it was made of"))
        every = samples_of(data, model.entry, Images.of(mean, scale), labelled=False)
        chosen_samples = drawn(every, samples, seed)
        part = None if destination is None else _part(Path(destination))
        run = _Run(model, part, chosen_samples.path, ignore_nonfinite=ignore_nonfinite, observer=observer)
        if resume and destination is not None and part is not None:
            earlier = next((place for place in (part, Path(destination)) if place.exists()), None)
            if earlier is not None:
                run.resume(read_statistics(earlier))
        statistics = run.all(chosen_samples, workers)
    if destination is not None and part is not None:
        write_in_form(destination, statistics, format, range, force=True)
        part.unlink(missing_ok=True)
    return Calibration(statistics, tuple(run.before.points))


def _part(destination: Path) -> Path:
    """Where the statistics of the samples so far are, beside the whole ones; no longer than names may be."""
    name = os.fsencode(destination.name)
    return destination.with_name(os.fsdecode(name[:_LONGEST_STEM] + b".part"))


class _Model:
    """A model to calibrate: its entry, and the values that are watched, by key."""

    def __init__(self, source: str, signature: str | None, folder: str, *, bins: bool) -> None:
        """folder: where a file may be made of text."""
        path, points = as_file(source, folder)
        module = read(path)
        self.entry = entry = Entry.of(module, signature)
        called = module.functions[entry.function]
        places = entry.places(module)
        known = digests(called)
        keys = points_of(called, places)
        if points is not None:
            keys = {value: points[value.name] for value in keys if value.name in points}
        self.digests = {key: known[value] for value, key in keys.items()}
        inputs, order = (tuple(input_.name for input_ in side) for side in (entry.inputs, entry.in_run_order))
        watched: list[Place] = [places[value] for value in keys]
        if points is None and any(callees(op) for op in called.ops):
            path, ends = self._inside(module, os.path.join(folder, "inside.tflite"))
            watched += ends
        self.watched = Watched(path, entry.key, inputs, order, tuple(watched), bins)

    def _inside(self, module: Module, path: str) -> tuple[str, list[Place]]:
        """A file of the module that returns the ends of what operators run, and the places of these. Their points are
        added, where no other has the key."""
        known = {function: digests(function) for function in module.functions}
        keys = {function: points_of(function, values) for function, values in known.items()}
        called, places = module.functions[self.entry.function], list[Place]()
        for each in watch_inside(module, called):
            key = keys[each.function][each.value]
            if key not in self.digests:
                self.digests[key] = known[each.function][each.value]
                numbers = len(called.tensors), len(called.tensors) + 1
                called.tensors += [each.least, each.largest]
                places.append((self.entry.function, *numbers))
        write(module, path)
        return path, places

    def only(self, keys: Sequence[str]) -> Watched:
        """These points alone."""
        places = dict(zip(self.digests, self.watched.places, strict=True))
        return replace(self.watched, places=tuple(places[key] for key in keys))


class _Run:
    """One calibration: samples go to processes, in order, and what these saw is joined."""

    def __init__(
        self, model: _Model, part: Path | None, data: str, *, ignore_nonfinite: bool, observer: Observer | None
    ) -> None:
        """data: the path of the samples, for messages."""
        self.model = model
        self.part = part
        self.data = data
        self.ignore_nonfinite = ignore_nonfinite
        self.observer = observer
        self.before = Statistics({})
        self.done = 0
        self.saved = time.monotonic()

    def resume(self, earlier: Statistics) -> None:
        """Takes over what still holds of earlier statistics, which are of the first samples."""
        if not earlier.samples:
            return
        same = {k: p for k, p in earlier.points.items() if p.digest and p.digest == self.model.digests.get(k)}
        self.before = Statistics(same, earlier.samples)

    def all(self, samples: Samples, workers: int) -> Statistics:
        """Statistics of all samples, with the earlier ones that are still valid. OptionError if there are none."""
        batches, joining = Batches(samples), Joining()
        if count := len(self.before.samples):
            stale = [key for key in self.model.digests if key not in self.before.points]
            measured = merge_statistics(self._unchanged(self._seen(batches, stale, workers, samples.count, count)))
            points = {key: self.before.points.get(key) or measured.points[key] for key in self.model.digests}
            joining.add(Statistics(points, self.before.samples))
        for part in self._seen(batches, list(self.model.digests), workers, samples.count):
            joining.add(part)
            if self.part is not None and time.monotonic() - self.saved > SAVED_EVERY:
                write_statistics(self.part, joining.result(), force=True)
                self.saved = time.monotonic()
        if not joining:
            raise OptionError(Reason("there are no samples to calibrate with", self.data, remedy="give at least one"))
        return joining.result()

    def _unchanged(self, parts: Iterable[Statistics]) -> Iterator[Statistics]:
        """Statistics of the first samples again, which are those of the earlier statistics. OptionError if not."""
        done = 0
        for part in parts:
            for digest in part.samples:
                if digest != self.before.samples[done]:
                    what = f"sample {done} is not the one that the statistics to resume are of"
                    raise OptionError(Reason(what, self.data, value=done, remedy="give the same data, or start anew"))
                done += 1
            yield part
        if done < len(self.before.samples):
            what = f"the statistics to resume are of {len(self.before.samples)} samples, and the data has {done}"
            raise OptionError(Reason(what, self.data, value=done, remedy="give the same data, or start anew"))

    def _seen(
        self, batches: Batches, keys: list[str], workers: int, count: int | None, most: int | None = None
    ) -> Iterator[Statistics]:
        """Statistics at these points, batch by batch, in the order of the samples. most: of so many samples."""
        watched = self.model.only(keys)
        for seen in in_order(observe, watched, batches.of(most), workers):
            yield self._statistics(seen, keys)
            if self.observer is not None:
                self.observer(self.done, count)

    def _statistics(self, seen: Seen, keys: list[str]) -> Statistics:
        """The next batch's."""
        if not self.ignore_nonfinite and seen.counts[1:].any():
            row, column = np.argwhere(seen.counts[1:].any(axis=0))[0]
            number = self.done + int(column)
            what = f"sample {number} gives NaN or infinity at '{keys[row]}'"
            remedy = "mend the sample, or leave out what is not finite: tflq calibrate --ignore-nonfinite"
            raise OptionError(Reason(what, self.data, tensor=keys[row], value=number, remedy=remedy))
        self.done += len(seen.samples)
        points = statistics_of(seen, [self.model.digests[key] for key in keys])
        return Statistics(dict(zip(keys, points, strict=True)), seen.samples)


def statistics_of(seen: Seen, digests: Sequence[str]) -> Iterator[PointStatistics]:
    """Statistics of the point of each watched tensor."""
    empty = np.isnan(seen.least)
    lows, highs = (side.astype(object) for side in (seen.least, seen.largest))
    lows[empty] = highs[empty] = None
    for row, digest in enumerate(digests):
        finite, infinite, nan = (int(kind[row].sum()) for kind in seen.counts)
        yield PointStatistics(
            finite,
            min((v for v in lows[row] if v is not None), default=None),
            max((v for v in highs[row] if v is not None), default=None),
            sample_minima=tuple(lows[row].tolist()),
            sample_maxima=tuple(highs[row].tolist()),
            bins=seen.bins[row] if seen.bins else {},
            nan=nan,
            infinite=infinite,
            digest=digest,
        )


# Text as a model to run: a TFLite file made of it, in which the points of `quant.stats_ref` are tensors with names.


def as_file(path: FilePath, folder: str) -> tuple[str, Mapping[str, str] | None]:
    """The TFLite file to run for a model, and the keys of its points by the names of tensors there; None without
    points. A file of TFLite is the file itself; one is made of text, in a folder. Errors as of `tflq.read`."""
    if Path(path).suffix != ".mlir":
        return on_disk(path, folder), None
    module = read(path)
    points = _points(module)
    drop_annotations(module)
    NameTensors().run(module)
    instrumented = os.path.join(folder, "instrumented.tflite")
    write(module, instrumented)
    remaining = {value for function in module.functions for value in function.values()}
    names = {next(v for v in values if v in remaining).name: key for key, values in points.items()}
    return instrumented, names or None


def _points(module: Module) -> dict[str, list[Value]]:
    """By the key of each point the values that are its value: one of them stays when the points go."""
    return {op.stats_key: [op.result, op.arg, same_value(op.arg)] for op in module.ops() if isinstance(op, StatsRef)}


def points_of(function: Function, known: Container[Value]) -> dict[Value, str]:
    """The key of each float value of a function that is not a constant, of those that are known. A file may record a
    range of it."""
    watched = [v for v in function.values() if _is_float(v.type.element) and not v.is_constant and v in known]
    return keys_of(function, watched, set())


def _is_float(element: ElementType) -> bool:
    return element == f32 or (isinstance(element, CalibratedQuantizedType) and element.expressed == f32)


# Digests: a hash of what produces a value, equal where it is computed in the same way from the same inputs and
# constants, whatever else the model has.


_BYTES = 16


def digests(function: Function) -> dict[Value, str]:
    """The digest of each value of a function, as hexadecimal digits. Inputs are told apart by place, and by type;
    constants by what they hold; names do not count."""
    known = {value: _hash("input", place, type_text(value.type)) for place, value in enumerate(function.inputs)}
    for op in function.ops:
        known |= zip(op.results, _of_results(op, known), strict=True)
    return known


def _of_results(op: Op, known: dict[Value, str]) -> list[str]:
    for value in op.operands:
        if value is not None and value not in known:
            known[value] = _hash("constant", type_text(value.type), _plain(value.buffer))
    operands = [known[value] if value is not None else "" for value in op.operands]
    inside = [digests(Function(None, b.arguments, [], b.ops)) for region in op.regions for b in region.blocks]
    nested = [list(digests_by_value.values()) for digests_by_value in inside]
    attributes = sorted((key, _plain(value)) for key, value in op.attributes.items())
    return [
        _hash(op.name, attributes, operands, nested, place, type_text(v.type)) for place, v in enumerate(op.results)
    ]


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=_BYTES).hexdigest()


def _plain(value: Any) -> object:
    """The object that stands for an attribute or a buffer in a hash: long data are hashed separately."""
    if isinstance(value, Buffer):
        return _plain(value.data)
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value)
        return value.dtype.str, value.shape, hashlib.blake2b(data.view(np.uint8).data if data.size else b"").hexdigest()
    if isinstance(value, Mapping):
        return sorted((str(key), _plain(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)
