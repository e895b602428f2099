"""`tflq.debug`: which operators of a quantized network are wrong, on samples.

How much of the outputs' error each of them makes: its own error is added to the float network, alone, where its result
is, and what the outputs then are off is that error. The powers of these errors are added up, as if they were
independent. Where there are many operators, only the outputs and the worst are taken alone; the error of the others is
added together, and divided by their own errors.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from tflq.base.arguments import check_flags, check_number
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, check_outputs, replace_files, text_bytes
from tflq.dialects.effects import callees, is_pure
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.tfl.casts import Dequantize
from tflq.formats.sources import on_disk, read, write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import copied
from tflq.ir.text.print_types import shape_text
from tflq.ir.types import TensorType, UniformQuantizedType
from tflq.tools.quantize.calibration.calibrate import Observer
from tflq.tools.quantize.calibration.collecting import in_order
from tflq.tools.quantize.debugging.measuring import (
    CAST,
    CLIPPED,
    COUNT,
    LEFT_OUT,
    NOISE,
    POWER,
    PRODUCT,
    SIGNAL,
    UNKNOWN,
    Compared,
    Plan,
    Sums,
    Tensor,
    compare,
    influence,
)
from tflq.tools.quantize.debugging.outcome import Advice, Debugging, DebugRow, TensorError, debug_page
from tflq.tools.quantize.debugging.pairing import Pair, Pairing, Side, alone, fits, paired
from tflq.tools.quantize.fidelity import FloatNetwork
from tflq.tools.samples.files import Batch, Images, Level, Samples, files_of
from tflq.tools.samples.inputs import Entry
from tflq.tools.samples.reading import Batches, drawn, samples_of
from tflq.tools.verify.difference import in_decibels
from tflq.tools.verify.metrics import Score, Scoring, check_metrics, default_metrics

FIRST: Final = 4
"""Batches of samples on which the influence of each operator is measured."""


def debug(
    floats: FilePath,
    quantized: FilePath,
    data: Any,
    *,
    signature: str | None = None,
    samples: int | None = None,
    seed: int | None = None,
    mean: Level | None = None,
    scale: Level | None = None,
    labels: Any = None,
    metric: str | Sequence[str] = (),
    workers: int = 1,
    csv: FilePath | None = None,
    html: FilePath | None = None,
    force: bool = False,
    observer: Observer | None = None,
) -> Debugging:
    """Runs a float network and its quantized one on samples, and finds where they differ, operator by operator.

    The two can come from any tool: operators are matched by the names of their results.

    Args:
        floats: The path of the float network, a TFLite model.
        quantized: The path of the quantized one.
        data: Samples, as `tflq.calibrate` takes them, for the float network; better not those of the calibration.
        signature: The entry that is run, by its key; by default the only one, else the first subgraph.
        samples: At most so many samples: the first ones.
        seed: Draws `samples` at random instead, in their order.
        mean: For images: subtracted from each pixel (0 to 255), a number or one for each channel.
        scale: For images: multiplies the difference, a number or one for each channel.
        labels: Where the labels of the samples are: the key of an array in them, a file, or an array (docs/data.md).
        metric: Metrics of the outputs: "top-1" and "top-5" of labels, "agreement", "cosine", "kl", "mae".
        workers: Processes that run the models.
        csv: Where the rows go as CSV.
        html: Where a page goes. It needs jinja2 (`tflq[verify]`).
        force: Replaces these files if they are there.
        observer: Is told how many samples are done.

    Returns:
        The errors of each operator, worst first, and what to do about them.

    Raises:
        OptionError: No samples, or such that do not fit; networks of other inputs or outputs, without a common tensor,
            or in the other order.
        InvalidModelError: A file is not a valid model, or the interpreter refuses it.
        FileError: A file cannot be read or written.

    Example:
        ```python
        import numpy as np

        samples = [np.random.rand(1, 8).astype(np.float32) for _ in range(20)]
        tflq.quantize("float.tflite", "int8.tflite", calibration=samples[:10])
        result = tflq.debug("float.tflite", "int8.tflite", samples[10:])
        print(result.rows[0].tensor, result.rows[0].own, result.advice)
        ```
    """
    check_flags(force=force)
    check_number("samples", samples, 1, whole=True, optional=True)
    check_number("workers", workers, 1, whole=True)
    metrics = check_metrics(metric)
    check_outputs(
        [("the CSV", csv), ("the page", html)], inputs=[floats, quantized, *files_of(data), labels], force=force
    )
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        networks = _Networks(on_disk(floats, folder), on_disk(quantized, folder), signature)
        data = list(data) if isinstance(data, Iterator) and metrics else data
        read_again = (data, networks.entries[0], Images.of(mean, scale), labels)
        chosen_samples = drawn(samples_of(*read_again), samples, seed)
        plan = networks.plan(Path(folder, "alone.tflite"))
        run = _Run(plan, chosen_samples, workers, observer)
        sums = run.compared()
        further = networks.with_errors(plan, sums, Path(folder, "injected.tflite"))
        powers = run.influences(further)
        names = default_metrics(metrics, chosen_samples.labels)
        scores = networks.scores(names, drawn(samples_of(*read_again), samples, seed)) if names else ()
    result = replace(networks.outcome(further, sums, run.done, powers), scores=scores)
    pages = ((csv, result.to_csv), (html, lambda: debug_page(result)))
    replace_files([(place, [text_bytes(text())]) for place, text in pages if place is not None], force=force)
    return result


class _Networks:
    """Two networks, and what of them belongs together."""

    def __init__(self, floats: str, quantized: str, signature: str | None) -> None:
        self.paths = floats, quantized
        modules = read(floats), read(quantized)
        _check_order(*modules, self.paths)
        self.entries = [Entry.of(module, signature) for module in modules]
        if len({bool(entry.key) for entry in self.entries}) > 1:  # only one has signatures: both by position
            self.entries = [
                Entry.first(module) if entry.function else replace(entry, key="")
                for module, entry in zip(modules, self.entries, strict=True)
            ]
        sides = [side_of(module, entry) for module, entry in zip(modules, self.entries, strict=True)]
        self.places = self.entries[0].places(modules[0]) | self.entries[1].places(modules[1])
        for what in ("inputs", "outputs"):
            counts = [len(getattr(side, what)) for side in sides]
            if counts[0] != counts[1]:
                text = f"the float network has {counts[0]} {what}, and the quantized one {counts[1]}"
                raise _unrelated(text, quantized)
        self.floats, self.quantized = sides
        self.inputs = self.entries[0].in_run_order
        for what, one, other in zip(("input", "output"), *map(_ends_of, sides), strict=True):
            _check_ends(what, one, other, quantized)
        self.pairing = paired(self.floats, self.quantized)
        if not is_related(self.pairing, self.floats):
            raise _unrelated("no operators of the two networks have results of the same name", quantized)
        self.requantized = _requantized(self.quantized.function)

    def scores(self, names: Sequence[str], samples: Samples) -> tuple[Score, ...]:
        """The metrics of the outputs, of all samples."""
        scoring = Scoring(names, samples.labels)
        with closing(FloatNetwork(self.paths[0], entry=self.entries[0])) as floats:
            for each, other in floats.beside(self.paths[1], samples.arrays, most=None):
                scoring.add(each, other)
        return scoring.scores()

    def plan(self, path: Path) -> Plan:
        """The plan of a process. path: where the file of float operators alone goes."""
        single = [pair for pair in self.pairing.pairs if pair.ops and not pair.obstacle]
        if single:
            write(alone(single), path)
        outputs = {pair: place for place, pair in enumerate(single)}

        def tensor(value: Value) -> Tensor:
            return Tensor(self.places[value], value.type)

        compared = tuple(
            Compared(
                tensor(pair.real),
                tensor(pair.stored),
                tuple(tensor(value) for _, value in pair.fed),
                outputs.get(pair, UNKNOWN if pair.ops else CAST),
                _ends(pair.stored.type),
            )
            for pair in self.pairing.pairs
        )
        order = tuple((place, value.type) for place, value in enumerate(self.quantized.inputs))
        keys = self.entries[0].key, self.entries[1].key
        names = tuple(input_.name for input_ in self.inputs)
        return Plan(*self.paths, str(path) if single else "", keys, names, order, compared)

    def with_errors(self, plan: Plan, sums: Sums, path: Path) -> Plan:
        """The plan of a run that adds own errors to the float network; without groups where that cannot be. path: where
        the file goes."""
        groups = grouped(_noise(plan, sums), self.pairing.outputs) if can_inject(self.floats) else []
        if not groups:
            return plan
        write(injected(self.floats, self.pairing.pairs, groups), path)
        return replace(plan, injected=str(path), groups=tuple(groups))

    def outcome(self, plan: Plan, sums: Sums, count: int, powers: np.ndarray) -> Debugging:
        rows = [
            replace(_row(i, pair, plan.compared[i], sums), requantized=pair.stored in self.requantized)
            for i, pair in enumerate(self.pairing.pairs)
        ]
        if plan.groups:
            shares_of_pairs = shares(plan.groups, powers, _noise(plan, sums))
            rows = [
                row if row.own is None else replace(row, share=s) for row, s in zip(rows, shares_of_pairs, strict=True)
            ]
        ends = list(self.pairing.outputs)
        outputs = sums.reached[ends].sum(axis=0)
        return Debugging(
            *self.paths,
            count,
            _decibels(outputs) if ends else None,
            tuple(sorted(rows, key=lambda row: -row.badness)),
            tuple(advised(rows)),
            self.pairing.only_float,
            self.pairing.only_quantized,
            int(sums.reached[:, LEFT_OUT].sum()),
        )


def _unrelated(what: str, path: str) -> OptionError:
    return OptionError(Reason(what, path, remedy="give a network and what was made of it"))


def _ends_of(side: Side) -> tuple[Sequence[Value], Sequence[Value]]:
    return side.inputs, side.outputs


def _check_ends(what: str, floats: Sequence[Value], others: Sequence[Value], path: str) -> None:
    """OptionError if inputs or outputs of the two networks have other shapes."""
    for real, value in zip(floats, others, strict=True):
        if not fits(real.type, value.type):
            shapes = f"{shape_text(real.type)} in the float network, and {shape_text(value.type)} in the quantized one"
            raise _unrelated(f"{what} '{real.name}' is {shapes}", path)


def is_related(pairing: Pairing, floats: Side) -> bool:
    """Whether two networks belong together: they share the result of an operator, beside inputs and outputs, unless
    one of them has no other results."""
    shared = any(pair.ops and pair.real not in floats.outputs for pair in pairing.pairs)
    return bool(pairing.pairs) and (shared or not pairing.only_float or not pairing.only_quantized)


def _requantized(function: Function) -> set[Value]:
    """The quantized values that an operator reads as such: it would have them rounded again."""
    computing = (op for op in function.ops if not isinstance(op, Dequantize))
    return {value for op in computing for value in op.present_operands if value.type.quantized}


def _check_order(floats: Module, quantized: Module, paths: tuple[str, str]) -> None:
    """OptionError if it is the first network that is quantized, and not the second."""
    has = [any(v.type.quantized for op in module.ops() for v in op.tensors) for module in (floats, quantized)]
    if has == [True, False]:
        what = f"this network is quantized, and {paths[1]}, which is compared with it, is not"
        raise OptionError(Reason(what, paths[0], remedy="give the float network first"))


def _noise(plan: Plan, sums: Sums) -> list[float]:
    """The power of each pair's own error over that of its signal; 0 where it is unknown."""
    known = np.array([compared.output != UNKNOWN for compared in plan.compared])
    noise, signal = sums.own[:, NOISE], np.maximum(sums.own[:, SIGNAL], 1e-30)
    return [float(each) for each in np.where(known, noise / signal, 0.0)]


