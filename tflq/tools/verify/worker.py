"""The child process that runs one side of a comparison in the interpreter, on the TOSA reference model or in another
runtime: each can abort on a model.

Run as a script: it imports nothing of tflq. Requests come on standard input, answers go to standard output, each one
line of JSON whose "arrays" lists [dtype, shape] of the arrays that follow it, as plain bytes. A model that is open has
a number, "id", that the request to open it gives.

    {"do": "kernels", "resolver": NAME, "models": [PATH, ...]}           → {"found": [BOOL, ...]}
    {"do": "open", "id": N, "model": PATH, "resolver": NAME, "anew": BOOL, "inner": BOOL, "keep": BOOL}
                                                                         → {"interpreter": ..., "entries": {...}}
    {"do": "open", "id": N, "parts": [...], "inputs": [INDEX, ...], "outputs": [...], "kept": [...]}
    {"do": "open", "id": N, "tosa": PATH}                               → {"interpreter": ...}
    {"do": "open", "id": N, "onnx": PATH, "runtime": NAME, "outputs": N or nothing}
                             → {"interpreter": ..., "inputs": [[NAME, DTYPE, SHAPE], ...], "outputs": [...],
                                "metadata": {KEY: TEXT}}
    {"do": "open", "id": N, "micro": PATH, "arena": BYTES, "keep": BOOL} → {"interpreter": ...}
    {"do": "run", "id": N, "entry": KEY, "fed": [INDEX, ...], "follows": BOOL} + inputs + fed → {} + outputs
    {"do": "time", "id": N, "entry": KEY} + inputs                      → {"seconds": N}, the mean of runs in a row
    {"do": "fetch", "id": N, "place": [subgraph, index]}                → {} + the tensor, if it has data
    {"do": "sizes", "id": N, "places": [[subgraph, index], ...]}        → {"bytes": [N, ...]}, after a run
    {"do": "close", "id": N}                                            → {}

An entry is a way into the model: "" is its first subgraph by position, any other key a signature, by names. A TOSA file
has one; what is fetched of it is an output, by index. `keep`: all tensors keep their data, and can be fetched. `anew`:
every run has a new interpreter, for models with resource variables and no signature to reset them. `follows`: the run
starts with the state that the one before it left; others start anew.

Parts are models that each hold some of a graph's operators: {"model": PATH, "resolver": NAME, "inputs": [INDEX, ...],
"outputs": [...], "results": [...]}; `results` are those of which the size is asked. They run in order, and hand each
other tensors by index. Tensors that are fed take the place of those that were computed; `kept` are the ones to fetch,
as they were computed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from functools import cached_property, partial
from typing import IO, Any

import numpy as np

Side = list[tuple[str, dict[str, Any]]]
"""Inputs or outputs of an entry: name and description, as `describe` gives it."""
Entries = dict[str, dict[str, Side]]
"""The inputs and outputs of each entry, as `Model.entries` gives them."""
Response = tuple[dict[str, Any], list[np.ndarray]]

NO_INTERPRETER = "no interpreter"
NO_REFERENCE_MODEL = "no reference model"
NO_RUNTIME = "no runtime "
"""Begins the error that names a runtime that is not installed, as --runtime does."""
RESET = "tflq_reset"
"""The signature that a conversion adds to reset state; it does not count as an entry of the model."""
_LONGEST = 1 << 28
"""Bytes of the line of a message."""
_KINDS = "biufcSV"
"""numpy's kinds of arrays that are sent: numbers, bytes, and what other packages store as bytes."""
ENOUGH = 0.01
"""Runs are timed for so many seconds."""
RESOLVERS = {"reference": "BUILTIN_REF", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "default": "AUTO"}


NO_SIZE = "Invalid tensor size."
"""The interpreter's error for a constant without elements, of which it has no memory to read."""


