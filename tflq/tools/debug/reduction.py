"""Reducing a model that fails to the smallest part of it that still does: delta debugging over its operators.

Tried are operators of one function, on the values that the model has there, recorded in the interpreter.
"""

from __future__ import annotations

import io
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from tflq.base.arguments import check_flags, check_numbers, check_path
from tflq.base.errors import InvalidModelError, OptionError, Reason, TflqError, UnsupportedError
from tflq.base.files import PACKAGE, FilePath, check_outputs, replace_files
from tflq.base.processes import Died, call
from tflq.conversion.convert import convert
from tflq.dialects.declare import Operator
from tflq.dialects.effects import callees
from tflq.formats.backend import of_target
from tflq.formats.flatbuffer.layout import TFLITE, TOSA
from tflq.formats.flatbuffer.source import Source
from tflq.formats.flatbuffer.structure import identify
from tflq.formats.options import Fallback, Mac, options_from_arguments
from tflq.formats.sources import reusable_source
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.tools.samples.files import files_of
from tflq.tools.samples.reading import check_data, samples_of
from tflq.tools.verify.difference import difference
from tflq.tools.verify.inputs import entry_for, generated_inputs
from tflq.tools.verify.interface import function_number, signature_of
from tflq.tools.verify.runner import Child, Opened, RunError, opened_whole
from tflq.tools.verify.verifying import verify
from tflq.tools.verify.worker import Side
from tflq.transforms.source import entries, part, read_from_outside

# Whether a model fails, and how: what is asked of every part that is tried.


Inputs: TypeAlias = Mapping[str, np.ndarray]
"""Arrays by input name."""


class Interpreter:
    """Runs the first functions of one model after another, with the reference kernels, in a child process.

    The process is started again when a model takes it down."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._child: Child | None = None
        self._opened: Opened | None = None

    def run(self, model: bytes, inputs: Inputs | Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of a model on inputs by name, or in order. RunError if it does not run."""
        with tempfile.NamedTemporaryFile(prefix="tflq-", suffix=".tflite") as file:
            file.write(model)
            file.flush()
            try:
                opened = self._open(file.name)
                side = opened.head["entries"][""]["inputs"]
                return opened.run("", next(input_sets(side, 1, [inputs])) if isinstance(inputs, Mapping) else inputs)
            except RunError as error:
                if error.fatal:
                    self.close()
                raise

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = self._opened = None

    def _open(self, path: str) -> Opened:
        self._child = self._child or Child("the interpreter", self._timeout)
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        self._opened = Opened(self._child, {"model": path, "resolver": "reference"})
        return self._opened


class Predicate(Protocol):
    def __call__(self, model: bytes, inputs: Inputs, /) -> str:
        """The kind of failure of a TFLite model on these inputs; "" if it does not fail. Two failures of the same cause
        have the same kind, whatever else is in the model."""


Converted: TypeAlias = tuple[bytes, Mapping[str, Any]]
"""A converted model, and the JSON form of its report: differences that it announces are not failures."""


def _converted(model: bytes, options: Mapping[str, Any]) -> Converted:
    conversion = convert(model, **options)
    return conversion.data, conversion.report.to_json()