def side_of(module: Module, entry: Entry) -> Side:
    """A network's entry, with inputs and outputs in the order of the interpreter."""
    function = module.functions[entry.function]
    signature = next((s for s in module.signatures or [] if entry.key and s.key == entry.key), None)
    if signature is None:
        return Side(function, function.inputs, function.outputs)
    sides = [sorted(side or [], key=lambda pair: pair[0] or "") for side in (signature.inputs, signature.outputs)]
    return Side(function, *([value for _, value in side] for side in sides))


class _Run:
    """A run on samples, in processes. done: how many samples there were."""

    def __init__(self, plan: Plan, samples: Samples, workers: int, observer: Observer | None) -> None:
        self.plan = plan
        self.data = samples.path
        self.batches = Batches(samples)
        self.count = samples.count
        self.workers = workers
        self.observer = observer
        self.first: list[Batch] = []
        self.done = 0

    def compared(self) -> Sums:
        """The sums over all samples. OptionError if there are none."""
        total: Sums | None = None
        for part in in_order(compare, self.plan, self._noted(), self.workers):
            total = part if total is None else total + part
            self.done += int(part.samples)
            if self.observer is not None:
                self.observer(self.done, self.count)
        if total is None:
            raise OptionError(Reason("there are no samples to compare on", self.data, remedy="give at least one"))
        return total

    def influences(self, plan: Plan) -> np.ndarray:
        """The power of the outputs' error that each group makes, on the first samples."""
        powers = in_order(influence, plan, self.first if plan.groups else (), self.workers)
        return sum(powers, np.zeros(len(plan.groups)))

    def _noted(self) -> Iterator[Batch]:
        """All batches; the first ones are kept."""
        for batch in self.batches.of():
            if len(self.first) < FIRST:
                self.first.append(batch)
            yield batch