def load() -> tuple[str, Any, Any]:
    """Name and version of the interpreter that is imported, its class and its resolver types."""
    interpreter: Any
    resolvers: Any
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        try:
            import tensorflow as tf
        except ImportError:
            raise LookupError(NO_INTERPRETER) from None
        interpreter, resolvers = tf.lite.Interpreter, tf.lite.experimental.OpResolverType
    else:
        interpreter, resolvers = Interpreter, OpResolverType
    return label(interpreter.__module__), interpreter, resolvers


def label(module: str) -> str:
    """Name and version of the package that a module is of. The version is the package's own: a distribution of that
    name can be another one, elsewhere on the path. A package that does not state it has that of the distribution that
    is beside it and lists it."""
    package = module.partition(".")[0]
    loaded = sys.modules[package]
    version = getattr(loaded, "__version__", "")
    if version:
        return f"{package.replace('_', '-')} {version}"
    from importlib.metadata import distributions

    beside = [os.path.dirname(folder) for folder in getattr(loaded, "__path__", ())]
    for distribution in distributions(path=beside):
        if f"\n{package}/" in "\n" + (distribution.read_text("RECORD") or ""):
            return f"{distribution.metadata['Name']} {distribution.version}"
    return package.replace("_", "-")


def describe(detail: dict[str, Any]) -> dict[str, Any]:
    """The interface of a tensor."""
    quantization = detail["quantization_parameters"]
    return {
        "name": detail["name"],
        "shape": [int(d) for d in detail["shape"]],
        "shape_signature": [int(d) for d in detail["shape_signature"]],
        "dtype": np.dtype(detail["dtype"]).name,
        "scales": [float(s) for s in quantization["scales"]],
        "zero_points": [int(z) for z in quantization["zero_points"]],
        "axis": int(quantization["quantized_dimension"]),
    }


def plain_path(path: str) -> str:
    """A path that libraries take, which want UTF-8: another for a file whose name is none, open from then on."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"
    return path


def send(stream: IO[bytes], head: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Writes one message."""
    plain = [_plain(array) for array in arrays]
    head = head | {"arrays": [[array.dtype.str, array.shape] for array in plain]}
    stream.write(json.dumps(head).encode() + b"\n")
    for array in plain:
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> Response:
    """Reads one message. EOFError at the end of the stream, ValueError for what is no message: the other side may be a
    process that a model has taken over."""
    line = stream.readline(_LONGEST)
    if not line:
        raise EOFError
    try:
        head = json.loads(line)
        return dict(head), [_received(stream, *described) for described in head["arrays"]]
    except (LookupError, MemoryError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"not a message: {error}") from error


def _received(stream: IO[bytes], dtype: str, shape: Sequence[int]) -> np.ndarray:
    if np.dtype(dtype).kind not in _KINDS:
        raise ValueError(f"not an array of numbers or bytes: {dtype}")
    array = np.empty(shape, dtype)
    data = array.reshape(-1).view(np.uint8)
    if stream.readinto(data.data) != data.size:  # type: ignore[attr-defined]
        raise EOFError
    return array


def _plain(array: np.ndarray) -> np.ndarray:
    """The array in C order, and strings as bytes of a fixed width."""
    return np.ascontiguousarray(array.astype(np.bytes_) if array.dtype.hasobject else array).reshape(array.shape)


class Opened:
    """A model that is open. `label`: what runs it, and its version."""

    label: str

    def head(self) -> dict[str, Any]:
        """Description of the model when it is opened."""
        return {"interpreter": self.label}

    def run(self, entry: str, inputs: list[np.ndarray], fed: dict[int, np.ndarray], follows: bool) -> list[np.ndarray]:
        """Outputs, in the order of the entry."""
        raise NotImplementedError

    def fetch(self, place: list[int]) -> list[np.ndarray]:
        """The tensor at (subgraph, index), if it holds data."""
        raise NotImplementedError

    def sizes(self, places: list[list[int]]) -> list[int]:
        """Bytes of the tensors at (subgraph, index); 0 where that is not known."""
        return [0 for _ in places]


