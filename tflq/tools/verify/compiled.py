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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote

import numpy as np

from tflq.base.errors import FileError, InvalidModelError, OptionError, Reason
from tflq.base.files import file_errors
from tflq.base.processes import how_ended, last_words, limited
from tflq.ir.core import Function, Module, Value
from tflq.ir.types import SCALARS, TensorType
from tflq.tools.verify.runner import FileRunner, Resolver, RunError

_FLAGS: Final = ("-std=c99", "-O2", "-ffp-contract=off")
_TYPES: Final = {
    "bool": "i1",
    "int8_t": "i8",
    "uint8_t": "ui8",
    "int16_t": "i16",
    "uint16_t": "ui16",
    "int32_t": "i32",
    "int64_t": "i64",
    "float": "f32",
}
_TENSOR: Final = re.compile(r"/\* (\w+)\[([\d,]*)\] (.*) \*/\n#define \w+_(IN|OUT)\d+_SIZE")
_LAYER: Final = re.compile(r"_LAYER\(\d+, .*\); /\* (\w+)\[([\d,]*)\] (.*) \*/")
_MAIN: Final = """#include <stdio.h>
#include <stdlib.h>
{hook}
#include "{source}"
static union {{ uint64_t align; uint8_t bytes[{macro}_ARENA_BYTES]; }} memory;
{arrays}
int main(int count, char **words) {{
  int command;
{prepare}
  while ((command = getchar()) != EOF) {{
    if (command == 'i') {{
{init}      continue;
    }}
{reads}    if ({name}_run({arguments}) != 0) {{ return 4; }}
{writes}    fflush(stdout);
  }}
  (void)count; (void)words;
  return 0;
}}
"""
_HOOK: Final = """static void layer(int number, const void *tensor, int bytes) {{
  (void)number;
  if (fwrite(tensor, 1, (size_t)bytes, stdout) != (size_t)bytes) {{ exit(5); }}
}}
#define {macro}_LAYER(number, tensor, bytes) layer(number, tensor, bytes)"""


class _Interface:
    """The interface that a header says, as far as it is one of tflq's. InvalidModelError if it is not."""

    def __init__(self, path: str) -> None:
        header = os.path.splitext(path)[0] + ".h"
        if os.path.exists(path) and not os.path.exists(header):
            what, remedy = f"its header {header} is not there", "put it beside the source, as tflq convert wrote it"
            raise FileError(path, what, remedy=remedy)
        with file_errors(header):
            self.text = Path(header).read_text("utf-8", "replace")
        with file_errors(path):
            source = Path(path).read_text("utf-8", "replace")
        prototype = re.search(r"^int (\w+)_run\((.*)\);$", self.text, re.MULTILINE)
        if prototype is None:
            raise InvalidModelError("", "its header declares no NAME_run: tflq has not written it", path=path)
        self.name, self.macro = prototype[1], prototype[1].upper()
        self.blob = "const uint8_t *constants" in prototype[2]
        self.state = f"{self.name}_state *state" in prototype[2]
        self.inexact = "NOT bit-exact" in self.text
        sides: dict[str, list[Value]] = {"IN": [], "OUT": []}
        for *described, side in _TENSOR.findall(self.text):
            sides[side].append(_value(path, *described))
        self.inputs, self.outputs = sides["IN"], sides["OUT"]
        self.layers = [_value(path, *row) for row in _LAYER.findall(source)]


def _value(path: str, type: str, dims: str, name: str) -> Value:
    """The tensor that a comment describes."""
    if type not in _TYPES:
        raise InvalidModelError("", f"a tensor of {type}", path=path)
    return Value(
        TensorType(tuple(map(int, filter(None, dims.split(",")))), SCALARS[_TYPES[type]]),
        unquote(name, errors="surrogateescape"),
    )