def _ends(kind: TensorType) -> tuple[float, float, float]:
    """The least and the largest number that a type can hold, and a step."""
    element = kind.element
    if not isinstance(element, UniformQuantizedType):
        return -math.inf, math.inf, 0.0
    low, high = ((end - element.zero_point) * element.scale for end in (element.storage_min, element.storage_max))
    return low, high, element.scale


def _decibels(sums: np.ndarray) -> float:
    return in_decibels(float(sums[SIGNAL]), float(sums[NOISE]))


def _error(sums: np.ndarray, step: float) -> TensorError:
    norm = math.sqrt(sums[SIGNAL] * sums[POWER])
    rmse = math.sqrt(sums[NOISE] / sums[COUNT]) if sums[COUNT] else 0.0
    cosine = float(sums[PRODUCT]) / norm if norm else 1.0 if not sums[NOISE] else 0.0
    return TensorError(_decibels(sums), cosine, rmse, rmse / step if step else None)


def _row(place: int, pair: Pair, compared: Compared, sums: Sums) -> DebugRow:
    pair_sums, reached = sums.own[place], sums.reached[place]
    low, high, step = compared.ends
    least, largest = sums.least[place], sums.largest[place]
    clipped = (reached if compared.output == UNKNOWN else pair_sums)[CLIPPED] / max(reached[COUNT], 1)
    seen = bool(np.isfinite(least).all())
    unused = None
    if step and seen:
        unused = math.log2((round((high - low) / step) + 1) / (round((largest[1] - least[1]) / step) + 1))
    return DebugRow(
        pair.kernel,
        pair.operator,
        pair.tensor,
        pair.real.name,
        shape_text(pair.stored.type),
        len(pair.ops),
        None if compared.output == UNKNOWN else _error(pair_sums, step),
        _error(reached, step),
        int(reached[COUNT]),
        float(clipped),
        unused,
        None,
        (float(least[0]), float(largest[0])) if seen else None,
        (low, high) if step else None,
        pair.obstacle,
        (sums.bins[place][0], sums.bins[place][1]),
    )