class Model(Opened):
    """One model in one interpreter."""

    def __init__(self, path: str, resolver: str, *, anew: bool, inner: bool, keep: bool) -> None:
        self.label, interpreter, resolvers = load()
        self._open = partial(
            interpreter,
            model_path=plain_path(path),
            experimental_op_resolver_type=getattr(resolvers, RESOLVERS[resolver]),
            experimental_preserve_all_tensors=keep,
            num_threads=1,
        )
        self._anew = anew
        self._inner = inner
        self._start()
        keys = [key for key in self.interpreter.get_signature_list() if key]
        self.signatures = [key for key in keys if key != RESET]
        self._resets = RESET in keys

    def _start(self) -> None:
        """Opens it. One whose sizes are open need not fit at those that stand in the file, where each such is 1: a run
        states them."""
        self.interpreter = self._open()
        try:
            self.interpreter.allocate_tensors()
        except RuntimeError:
            if all(-1 not in detail["shape_signature"] for detail in self.interpreter.get_input_details()):
                raise

    def head(self) -> dict[str, Any]:
        return super().head() | {"entries": {} if self._inner else self.entries()}

    def entries(self) -> dict[str, Any]:
        """Inputs and outputs of each entry, as [name, description]: the tensor's name, or the signature's for it."""
        details = {"inputs": self.interpreter.get_input_details(), "outputs": self.interpreter.get_output_details()}
        entries: dict[str, Any] = {"": {side: [[d["name"], describe(d)] for d in ds] for side, ds in details.items()}}
        for key in self.signatures:
            runner = self.interpreter.get_signature_runner(key)  # not kept: it would stop the interpreter from resizing
            sides = {"inputs": runner.get_input_details(), "outputs": runner.get_output_details()}
            entries[key] = {side: [[name, describe(d)] for name, d in sorted(ds.items())] for side, ds in sides.items()}
        return entries

    def run(self, entry: str, inputs: list[np.ndarray], _: dict[int, np.ndarray], follows: bool) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. State is reset first, unless the run follows another."""
        if not follows:
            self._reset()
        if entry:
            runner = self.interpreter.get_signature_runner(entry)
            return self._called(runner, dict(zip(sorted(runner.get_input_details()), inputs, strict=True)))
        details = self.interpreter.get_input_details()
        for detail, value in zip(details, inputs, strict=True):
            if tuple(detail["shape"]) != value.shape:
                self.interpreter.resize_tensor_input(detail["index"], value.shape, strict=False)
        self.interpreter.allocate_tensors()
        for detail, value in zip(details, inputs, strict=True):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        if self._inner:
            return []
        return [_read(self.interpreter, d) for d in self.interpreter.get_output_details()]

    def _called(self, runner: Any, named: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Outputs of a signature's runner, by name. The runner fails on a constant without elements after the run."""
        try:
            results = runner(**named)
        except ValueError as error:
            if str(error) != NO_SIZE:
                raise
            details = runner.get_output_details()
            results = {name: _read(self.interpreter, d, runner._subgraph_index) for name, d in details.items()}
        return [results[name] for name in sorted(results)]

    def time(self, entry: str, inputs: list[np.ndarray]) -> float:
        """Seconds of a run: the mean of several in a row on the same inputs, after one that is not timed. The time of
        the processor counts, if the system tells it, so that the work of other processes does not."""
        self.run(entry, inputs, {}, follows=False)
        runner = self.interpreter.get_signature_runner(entry) if entry else self.interpreter.invoke
        named = dict(zip(sorted(runner.get_input_details()), inputs, strict=True)) if entry else {}
        clock = time.thread_time if time.get_clock_info("thread_time").resolution < ENOUGH / 1000 else time.perf_counter
        runs, end, start = 0, time.perf_counter() + ENOUGH, clock()
        while not runs or time.perf_counter() < end:
            self._called(runner, named) if entry else runner()
            runs += 1
        return (clock() - start) / runs

    def _reset(self) -> None:
        if self._anew:
            self._start()
        self.interpreter.reset_all_variables()
        if self._resets:
            self.interpreter.get_signature_runner(RESET)()

    def fetch(self, place: list[int]) -> list[np.ndarray]:
        subgraph, index = place
        try:
            return [self.interpreter.get_tensor(index, subgraph)]
        except (ValueError, RuntimeError):
            return []

    def view(self, place: tuple[int, int]) -> list[np.ndarray]:
        """Fetches a tensor without a copy where the interpreter gives its own memory.

        The array is valid only until the next run, before which nothing may hold it.
        """
        subgraph, index = place
        if subgraph:
            return self.fetch([subgraph, index])
        try:
            return [self.interpreter.tensor(index)()]
        except (ValueError, RuntimeError):
            return []

    def views(self, places: Sequence[tuple[int, int]]) -> list[np.ndarray | None]:
        """Tensors as `view` has them; None for one without data."""
        return [next(iter(self.view(place)), None) for place in places]

    def sizes(self, places: list[list[int]]) -> list[int]:
        graphs = {subgraph for subgraph, _ in places}
        details = {(g, d["index"]): d for g in graphs for d in self.interpreter.get_tensor_details(g)}
        return [size_of(details[subgraph, index]) if (subgraph, index) in details else 0 for subgraph, index in places]