class Conversion:
    """Fails if a model cannot be converted, or if the converted one does not run or gives something else.

    Kinds: "differs"; "does not run" and "dies" (the converted model, in the interpreter); "refused: REASON"; "error:
    TYPE in FUNCTION"; "crash: SIGNAL" (the conversion). A model that does not run itself does not fail.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        convert: Callable[[bytes], bytes] | None = None,
        timeout: float = 120.0,
    ) -> None:
        """options: of `tflq.convert`. convert: the bytes of the converted model; by default `tflq.convert` with the
        options. It and the interpreter each run in a process of their own, for at most `timeout` seconds."""
        self._convert = convert or partial(_converted, options=options or {})
        self._timeout = timeout
        self._original, self._result = Interpreter(timeout), Interpreter(timeout)

    def __call__(self, model: bytes, inputs: Inputs) -> str:
        try:
            converted = call(_outcome, self._convert, model, timeout=self._timeout)
        except Died as error:
            return f"crash: {error}"
        if isinstance(converted, str):
            return converted
        result, report = converted
        try:
            want = self._original.run(model, inputs)
        except RunError:
            return ""
        if identify(result) is not TFLITE:
            return self._verified(model, result, report, inputs)
        kind = self._compared(want, result, inputs)
        return self._verified(model, result, report, inputs) if kind == "differs" else kind

    def close(self) -> None:
        """Ends the interpreters' processes."""
        self._original.close()
        self._result.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compared(self, want: list[np.ndarray], converted: bytes, inputs: Inputs) -> str:
        try:
            got = self._result.run(converted, list(inputs.values()))
        except RunError as error:
            return "dies" if error.fatal else "does not run"
        equal = len(want) == len(got) and all(difference(g, w).equal for g, w in zip(got, want, strict=True))
        return "" if equal else "differs"

    def _verified(self, model: bytes, converted: bytes, report: Mapping[str, Any], inputs: Inputs) -> str:
        """The kind of failure, apart from differences that the conversion or the original's kernels explain."""
        options: dict[str, Any] = {"report": report} if report else {}
        options |= {"inputs": [inputs], "interface": False, "timeout": self._timeout}
        return {"differs": "differs", "failed": "does not run"}.get(verify(model, converted, **options).verdict, "")


def _outcome(convert: Callable[[bytes], Converted | bytes], model: bytes) -> Converted | str:
    """The converted model, or the kind of failure. A converter without a report returns the model alone."""
    try:
        converted = convert(model)
        return converted if isinstance(converted, tuple) else (converted, {})
    except UnsupportedError as error:
        return f"refused: {error.reason.what}"
    except InvalidModelError:
        return ""  # the part is not a valid model
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is what we look for
        return f"error: {type(error).__name__} in {_place(error)}"


def _place(error: Exception) -> str:
    """The function of ours that an error comes from."""
    ours = PACKAGE
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(ours)]
    return f"{Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else "?"


# The parts: operators of one function, on the values that the model has there.


Recording: TypeAlias = Mapping[tuple[int, int], np.ndarray]
"""By function and number in its tensor table."""


def record(path: Path, module: Module, entry: str, inputs: Sequence[np.ndarray], timeout: float) -> Recording:
    """Every tensor of every function of a model, after one run of an entry. Empty if the model does not run."""
    places = [(i, n) for i, function in enumerate(module.functions) for n in range(len(function.tensors))]
    try:
        with opened_whole(str(path), keep=True, timeout=timeout) as opened:
            opened.run(entry, inputs)
            return {place: array for place in places if (array := opened.fetch(place)) is not None}
    except RunError:
        return {}


def invented(value: Value) -> np.ndarray:
    """Random elements for a tensor that was not recorded; open dims are 1."""
    element = value.type.element
    quantized = isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType))
    zero = element.zero_point if isinstance(element, UniformQuantizedType) else 0
    description = {
        "dtype": value.type.storage.dtype.name,
        "shape": [1 if dim is None else dim for dim in value.type.dims],
        "shape_signature": [],
        "scales": [1.0] if quantized else [],
        "zero_points": [zero],
    }
    return next(arrays for _, arrays in generated_inputs([(value.name, description)], 1, None))[0]


Candidate = tuple[bytes, dict[str, np.ndarray]]
"""A model, and arrays for its inputs by name."""

SMALL: Final = 8
"""Axes, shapes and indices of up to so many elements become constants, as most operators want them."""


def build(data: bytes, index: int, operators: Sequence[int], recording: Recording) -> Candidate:
    """Some operators of function `index` of a model, by number, with the ones that compute what cannot be an input."""
    module = read(data)
    function = module.functions[index]
    values = {value: recording.get((index, number)) for number, value in enumerate(function.tensors)}
    ops = _closed(function, {function.ops[i] for i in operators}, values)
    outside = read_from_outside(function, [op for op in function.ops if op in ops])
    known = {v: invented(v) if (array := values.get(v)) is None else array for v in outside}
    constants = {v: array for v, array in known.items() if v.producer is not None and _is_small_shape(v, array, ops)}
    for value, array in known.items():
        value.type = _as_run(value.type, array)
    smaller = part(module, index, ops, constants)
    return write(smaller), {v.name: known[v] for v in smaller.main.inputs}


