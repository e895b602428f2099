"""The parent's side of `worker.py`: a process that opens and runs models, with a time limit. It is started, or was
forked ahead from a process that has loaded the interpreter; and what runs files of other formats than TFLite.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Required, Self, TypedDict

import numpy as np

from tflq.base.documents import DocumentError, checked
from tflq.base.errors import MissingPackageError, Reason, TflqError
from tflq.base.files import FilePath
from tflq.base.processes import how_ended, last_words, limited, python_process
from tflq.ir.core import Function, Module, Value
from tflq.tools.verify import worker
from tflq.tools.verify.difference import Difference
from tflq.tools.verify.worker import RESOLVERS, Entries, Response, Side, load

if TYPE_CHECKING:
    from tflq.tools.verify.tflite_runner import TfliteRunner

Resolver = Literal["reference", "optimized", "default"]
Runtime = Literal["onnxruntime", "openvino", "tflm"]
"""Runtimes of ONNX files, and TFLite Micro."""

_PACKAGES: Final = {"tflm": ("tflite-micro", "--pre tflite-micro")}
"""By runtime: the package that has it, and what pip installs, where they are not its name. TFLite Micro has nothing but
pre-releases."""


class RunError(TflqError):
    """The interpreter could not open or run the model; `fatal` if its process is gone."""

    def __init__(self, reason: str, *, fatal: bool = False) -> None:
        super().__init__(reason)
        self.fatal = fatal


class StoredTensor(NamedTuple):
    """Where a file holds a tensor of the model that it was made from: at an index or under a name, less an offset, or
    with channels as the second dim; and the numpy name of the tensor's type."""

    place: Any
    offset: int
    first: bool
    dtype: str

    def tensor(self, array: np.ndarray) -> np.ndarray:
        """The tensor of the model."""
        if self.first:
            array = np.moveaxis(array, 1, -1)
        return (array.astype(np.int64) + self.offset if self.offset else array).astype(self.dtype)

    def stored(self, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The tensor as the file holds it, in a type."""
        array = (array.astype(np.int64) - self.offset if self.offset else array).astype(dtype)
        return np.moveaxis(array, -1, 1) if self.first else array


class _Description(TypedDict):
    """A tensor, as `worker.describe` has it."""

    name: str
    shape: list[int]
    shape_signature: list[int]
    dtype: str
    scales: list[object]
    zero_points: list[int]
    axis: int


_Row = tuple[str, str, list[int | None]]
"""Name, type and dims."""


class _Head(TypedDict, total=False):
    """A model that was opened."""

    interpreter: Required[str]
    entries: Mapping[str, Mapping[str, list[tuple[str, _Description]]]]
    inputs: list[_Row]
    outputs: list[_Row]
    metadata: Mapping[str, str]


class _Seconds(TypedDict):
    seconds: float


class _Bytes(TypedDict):
    bytes: list[int]


class _Availability(TypedDict):
    found: list[bool]


class Opened:
    """A model that is open in a child process; `head` is what the child says of it. RunError if it does not run."""

    def __init__(self, child: Child, request: dict[str, Any]) -> None:
        self._child = child
        self._number = next(child.numbers)
        self.head, _ = child.ask({"do": "open", "id": self._number, **request}, kind=_Head)

    def run(
        self,
        entry: str,
        inputs: Sequence[np.ndarray],
        fed: Mapping[int, np.ndarray] = MappingProxyType({}),
        *,
        follows: bool = False,
    ) -> list[np.ndarray]:
        """Outputs of an entry, in its order. fed: tensors of a model in parts that have these values, by index.
        follows: the run starts with the state that the one before has left."""
        request = {"do": "run", "id": self._number, "entry": entry, "fed": list(fed), "follows": follows}
        return self._child.ask(request, [*inputs, *fed.values()])[1]

    def time(self, entry: str, inputs: Sequence[np.ndarray]) -> float:
        """Seconds that a run of an entry of a whole model takes, without what sets the inputs."""
        request = {"do": "time", "id": self._number, "entry": entry}
        seconds: float = self._child.ask(request, inputs, _Seconds)[0]["seconds"]
        return seconds

    def fetch(self, place: tuple[int, int]) -> np.ndarray | None:
        """The tensor at (subgraph, index) after a run; None if it has no data."""
        arrays = self._child.ask({"do": "fetch", "id": self._number, "place": place})[1]
        return arrays[0] if arrays else None

    def sizes(self, places: Sequence[tuple[int, int]]) -> list[int]:
        """Bytes of the tensors at (subgraph, index) after a run; 0 where that is not known."""
        request = {"do": "sizes", "id": self._number, "places": places}
        sizes: list[int] = self._child.ask(request, kind=_Bytes)[0]["bytes"]
        return sizes

    def close(self) -> None:
        self._child.ask({"do": "close", "id": self._number})


class Child:
    """A process for models. RunError if it ends or takes too long; MissingPackageError without what runs them."""

    def __init__(self, what: str, timeout: float) -> None:
        self._what = what
        self._timeout = timeout
        self.numbers = count()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it belongs to
        self._child = _start(self._log)

    def kernels(self, resolver: str, models: Sequence[str]) -> list[bool]:
        """Whether an interpreter has kernels for all operator codes of each model."""
        request = {"do": "kernels", "resolver": resolver, "models": models}
        available: list[bool] = self.ask(request, kind=_Availability)[0]["found"]
        return available

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._log):
            if stream is not None:
                _close(stream)

    def ask(self, request: dict[str, Any], inputs: Sequence[np.ndarray] = (), kind: Any = object) -> Response:
        """The child's answer to a request, of a kind that `tflq.base.documents` checks."""
        try:
            with limited(self._timeout, self._child.kill) as late:
                head, arrays = self._exchange(request, inputs)
        except (BrokenPipeError, EOFError) as error:
            reason = f"no answer in {self._timeout:g} s" if late.is_set() else self._last_words()
            raise RunError(reason, fatal=True) from error
        except ValueError as error:
            raise RunError(f"{self._what}'s process answers with {error}", fatal=True) from error
        if head.get("error") == worker.NO_INTERPRETER:
            raise MissingPackageError("no TFLite interpreter is installed", "verify")
        if head.get("error") == worker.NO_REFERENCE_MODEL:
            raise MissingPackageError("the TOSA reference model is not installed", "tosa")
        if str(head.get("error", "")).startswith(worker.NO_RUNTIME):
            runtime = head["error"].removeprefix(worker.NO_RUNTIME)
            package, requirement = _PACKAGES.get(runtime, (runtime, runtime))
            raise TflqError(Reason(f"{package} is not installed", remedy=f"pip install {requirement}"))
        if "error" in head:
            raise RunError(str(head["error"]).strip())
        try:
            return checked(head, kind), arrays
        except DocumentError as error:
            raise RunError(f"{self._what}'s process answers with what is no answer: {error}", fatal=True) from error

    def _exchange(self, request: dict[str, Any], inputs: Sequence[np.ndarray]) -> Response:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        worker.send(self._child.stdin, request, inputs)
        return worker.receive(self._child.stdout)

    def printed(self, count: int) -> str:
        """The last lines that the process has printed, so far as they are not progress."""
        lines = last_words(self._log, 1 << 16).split("\n")
        return "; ".join(
            [line.strip().rstrip(".") for line in lines if line.strip() and not line.startswith("INFO")][-count:]
        )

    def _last_words(self) -> str:
        """End of the child, in words, and the last line it printed."""
        code = self._child.wait()
        last = self.printed(1)
        last_line = f": {last}" if last else ""
        how = f"aborted ({how_ended(code)})" if code < 0 else f"ended with exit code {code}"
        return f"{self._what}'s process {how}{last_line}"


@contextmanager
def opened_whole(model: str, *, keep: bool, timeout: float) -> Iterator[Opened]:
    """A model on the reference kernels, in a process of its own. keep: all tensors keep their data, and can be fetched.
    RunError if the interpreter refuses it; TflqError without an interpreter."""
    with closing(Child("the interpreter", timeout)) as child:
        yield Opened(child, {"model": os.path.abspath(model), "resolver": "reference", "keep": keep})


class Process(Protocol):
    """The part of `subprocess.Popen` that is used."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


def _start(log: IO[bytes]) -> Process:
    """A process that runs `worker.py`, forked ahead if there is one left; what it prints goes to the log."""
    with suppress(IndexError):
        ready = _ahead.pop()
        os.dup2(ready.log.fileno(), log.fileno())
        return ready
    return python_process(worker.__file__, stderr=log, env={"TF_CPP_MIN_LOG_LEVEL": "3"})


@contextmanager
def forked_ahead(count: int, prepare: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Makes the next `count` processes forks of this one, now, while it has a single thread: they start in milliseconds
    if the interpreter's library is loaded already. `prepare` is called in each."""
    _ahead.extend(_Forked(prepare) for _ in range(count))
    try:
        yield
    finally:
        while _ahead:
            _ahead.pop().end()


class _Forked:
    """A fork that waits for requests."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it belongs to
        requests, ours = os.pipe()
        answers, theirs = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self._serve(prepare, requests, theirs, (ours, answers))
        os.close(requests)
        os.close(theirs)
        self.stdin: IO[bytes] | None = os.fdopen(ours, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(answers, "rb")
        self._code: int | None = None

    def _serve(self, prepare: Callable[[], None], requests: int, answers: int, others: tuple[int, int]) -> None:
        try:
            for descriptor in others:
                os.close(descriptor)
            for one in _ahead:
                for stream in (one.stdin, one.stdout):
                    if stream is not None:
                        stream.close()
            for descriptor in (1, 2):
                os.dup2(self.log.fileno(), descriptor)
            prepare()
            with os.fdopen(requests, "rb") as source, os.fdopen(answers, "wb") as sink:
                worker.main(source, sink)
        finally:
            os._exit(0)

    def kill(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def end(self) -> None:
        """Ends one that nobody used."""
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout, self.log):
            if stream is not None:
                stream.close()


_ahead: list[_Forked] = []


def _close(stream: Any) -> None:
    with suppress(BrokenPipeError):  # unsent bytes for a process that is gone
        stream.close()


# A file that is not TFLite, seen as `tflite_runner.TfliteRunner` shows a TFLite model.
#
# An entry has inputs and outputs in the file's order, until `align` gives it the key, names and order of another
# model's entry. If there is one alone, it is "".


Names = Sequence[tuple[str, str]]
"""(name in the other model's entry, name in the TOSA file), in the order of the entry."""


class Opening(NamedTuple):
    """Options of what runs a file. timeout: seconds a run. resolver: which kernels of TFLite. cc: the compiler of C and
    its flags; None is that of the environment."""

    timeout: float
    resolver: Resolver
    cc: str | None = None


class StepRun(NamedTuple):
    """Inputs of an entry, and whether the run goes on with the state of the run before it."""

    inputs: Sequence[np.ndarray]
    follows: bool


Compare = Callable[[np.ndarray, np.ndarray], Difference]
"""The difference of what a file computes from what it should."""


class Step(NamedTuple):
    """A result within a file, and how far it is from that of tflq's evaluator. operator, opcode: those of the original;
    -1 if it has none."""

    operator: int
    opcode: str
    tensor: str
    apart: Difference


class FileRunner:
    """One file, and the module that says its interface. `interpreter`: what runs it. `untimed`: why it is not timed.
    `inexact`: why it need not equal the model that it was made from, if it says so. `shows_layers`: whether operator
    results are compared though nobody asks for them.

    A backend must add `compute`, or override `run`, which has state to go on with; the rest, if tensors can also be
    fetched or given other values.
    """

    interpreter: str = ""
    untimed: str = "what runs these files says nothing of the time on a device"
    inexact: str = ""
    shows_layers: bool = False
    has_state: Any = False
    keeps_state: Any = True

    @classmethod
    def open_file(cls, path: str, options: Opening) -> Self:
        """The runner that `tflq verify` makes of a file."""
        return cls(path)  # type: ignore[call-arg]

    def __init__(self, path: str, module: Module, functions: Mapping[str, Function] | None = None) -> None:
        """functions: the entries by signature key; by default the first of the module alone."""
        self.module = module
        self.path = os.path.abspath(path)
        self.outputs = module.main.outputs
        self.functions = dict(functions or {"": module.main})
        self.entries: Entries = {
            key: {side: [(value.name, _description(value)) for value in values] for side, values in _sides(f).items()}
            for key, f in self.functions.items()
        }
        self._places = {
            key: {side: list(range(len(values))) for side, values in _sides(f).items()}
            for key, f in self.functions.items()
        }

    def compute(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The file's outputs, in its order and storage types. RunError if it does not run."""
        raise NotImplementedError

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        """Outputs, in the order of `entries`. `step`: as `TfliteRunner`. RunError if it does not run."""
        return self.returned(self.compute(self.ordered(inputs)))

    def ulps(self) -> int | None:
        """By how many float32 ulps its floats may differ, where a call does not say. None: the original's operators
        say it."""
        return 0

    def align(self, entry_key: str, key: str, inputs: Names, outputs: Names) -> None:
        """Gives an entry the key, names and order of another model's entry."""
        entry, places = self.entries.pop(entry_key), self._places.pop(entry_key)
        self.functions[key] = self.functions.pop(entry_key)
        aligned: dict[str, Side] = {}
        for side, names in (("inputs", inputs), ("outputs", outputs)):
            free = [name for name, _ in entry[side]]
            indices = places[side]
            for place, (_, tensor) in enumerate(names):
                indices[place] = free.index(tensor)
                free[indices[place]] = ""
            aligned[side] = [(name, entry[side][i][1]) for (name, _), i in zip(names, indices, strict=True)]
        self.entries[key], self._places[key] = aligned, places

    def ordered(self, inputs: Sequence[np.ndarray], key: str | None = None) -> list[np.ndarray]:
        """Inputs of an entry in the order of the file, of its types. key: None is the only entry."""
        key = next(iter(self.functions)) if key is None else key
        ordered = sorted(zip(self._places[key]["inputs"], inputs, strict=True), key=lambda p: p[0])
        values = self.functions[key].inputs
        return [stored(array, dtype_of(value)) for (_, array), value in zip(ordered, values, strict=True)]

    def returned(self, outputs: Sequence[np.ndarray], key: str | None = None) -> list[np.ndarray]:
        """Outputs of an entry, from the order of the file in that of `entries`."""
        key = next(iter(self.functions)) if key is None else key
        return [outputs[i] for i in self._places[key]["outputs"]]

    @property
    def undivided(self) -> str:
        """Missing requirement of `divide`, as the end of a sentence; empty where nothing but the file is to blame."""
        return ""

    def divide(self, cuts: Iterable[str]) -> None:
        """These tensors can be given other values, by name: what follows them goes on with these."""

    def feeds(self, _: str) -> bool:
        """Whether tensors can be given other values."""
        return False

    def sums_beside(
        self, original: TfliteRunner, key: str, inputs: Sequence[np.ndarray], timeout: float
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """For products of which the file computes results again, from sums that it is given: the name of a result, and
        what the file and the original make of the sums. None where sums cannot be given. RunError if either does not
        run."""
        yield from ()

    def steps_beside(
        self, original: TfliteRunner, key: str, runs: Sequence[StepRun], compare: Compare
    ) -> Iterator[Step]:
        """Results within the file that tflq's evaluator has, too, in runs of an entry. None where the file shows none.
        RunError if it does not run."""
        yield from ()

    def cut(self, _: str) -> dict[str, np.ndarray]:
        """The tensors after which the file is divided, as the last run computed them."""
        return {}

    def type_of(self, _: str, name: str) -> str:
        """The type of a tensor, by name."""
        return dtype_of(self._values()[name]).name

    def names(self, _: str) -> dict[str, int]:
        """Tensors that can be fetched after a run."""
        return {}

    def held(self, _: str) -> Mapping[str, object]:
        """Further tensors that can be fetched, which the file has in another form."""
        return {}

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        """Bytes of tensors, by name."""
        values = self._values()
        return [_size(values[name]) for name in names]

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[Any]:
        """A runner of the file from which these tensors can be fetched."""
        yield self  # there are no names to fetch

    def release(self) -> None:
        """Frees what is opened again when it is needed."""

    def close(self) -> None:
        """Ends what runs the file."""

    def _values(self) -> dict[str, Value]:
        return by_name(self.module.main)


def _sides(function: Function) -> dict[str, list[Value]]:
    return {"inputs": function.inputs, "outputs": function.outputs}


def by_name(function: Function) -> dict[str, Value]:
    inner = {v.name: v for op in function.ops for v in op.results}
    return inner | {value.name: value for value in function.outputs}


def stored(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array of another model's type as TOSA has it: uint8 as int8 is the same integers less 128, int64 is int32."""
    if array.dtype == np.uint8 and dtype == np.int8:
        return (array ^ np.uint8(128)).view(np.int8)
    return array.astype(dtype) if array.dtype == np.int64 and dtype == np.int32 else array


def dtype_of(value: Value) -> np.dtype:
    return value.type.storage.dtype


def _description(value: Value) -> dict[str, Any]:
    """Description of a tensor, with the fields of `worker.describe`."""
    shape = [1 if d is None else d for d in value.type.dims]
    return {
        "name": value.name,
        "shape": shape,
        "shape_signature": [-1 if d is None else d for d in value.type.dims],
        "dtype": dtype_of(value).name,
        "scales": [],
        "zero_points": [],
        "axis": 0,
    }


def _size(value: Value) -> int:
    """Bytes of a tensor."""
    return int(np.prod([1 if d is None else d for d in value.type.dims], dtype=np.int64)) * -(
        -value.type.storage.bits // 8
    )


# Whether the interpreter allocates all of a model before it runs.


def interpreter_name() -> str:
    """Name and version of the interpreter that is installed; "" if there is none."""
    try:
        return load()[0]
    except LookupError:
        return ""


def first_dynamic(model: FilePath) -> str | None:
    """The first operator result of the first subgraph without memory after `allocate_tensors`, as "operator 3 (SLICE)";
    None if all have some. Texts, which never have any before a run, do not count.

    Runs in the calling process, which an interpreter that aborts takes with it. RuntimeError or ValueError if it
    refuses the model; LookupError if none is installed.
    """
    _, interpreter, resolvers = load()
    opened = interpreter(
        model_path=worker.plain_path(os.fspath(model)),
        experimental_op_resolver_type=getattr(resolvers, RESOLVERS["optimized"]),  # it has all kernels
        num_threads=1,
    )
    opened.allocate_tensors()
    texts = {int(d["index"]) for d in opened.get_tensor_details() if d["dtype"] in (np.bytes_, np.str_, np.object_)}
    for op in opened._get_ops_details():
        for tensor in op["outputs"]:
            if tensor >= 0 and int(tensor) not in texts:
                try:
                    opened.get_tensor(int(tensor))
                except (ValueError, RuntimeError):
                    return f"operator {int(op['index'])} ({op['op_name']})"
    return None
