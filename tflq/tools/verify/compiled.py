"""Programs in C as `tflq convert` writes them, seen as `tflite_runner.TfliteRunner` shows a TFLite model.

The header says the interface. A main of this module's own is compiled with the source in a fresh folder, and runs in a
child process: it reads inputs and writes outputs, and before them each layer if the source is compiled with the hook.
What is compiled and run is what the file holds. The limits of the child are none of a sandbox.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np

from tflq.base.errors import OptionError, Reason
from tflq.base.files import resource
from tflq.base.processes import how_ended, last_words, limited
from tflq.ir.module import Function, Module
from tflq.ir.ops import Value
from tflq.tools.verify.c_interface import C_TYPES, Entry, Interface
from tflq.tools.verify.file_runner import FileRunner, dtype_of, stored
from tflq.tools.verify.runner import Opening, RunError

_FLAGS: Final = ("-std=c99", "-ffp-contract=off")
_MAIN: Final = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{hook}
#include "{source}"
static union {{ uint64_t align; uint8_t bytes[{macro}_ARENA_BYTES]; }} memory;
{globals}
{functions}
int main(int count, char **words) {{
  int32_t command;
{prepare}
  while (fread(&command, sizeof(command), 1, stdin) == 1) {{
    int ended = 4;
    switch (command) {{
{cases}
    }}
    if (ended != 0) {{ return ended; }}
    fflush(stdout);
  }}
  (void)count; (void)words;
  return 0;
}}
"""
"""It reads commands: the number of an entry, with its inputs, or -1 for the state before the first run."""
_NONE: Final = np.zeros((0, 0), np.int64)
_OPENED: Final = """  FILE *file = fopen(words[count - 1], "rb");
  constants = malloc({macro}_CONSTANT_BYTES + 1024 * 1024);
  if (file == NULL || constants == NULL || fread(constants, 1, {macro}_CONSTANT_BYTES + 1024 * 1024, file) == 0) {{
    return 3;
  }}
  fclose(file);"""


class SumsRun(NamedTuple):
    """Inputs of an entry, and what stands in for tensors of layers and for rows of sums, by name."""

    inputs: Sequence[np.ndarray]
    layers: Mapping[str, np.ndarray]
    sums: Mapping[str, np.ndarray]


class _Built:
    """A source, compiled in a folder of its own: with hooks, or as it is. RunError if it does not compile."""

    def __init__(
        self, path: str, interface: Interface, compiler: Sequence[str], timeout: float, *, hooked: bool
    ) -> None:
        self.interface: Final = interface
        self.timeout: Final = timeout
        self.folder: Final = tempfile.TemporaryDirectory(prefix="tflq-")
        self.constants: Final = [interface.blob] if interface.blob else []
        try:
            self._compile(path, compiler, _hooks(interface.macro) if hooked else "")
        except BaseException:
            self.folder.cleanup()
            raise

    @property
    def program(self) -> str:
        return os.path.join(self.folder.name, "program")

    def _compile(self, path: str, compiler: Sequence[str], hooks: str) -> None:
        stem = os.path.splitext(path)[0]
        main = Path(self.folder.name, "main.c")
        source = Path(shutil.copyfile(path, Path(self.folder.name, "source.c")))  # by a name that C can include
        main.write_text(_main(source, self.interface, hooks))
        sources = [str(main), *([f"{stem}_data.c"] if os.path.isfile(f"{stem}_data.c") else [])]
        command = [*compiler, *_FLAGS, "-I", os.path.dirname(stem) or ".", "-o", self.program, *sources, "-lm"]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=self.timeout, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise RunError(f"the compiler takes more than {self.timeout:g} s", fatal=True) from None
        if ended.returncode:
            lines = ended.stderr.decode(errors="replace").strip().splitlines() or [how_ended(ended.returncode)]
            line = next((x for x in lines if "error" in x), lines[-1])
            line = re.sub(rf"{re.escape(str(main))}(:\d+)*", lambda _: f"{path}, behind its end", line)
            line = line.replace(str(source), path)
            raise RunError(f"it does not compile: {line}", fatal=True)