def _closed(function: Function, ops: set[Op], values: Mapping[Value, np.ndarray | None]) -> set[Op]:
    """The ops, and those that compute for them what cannot be an input: resources, strings, packed integers."""
    closed, wanted = set(ops), set[Value]()
    for op in reversed(function.ops):
        if not wanted.isdisjoint(op.results):
            closed.add(op)
        if op in closed:
            wanted.update(v for v in op.present_operands if not _can_be_input(v, values.get(v)))
    return closed


def _can_be_input(value: Value, array: np.ndarray | None) -> bool:
    storage = value.type.storage
    if not storage.numpy or storage.bits < 8:
        return False
    return array is None or array.dtype == storage.dtype


def _as_run(type: TensorType, array: np.ndarray) -> TensorType:
    """A type with the array's shape: the file's, unless the model runs with another."""
    fits = type.rank == array.ndim and all(a in (None, b) for a, b in zip(type.dims, array.shape, strict=True))
    return type if fits else TensorType(array.shape, type.element)


def _is_small_shape(value: Value, array: np.ndarray, ops: set[Op]) -> bool:
    if array.dtype.kind != "i" or array.size > SMALL:
        return False
    declared = [op for op in ops if isinstance(op, Operator)]
    uses = (s for op in declared for s, v in zip(op.operand_slots, op.operands, strict=False) if v is value)
    return all(slot.indices for slot in uses)


# Delta debugging (Zeller and Hildebrandt 2002): the least part of a list that still fails.


T = TypeVar("T")