class Parts(Opened):
    """The operators of one graph, in several interpreters."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.label, interpreter, resolvers = load()
        self._inputs, self._outputs, self._fetchable = request["inputs"], request["outputs"], set(request["kept"])
        self._parts: list[tuple[Any, dict[str, Any]]] = []
        for part in request["parts"]:
            resolver = getattr(resolvers, RESOLVERS[part["resolver"]])
            opened = interpreter(
                model_path=plain_path(part["model"]), experimental_op_resolver_type=resolver, num_threads=1
            )
            self._parts.append((opened, part))
        last = {index: i for i, (_, part) in enumerate(self._parts) for index in part["inputs"]}
        self._done = [[index for index, at in last.items() if at == i] for i in range(len(self._parts))]
        self._values: dict[int, np.ndarray] = {}
        self._sizes: dict[int, int] = {}

    def run(self, _: str, inputs: list[np.ndarray], fed: dict[int, np.ndarray], follows: bool) -> list[np.ndarray]:
        """Outputs of the graph, in its order."""
        values = dict(zip(self._inputs, inputs, strict=True))
        self._values, self._sizes = {}, {}
        for (interpreter, part), done in zip(self._parts, self._done, strict=True):
            self._run_part(interpreter, part, values, fed, follows)
            for index in set(done).difference(self._outputs):
                values.pop(index, None)
        return [values[index] for index in self._outputs]

    def _run_part(
        self,
        interpreter: Any,
        part: dict[str, Any],
        values: dict[int, np.ndarray],
        fed: dict[int, np.ndarray],
        follows: bool,
    ) -> None:
        details = interpreter.get_input_details()
        for detail, index in zip(details, part["inputs"], strict=True):
            if tuple(detail["shape"]) != values[index].shape:
                interpreter.resize_tensor_input(detail["index"], values[index].shape, strict=False)
        interpreter.allocate_tensors()
        if not follows:
            interpreter.reset_all_variables()
        for detail, index in zip(details, part["inputs"], strict=True):
            interpreter.set_tensor(detail["index"], values[index])
        interpreter.invoke()
        described = {d["index"]: d for d in interpreter.get_tensor_details()}
        self._sizes |= {index: size_of(described[index]) for index in part["results"] if index in described}
        for index in part["outputs"]:
            value = _read(interpreter, described[index])
            if index in self._fetchable:
                self._values[index] = value
            values[index] = fed.get(index, value)

    def fetch(self, place: list[int]) -> list[np.ndarray]:
        return [self._values[place[1]]] if place[1] in self._values else []

    def sizes(self, places: list[list[int]]) -> list[int]:
        return [self._sizes.get(index, 0) for _, index in places]


class TosaModel(Opened):
    """One TOSA file on the reference model."""

    def __init__(self, path: str) -> None:
        try:
            import tosa_reference_model
        except ImportError:
            raise LookupError(NO_REFERENCE_MODEL) from None
        self.label = f"TOSA reference model {label('tosa_reference_model').rpartition(' ')[2]}"
        self._execute = tosa_reference_model.run
        self._path = path
        self._outputs: list[np.ndarray] = []

    def run(self, _: str, inputs: list[np.ndarray], __: dict[int, np.ndarray], ___: bool) -> list[np.ndarray]:
        """Outputs, in the file's order. Every run starts with the initial values that the file has now."""
        with open(self._path, "rb") as file:
            outputs, status = self._execute(file.read(), inputs)
        if status.name != "TOSA_VALID":
            raise RuntimeError(f"the reference model says {status.name}")
        self._outputs = list(outputs)
        return self._outputs

    def fetch(self, place: list[int]) -> list[np.ndarray]:
        return [self._outputs[place[1]]]


