"""Inputs to compare two models on: random ones from a seed, the edges of the storage range, or the user's samples, at
shapes that both take.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.numerics.kernel_sets import Exactness
from tflq.tools.samples.files import Images, Samples
from tflq.tools.samples.inputs import Entry, Input
from tflq.tools.samples.reading import samples_of
from tflq.tools.verify.difference import EXACT, Tolerance
from tflq.tools.verify.interface import ReportLike, covers
from tflq.tools.verify.layers import AnyRunner
from tflq.tools.verify.model_file import Graph, ModelFile, entry_of, options_table
from tflq.tools.verify.outcome import NamedShapes
from tflq.tools.verify.runner import Resolver, RunError, Runtime
from tflq.tools.verify.tflite_runner import TfliteRunner
from tflq.tools.verify.worker import Side

FLOAT_RANGE = (-1.0, 1.0)
EDGES = ("minimum", "maximum", "zero point")
IN_A_ROW = 10
"""Runs with state that follow each other."""


def generated_inputs(
    side: Side, seeds: int, shapes: Sequence[tuple[int, ...]] | None, seed: int = 0
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """`seeds` random sets over the full storage range, then all minimum, all maximum and all zero point, in these
    shapes, or those of the file. `seed`: another one gives other random sets.

    Floats are drawn from [-1, 1]. Integers that are not quantized and wider than a byte are often indices or sizes: 0
    or 1.
    """
    for name in (*(f"random {number}" for number in range(seeds)), *EDGES):
        rng = np.random.default_rng((zlib.crc32(name.encode("utf-8", "surrogateescape")), seed))
        pairs = zip(side, shapes or [tuple(description["shape"]) for _, description in side], strict=True)
        yield name, [_draw(name, description, shape, rng) for (_, description), shape in pairs]


def inputs_in_a_row(
    side: Side, shapes: Sequence[tuple[int, ...]] | None, seed: int = 0
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Random sets for runs that follow each other, each with the state that those before have left."""
    for _, arrays in islice(generated_inputs(side, IN_A_ROW, shapes, seed), IN_A_ROW):
        yield f"{IN_A_ROW} in a row", arrays