def minimize(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of items, in their order, that fails, and does not without any single one of them. `items` itself fails.

    Each part is tried once: about 2 log2(n) parts, if one item is at fault.
    """
    smallest, chunks = list(items), 2
    tried: set[tuple[T, ...]] = {tuple(smallest)}

    def still(candidate: list[T]) -> bool:
        key = tuple(candidate)
        if not candidate or key in tried:
            return False
        tried.add(key)
        return fails(candidate)

    while len(smallest) > 1:
        bounds = [len(smallest) * i // chunks for i in range(chunks + 1)]
        parts = [smallest[a:b] for a, b in pairwise(bounds)]
        smaller = next((part for part in parts if still(part)), None)
        if smaller is not None:
            smallest, chunks = smaller, 2
            continue
        rests = ([x for j, part in enumerate(parts) if j != i for x in part] for i in range(chunks))
        smaller = next((rest for rest in rests if still(rest)), None)
        if smaller is not None:
            smallest, chunks = smaller, max(chunks - 1, 2)
        elif chunks < len(smallest):
            chunks = min(2 * chunks, len(smallest))
        else:
            break
    return smallest


# The call.


JSON_VERSION = 1


@dataclass(frozen=True)
class Reduction:
    """The part of a model that fails in the same way as the model: returned by `tflq.reduce`.

    Attributes:
        source: Path of the model.
        kind: The failure: "differs", "does not run", "dies", "refused: REASON", "error: TYPE in FUNCTION" or "crash:
            SIGNAL".
        data: The part, as a TFLite file.
        inputs: Arrays by input name on which it fails.
        operators: The model's operators that are left, such as "subgraph 0, operator 3 (ADD), tensor 'y'".
        total: Number of operators in the model.
        tried: Number of parts that were tried.
        seconds: How long that took.

    Example:
        ```python
        part = tflq.reduce("model.tflite")
        if part is not None:
            part.save("part.tflite", force=True)
        ```
    """

    source: str
    kind: str
    data: bytes = field(repr=False)
    inputs: Inputs = field(repr=False)
    operators: tuple[str, ...]
    total: int
    tried: int
    seconds: float

    def save(self, path: FilePath, *, force: bool = False) -> Path:
        """Write the model, and its inputs next to it: both, or neither.

        Args:
            path: Where to write the model.
            force: Replace existing files.

        Returns:
            The path of the inputs.

        Raises:
            FileError: A file exists or cannot be written.
        """
        part, arrays = _places(path, [self.source], force=force)
        buffer = io.BytesIO()
        np.savez(buffer, **{f"arr_{i}": array for i, array in enumerate(self.inputs.values())})
        replace_files([(part, [self.data]), (arrays, [buffer.getbuffer()])], force=force)
        return arrays

    def to_json(self) -> dict[str, Any]:
        """The result in a versioned JSON form, without the model and its inputs."""
        return {
            "format": "tflq.reduction",
            "version": JSON_VERSION,
            "source": self.source,
            "kind": self.kind,
            "operators": list(self.operators),
            "total": self.total,
            "tried": self.tried,
            "seconds": round(self.seconds, 3),
        }


def reduce(
    model: FilePath | bytes,
    destination: FilePath | None = None,
    *,
    target: FilePath | None = None,
    mac: Mac = "integer",
    fallback: Fallback = "float",
    kernel_set: str = DEFAULT_SET,
    inputs: Any = None,
    seeds: int = 2,
    timeout: float = 120.0,
    force: bool = False,
    predicate: Predicate | None = None,
) -> Reduction | None:
    """Find the smallest part of a TFLite model whose conversion still differs, fails or crashes.

    A part is a set of operators of one function. It reads what the model computes at that place: one run in the
    interpreter records every tensor. If the original does not run, random integers take their place.

    Args:
        model: The TFLite model: a path or bytes.
        destination: Where to write the part. Its inputs are written next to it (.npz).
        target: As in `tflq.convert`.
        mac: As in `tflq.convert`.
        fallback: As in `tflq.convert`.
        kernel_set: As in `tflq.convert`.
        inputs: Samples, in any form of docs/data.md but images. By default the inputs of `tflq.verify`: `seeds` random
            sets, then edge values. The first one on which an entry fails is used.
        seeds: Number of sets of random inputs.
        timeout: Seconds that a conversion or a run may take.
        force: Replace existing files.
        predicate: What counts as failing, instead of these options: a function of a model's bytes and of arrays by
            input name that returns the kind of failure, or "" if there is none.

    Returns:
        The part and how it fails, or None if the whole model does not fail.

    Raises:
        InvalidModelError: The model is not valid.
        OptionError: An option makes no sense, or the model is a TOSA file.
        FileError: The destination exists or cannot be written.
        TflqError: No interpreter is installed.

    Example:
        ```python
        reduction = tflq.reduce("model.tflite", "part.tflite", target="kernels")
        if reduction is not None:
            print(reduction.kind, reduction.operators)
        ```
    """
    start = time.monotonic()
    check_numbers(0, whole=True, seeds=seeds)
    check_numbers(0, timeout=timeout)
    check_flags(force=force)
    check_data("inputs", inputs)
    check_path("destination", destination)
    if destination is not None:
        _places(destination, [model, target, *files_of(inputs)], force=force)
    source = reusable_source(model, copy=True)
    data = source if isinstance(source, bytes) else source.data
    if identify(data) is TOSA:
        remedy = "reduce the TFLite model that it was made of, with target 'tosa'"
        path = "" if isinstance(model, bytes) else os.fspath(model)
        raise OptionError(Reason("only TFLite models can be reduced; this is a TOSA file", path, remedy=remedy))
    format = of_target(target, static=True).name
    options_from_arguments(format, target, mac=mac, fallback=fallback, kernel_set=kernel_set)
    options = {"target": target, "mac": mac, "fallback": fallback, "kernel_set": kernel_set, "format": format}
    with ExitStack() as stack:
        failure_of = predicate or stack.enter_context(Conversion(options, timeout=timeout))
        reduction = _reduced(source, data, failure_of, start, seeds, inputs, timeout)
    if reduction is not None and destination is not None:
        reduction.save(destination, force=force)
    return reduction


def _reduced(
    source: Source,
    data: bytes,
    predicate: Predicate,
    start: float,
    seeds: int,
    inputs: Any,
    timeout: float,
) -> Reduction | None:
    """The smallest part that fails as the predicate says. data: the bytes of the source."""
    module = read(source)
    with tempfile.TemporaryDirectory(prefix="tflq-reduce-") as folder:
        path = Path(folder, "model.tflite")
        path.write_bytes(data)
        search = _Search(data, module, predicate)
        for entry, arrays in _runs(path, module, seeds, inputs, timeout):
            index = function_number(module, entry)
            search.recording = _recorded_inputs(module, entry, index, arrays)
            if search.fails_whole(index):
                search.recording = record(path, module, entry, arrays, timeout) or search.recording
                smallest = search.smallest(index)
                return Reduction(module.source, search.kind, *smallest, search.tried, time.monotonic() - start)
    return None


def _places(path: FilePath, read: Sequence[object], *, force: bool) -> tuple[Path, Path]:
    """Where a part and its inputs go. Errors as of `check_outputs`."""
    part, arrays = Path(path), Path(path).with_suffix(".npz")
    check_outputs([("the part", part), ("its inputs", arrays)], inputs=read, force=force)
    return part, arrays


def _runs(
    path: Path, module: Module, seeds: int, user_inputs: Any, timeout: float
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Entries and inputs to try. If the interpreter does not open the model: its first function, without inputs."""
    try:
        with opened_whole(str(path), keep=False, timeout=timeout) as opened:
            sides = opened.head["entries"]
            runs = [
                (key, arrays)
                for key in entries(module)
                for arrays in input_sets(sides[key]["inputs"], seeds, user_inputs)
            ]
    except RunError:
        runs = [("", [])]
    yield from runs


def _recorded_inputs(module: Module, entry: str, index: int, arrays: Sequence[np.ndarray]) -> Recording:
    """The inputs of an entry, by their places."""
    function = module.functions[index]
    values = function.inputs
    if (signature := signature_of(module, entry)) is not None:
        values = [value for _, value in sorted(signature.inputs or (), key=lambda pair: pair[0] or "")]
    numbers = {value: n for n, value in enumerate(function.tensors)}
    return {(index, numbers[v]): array for v, array in zip(values, arrays, strict=False)}


def input_sets(side: Side, seeds: int, user_inputs: Any) -> Iterator[list[np.ndarray]]:
    """The inputs of an entry, as `tflq.verify` makes them, or the user's."""
    if user_inputs is not None:
        for sample in samples_of(user_inputs, entry_for(side), labelled=False).arrays:
            yield [np.ascontiguousarray(sample[name]).reshape(sample[name].shape) for name, _ in side]
    else:
        yield from (arrays for _, arrays in generated_inputs(side, seeds, None))


class _Search:
    """The parts of one model that are tried."""

    def __init__(self, data: bytes, module: Module, predicate: Predicate) -> None:
        self._data = data
        self._module = module
        self._predicate = predicate
        self.recording: Recording = {}
        self.kind = ""
        self.tried = 0

    def fails_whole(self, index: int) -> bool:
        """Whether a function fails; its parts must then fail in the same way."""
        self.kind = self._kind(self._part(index, self._all(index)))
        return bool(self.kind)

    def smallest(self, index: int) -> tuple[bytes, Inputs, tuple[str, ...], int]:
        """The smallest part of a function, or of one that its last operator runs."""
        total = sum(len(function.ops) for function in self._module.functions)
        operators = self._minimized(index)
        while len(operators) == 1:
            inner = self._failing_callee(index, operators[0])
            if inner is None:
                break
            index, operators = inner, self._minimized(inner)
        data, inputs = self._part(index, operators)
        ops = self._module.functions[index].ops
        return (
            data,
            inputs,
            tuple(str(ops[i].location).removeprefix(f"{self._module.source}: ") for i in operators),
            total,
        )

    def _minimized(self, index: int) -> list[int]:
        return minimize(self._all(index), lambda operators: self._fails(index, operators))

    def _failing_callee(self, index: int, operator: int) -> int | None:
        called = dict.fromkeys(callees(self._module.functions[index].ops[operator]))
        return next((i for i in called if self._fails(i, self._all(i))), None)

    def _all(self, index: int) -> list[int]:
        return list(range(len(self._module.functions[index].ops)))

    def _part(self, index: int, operators: Sequence[int]) -> Candidate:
        return build(self._data, index, operators, self.recording)

    def _fails(self, index: int, operators: Sequence[int]) -> bool:
        try:
            candidate = self._part(index, operators)
        except TflqError:  # these operators make no model of their own
            return False
        return self._kind(candidate) == self.kind

    def _kind(self, candidate: Candidate) -> str:
        self.tried += 1
        return self._predicate(*candidate)
