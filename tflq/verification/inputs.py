"""Inputs to compare two models on: random ones from a seed, the edges of the storage range, or the user's own."""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, TypeAlias

import numpy as np

from tflq.errors import FileError, OptionError, Reason, not_expected
from tflq.files import file_errors
from tflq.verification.difference import EXACT, Tolerance
from tflq.verification.model_file import Graph, Operator
from tflq.verification.runner import Resolver

if TYPE_CHECKING:
    from tflq.report import Report


Side = list[tuple[str, dict[str, Any]]]
"""Inputs or outputs of an entry: name and description, as `worker.describe` gives it."""

GivenInputs = Mapping[str, np.ndarray]

FLOAT_RANGE = (-1.0, 1.0)
EDGES = ("minimum", "maximum", "zero point")
IN_A_ROW = 10
"""Runs with state that follow each other."""


def check_inputs(inputs: object) -> None:
    """Arrays by input name, a path, or None."""
    if not (inputs is None or isinstance(inputs, (Mapping, str, os.PathLike))):
        raise not_expected("inputs", inputs, "arrays by input name, or the path of an .npz file or a folder")


def made(
    side: Side, seeds: int, shapes: Sequence[tuple[int, ...]] | None, seed: int = 0
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """`seeds` random sets over the full storage range, then all minimum, all maximum and all zero point, in these
    shapes, or those of the file. `seed`: another one gives other random sets.

    Floats are drawn from [-1, 1]. Integers that are not quantized and wider than a byte are often indices or sizes: 0
    or 1.
    """
    for name in (*(f"random {number}" for number in range(seeds)), *EDGES):
        rng = np.random.default_rng((zlib.crc32(name.encode()), seed))
        pairs = zip(side, shapes or [tuple(description["shape"]) for _, description in side], strict=True)
        yield name, [_draw(name, description, shape, rng) for (_, description), shape in pairs]


def in_a_row(
    side: Side, shapes: Sequence[tuple[int, ...]] | None, seed: int = 0
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Random sets for runs that follow each other, each with the state that those before have left."""
    for _, arrays in islice(made(side, IN_A_ROW, shapes, seed), IN_A_ROW):
        yield f"{IN_A_ROW} in a row", arrays


def _draw(name: str, description: Mapping[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    dtype = (
        np.dtype("S1")
        if description["dtype"].startswith(("bytes", "str", "object"))
        else np.dtype(description["dtype"])
    )
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
    at = EDGES.index(name) if name in EDGES else None
    return values if at is None else np.full(shape, edges[at])


def given(side: Side, arrays: GivenInputs) -> list[np.ndarray]:
    """The user's own inputs: arrays by input name, or all of them in order as `arr_0`, `arr_1` ... (what np.savez calls
    them). A single input may have any name.

    OptionError names what is missing, is for no input, or does not fit.
    """
    found: dict[str, str] = {}
    for i, (name, _) in enumerate(side):
        keys = [key for key in (name, _as_file(name), f"arr_{i}") if key in arrays]
        keys = keys or (list(arrays) if len(side) == len(arrays) == 1 else [])
        if not keys:
            there = ", ".join(map(repr, arrays)) or "none"
            raise OptionError(Reason(f"no array for input '{name}': there are {there}", tensor=name))
        found[name] = keys[0]
    if unused := [key for key in arrays if key not in found.values()]:
        names = ", ".join(f"'{name}'" for name, _ in side)
        raise OptionError(Reason(f"no input takes the array '{unused[0]}': the inputs are {names}", value=unused[0]))
    return [_fitting(name, description, np.asarray(arrays[found[name]])) for name, description in side]


def _as_file(name: str) -> str:
    """A name as that of a file: what folders and systems use is '_'."""
    return re.sub(r'[/\\:*?"<>|]', "_", name)


def loaded(source: GivenInputs | str | os.PathLike[str]) -> list[tuple[str, GivenInputs]]:
    """The sets that a source holds, and what to call them: arrays by name, an .npz file, or an .npy file of a single
    input are one; a folder holds .npy files by input, which are one, or .npz files, which are one each.

    FileError if there are none to read.
    """
    if isinstance(source, Mapping):
        return [("given", source)]
    path = Path(source)
    if not path.is_dir():
        return [("given", _load(path))]
    sets = [(file.name, _load(file)) for file in sorted(path.glob("*.npz"))]
    arrays = {file.stem: array for file in sorted(path.glob("*.npy")) for array in _load(file).values()}
    if not (sets or arrays):
        raise FileError(str(path), "the folder holds no .npy files and no .npz files")
    return [*([("given", arrays)] if arrays else []), *sets]


def files_of(source: object) -> list[Path]:
    """The files that a source may be read from; none of arrays."""
    if not isinstance(source, (str, os.PathLike)):
        return []
    path = Path(source)
    return [*path.iterdir()] if path.is_dir() else [path]


def _load(path: Path) -> GivenInputs:
    try:
        with file_errors(path), path.open("rb") as file:
            data = np.load(file, allow_pickle=False)
            return {"arr_0": data} if isinstance(data, np.ndarray) else {name: data[name] for name in data.files}
    except (EOFError, ValueError, zipfile.BadZipFile) as error:
        raise FileError(str(path), f"not a readable .npy or .npz file of arrays: {error}") from error


def _fitting(name: str, description: Mapping[str, Any], array: np.ndarray) -> np.ndarray:
    want = description["shape_signature"] or description["shape"]
    fits = len(want) == array.ndim and all(w in (-1, d) for w, d in zip(want, array.shape, strict=True))
    if not fits:
        what = f"the array for input '{name}' has shape {array.shape}, the model wants {tuple(want)}"
        raise OptionError(Reason(what, tensor=name))
    if array.dtype.name != description["dtype"] and array.dtype.kind not in "SU":
        what = f"the array for input '{name}' is {array.dtype}, the model wants {description['dtype']}"
        raise OptionError(Reason(what, tensor=name))
    return np.ascontiguousarray(array).reshape(array.shape)


# The shapes to run open inputs at: dims that a file leaves open hide differences where they are 1.


Shapes = list[tuple[int, ...]]
"""One for each input, in order."""

ShapesSide = Sequence[tuple[str, dict[str, Any]]]

_BATCHES: Final = (2, 3)
_STEP: Final = 16
_FACTORS: Final = (1, 2, 4, 8, 14, 16, 32)
_ODD: Final = 7


def is_open(side: ShapesSide) -> bool:
    """Whether any input has a dim that the file leaves open."""
    return any(-1 in description["shape_signature"] for _, description in side)


def open_in_both(a: ShapesSide, b: ShapesSide) -> list[tuple[str, dict[str, Any]]]:
    """The inputs of a, with those dims open that are open in both models."""
    pairs = [(d["shape_signature"], e["shape_signature"]) for (_, d), (_, e) in zip(a, b, strict=True)]
    joint = [
        [max(dims) for dims in zip(*pair, strict=True)] if len(set(map(len, pair))) == 1 else pair[0] for pair in pairs
    ]
    return [(name, description | {"shape_signature": dims}) for (name, description), dims in zip(a, joint, strict=True)]


def bound(side: ShapesSide, batch: int | None, given: Mapping[str, Sequence[int]]) -> Shapes:
    """The shapes to run inputs with: those `given` by name, those of the file with first dims that are open bound to
    the batch. OptionError names an input that is not there or of another rank."""
    names = [name for name, _ in side]
    for name, shape in given.items():
        if name not in names:
            there = ", ".join(f"'{n}'" for n in names) or "none"
            raise OptionError(Reason(f"the model has no input '{name}'", value=name, remedy=f"its inputs are {there}"))
        stated = dict(side)[name]["shape_signature"]
        if stated and len(stated) != len(shape):
            what = f"input '{name}' is of rank {len(stated)}, the shape given for it of rank {len(shape)}"
            raise OptionError(Reason(what, tensor=name, value=list(shape)))
    return [tuple(given[name]) if name in given else _stated(description, batch) for name, description in side]


def _stated(description: Mapping[str, Any], batch: int | None) -> tuple[int, ...]:
    shape, signature = tuple(description["shape"]), description["shape_signature"]
    if batch is not None and signature and signature[0] == -1:
        return (batch, *shape[1:])
    return shape


def chosen(
    side: ShapesSide,
    window: int,
    stated: Shapes,
    fixed: Sequence[bool],
    batch: int | None,
    runs: Callable[[Shapes], bool],
) -> list[Shapes]:
    """Two choices for the dims that are open, the batch and others, larger than any window, of those with which the
    model `runs`; one or none if there are no more. `fixed` inputs have their shape from the user."""
    base = -(-(window + 1) // _STEP) * _STEP
    sized = any(-1 in d["shape_signature"][1:] for (_, d), kept in zip(side, fixed, strict=True) if not kept)
    found: list[Shapes] = []
    for batches, sizes in ((_BATCHES[0], _even(base)), (_BATCHES[1], _uneven(base))):
        for size in sizes if sized else (base,):
            ends = zip(side, stated, fixed, strict=True)
            shapes = [given if kept else _filled(d, batch or batches, size) for (_, d), given, kept in ends]
            if shapes not in found and runs(shapes):
                found.append(shapes)
                break
    return found


def _even(base: int) -> Iterator[int]:
    return (base * factor for factor in _FACTORS)


def _uneven(base: int) -> Iterator[int]:
    """Sizes that strides do not divide, then others."""
    yield base + _ODD
    yield from (base * n for factor in _FACTORS for n in (factor + 1, 2 * factor))


def _filled(description: Mapping[str, Any], batch: int, size: int) -> tuple[int, ...]:
    signature = description["shape_signature"]
    if -1 not in signature:
        return tuple(description["shape"])
    return tuple((size if i else batch) if d == -1 else d for i, d in enumerate(signature))


# Operators of an original whose results a conversion cannot or does not reproduce, and why.
#
# What follows such an operator says nothing of the conversion unless both models go on with the same values: the
# result of the original is fed to the other.


ReportLike: TypeAlias = "Report | Mapping[str, Any] | str | os.PathLike[str]"
"""The report of a conversion, its JSON form, or a file of that."""

_NOT_REPRODUCED: Final = frozenset({"broken", "inexact", "unsettled"})
"""The exceptions in docs/exceptions.md whose results are not the interpreter's."""

_SUM: Final = "the reference kernel of SUM reads {type} as uint8; the optimized kernel computes in float32"

_SEVERAL: Final = "the kernel finds no scale in '{}', which has several"

_ONE_SCALE: Final = frozenset(
    "ABS BATCH_MATMUL DIV ELU EXP GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MEAN MUL NEG PRELU QUANTIZE REDUCE_MAX "
    "REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RSQRT SQRT SUB SUM TANH".split()
)
"""Operators whose kernels run on tensors of several scales, and ask them for their one."""

_HYBRID: Final = frozenset(
    "BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN".split()
)
"""Operators with kernels for float activations and quantized weights, their second operand."""


@dataclass(frozen=True)
class Expectation:
    """Why an operator's result may differ. within: by how many counts at most; None: by any number. apart: other
    kernels than the reference kernels run it, since theirs are wrong."""

    reason: str
    within: float | None = None
    apart: bool = False


def broken(graph: Graph) -> dict[int, Expectation]:
    """The operators of a graph whose reference kernels are wrong, by index."""
    return {i: found for i in range(len(graph.operators)) for found in _wrong(graph, i)}


def _wrong(graph: Graph, index: int) -> Iterator[Expectation]:
    op = graph.operators[index]
    several = next((name for name in _several_scales(graph, op)), None)
    if several is not None:
        yield Expectation(_SEVERAL.format(several))
        return
    operand = graph.tensor(op.inputs[0]) if op.inputs and op.inputs[0] >= 0 else None
    if op.opcode == "SUM" and operand is not None and operand.type in ("int8", "int16") and operand.scales.size:
        yield Expectation(_SUM.format(type=operand.type), within=1, apart=True)


def rounding(graph: Graph) -> list[int]:
    """The operators of a graph whose kernels round float activations to 8 bits as they run, by index: hybrid ones, on
    quantized weights."""
    return [i for i, op in enumerate(graph.operators) if _rounds(graph, op)]


def _rounds(graph: Graph, op: Operator) -> bool:
    if op.opcode not in _HYBRID or min(op.inputs[:2], default=-1) < 0:
        return False
    x, weights = (graph.tensor(t) for t in op.inputs[:2])
    return x.type == "float32" and weights.type.endswith(("int8", "int4", "int2")) and weights.scales.size > 0


def _several_scales(graph: Graph, op: Operator) -> Iterator[str]:
    """The tensors of several scales that a kernel asks for their one."""
    if op.opcode not in _ONE_SCALE:
        return
    asked = {"BATCH_MATMUL": op.outputs, "QUANTIZE": op.inputs}.get(op.opcode, (*op.inputs, *op.outputs))
    for tensor in (graph.tensor(t) for t in asked if t >= 0):
        if tensor.scales.size > 1:
            yield tensor.name


def reported(report: ReportLike) -> dict[tuple[int, int], Expectation]:
    """What a conversion's report warns of as not reproduced, by subgraph and operator. FileError, OptionError."""
    if not isinstance(report, (Mapping, str, os.PathLike)):
        if not hasattr(report, "to_json"):
            raise not_expected("report", report, "the report of a conversion, its JSON form, or a file of that")
        report = report.to_json()
    name = "the report" if isinstance(report, Mapping) else os.fspath(report)
    document = report if isinstance(report, Mapping) else _expected_load(report)
    document = document.get("report", document)  # what `convert --json` prints holds one
    if document.get("format") != "tflq.report":
        raise OptionError(Reason(f"{name} is no report of a conversion", remedy="give what `convert --report` writes"))
    rows = [row for row in document["rows"] if row.get("exception") in _NOT_REPRODUCED and row["warning"]]
    return {(row["subgraph"], row["operator"]): Expectation(row["warning"]) for row in rows}


def _expected_load(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        with file_errors(path), open(path, encoding="utf-8") as file:
            document = json.load(file)
    except ValueError as error:
        raise FileError(os.fspath(path), f"not a JSON file: {error}") from error
    if not isinstance(document, dict):
        raise FileError(os.fspath(path), "not a report of a conversion")
    return document


# How two models are compared.


Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Progress = Callable[[str, int, int], None]


class Recorded(Protocol):
    """What an original gave, by the kernels it ran on, the entry and the inputs, from its initial state: such runs do
    not depend on each other, so that one whose outputs are known need not be run again."""

    def get(self, kernels: str, entry: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Outputs in the order of the entry's; None if they are not known."""

    def put(self, kernels: str, entry: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None: ...


@dataclass(frozen=True)
class Options:
    """How two models are compared: the options of `verify`, by the same names; and outputs of the original that are
    `recorded`, which spare it a run where nothing else of it is looked at."""

    inputs: GivenInputs | str | os.PathLike[str] | None = None
    seeds: int = 2
    seed: int = 0
    layers: bool = False
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    resolver: Resolver = "reference"
    interface: bool = True
    tolerance: Tolerance = EXACT
    report: ReportLike | None = None
    recorded: Recorded | None = None
    time: bool = False
    timeout: float = 600.0
    progress: Progress = lambda _, __, ___: None