def _draw(name: str, description: Mapping[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    is_text = description["dtype"].startswith(("bytes", "str", "object"))
    dtype = np.dtype("S1" if is_text else description["dtype"])
    zero = description["zero_points"][0] if description["zero_points"] else 0
    if dtype.kind in "fc":
        low, high = FLOAT_RANGE
        values = rng.uniform(low, high, shape)
        return _edge(name, (low, high, 0.0), shape, values).astype(dtype)
    if dtype.kind in "iu" and (description["scales"] or dtype.itemsize == 1 or dtype == np.int16):
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if dtype.itemsize < 4 else (-(2**20), 2**20)
        return _edge(name, (low, high, zero), shape, rng.integers(low, high, shape, endpoint=True)).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def _edge(name: str, edges: tuple[float, float, float], shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    return np.full(shape, edges[EDGES.index(name)]) if name in EDGES else values


def entry_for(side: Side, key: str = "", file: ModelFile | None = None) -> Entry:
    """The entry of a side's inputs as samples are read for it. file: the model, whose subgraph says their order."""
    inputs = [_input(name, description) for name, description in side]
    if file is None:
        return Entry(key, 0, tuple(inputs))
    entry, graph = entry_of(file, key)
    signatures = [each for each in file.entries.values() if each.key]
    if not key and len(signatures) == 1 and covers(file, "", signatures[0].key):
        names = {tensor: name for name, tensor in signatures[0].inputs}
        inputs = [replace(input_, alias=names[t]) for input_, (_, t) in zip(inputs, entry.inputs, strict=True)]
    places = {tensor: place for place, tensor in enumerate(graph.inputs)}
    order = sorted(zip(entry.inputs, inputs, strict=True), key=lambda pair: places.get(pair[0][1], 0))
    return Entry(key, 0, tuple(input_ for _, input_ in order), tuple(each.key for each in signatures))


def _input(name: str, description: Mapping[str, Any]) -> Input:
    dims = description["shape_signature"] or description["shape"]
    is_text = description["dtype"].startswith(("bytes", "str", "object"))
    scales, zeros = description["scales"], description["zero_points"]
    scale, zero = (scales[0], zeros[0]) if len(scales) == 1 else (0.0, 0)
    shape = tuple(None if d == -1 else d for d in dims)
    return Input(name, description["name"], shape, np.dtype("S" if is_text else description["dtype"]), scale, zero)


# How two models are compared.


Source = FilePath | bytes | bytearray | memoryview | BinaryIO
Progress = Callable[[str, int, int], None]


class Recorded(Protocol):
    """Outputs of an original, by the kernels it ran on, the entry and the inputs, from its initial state. Such runs do
    not depend on each other, so a run whose outputs are known is not repeated."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Outputs in the order of the entry's; None if they are not known."""

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None: ...


@dataclass(frozen=True)
class Options:
    """Options of a comparison: those of `verify`, by the same names, and `recorded` outputs of the original.
    `exactness`: the kernel sets that the other model names, if these say what runs it.

    Recorded outputs replace a run if nothing else of it is needed.
    """

    inputs: Any = None
    images: Images | None = None
    seeds: int = 2
    seed: int = 0
    layers: bool = False
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    resolver: Resolver = "reference"
    exactness: Exactness | None = None
    runtime: Runtime | None = None
    interface: bool = True
    tolerance: Tolerance = EXACT
    report: ReportLike | None = None
    recorded: Recorded | None = None
    time: bool = False
    timeout: float = 600.0
    cc: str | None = None
    progress: Progress = lambda _, __, ___: None
    labels: Any = None
    metrics: Sequence[str] = ()


# Cases: the sets of inputs of each entry, at shapes that both models take.


Shapes = list[tuple[int, ...]]
"""One for each input, in order."""


@dataclass(frozen=True)
class Case:
    """One set of inputs of an entry."""

    key: str
    name: str
    arrays: list[np.ndarray]
    shapes: NamedShapes = ()
    step: int | None = None
    """The number of cases before it whose state it continues; None if it stands alone."""
    sample: int | None = None
    """The number of the user's sample that it is."""


class Cases:
    """The cases of an entry, by the options; `notes` say what they leave out. `labels`: of each of the user's samples,
    by entry."""

    def __init__(self, options: Options) -> None:
        self.notes: list[str] = []
        self.labels: dict[str, tuple[np.ndarray, ...]] = {}
        self._options = options

    def __call__(self, a: AnyRunner, b: AnyRunner, key: str) -> Iterator[Case]:
        side, options = a.entries[key]["inputs"], self._options
        either = open_in_both(side, b.entries[key]["inputs"])
        if options.inputs is not None:
            yield from self._user_cases(a, key, either)
            return
        fixed = isinstance(b, TfliteRunner) and not b.resizes
        every = [bound_shapes(side, options.batch, options.shapes)] if fixed else self._shapes(a, key, either)
        names = [name for name, _ in side]
        for i, shapes in enumerate(every):
            named = tuple(zip(names, shapes, strict=True))
            for name, arrays in generated_inputs(side, options.seeds, shapes, options.seed):
                if i == 0 or name not in EDGES:
                    yield Case(key, name, arrays, named)
        if self._with_state(a, b):
            named = tuple(zip(names, every[0], strict=True))
            for step, (name, arrays) in enumerate(inputs_in_a_row(side, every[0], options.seed)):
                yield Case(key, name, arrays, named, step)

    def _with_state(self, a: AnyRunner, b: AnyRunner) -> bool:
        """Whether runs in a row are to be compared."""
        if not (a.has_state or b.has_state):
            return False
        if a.keeps_state and b.keeps_state:
            return True
        self.notes.append("only first runs are compared: branches or loops of a TOSA file write variables")
        return False

    @cached_property
    def _data(self) -> Any:
        """The user's samples, for every entry: an iterator is gone through once, and becomes a list."""
        data = self._options.inputs
        return list(data) if isinstance(data, Iterator) else data

    def samples(self, a: AnyRunner, key: str, side: Side) -> Samples:
        """The user's samples for an entry. OptionError if they do not fit it."""
        options = self._options
        if options.batch is not None:
            side = [
                (name, description | {"shape_signature": _bound(description, options.batch)})
                for name, description in side
            ]
        entry = entry_for(side, key, a.file if isinstance(a, TfliteRunner) else None)
        outputs = (_input(name, description).shape for name, description in a.entries[key]["outputs"])
        entry = replace(entry, outputs=tuple(outputs))
        return samples_of(self._data, entry, options.images, options.labels)

    def misfit(self, a: AnyRunner, b: AnyRunner, key: str) -> OptionError | None:
        """Why the user's samples are none for an entry; None if they are, or if there are none of the user's."""
        if self._options.inputs is None:
            return None
        try:
            side = open_in_both(a.entries[key]["inputs"], b.entries[key]["inputs"])
            next(iter(self.samples(a, key, side).arrays), None)
        except OptionError as error:
            return error
        return None

    def _user_cases(self, a: AnyRunner, key: str, side: Side) -> Iterator[Case]:
        samples = self.samples(a, key, side)
        self.labels[key] = samples.labels
        alone = samples.count == 1 and not samples.names
        for place, sample in enumerate(samples.arrays):
            name = samples.names[place] if samples.names else "given" if alone else f"sample {place}"
            arrays = [np.ascontiguousarray(sample[name]).reshape(sample[name].shape) for name, _ in side]
            yield Case(key, name, arrays, sample=place)

    def _shapes(self, a: AnyRunner, key: str, side: Side) -> list[Shapes]:
        """The shapes that an entry runs with: one choice, or two where the file leaves dims open."""
        options = self._options
        bound = bound_shapes(side, options.batch, options.shapes)
        if not isinstance(a, TfliteRunner) or not is_open(side):
            return [bound]
        fixed = [name in options.shapes for name, _ in side]
        open_ones = [(name, d) for (name, d), is_fixed in zip(side, fixed, strict=True) if not is_fixed]
        if not any(-1 in d["shape_signature"][options.batch is not None :] for _, d in open_ones):
            return [bound]
        graph = a.file.graphs[a.file.entries[key].graph]
        trial = TfliteRunner(a.path, a.kernels, options.timeout)
        try:
            runs = partial(self._runs, trial, key, side)
            shapes = chosen_shapes(side, largest_window(graph), bound, fixed, options.batch, runs)
        finally:
            trial.close()
        if not shapes:
            self.notes.append("open dims are 1: the original does not run with other sizes; give --shape")
        return shapes or [bound]

    def _runs(self, trial: TfliteRunner, key: str, side: Side, shapes: Shapes) -> bool:
        """Whether a model runs with inputs of these shapes; one set is enough, because it may refuse some values."""
        for _, arrays in generated_inputs(side, 1, shapes):
            try:
                trial.run(key, arrays)
            except RunError as error:
                if error.fatal:
                    return False
            else:
                return True
        return False


# The shapes to run open inputs at: dims that a file leaves open hide differences where they are 1.


_BATCHES: Final = (2, 3)
_STEP: Final = 16
_FACTORS: Final = (1, 2, 4, 8, 14, 16, 32)
_ODD: Final = 7


def is_open(side: Side) -> bool:
    """Whether any input has a dim that the file leaves open."""
    return any(-1 in description["shape_signature"] for _, description in side)


def open_in_both(a: Side, b: Side) -> list[tuple[str, dict[str, Any]]]:
    """The inputs of a, with those dims open that are open in both models."""
    pairs = [(d["shape_signature"], e["shape_signature"]) for (_, d), (_, e) in zip(a, b, strict=True)]
    joint = [
        [max(dims) for dims in zip(*pair, strict=True)] if len(set(map(len, pair))) == 1 else pair[0] for pair in pairs
    ]
    return [(name, description | {"shape_signature": dims}) for (name, description), dims in zip(a, joint, strict=True)]


def bound_shapes(side: Side, batch: int | None, user_shapes: Mapping[str, Sequence[int]]) -> Shapes:
    """The shapes to run inputs with: `user_shapes` by name; else those of the file, where an open first dim becomes the
    batch. OptionError names an input that is not there or of another rank."""
    names = [name for name, _ in side]
    for name, shape in user_shapes.items():
        if name not in names:
            there = ", ".join(f"'{n}'" for n in names) or "none"
            raise OptionError(Reason(f"the model has no input '{name}'", value=name, remedy=f"its inputs are {there}"))
        signature = dict(side)[name]["shape_signature"]
        if signature and len(signature) != len(shape):
            what = f"input '{name}' is of rank {len(signature)}, the shape given for it of rank {len(shape)}"
            raise OptionError(Reason(what, tensor=name, value=list(shape)))
    return [
        tuple(user_shapes[name]) if name in user_shapes else _default_shape(description, batch)
        for name, description in side
    ]


def _bound(description: Mapping[str, Any], batch: int) -> list[int]:
    signature = description["shape_signature"]
    return [batch, *signature[1:]] if signature[:1] == [-1] else signature


def _default_shape(description: Mapping[str, Any], batch: int | None) -> tuple[int, ...]:
    shape, signature = tuple(description["shape"]), description["shape_signature"]
    if batch is not None and signature and signature[0] == -1:
        return (batch, *shape[1:])
    return shape


def chosen_shapes(
    side: Side,
    window: int,
    bound: Shapes,
    fixed: Sequence[bool],
    batch: int | None,
    runs: Callable[[Shapes], bool],
) -> list[Shapes]:
    """Two choices for the open dims, the batch and others, larger than any window, with which the model `runs`; fewer
    if there are no more. `fixed` inputs have their shape from the user."""
    base = -(-(window + 1) // _STEP) * _STEP
    sized = any(-1 in d["shape_signature"][1:] for (_, d), is_fixed in zip(side, fixed, strict=True) if not is_fixed)
    choices: list[Shapes] = []
    even = (base * factor for factor in _FACTORS)
    for batches, sizes in ((_BATCHES[0], even), (_BATCHES[1], _uneven(base))):
        for size in sizes if sized else (base,):
            ends = zip(side, bound, fixed, strict=True)
            shapes = [shape if is_fixed else _filled(d, batch or batches, size) for (_, d), shape, is_fixed in ends]
            if shapes not in choices and runs(shapes):
                choices.append(shapes)
                break
    return choices


def _uneven(base: int) -> Iterator[int]:
    """Sizes that strides do not divide, then others."""
    yield base + _ODD
    yield from (base * n for factor in _FACTORS for n in (factor + 1, 2 * factor))


def _filled(description: Mapping[str, Any], batch: int, size: int) -> tuple[int, ...]:
    signature = description["shape_signature"]
    if -1 not in signature:
        return tuple(description["shape"])
    return tuple((size if i else batch) if d == -1 else d for i, d in enumerate(signature))


# The windows that operators slide over their operands.


_FILTERS: Final = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "TRANSPOSE_CONV": "",
}
"""Operators whose second operand is a filter, and the options that say how it is dilated."""
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")


def largest_window(graph: Graph) -> int:
    """The largest extent of the windows in a graph."""
    return max((extent for i in range(len(graph.operators)) for extent in _extents(graph, i)), default=1)


def _extents(graph: Graph, index: int) -> Iterator[int]:
    op = graph.operators[index]
    if op.opcode in _POOLS:
        options = _options(graph, index, "Pool2DOptions")
        yield from (options.FilterHeight(), options.FilterWidth()) if options else ()
    elif op.opcode in _FILTERS and len(op.inputs) > 1:
        name, shape = _FILTERS[op.opcode], graph.tensor(op.inputs[1]).shape
        options = _options(graph, index, name) if name else None
        dilations = (options.DilationHFactor(), options.DilationWFactor()) if options else (1, 1)
        window = shape[:3] if op.opcode == "CONV_3D" else shape[1:3]
        yield from ((extent - 1) * max(dilations) + 1 for extent in window)


def _options(graph: Graph, index: int, name: str) -> Any:
    """The options of an operator; None if it has none."""
    options = graph.table.Operators(index).BuiltinOptions()
    return None if options is None else options_table(name, options)
