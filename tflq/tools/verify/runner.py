"""The parent's side of `worker.py`: a process that opens and runs models, with a time limit. It is started, or was
forked ahead from a process that has loaded the interpreter; and what runs files of other formats than TFLite.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from types import MappingProxyType
from typing import IO, Any, Final, Literal, NamedTuple, Protocol, Required, TypedDict

import numpy as np

from tflq.base.documents import DocumentError, checked
from tflq.base.errors import MissingPackageError, Reason, TflqError
from tflq.base.files import FilePath
from tflq.base.processes import how_ended, last_words, limited, python_process
from tflq.tools.verify import worker
from tflq.tools.verify.worker import RESOLVERS, Response, load

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


class Opening(NamedTuple):
    """Options of what runs a file. timeout: seconds a run. resolver: which kernels of TFLite. cc: the compiler of C and
    its flags; None is that of the environment."""

    timeout: float
    resolver: Resolver
    cc: str | None = None


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