class _Program:
    """A compiled program that runs in a child."""

    def __init__(self, path: str, interface: _Interface, timeout: float, *, layers: bool) -> None:
        self._interface = interface
        self._timeout = timeout
        self._layers = layers
        self._folder = tempfile.TemporaryDirectory(prefix="tflq-")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it belongs to
        self._child: subprocess.Popen[bytes] | None = None
        try:
            self._compile(path)
        except BaseException:
            self.close()
            raise

    def _compile(self, path: str) -> None:
        interface, stem = self._interface, os.path.splitext(path)[0]
        main = Path(self._folder.name, "main.c")
        main.write_text(_main(path, interface, layers=self._layers))
        sources = [str(main), *([f"{stem}_data.c"] if os.path.isfile(f"{stem}_data.c") else [])]
        program = os.path.join(self._folder.name, "program")
        command = [*compiler(), *_FLAGS, "-I", os.path.dirname(stem) or ".", "-o", program, *sources, "-lm"]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=self._timeout, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise RunError(f"the compiler takes more than {self._timeout:g} s", fatal=True) from None
        if ended.returncode:
            lines = ended.stderr.decode(errors="replace").strip().splitlines() or [how_ended(ended.returncode)]
            line = next((x for x in lines if "error" in x), lines[-1])
            line = re.sub(rf"{re.escape(str(main))}(:\d+)*", f"{path}, behind its end", line)
            raise RunError(f"it does not compile: {line}", fatal=True)
        words = [program, *([f"{stem}.bin"] if interface.blob else [])]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=self._log, cwd=self._folder.name)  # noqa: S603
        _limit(self._child.pid)

    def run(self, inputs: Sequence[np.ndarray], *, follows: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Outputs and, if the program has the hook, layers. follows: with the state that the run before has left."""
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with limited(self._timeout, child.kill) as late:
                child.stdin.write((b"" if follows else b"i") + b"r" + b"".join(a.tobytes() for a in inputs))
                child.stdin.flush()
                wanted = self._interface.layers if self._layers else ()
                layers = [self._tensor(value) for value in wanted]
                outputs = [self._tensor(value) for value in self._interface.outputs]
        except (BrokenPipeError, EOFError) as error:
            ended = f"no answer in {self._timeout:g} s" if late.is_set() else how_ended(child.wait())
            last = last_words(self._log).split("\n")[0]
            raise RunError(f"the program ended: {ended}{f': {last}' if last else ''}", fatal=True) from error
        return outputs, layers

    def _tensor(self, value: Value) -> np.ndarray:
        dtype, shape = value.type.storage.dtype, value.type.sizes
        data = self._read(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(shape)

    def _read(self, size: int) -> bytes:
        assert self._child is not None
        assert self._child.stdout is not None
        data = self._child.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                with suppress(BrokenPipeError):
                    assert stream is not None
                    stream.close()
        self._log.close()
        self._folder.cleanup()


def compiler() -> list[str]:
    """The words that start the system's compiler: those of CC, or cc. OptionError if there is none."""
    words = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(words[0]) is None:
        what = f"there is no C compiler '{words[0]}'"
        raise OptionError(
            Reason(what, value=words[0], remedy="install one, or name it: --cc, or CC in the environment")
        )
    return words


def _main(path: str, interface: _Interface, *, layers: bool) -> str:
    """The text of the program that reads inputs and writes outputs."""
    macro, name = interface.macro, interface.name
    sides = (("in", interface.inputs), ("out", interface.outputs))
    types = {short: c for c, short in _TYPES.items()} | {"i1": "uint8_t"}
    sizes = {f"{side}{at}": max(int(np.prod(v.type.sizes)), 1) for side, row in sides for at, v in enumerate(row)}
    arrays = [
        f"static {types[v.type.storage.name]} {s}{at}[{sizes[f'{s}{at}']}];"
        for s, row in sides
        for at, v in enumerate(row)
    ]
    arrays += [f"static {name}_state state;"] * interface.state + ["static uint64_t *constants;"] * interface.blob
    prepare = ""
    if interface.blob:
        prepare = f"""  FILE *file = fopen(words[1], "rb");
  constants = malloc({macro}_CONSTANT_BYTES + 1024 * 1024);
  if (file == NULL || constants == NULL || fread(constants, 1, {macro}_CONSTANT_BYTES + 1024 * 1024, file) == 0) {{
    return 3;
  }}
  fclose(file);"""
    reads = "".join(
        f"    if (fread(in{at}, 1, {_bytes(v)}, stdin) != {_bytes(v)}) {{ return 0; }}\n"
        for at, v in enumerate(interface.inputs) if _bytes(v)
    )  # fmt: skip
    writes = "".join(f"    fwrite(out{at}, 1, {_bytes(v)}, stdout);\n" for at, v in enumerate(interface.outputs))
    arguments = [
        *sizes,
        *["&state"] * interface.state,
        *["(const uint8_t *)constants"] * interface.blob,
        "memory.bytes",
    ]
    return _MAIN.format(
        hook=_HOOK.format(macro=macro) if layers else "",
        source=os.path.abspath(path),
        macro=macro,
        arrays="\n".join(arrays),
        prepare=prepare,
        init=f"      {name}_init(&state);\n" if interface.state else "",
        reads=reads,
        name=name,
        arguments=", ".join(arguments),
        writes=writes,
    )


def _bytes(value: Value) -> int:
    return int(np.prod(value.type.sizes, dtype=np.int64)) * value.type.storage.dtype.itemsize


def _limit(process: int) -> None:
    """Keeps a process from writing files and dumps of memory."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
            resource.prlimit(process, limit, (0, 0))


class CompiledRunner(FileRunner):
    """A source in C, compiled and open in a child process."""

    untimed = "the time on this machine says nothing of a device's"

    @classmethod
    def open_file(cls, path: str, timeout: float, resolver: Resolver) -> Self:
        return cls(path, timeout)

    def __init__(self, path: str, timeout: float) -> None:
        """Compiles a file. RunError if it does not compile; OptionError without a compiler."""
        self._interface = _Interface(path)
        super().__init__(path, Module([Function("main", self._interface.inputs, self._interface.outputs, [])]))
        self.interpreter = " ".join(compiler())
        self._timeout = timeout
        self._program = _Program(self.path, self._interface, timeout, layers=False)
        self.has_state = self._interface.state
        if self._interface.inexact:
            self.inexact = "floats whose results no standard fixes"

    def ulps(self) -> int | None:
        return None if self._interface.inexact else 0

    def run(
        self, _: str, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray], step: int | None = None
    ) -> list[np.ndarray]:
        outputs, _layers = self._program.run(self.ordered(inputs), follows=bool(step))
        return [outputs[i] for i in self._places["outputs"]]

    def names(self, _: str) -> dict[str, int]:
        """Results of operators that the program stores."""
        return {row.name: at for at, row in enumerate(self._interface.layers)}

    def type_of(self, _: str, name: str) -> str:
        return self._interface.layers[self.names("")[name]].type.storage.dtype.name

    def sizes(self, _: str, names: Sequence[str]) -> list[int]:
        return [_bytes(self._interface.layers[self.names("")[name]]) for name in names]

    @contextmanager
    def fetching(self, _: str, names: Sequence[str]) -> Iterator[Any]:
        """The program with the hook, from which layers can be fetched after a run."""
        program = _Program(self.path, self._interface, self._timeout, layers=True)
        try:
            yield _Fetcher(self, program)
        finally:
            program.close()

    def close(self) -> None:
        self._program.close()


class _Fetcher:
    """The layers of a run."""

    def __init__(self, runner: CompiledRunner, program: _Program) -> None:
        self._runner = runner
        self._program = program
        self._layers: list[np.ndarray] = []

    def run(self, inputs: Sequence[np.ndarray], fed: Mapping[str, np.ndarray]) -> None:
        self._layers = self._program.run(self._runner.ordered(inputs), follows=False)[1]

    def fetch(self, name: str) -> np.ndarray:
        return self._layers[self._runner.names("")[name]]