# How much of the outputs' error each operator makes, and what to do about it.


ALONE: Final = 32
"""Operators whose error is added alone."""
_WORTH: Final = 0.1
"""Gains below so many decibels are not advised."""
_NEARLY: Final = 0.9
"""16 bits are advised where they gain so much of what floats gain."""
_MOST: Final = 60.0
"""Decibels: no larger gain is predicted."""


def grouped(noise: Sequence[float], outputs: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Groups of pairs whose errors are added together: each of the outputs and of the worst alone, then the others.
    noise: of each pair's own error, relative to its signal; pairs of noise 0 are left out."""
    worst = [int(place) for place in np.argsort(noise, kind="stable")[::-1]]
    order = [place for place in dict.fromkeys((*outputs, *worst)) if noise[place] > 0]
    rest = tuple(sorted(order[ALONE:]))
    return [(place,) for place in order[:ALONE]] + ([rest] if rest else [])


def can_inject(side: Side) -> bool:
    """Whether a network can run several times in one graph."""
    return all(is_pure(op) and not callees(op) and not op.regions for op in side.function.ops)


def injected(side: Side, pairs: Sequence[Pair], groups: Sequence[Sequence[int]]) -> Module:
    """A float network, and a copy of it for each group. In a copy an input is added to the float value of each pair of
    the group. Inputs: those of the network, then those that are added, in the order of the groups. Outputs: the
    network's, then those of each copy."""
    inputs, outputs, ops = list(side.inputs), list(side.outputs), list(side.function.ops)
    for group in groups:
        errors: dict[Value, list[Value]] = {}
        for place in group:
            real = pairs[place].real
            errors.setdefault(real, []).append(Value(real.type))
            inputs.append(errors[real][-1])
        copies: dict[Value, Value] = {}
        for value in side.inputs:
            _add(value, errors.get(value, ()), copies, ops)
        for op in side.function.ops:
            if any(value in copies for value in op.present_operands):
                ops += copied([op], copies)
            for value in op.results:
                _add(value, errors.get(value, ()), copies, ops)
        outputs += [copies.get(value, value) for value in side.outputs]
    return Module([Function("main", inputs, outputs, ops)])


def _add(value: Value, errors: Sequence[Value], copies: dict[Value, Value], ops: list[Op]) -> None:
    """Adds errors to a value of a copy."""
    for error in errors:
        total = Value(value.type)
        ops.append(Op(Add.op_name, [copies.get(value, value), error], [total], {"fused_activation_function": "NONE"}))
        copies[value] = total


def shares(groups: Sequence[Sequence[int]], powers: np.ndarray, noise: Sequence[float]) -> list[float]:
    """The share of the outputs' error that each pair makes. powers: of the outputs' error by each group."""
    result = [0.0] * len(noise)
    total = float(powers.sum())
    for group, power in zip(groups, powers, strict=True):
        group_noise = sum(noise[place] for place in group)
        for place in group if total else ():
            result[place] = float(power) / total * noise[place] / group_noise
    return result


def advised(rows: Sequence[DebugRow]) -> list[Advice]:
    """Advice for operators from which something is gained, the largest gain first."""
    advice = []
    for row in rows:
        share, rounding = row.share or 0.0, _rounding(row)
        if row.requantized:  # a QUANTIZE behind it would round in its place
            gain, narrow, wide = _gain(share * (1 - rounding)), 0.0, not row.stands_for
        else:
            gain, narrow = _gain(share), _gain(share * rounding)
            wide = narrow >= _NEARLY * gain or not row.stands_for
        each = Advice(row.operator, row.partner, "16 bits" if wide else "float", narrow if wide else gain)
        if each.gain_db >= _WORTH:
            advice.append(each)
    return sorted(advice, key=lambda each: -each.gain_db)


def _gain(share: float) -> float:
    """By how many decibels an error falls if a share of it goes."""
    return min(_MOST, -10 * math.log10(max(1 - share, 1e-9)))


def _rounding(row: DebugRow) -> float:
    """The share of a row's own error that is rounding to its type: a twelfth of a squared step, in the mean."""
    if row.own is None or not row.own.rmse_per_scale:
        return 0.0
    return min(1.0, 1 / 12 / row.own.rmse_per_scale**2)