class _OnnxRuntime:
    """A file in ONNX Runtime, on one thread: names, types and dims of inputs and outputs, and metadata."""

    def __init__(self, path: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(plain_path(path), options, providers=["CPUExecutionProvider"])
        self.label = f"onnxruntime {onnxruntime.__version__}"
        self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        self.inputs = [self._described(v) for v in self._session.get_inputs()]
        self.outputs = [self._described(v) for v in self._session.get_outputs()]

    @staticmethod
    def _described(value: Any) -> list[Any]:
        name = value.type.removeprefix("tensor(").removesuffix(")")
        dims = [d if isinstance(d, int) else None for d in value.shape]
        return [value.name, {"float": "float32", "double": "float64"}.get(name, name), dims]

    def run(self, values: dict[str, np.ndarray]) -> list[np.ndarray]:
        return list(self._session.run(None, values))


class _OpenVino:
    """An ONNX file in OpenVINO on a CPU, in float32, on one thread. OpenVINO takes a state, an input with a first
    value, as a constant, which is made an input again."""

    def __init__(self, path: str) -> None:
        import openvino

        core = openvino.Core()
        model = core.read_model(plain_path(path))
        self.metadata: dict[str, str] = {}
        if model.has_rt_info(["framework"]):
            framework = model.get_rt_info(["framework"]).astype(dict)
            self.metadata = {key: value.astype(str) for key, value in framework.items()}
        self._first = self._freed(model, set(_state(self.metadata).values()), openvino)
        options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        self._model = core.compile_model(model, "CPU", options)
        self.label = f"openvino {openvino.__version__.partition('-')[0]}"
        self.inputs = [self._described(v) for v in self._model.inputs]
        self.outputs = [self._described(v) for v in self._model.outputs]
        self._places = {row[0]: i for i, row in enumerate(self.inputs)}

    @staticmethod
    def _freed(model: Any, names: set[str], library: Any) -> dict[str, np.ndarray]:
        """Makes constants inputs, by name; their values."""
        first: dict[str, np.ndarray] = {}
        for constant in model.get_ops():
            names_of_constant = constant.get_type_name() == "Constant" and names & constant.output(0).get_names()
            for name in names_of_constant or ():
                first[name] = np.array(constant.data)
                port = constant.output(0)
                state = library.opset13.parameter(port.get_shape(), port.get_element_type(), name=name)
                port.replace(state.output(0))
                model.add_parameters([state])
        return first

    def _described(self, value: Any) -> list[Any]:
        dims = [d.get_length() if d.is_static else None for d in value.get_partial_shape()]
        name = value.get_node().get_friendly_name().removesuffix("/sink_port_0")  # a value can have several names
        name = name if name in self._first or name in value.get_names() else value.get_any_name()
        return [name, np.dtype(value.get_element_type().to_dtype()).name, dims]

    def run(self, values: dict[str, np.ndarray]) -> list[np.ndarray]:
        placed = {self._places[name]: array for name, array in (self._first | values).items() if name in self._places}
        return list(self._model(placed).to_tuple())


RUNTIMES: dict[str, Any] = {"onnxruntime": _OnnxRuntime, "openvino": _OpenVino}
"""Runtimes of ONNX files, by the names of their packages."""


def _names_in_metadata(metadata: dict[str, str], key: str) -> dict[str, Any]:
    """Values by name in metadata. Empty if it has another form: the parent process checks it, and refuses that."""
    try:
        document = json.loads(metadata.get(key, "{}"))
    except (RecursionError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _state(metadata: dict[str, str]) -> dict[str, str]:
    """By output, the input that its value is for in the next run."""
    return {name: to for name, to in _names_in_metadata(metadata, "tflq.state").items() if isinstance(to, str)}


class OnnxModel(Opened):
    """One ONNX file in a runtime. What its metadata calls a state is an input and an output each, which callers need
    not know. outputs: how many it returns; what follows them can be fetched."""

    def __init__(self, path: str, runtime: str, outputs: int | None = None) -> None:
        try:
            self._runtime = _call_runtime(RUNTIMES[runtime], path)
        except ImportError:
            raise LookupError(NO_RUNTIME + runtime) from None
        self.label = self._runtime.label
        self._state = _state(self._runtime.metadata)
        self._state_values: dict[str, np.ndarray] = {}
        self._shown = [name not in self._state for name, *_ in self._runtime.outputs]
        self._count = outputs
        self._results: list[np.ndarray] = []

    @cached_property
    def _start(self) -> dict[str, np.ndarray]:
        """First values of states that have no initializer."""
        start = _names_in_metadata(self._runtime.metadata, "tflq.start")
        rows = {name: (dtype, shape) for name, dtype, shape in self._runtime.inputs if name in start}
        return {name: np.resize(np.asarray(start[name], dtype), shape) for name, (dtype, shape) in rows.items()}

    def head(self) -> dict[str, Any]:
        runtime = self._runtime
        return super().head() | {
            "inputs": runtime.inputs,
            "outputs": runtime.outputs,
            "metadata": runtime.metadata,
        }

    def run(self, _: str, inputs: list[np.ndarray], __: dict[int, np.ndarray], follows: bool) -> list[np.ndarray]:
        """Outputs, in the file's order; a run that does not follow another starts with the file's initial values."""
        state = set(self._state.values())
        names = [name for name, *_ in self._runtime.inputs if name not in state]
        values = dict(zip(names, inputs, strict=True)) | (self._state_values if follows else self._start)
        self._results = [np.asarray(array) for array in _call_runtime(self._runtime.run, values)]
        rows = zip(self._runtime.outputs, self._results, strict=True)
        self._state_values = {self._state[name]: array for (name, *_), array in rows if name in self._state}
        shown = [array for array, shown in zip(self._results, self._shown, strict=True) if shown]
        return shown[: self._count]

    def fetch(self, place: list[int]) -> list[np.ndarray]:
        return [self._results[place[1]]]


class MicroModel(Opened):
    """The first subgraph of one TFLite file in TFLite Micro. arena: bytes of memory; keep: every tensor has memory of
    its own, so that inner ones can be fetched."""

    def __init__(self, path: str, arena: int, *, keep: bool) -> None:
        try:
            from tflite_micro.python.tflite_micro import runtime
        except ImportError:
            raise LookupError(NO_RUNTIME + "tflm") from None
        self.label = f"tflite-micro {label('tflite_micro').rpartition(' ')[2]}"
        kinds = runtime.InterpreterConfig
        kind = kinds.kPreserveAllTensors if keep else kinds.kAllocationRecording
        self._open = partial(runtime.Interpreter.from_file, plain_path(path), arena_size=arena, intrepreter_config=kind)
        with open(path, "rb") as file:
            self._outputs = runtime.schema_fb.Model.GetRootAsModel(file.read(), 0).Subgraphs(0).OutputsLength()
        self._interpreter = self._open()
        self._fresh = True

    def run(self, _: str, inputs: list[np.ndarray], __: dict[int, np.ndarray], follows: bool) -> list[np.ndarray]:
        """Outputs, in the file's order; a run that does not follow another has an interpreter of its own."""
        if not (follows or self._fresh):
            self._interpreter = None  # before the next one takes its memory
            self._interpreter = self._open()
        self._fresh = False
        for place, array in enumerate(inputs):
            self._interpreter.set_input(array, place)
        self._interpreter.invoke()
        return [np.asarray(self._interpreter.get_output(place)) for place in range(self._outputs)]

    def fetch(self, place: list[int]) -> list[np.ndarray]:
        return [np.asarray(self._interpreter.GetTensor(place[1], place[0])["tensor_data"])]


def _call_runtime(call: Any, *arguments: Any) -> Any:
    """Result of a runtime's call. Runtimes have errors of classes of their own: RuntimeError stands for these."""
    try:
        return call(*arguments)
    except ImportError:
        raise
    except Exception as error:
        raise RuntimeError(str(error)) from error


def _read(interpreter: Any, detail: dict[str, Any], subgraph: int = 0) -> np.ndarray:
    """The tensor that a description is of, after a run."""
    shape = tuple(map(int, detail["shape"]))
    if 0 in shape:
        return np.zeros(shape, "S1" if detail["dtype"] in (np.bytes_, np.object_) else detail["dtype"])
    array: np.ndarray = interpreter.get_tensor(detail["index"], subgraph)
    return array


def size_of(detail: dict[str, Any]) -> int:
    """Bytes of a tensor."""
    return int(np.prod(detail["shape"], dtype=np.int64)) * np.dtype(detail["dtype"]).itemsize


def kernels(resolver: str, models: list[str]) -> list[bool]:
    """Whether there are kernels for what each model lists."""
    _, interpreter, resolvers = load()

    def runs(model: str) -> bool:
        try:
            interpreter(
                model_path=plain_path(model), experimental_op_resolver_type=getattr(resolvers, RESOLVERS[resolver])
            )
        except ValueError:
            return False
        return True

    return list(map(runs, models))


def opened(request: dict[str, Any]) -> Opened:
    """The model that a request names."""
    if "tosa" in request:
        return TosaModel(request["tosa"])
    if "onnx" in request:
        return OnnxModel(request["onnx"], request["runtime"], request.get("outputs"))
    if "micro" in request:
        return MicroModel(request["micro"], request["arena"], keep=request["keep"])
    if "parts" in request:
        return Parts(request)
    flags = {name: request.get(name, False) for name in ("anew", "inner", "keep")}
    return Model(request["model"], request["resolver"], **flags)


def answer(models: dict[int, Opened], request: dict[str, Any], arrays: list[np.ndarray]) -> Response:
    """The response to a request."""
    do, number = request["do"], request.get("id", 0)
    if do == "kernels":
        return {"found": kernels(request["resolver"], request["models"])}, []
    if do == "open":
        model = models[number] = opened(request)
        return model.head(), []
    if do == "close":
        models.pop(number, None)
        return {}, []
    model = models[number]
    if do == "sizes":
        return {"bytes": model.sizes(request["places"])}, []
    if do == "time":
        assert isinstance(model, Model), "only what runs whole is timed"
        return {"seconds": model.time(request["entry"], arrays)}, []
    if do == "fetch":
        return {}, model.fetch(request["place"])
    count = len(arrays) - len(request["fed"])
    fed = dict(zip(request["fed"], arrays[count:], strict=True))
    return {}, model.run(request["entry"], arrays[:count], fed, request["follows"])


def main(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests until there are no more. An error of the interpreter is an answer, too: {"error": ...}."""
    models: dict[int, Opened] = {}
    while True:
        try:
            request, inputs = receive(requests)
        except EOFError:
            return
        arrays: list[np.ndarray] = []
        try:
            head, arrays = answer(models, request, inputs)
        except (LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
            head = {"error": str(error) or type(error).__name__}
        send(answers, head, arrays)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with os.fdopen(os.dup(1), "wb") as pipe:
        os.dup2(2, 1)  # what the interpreter prints is not an answer
        main(sys.stdin.buffer, pipe)
