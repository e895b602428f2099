"""Other runtimes, each seen as `tflite_runner.TfliteRunner` shows a TFLite model in the interpreter: ONNX Runtime and
OpenVINO, the reference model of TOSA, and TFLite Micro.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final, Self

import numpy as np

from tflq.base.documents import Check, DocumentError, parse_json
from tflq.base.errors import InvalidModelError, MissingPackageError, Reason, UnsupportedError, to_install
from tflq.dialects.tosa.movement import Rescale, Variable, VariableWrite
from tflq.formats.sources import reusable_source
from tflq.formats.tosa.read import read_tosa
from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.module import Function, Module
from tflq.ir.ops import Buffer, Value
from tflq.ir.types import SCALARS, TensorType, i8, ui8
from tflq.tools.verify.file_runner import FileRunner, by_name, dtype_of, stored
from tflq.tools.verify.model_file import Graph, ModelFile, Tensor, entry_of
from tflq.tools.verify.runner import Child, Opened, Opening, Resolver, RunError, StoredTensor
from tflq.tools.verify.sources import onnx_model
from tflq.tools.verify.tflite_runner import Division, Fed, Fetcher, TfliteRunner, index_of
from tflq.tools.verify.ulps import allowed_ulps
from tflq.tools.verify.worker import Side


class _Extensible(FileRunner):
    """A file of which extended ones are run, too: these also return inner tensors, and take those after which the model
    is divided, so that what follows goes on with other values."""

    def __init__(self, path: str, module: Module) -> None:
        super().__init__(path, module)
        self._cuts: tuple[str, ...] = ()
        self._divided: TosaFetcher | OnnxFetcher | None = None

    def _extended(self, name: str, fetched: Iterable[str]) -> TosaFetcher | OnnxFetcher:
        """The file that returns these tensors, too, and takes those after which it is divided."""
        raise NotImplementedError

    def _plain_name(self, name: str) -> str:
        """The file's name of a tensor."""
        return name

    def divide(self, cuts: Iterable[str]) -> None:
        """These tensors can be given other values, by name: what follows them goes on with these. A file with state is
        not divided."""
        self._cuts = () if self.has_state else tuple(dict.fromkeys(cuts))

    def feeds(self, _: str) -> bool:
        """Whether tensors can be given other values."""
        return bool(self._cuts)

    def _run_divided(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Outputs in the file's order; one that is fed is the array that was fed."""
        self._divided = self._divided or self._extended("divided", self._cuts)
        fed_outputs = {self._plain_name(name): array for name, array in fed.items()}
        outputs = self._divided.run(inputs, fed)
        return [fed_outputs.get(value.name, array) for value, array in zip(self.outputs, outputs, strict=True)]

    def cut(self, _: str) -> dict[str, np.ndarray]:
        """The tensors after which the file is divided, as the last run computed them."""
        values = {name: self._divided.fetch(name) for name in self._cuts} if self._divided else {}
        return {name: value for name, value in values.items() if value is not None}

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[TosaFetcher | OnnxFetcher]:
        """An extended file that returns these tensors, too."""
        fetcher = self._extended("extended", names)
        try:
            yield fetcher
        finally:
            fetcher.close()

    def release(self) -> None:
        """Closes the divided file; it is opened again when it is needed."""
        if self._divided is not None:
            self._divided.close()
            self._divided = None


# ONNX Runtime and OpenVINO. What the file holds of the model's inner tensors, its metadata says: the value, what is
# taken off it, whether channels come first. They are fetched by running an extended file that returns these values.


_TYPES: Final = {t.numpy: t for t in reversed(SCALARS.values()) if t.numpy and t.bits >= 8 and t.name != "index"}


@dataclass(eq=False)
class OnnxFetcher:
    """An extended file that is open so that inner tensors, by their places among its results, can be fetched. `cuts`:
    the tensors that it takes, and the types in which it holds them."""

    _runner: OnnxRunner
    _opened: Opened
    _places: Mapping[str, tuple[int, StoredTensor]]
    _cuts: Mapping[str, tuple[StoredTensor, np.dtype]]

    def run(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The file's outputs, in its order, as they were computed."""
        values = [tensor.stored(fed[name], dtype) for name, (tensor, dtype) in self._cuts.items()]
        return self._opened.run("", [*self._runner.ordered(inputs), *values])

    def fetch(self, name: str) -> np.ndarray | None:
        place, tensor = self._places[name]
        array = self._opened.fetch((0, place))
        return None if array is None else tensor.tensor(array)

    def close(self) -> None:
        self._opened.close()


class OnnxRunner(_Extensible):
    """One ONNX file, open in a child process. runtime: as `worker.RUNTIMES` names it."""

    untimed = "only models in the TFLite interpreter are timed"

    @classmethod
    def open_file(cls, path: str, options: Opening) -> Self:
        return cls(path, options.timeout)

    def __init__(self, path: str, timeout: float, runtime: str = "onnxruntime") -> None:
        """Opens a file by its path. RunError, TflqError as `TfliteRunner`."""
        self._runtime = runtime
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._child = Child(runtime, timeout)
        try:
            self._opened = Opened(self._child, {"onnx": str(Path(path).absolute()), "runtime": runtime})
        except BaseException:
            self.close()
            raise
        head = self._opened.head
        try:
            metadata = _Metadata(path, head)
        except BaseException:
            self.close()
            raise
        super().__init__(path, metadata.interface)
        self.interpreter = head["interpreter"]
        self.has_state = bool(metadata.state)
        if metadata.exact_in == []:
            self.inexact = "not bit-exact by design (QDQ, or sums of real numbers)"
        outputs = {v.name: StoredTensor(v.name, 0, False, v.type.storage.dtype.name) for v in self.outputs}
        self._inner = outputs | metadata.tensors

    def ulps(self) -> int | None:
        return None

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`; a run that follows another starts with the state that it left."""
        if fed:
            outputs = self._run_divided(inputs, fed)
        else:
            outputs = self._opened.run("", self.ordered(inputs), follows=bool(step))
        return self.returned(outputs)

    @property
    def undivided(self) -> str:
        return "" if find_spec("onnx") else f" without the package onnx ({to_install('onnx')})"

    def divide(self, cuts: Iterable[str]) -> None:
        super().divide(() if self.undivided else cuts)

    def type_of(self, key: str, name: str) -> str:
        return self._inner[name].dtype if name in self._inner else super().type_of(key, name)

    def names(self, _: str) -> dict[str, int]:
        """Outputs, and inner tensors of the model that the file has."""
        return {name: i for i, name in enumerate(self._inner)}

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        """Not known: the other model says them."""
        return [0 for _ in names]

    def _plain_name(self, name: str) -> str:
        return str(self._inner[name].place)

    def _extended(self, name: str, fetched: Iterable[str]) -> OnnxFetcher:
        path = Path(self._folder.name, f"{name}.onnx")
        fetched = list(fetched)
        cut_places = [self._inner[cut].place for cut in self._cuts]
        count, dtypes = extend(self.path, path, [self._inner[each].place for each in fetched], cut_places)
        opened = Opened(self._child, {"onnx": str(path), "runtime": self._runtime, "outputs": len(self.outputs)})
        places = {each: (count + i, self._inner[each]) for i, each in enumerate(fetched)}
        cuts = {cut: (self._inner[cut], dtype) for cut, dtype in zip(self._cuts, dtypes, strict=True)}
        return OnnxFetcher(self, opened, places, cuts)

    def close(self) -> None:
        self._child.close()
        self._folder.cleanup()


_Number = Annotated[object, Check("a number", lambda number: isinstance(number, (bool, int, float)))]
_Place = Annotated[
    tuple[str, int, bool, str],
    Check("a name, an offset, whether channels come first, and a type", lambda place: _is_type(place[3])),
]


def _is_type(name: str) -> bool:
    """Whether numpy has a type of numbers of this name."""
    try:
        return np.dtype(name).kind in "biufV"
    except TypeError:
        return False


class _Metadata:
    """Metadata of an ONNX file, which anybody may have written: InvalidModelError names the field at fault.

    state: by output, the input that its value is for in the next run. exact_in: runtimes; None if it does not say.
    tensors: where it has tensors of the model, by their names. interface: a module without operators that has the
    inputs and outputs that are no state.
    """

    def __init__(self, path: str, head: Mapping[str, Any]) -> None:
        self._path = path
        self._texts: Mapping[str, str] = head["metadata"]
        self.exact_in = self._read("tflq.exact_in", list[str] | None, None)
        self.state = self._read("tflq.state", Mapping[str, str], {})
        self.tensors = {
            name: StoredTensor(*place) for name, place in self._read("tflq.tensors", Mapping[str, _Place], {}).items()
        }
        sides = {side: {row[0] for row in head[side]} for side in ("inputs", "outputs")}
        self._check("tflq.state", "outputs", self.state, sides)
        start = self._read("tflq.start", Mapping[str, _Number | list[_Number]], {})
        self._check("tflq.start", "inputs", start, sides)
        states = {*self.state, *self.state.values()}
        inputs, outputs = ([self._value(*row) for row in head[side] if row[0] not in states] for side in sides)
        self.interface = Module([Function("main", inputs, outputs, [])])

    def _read(self, key: str, kind: Any, default: Any) -> Any:
        try:
            return parse_json(self._texts[key], kind) if key in self._texts else default
        except DocumentError as error:
            raise self._fault(key, str(error)) from error

    def _check(self, key: str, side: str, names: Iterable[str], sides: Mapping[str, set[str]]) -> None:
        for name in names:
            if name not in sides[side]:
                raise self._fault(key, f"'{name}' is not among the file's {side}")

    def _fault(self, key: str, what: str) -> InvalidModelError:
        return InvalidModelError(f"metadata '{key}'", what, path=self._path, hint="convert the model anew")

    def _value(self, name: str, dtype: str, shape: Sequence[int | None]) -> Value:
        if dtype not in _TYPES:
            what = f"'{name}' is a tensor of {dtype}, and tensors of numbers are compared"
            raise UnsupportedError(Reason(what, self._path, tensor=name))
        return Value(TensorType(tuple(shape), _TYPES[dtype]), name)


def extend(
    source: str, target: Path, values: Sequence[str], inputs: Sequence[str] = ()
) -> tuple[int, Sequence[np.dtype]]:
    """Writes a file that also returns some values, behind all that it returned, and that takes others, behind all that
    it took: what read these reads `NAME/fed`. How many it returned, and the types of what it takes. TflqError without
    the package `onnx`."""
    try:
        import onnx
    except ImportError:
        raise MissingPackageError("results inside of an ONNX file need the package onnx", "onnx") from None
    model = onnx_model(source)
    graph, count = model.graph, len(model.graph.output)
    inferred = onnx.shape_inference.infer_shapes(model).graph if inputs else graph
    described = {info.name: info for info in (*inferred.value_info, *inferred.output)}
    there = {*described, *(name for node in graph.node for name in node.output), *(info.name for info in graph.input)}
    for value in (*values, *inputs):
        if value not in (described if value in inputs else there):
            raise RunError(f"the file's metadata has '{value}' as a tensor, and its graph has none of this name")
    dtypes = [_take(onnx, graph, described[value]) for value in inputs]
    outputs = (onnx.helper.make_empty_tensor_value_info(f"{value}/fetched") for value in values)
    for value, output in zip(values, outputs, strict=True):
        graph.node.append(onnx.helper.make_node("Identity", [value], [output.name]))
        graph.output.append(output)
    onnx.save(model, str(target))
    return count, dtypes


def _take(onnx: Any, graph: Any, described: Any) -> np.dtype:
    """Makes what reads a value read an input of the file instead; its type."""
    fed_input = graph.input.add()
    fed_input.CopyFrom(described)
    fed_input.name += "/fed"
    _rename(graph, described.name, fed_input.name)
    dtype: np.dtype = onnx.helper.tensor_dtype_to_np_dtype(fed_input.type.tensor_type.elem_type)
    return dtype


def _rename(graph: Any, name: str, other: str) -> None:
    """Replaces a value where nodes read it, also in branches and bodies."""
    for node in graph.node:
        node.input[:] = [other if read == name else read for read in node.input]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, name, other)


# TFLite Micro runs the first subgraph, at the shapes that the file states; a signature of that subgraph names its
# inputs and outputs. Inner tensors are read from an interpreter that gives each its own memory.


_WIDEST: Final = 8
_ALIGNED: Final = 16
_PER_OPERATOR: Final = 1 << 14
_SPARE: Final = 1 << 22
"""Bytes: of the widest element, what tensors are aligned to, what an operator may keep for itself, and the rest."""


class MicroRunner(TfliteRunner):
    """One model. `entries` is what the file says of its inputs and outputs."""

    what = "TFLite Micro"
    untimed = "only models in the TFLite interpreter are timed"
    resizes = False

    def __init__(self, path: str, timeout: float) -> None:
        """Opens a model by its path. RunError if TFLite Micro refuses it; TflqError if it is not installed."""
        self._opened: dict[str, Opened] = {}
        super().__init__(path, "reference", timeout)

    def _open(self) -> None:
        others = [f"'{key}'" for key, entry in self.file.entries.items() if entry.graph]
        if others:
            only = "TFLite Micro runs the first subgraph and what it calls, and ends its process on a file with more"
            raise RunError(f"{only}: convert signature {' or '.join(others)} alone (--signature KEY)")
        self.interpreter = self._entry("").head["interpreter"]
        self.entries = {
            key: {"inputs": _side(graph, entry.inputs), "outputs": _side(graph, entry.outputs)}
            for key in self.file.entries
            for entry, graph in [entry_of(self.file, key)]
        }

    def _entry(self, key: str) -> Opened:
        """The subgraph of an entry, open, for as long as nothing else needs its memory."""
        if key not in self._opened:
            self._opened[key] = self._opened_graph(key, keep=False)
        return self._opened[key]

    def _opened_graph(self, key: str, *, keep: bool) -> Opened:
        try:
            return Opened(self._child, {"micro": self.path, "arena": arena(self.file), "keep": keep})
        except RunError as error:
            if error.fatal:
                raise
            raise RunError(f"{error}: {self._child.printed(2)}") from error

    def divide(self, key: str, broken: Mapping[int, str], cuts: Mapping[str, int]) -> Division:
        """Not at all: its kernels are all that it has."""
        return Division()

    @property
    def kernels(self) -> Resolver:
        return self.resolver

    def run(
        self,
        key: str,
        inputs: Sequence[np.ndarray],
        fed: Fed = {},  # noqa: B006 - read only
        step: int | None = None,
    ) -> list[np.ndarray]:
        outputs = self._entry(key).run(key, self._placed(key, inputs), follows=bool(step))
        entry, graph = entry_of(self.file, key)
        return [outputs[graph.outputs.index(tensor)] for _, tensor in entry.outputs]

    def _placed(self, key: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Inputs of an entry in the order of its subgraph."""
        entry, graph = entry_of(self.file, key)
        by_tensor = {tensor: array for (_, tensor), array in zip(entry.inputs, inputs, strict=True)}
        return [by_tensor[tensor] for tensor in graph.inputs]

    def sizes(self, key: str, names: Sequence[str]) -> list[int]:
        """Bytes of tensors, by name, at the shapes of the file."""
        _, graph = entry_of(self.file, key)
        return [_size(graph.tensor(index_of(self._tensor(key, name)))) for name in names]

    @contextmanager
    def fetching(self, key: str, names: Sequence[str]) -> Iterator[Fetcher]:
        """The model, with memory for each of its tensors."""
        opened = self._opened_graph(key, keep=True)
        try:
            yield _Fetcher(self, opened, key, {name: self._tensor(key, name) for name in names})
        finally:
            opened.close()

    def release(self) -> None:
        for opened in self._opened.values():
            opened.close()
        self._opened = {}


class _Fetcher(Fetcher):
    """A model that is open so that inner tensors can be fetched after a run."""

    def __init__(
        self, runner: MicroRunner, opened: Opened, key: str, tensors: Mapping[str, int | StoredTensor]
    ) -> None:
        super().__init__(opened, key, 0, tensors)
        self._runner = runner

    def run(self, inputs: Sequence[np.ndarray], fed: Fed) -> None:
        super().run(self._runner._placed(self._key, inputs), fed)


def arena(file: ModelFile) -> int:
    """Bytes that are enough for all tensors that a model computes and for what operators keep. Memory that is not used
    is only reserved."""
    total = _SPARE + 2 * len(file.data)
    for graph in file.graphs:
        results = {t for op in graph.operators for t in op.outputs if t >= 0} | set(graph.inputs)
        results |= {t for op in graph.operators for t in op.inputs if t >= 0 and graph.tensor(t).variable}
        total += sum(2 * _size(graph.tensor(t)) + _ALIGNED for t in results) + _PER_OPERATOR * len(graph.operators)
    return total


def _size(tensor: Tensor) -> int:
    return _WIDEST * prod(tensor.shape)


def _side(graph: Graph, pairs: Sequence[tuple[str, int]]) -> Side:
    return [(name, _description(graph.tensor(index))) for name, index in pairs]


def _description(tensor: Tensor) -> dict[str, Any]:
    """Description of a tensor, with the fields of `worker.describe`."""
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "shape_signature": list(tensor.signature),
        "dtype": tensor.type,
        "scales": tensor.scales.tolist(),
        "zero_points": list(tensor.zero_points),
        "axis": tensor.axis,
    }


# The reference model of TOSA: inner tensors are fetched by running an extended file that returns them. Tensors of a
# file that is divided can be given other values: the extended file takes them as inputs.


_SHIFTED: Final = {"input_zp": -128, "output_zp": 0, "multiplier": 1 << 30, "shift": 30}
"""A RESCALE of int8 that only reinterprets it as uint8."""


@dataclass(eq=False)
class TosaFetcher:
    """An extended file that is open so that inner tensors can be fetched after a run: `values`, behind its own outputs.
    `cuts`: the tensors of which the file takes the values that it goes on with."""

    _runner: TosaRunner
    _opened: Opened
    _places: Mapping[str, tuple[int, Value]]
    _cuts: Mapping[str, Value]

    def run(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The file's outputs, in its order, as they were computed."""
        values = [stored(fed[name], dtype_of(value)) for name, value in self._cuts.items()]
        arrays = self._opened.run("", [*self._runner.ordered(inputs), *values])
        outputs = self._runner.outputs
        return [array.view(dtype_of(value)) for array, value in zip(arrays, outputs, strict=False)]

    def fetch(self, name: str) -> np.ndarray | None:
        place, value = self._places[name]
        array = self._opened.fetch((0, place))
        return array if array is None or place >= len(self._runner.outputs) else array.view(dtype_of(value))

    def close(self) -> None:
        self._opened.close()


class _InARow:
    """Runs that keep state, which the reference model forgets. A copy of the file returns the value that is written to
    each variable. The variable starts with this value in the next run."""

    def __init__(self, path: str, copy: Path, child: Child) -> None:
        self._module = read_tosa(reusable_source(path, copy=True))
        ops = self._module.main.ops
        self._variables = {op.variable: op for op in ops if isinstance(op, Variable)}
        self._starts = {name: op.initial_value for name, op in self._variables.items()}
        self._written = {op.variable: op.input for op in ops if isinstance(op, VariableWrite)}
        there = {*self._module.main.inputs, *self._module.main.outputs}
        self._fetched = [v for v in dict.fromkeys(self._written.values()) if v not in there and not v.is_constant]
        self._copy = copy
        self._child = child
        self._opened: Opened | None = None

    def run(self, inputs: Sequence[np.ndarray], step: int) -> list[np.ndarray]:
        """Outputs of the file. Step 0 starts with its initial values."""
        if step == 0:
            for name, value in self._starts.items():
                self._variables[name].operands[0] = value
        self._copy.write_bytes(tosa_bytes(self._module, fetch=self._fetched))
        if self._opened is None:
            self._opened = Opened(self._child, {"tosa": str(self._copy)})
        arrays = self._opened.run("", inputs)
        main = self._module.main
        values = dict(zip((*main.inputs, *main.outputs, *self._fetched), (*inputs, *arrays), strict=True))
        for name, value in self._written.items():
            if not value.is_constant:
                array = np.ascontiguousarray(values[value]).view(dtype_of(value))
                value = Value(value.type, buffer=Buffer.of(array))
            self._variables[name].operands[0] = value
        return arrays[: len(main.outputs)]


class TosaRunner(_Extensible):
    """One TOSA file, open in a child process."""

    untimed = "the time that the TOSA reference model takes says nothing of a device's"

    @classmethod
    def open_file(cls, path: str, options: Opening) -> Self:
        return cls(path, options.timeout)

    def __init__(self, path: str, timeout: float) -> None:
        """Opens a file by its path. RunError, TflqError as `TfliteRunner`."""
        super().__init__(path, read_tosa(reusable_source(path, copy=True)))
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._child = Child("the reference model", timeout)
        try:
            self._opened = Opened(self._child, {"tosa": self.path})
        except BaseException:
            self.close()
            raise
        self.interpreter = self._opened.head["interpreter"]

    def ulps(self) -> int:
        return allowed_ulps(self.module.main)

    @cached_property
    def has_state(self) -> bool:
        """Whether a run leaves something to the next."""
        return any(isinstance(op, Variable) for op in self.module.main.ops)

    @cached_property
    def keeps_state(self) -> bool:
        """Whether runs in a row can keep it: what branches and bodies write cannot be fetched."""
        return not any(isinstance(op, VariableWrite) for f in self.module.functions[1:] for op in f.ops)

    @cached_property
    def _in_a_row(self) -> _InARow:
        return _InARow(self.path, Path(self._folder.name, "in_a_row.tosa"), self._child)

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. `step`: as `TfliteRunner`. RunError if it does not run."""
        if fed:
            outputs = self._run_divided(inputs, fed)
        else:
            ordered = self.ordered(inputs)
            arrays = self._opened.run("", ordered) if step is None else self._in_a_row.run(ordered, step)
            outputs = [array.view(dtype_of(value)) for array, value in zip(arrays, self.outputs, strict=True)]
        return self.returned(outputs)

    def names(self, _: str) -> dict[str, int]:
        """Outputs, and results of operators that have a name."""
        values = (*self.outputs, *(v for op in self.module.main.ops for v in op.results))
        return {value.name: i for i, value in enumerate(values) if value.name}

    def close(self) -> None:
        self._child.close()
        self._folder.cleanup()

    def _extended(self, name: str, fetched: Iterable[str]) -> TosaFetcher:
        """The file that returns these tensors, too, and takes those after which it is divided."""
        module = read_tosa(reusable_source(self.path, copy=True)) if self._cuts else self.module
        function = module.main
        outputs, values = list(function.outputs), by_name(function)
        cuts = {cut: _behind_sign(values[cut]) for cut in self._cuts}
        new_inputs = {value: Value(value.type, f"{cut}/fed") for cut, value in cuts.items()}
        function.replace(new_inputs)
        function.outputs = outputs  # those that are cut are fetched as they are computed
        function.inputs += new_inputs.values()
        wanted = {each: cuts.get(each, values[each]) for each in fetched}
        results = [*outputs, *(v for v in dict.fromkeys(wanted.values()) if v not in outputs)]
        path = Path(self._folder.name, f"{name}.tosa")
        path.write_bytes(tosa_bytes(module, fetch=results[len(outputs) :]))
        places = {each: (results.index(value), value) for each, value in wanted.items()}
        return TosaFetcher(self, Opened(self._child, {"tosa": str(path)}), places, cuts)


def _behind_sign(value: Value) -> Value:
    """An output of uint8 as what follows reads it: int8, of which the output is another view."""
    op = value.producer
    if value.type.storage is ui8 and isinstance(op, Rescale):
        source = op.input
        attributes = [int(x) for name in _SHIFTED for x in np.atleast_1d(op.attributes[name])]
        if attributes == list(_SHIFTED.values()) and source.producer is not None and source.type.storage is i8:
            return source
    return value