class _Program:
    """A compiled program that runs in a child. mode: what a program with hooks shows; "" of one without."""

    def __init__(self, built: _Built, mode: str = "") -> None:
        self._interface = built.interface
        self._timeout = built.timeout
        self._mode = mode
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it belongs to
        words, pipe = [built.program, *filter(None, [mode]), *built.constants], subprocess.PIPE
        self._child = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=self._log, cwd=built.folder.name)  # noqa: S603
        _limit(self._child.pid)

    def run(
        self, name: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], *, follows: bool
    ) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """Outputs of an entry and, of a program that shows layers, these by name, as computed. follows: with the state
        that the run before has left. fed: what goes on in the place of layers."""
        entry, layers = self._interface.entries[name], {}
        with self.answering():
            self.start(name, inputs, follows=follows)
            for value in entry.layers if self._mode else ():
                layers[value.name] = self.shown(value)
                self.replace(fed.get(value.name))
            return [self.tensor(value) for value in entry.outputs], layers

    def shown(self, value: Value) -> np.ndarray:
        """The next result that is shown. RunError if it has another size than the value."""
        if (size := self.number()) != _bytes(value):
            raise RunError(f"a result of {size} bytes where the model has {_bytes(value)}", fatal=True)
        return self.tensor(value)

    def replace(self, array: np.ndarray | None) -> None:
        """Puts elements in the place of those of the last result; None: leaves them."""
        data = b"" if array is None else array.tobytes()
        self.write(len(data).to_bytes(4, "little") + data)

    def outputs(self, name: str) -> Sequence[Value]:
        return self._interface.entries[name].outputs

    def start(self, name: str, inputs: Sequence[np.ndarray], *, follows: bool) -> None:
        """Gives the inputs of a run."""
        commands = [*([] if follows else [-1]), list(self._interface.entries).index(name)]
        self.write(np.asarray(commands, np.int32).tobytes() + b"".join(a.tobytes() for a in inputs))

    @contextmanager
    def answering(self) -> Iterator[None]:
        """A time for answers. RunError if there are none."""
        child = self._child
        try:
            with limited(self._timeout, child.kill) as late:
                yield
        except (BrokenPipeError, EOFError) as error:
            ended = f"no answer in {self._timeout:g} s" if late.is_set() else how_ended(child.wait())
            last = last_words(self._log).split("\n")[0]
            raise RunError(f"the program ended: {ended}{f': {last}' if last else ''}", fatal=True) from error

    def tensor(self, value: Value) -> np.ndarray:
        dtype, shape = value.type.storage.dtype, value.type.sizes
        return np.frombuffer(self.read(_bytes(value)), dtype).reshape(shape)

    def write(self, data: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(data)
        self._child.stdin.flush()

    def number(self) -> int:
        return int.from_bytes(self.read(4), "little", signed=True)

    def read(self, size: int) -> bytes:
        assert self._child.stdout is not None
        data = self._child.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def try_sums(self, name: str, runs: Sequence[SumsRun]) -> Iterator[dict[str, np.ndarray]]:
        """For each run of an entry, by layer, its results of each row of sums that stands in for its own, [loops, rows,
        channels]."""
        entry, child = self._interface.entries[name], self._child
        heads = np.asarray([-1, list(self._interface.entries).index(name)], np.int32).tobytes()
        text = []
        for run in runs:
            text += [heads, *(a.tobytes() for a in run.inputs)]
            for layer in entry.layers:
                tried, row = run.sums.get(layer.name, _NONE), run.layers.get(layer.name, _NONE).tobytes()
                text += [np.asarray([*tried.shape, tried.itemsize, len(row)], np.int32).tobytes(), tried.tobytes(), row]
        try:
            answer = BytesIO(child.communicate(b"".join(text), self._timeout)[0])
        except subprocess.TimeoutExpired:
            raise RunError(f"no answer in {self._timeout:g} s", fatal=True) from None
        if child.returncode:
            raise RunError(f"the program ended: {how_ended(child.returncode)}", fatal=True)
        for run in runs:
            results = {}
            for layer in entry.layers:
                tried, size, blocks = run.sums.get(layer.name, _NONE), layer.type.storage.dtype.itemsize, []
                while written := int.from_bytes(answer.read(4), "little"):
                    count = int.from_bytes(answer.read(4), "little")
                    block = np.frombuffer(answer.read(written * count * len(tried)), f"V{written}")
                    blocks.append(block.reshape(len(tried), count))
                if blocks and {block.itemsize for block in blocks} == {size}:
                    rows = np.concatenate(blocks, 1).view(layer.type.storage.dtype)
                    results[layer.name] = np.moveaxis(rows.reshape(len(tried), -1, tried.shape[1]), 1, 0)
            answer.seek(sum(map(_bytes, entry.outputs)), 1)
            yield results

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            with suppress(BrokenPipeError):
                assert stream is not None
                stream.close()
        self._log.close()


def compiler(command: str | None) -> list[str]:
    """The words that start the compiler: a command, or that of CC, or cc; -O2 if they do not say how it optimizes.
    OptionError if there is none."""
    words = shlex.split(os.environ.get("CC", "") if command is None else command) or ["cc"]
    if shutil.which(words[0]) is None:
        what = f"there is no C compiler '{words[0]}'"
        raise OptionError(
            Reason(what, value=words[0], remedy="install one, or name it: --cc, or CC in the environment")
        )
    return words if any(word.startswith("-O") for word in words) else [*words, "-O2"]


def _hooks(macro: str) -> str:
    """The hooks by which a program tries sums, or shows results."""
    with open(resource("tools/verify/hooks.c"), encoding="utf-8") as text:
        return text.read().replace("MACRO", macro)


def _main(path: Path, interface: Interface, hooks: str) -> str:
    """The text of the program that reads inputs and writes outputs."""
    macro, state = interface.macro, interface.state
    further = ["&state"] * bool(state) + ["(const uint8_t *)constants"] * bool(interface.blob) + ["memory.bytes"]
    globals = [f"static {state}_state state;"] * bool(state) + ["static uint64_t *constants;"] * bool(interface.blob)
    cases = [f"    case -1: ended = 0; {f'{state}_init(&state); ' if state else ''}break;"]
    cases += [f"    case {at}: ended = run{at}(); break;" for at in range(len(interface.entries))]
    return _MAIN.format(
        hook=hooks,
        source=path.name,
        macro=macro,
        globals="\n".join(globals),
        functions="\n".join(
            _run(at, name, further, interface.entries[name]) for at, name in enumerate(interface.entries)
        ),
        prepare="  mode = *words[1];\n" * bool(hooks) + (_OPENED.format(macro=macro) if interface.blob else ""),
        cases="\n".join(cases),
    )


def _run(number: int, name: str, further: Sequence[str], entry: Entry) -> str:
    """The function that runs an entry once; it ends with 0."""
    sides = (("in", entry.inputs), ("out", entry.outputs))
    types = {short: c for c, short in C_TYPES.items()} | {"i1": "uint8_t"}
    tensors = {f"{side}{at}": value for side, row in sides for at, value in enumerate(row)}
    lines = [f"  static {types[v.type.storage.name]} {t}[{max(_count(v), 1)}];" for t, v in tensors.items()]
    lines += [
        f"  if (fread({t}, 1, {_bytes(v)}, stdin) != {_bytes(v)}) {{ return 6; }}"
        for t, v in tensors.items() if t.startswith("in") and _bytes(v)
    ]  # fmt: skip
    lines.append(f"  if ({name}_run({', '.join([*tensors, *further])}) != 0) {{ return 4; }}")
    lines += [f"  fwrite({t}, 1, {_bytes(v)}, stdout);" for t, v in tensors.items() if t.startswith("out")]
    return "\n".join([f"static int run{number}(void) {{", *lines, "  return 0;", "}"])


def _count(value: Value) -> int:
    return int(np.prod(value.type.sizes, dtype=np.int64))


def _bytes(value: Value) -> int:
    return _count(value) * value.type.storage.dtype.itemsize


def _limit(process: int) -> None:
    """Keeps a process from writing files and dumps of memory."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
            resource.prlimit(process, limit, (0, 0))


class CompiledSource(FileRunner):
    """A source in C, compiled and open in a child process."""

    untimed = "the time on this machine says nothing of a device's"
    shows_layers = True

    @classmethod
    def open_file(cls, path: str, options: Opening) -> Self:
        return cls(path, options.timeout, options.cc)

    def __init__(self, path: str, timeout: float, command: str | None = None) -> None:
        """Compiles a file. command: the compiler; None is that of the environment. RunError if it does not compile;
        OptionError without a compiler."""
        self._interface = Interface(path)
        entries = self._interface.entries.items()
        functions = [Function(name, [*entry.inputs], [*entry.outputs], []) for name, entry in entries]
        super().__init__(path, Module(functions), dict(zip(self._interface.keys, functions, strict=True)))
        self._compiler = compiler(command)
        self.interpreter = " ".join(self._compiler)
        self._timeout = timeout
        self._hooked: _Built | None = None
        self._plain = self._built(hooked=False)
        self._program = _Program(self._plain)
        self._feeding: _Program | None = None
        self._computed: Mapping[str, np.ndarray] = {}
        self.again: Final[dict[str, Module | None]] = {}
        """By the path of a model: what it becomes again, if the source was written from it."""
        self.has_state = bool(self._interface.state)
        if self._interface.inexact:
            self.inexact = "floats whose results no standard fixes"

    def _built(self, *, hooked: bool) -> _Built:
        return _Built(self.path, self._interface, self._compiler, self._timeout, hooked=hooked)

    def _showing(self, mode: str) -> _Program:
        """The program with hooks, compiled once."""
        if self._hooked is None:
            self._hooked = self._built(hooked=True)
        return _Program(self._hooked, mode)

    def ulps(self) -> int | None:
        return None if self._interface.inexact else 0

    def run(
        self, key: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        program = self._program
        if fed:
            program = self._feeding = self._feeding or self._showing("layers")
        arguments = self._name(key), self.ordered(inputs, key), self.as_stored(key, fed)
        outputs, self._computed = program.run(*arguments, follows=bool(step))
        return self.returned(outputs, key)

    def feeds(self, _: str) -> bool:
        return True

    def cut(self, _: str) -> dict[str, np.ndarray]:
        """The layers of the last run, as computed, if it was fed others."""
        return {**self._computed}

    def as_stored(self, key: str, fed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Values for layers of an entry, in the types of the program."""
        return {row.name: stored(fed[row.name], dtype_of(row)) for row in self._layers(key) if row.name in fed}

    def _name(self, key: str) -> str:
        """The name of the function of an entry."""
        return str(self.functions[key].name)

    def names(self, key: str) -> dict[str, int]:
        """Results of operators that the program stores."""
        return {row.name: at for at, row in enumerate(self._layers(key))}

    def _layers(self, key: str) -> Sequence[Value]:
        return self._interface.entries[self._name(key)].layers

    def type_of(self, key: str, name: str) -> str:
        return self._layers(key)[self.names(key)[name]].type.storage.dtype.name

    def shape_of(self, key: str, name: str) -> tuple[int, ...]:
        """The dims of a layer, none of which is open."""
        return self._layers(key)[self.names(key)[name]].type.sizes

    def sizes(self, key: str, names: Sequence[str]) -> list[int]:
        places = self.names(key)
        return [_bytes(self._layers(key)[places[name]]) for name in names]

    @contextmanager
    def fetching(self, key: str, names: Sequence[str]) -> Iterator[Any]:
        """The program with the hook, from which layers can be fetched after a run."""
        with closing(self._showing("layers")) as program:
            yield _Fetcher(self, program, key)

    def try_sums(self, key: str, runs: Sequence[SumsRun]) -> list[dict[str, np.ndarray]]:
        """Results of products by name, of sums that stand in for those of their first row: for each loop that reads
        sums, [loops, rows, channels], in each run. Others are left out. RunError if the program does not run."""
        ordered = [run._replace(inputs=self.ordered(run.inputs, key)) for run in runs]
        with closing(self._showing("trials")) as program:
            return list(program.try_sums(self._name(key), ordered))

    @property
    def interface(self) -> Interface:
        return self._interface

    def index(self, key: str) -> int:
        """The number of an entry in the source."""
        return list(self._interface.entries).index(self._name(key))

    def calls(self, key: str) -> Sequence[str]:
        """The functions that an entry calls, in order."""
        return self._interface.entries[self._name(key)].calls

    @contextmanager
    def showing(self, key: str) -> Iterator[Shown]:
        """The program with the hooks that show results and sums within it."""
        with closing(self._showing("steps")) as program, program.answering():
            yield Shown(program, self._name(key))

    def single(self, key: str) -> Collection[str]:
        """The layers that a single function of the source computes."""
        return self._interface.entries[self._name(key)].single

    def release(self) -> None:
        if self._feeding is not None:
            self._feeding.close()
            self._feeding = None

    def close(self) -> None:
        self.release()
        self._program.close()
        for built in (self._plain, self._hooked):
            if built is not None:
                built.folder.cleanup()


class Shown:
    """Runs of an entry that show results, and take others in their place."""

    def __init__(self, program: _Program, name: str) -> None:
        self._program = program
        self._name = name

    def start(self, inputs: Sequence[np.ndarray], *, follows: bool) -> None:
        self._program.start(self._name, inputs, follows=follows)

    def result(self, value: Value) -> tuple[np.ndarray, bytes]:
        """The next result, and the rows of sums before it. RunError if it has another size than the value."""
        rows = self._program.read(self._program.number())
        return self._program.shown(value), rows

    def replace(self, array: np.ndarray | None) -> None:
        self._program.replace(array)

    def end(self) -> None:
        """Skips the outputs, which are results, too."""
        for value in self._program.outputs(self._name):
            self._program.tensor(value)


class _Fetcher:
    """The layers of a run of an entry."""

    def __init__(self, runner: CompiledSource, program: _Program, key: str) -> None:
        self._runner = runner
        self._program = program
        self._key = key
        self._layers: Mapping[str, np.ndarray] = {}

    def run(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> None:
        runner, key = self._runner, self._key
        arguments = runner._name(key), runner.ordered(inputs, key), runner.as_stored(key, fed)
        self._layers = self._program.run(*arguments, follows=False)[1]

    def fetch(self, name: str) -> np.ndarray:
        return self._layers[name]
