"""Files of a program: `NAME.c` and `NAME.h`, and its constants in one of three ways.

inline: in NAME.c. separate: in NAME_data.c. blob: in NAME.bin, little-endian, each constant at a multiple of 8, and the
run takes a pointer to them. Files above 1 MB of constants are written as a blob by themselves.

The header says what the program needs and promises. NAME_MAIN compiles a main that runs drawn inputs and compares a
checksum of the outputs with that of tflq's evaluator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from tflq.analysis.placing import ALIGNMENT, aligned
from tflq.analysis.products import multiplications
from tflq.base.errors import OptionError, Reason
from tflq.base.files import Pieces
from tflq.base.version import __version__
from tflq.formats.backend import Writing
from tflq.formats.c.check import main
from tflq.formats.c.graph import Graph, unread
from tflq.formats.c.names import MACRO, NAME, c_type, comment, count, declared, described, dims_of, elements, literal
from tflq.formats.c.program import Program
from tflq.formats.c.unit import head, helpers, indented
from tflq.ir.module import Module
from tflq.ir.ops import Value
from tflq.numerics.kernel_sets import IN_FILE, Exactness

LARGE: Final = 1 << 20
"""Bytes of constants from which a program has them in a file of bytes, if nobody says otherwise."""
_NOT_INCLUDED: Final = re.compile(
    r'["\\\x00-\x1f\x7f]|\?\?|^(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal'
    r"|stdarg|stdbool|stddef|stdint|stdio|stdlib|string|tgmath|time|wchar|wctype)$",
    re.IGNORECASE,
)
"""Names of headers that C cannot include, or that it takes for its own."""
DATA: Final = ("inline", "separate", "blob")


class Writer:
    """The files of a program. name: what symbols begin with. writing: the stem of the files, and what they say."""

    def __init__(self, program: Program, module: Module, name: str, writing: Writing) -> None:
        self._program = program
        self._module = module
        self._name = name
        self._stem = writing.stem or name
        if _NOT_INCLUDED.search(self._stem):
            what = f"C cannot include a header of the name '{comment(self._stem)}.h'"
            remedy = "give a name without quotes, backslashes, control characters and ??, which no header of C has"
            raise OptionError(Reason(what, value=self._stem, remedy=remedy))
        self._readers = program.unit.readers()
        self._data = writing.choices.get("data") or ("blob" if program.constant_bytes >= LARGE else "inline")
        self._writing = writing

    def files(self) -> list[tuple[str, Pieces]]:
        """The ending of each file behind the stem, and its pieces; the source comes first."""
        files: list[tuple[str, Pieces]] = [(".c", self._encoded(self._source())), (".h", self._encoded(self._header()))]
        if self._data == "separate":
            files.append(("_data.c", self._encoded(self._separate())))
        if self._data == "blob":
            files.append((".bin", self._blob()))
        return files

    def _encoded(self, texts: Iterable[str]) -> Iterator[bytes]:
        """Texts with the name in the places of its marks."""
        for text in texts:
            yield text.replace(MACRO, self._name.upper()).replace(NAME, self._name).encode("utf-8", "surrogateescape")

    # The interface.

    def _parameters(self, graph: Graph) -> dict[str, str]:
        """The parameters of the run of an entry, by name."""
        rows = dict(graph.parameters)
        if self._program.state:
            rows["state"] = f"{NAME}_state *state"
        if self._data == "blob":
            rows["constants"] = "const uint8_t *constants"
        return rows | {"arena": "uint8_t *arena"}

    def _header(self) -> Iterator[str]:
        program = self._program
        yield self._heading()
        yield f"#ifndef {MACRO}_H\n#define {MACRO}_H\n\n#include <stdint.h>\n\n"
        yield '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
        yield f"#define {MACRO}_ARENA_BYTES {max(program.arena_bytes, 1)}\n"
        yield f"#define {MACRO}_ARENA_ALIGNMENT {ALIGNMENT}\n"
        yield f"#define {MACRO}_STATE_BYTES {program.state_bytes}\n"
        sizes = (array.nbytes for _, array, _ in program.unit.constants.values())
        total = sum(map(aligned, sizes)) if self._data == "blob" else program.constant_bytes
        yield f"#define {MACRO}_CONSTANT_BYTES {total}\n"
        if program.state:
            members = [f"  {declared(v, name)};\n" for name, v in program.state.values()]
            yield f"\ntypedef struct {{\n{''.join(members)}}} {NAME}_state;\n"
            yield f"\n/* The state before the first run. */\nvoid {NAME}_init({NAME}_state *state);\n"
        for key, graph in program.entries:
            yield from self._entry(key, graph)
        yield "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"

    def _entry(self, key: str, graph: Graph) -> Iterator[str]:
        """The function of an entry, and the macros of its inputs and outputs."""
        for side, values in (("IN", graph.function.inputs), ("OUT", graph.function.outputs)):
            for at, value in enumerate(values):
                yield from _described(f"{graph.symbol.replace(NAME, MACRO).upper()}_{side}{at}", value)
        named = f"Signature {comment(key, None)}. " if len(self._program.entries) > 1 else ""
        rule = "No two arrays may overlap. The call keeps no pointer."
        yield f"\n/* {named}0; 1 if the arena is not aligned. {rule} */\n"
        yield f"int {graph.symbol}_run({', '.join(self._parameters(graph).values())});\n\n"

    def _heading(self) -> str:
        program, source = self._program, comment(str(self._module.source or "a model").rpartition("/")[2])
        counts = (str(sum(map(multiplications, graph.function.ops))) for _, graph in program.entries)
        lines = [
            f"{self._name}: {source}, written by tflq {__version__}",
            f"SHA-256 of the source: {self._writing.digest or 'not known'}",
            f"kernels: {self._kernels()}",
            f"arena {program.arena_bytes} bytes, state {program.state_bytes}, constants {program.constant_bytes}",
            f"multiply-accumulates: {', '.join(counts)}",
            "The compiler must have two's complement, arithmetic right shifts and 8 bits a byte, which is checked.",
            "-O3 pays; int8 sums become vectors with it. Only functions of this file are called.",
        ]
        if program.has_floats:
            lines.append("With floats: no -ffast-math, no contraction (-ffp-contract=off), FLT_EVAL_METHOD 0.")
        if program.inexact:
            lines.append("NOT bit-exact, since they compute with floats that libraries round as they like:")
            lines += [f"  {text}" for text in program.inexact]
        inputs = [v for _, graph in program.entries for v in graph.function.inputs]
        bound = [comment(v.name) for v in inputs if v.type.dims[:1] == (1,)]
        if bound:
            lines.append(f"Shapes are fixed; the first dim is 1 of {', '.join(bound)}.")
        return "/*\n" + "".join(f" * {line}\n" for line in lines) + " */\n"

    def _kernels(self) -> str:
        """The kernel set that the results are of, and how many operators compute otherwise under others."""
        exactness = Exactness.read(self._module.metadata_of(IN_FILE))
        if exactness is None:
            return comment(self._writing.kernel_set) or "not known"
        differing = ", ".join(f"{comment(name)} {count}" for name, count in exactness.differing.items())
        return f"{exactness.name}; operators that differ: {differing}" if differing else exactness.name

    # The source.

    def _source(self) -> Iterator[str]:
        program = self._program
        kernels = [self._with_constants(text) for text in program.unit.texts.values()]
        runs = [self._run(graph) for _, graph in program.entries]
        small = helpers([*kernels, *runs])
        math = any(map(_MATH.search, [*kernels, *small]))
        yield self._heading()
        yield f'#include "{self._stem}.h"\n\n{"#include <math.h>" + chr(10) if math else ""}#include <string.h>\n\n'
        yield f"{head(floats=program.has_floats)}\n"
        yield from self._constants()
        yield from (f"{text}\n\n" for text in small)
        yield from (f"{text}\n" for text in kernels)
        if program.state:
            yield self._init()
        yield "\n".join(runs)
        if self._data != "blob":
            yield main(program, self._module)

    def _run(self, graph: Graph) -> str:
        """The function of an entry."""
        parameters, lines = self._parameters(graph), [*map(self._with_constants, graph.lines)]
        check = [f"if ((uintptr_t)arena % {MACRO}_ARENA_ALIGNMENT != 0U) {{", "return 1;", "}"]
        body = indented([*check, *unread(parameters, [*check, *lines]), *lines, "return 0;"])
        return f"int {graph.symbol}_run({', '.join(parameters.values())}) {{\n{body}}}\n"

    def _init(self) -> str:
        known = [name for name, value in self._program.state.values() if value.array.any()]
        rows = ["memset(state, 0, sizeof(*state));"]
        rows += [f"memcpy(state->{name}, {NAME}_{name}, sizeof(state->{name}));" for name in known]
        return f"void {NAME}_init({NAME}_state *state) {{\n{indented(rows)}}}\n\n"

    def _with_constants(self, text: str) -> str:
        """A text; as a blob, with an argument or parameter for the constants where a function reads some."""
        if self._data != "blob":
            return text
        kinds = {True: "const uint8_t *restrict constants, ", False: "constants, "}
        return _CALL.sub(lambda c: c[0] + kinds[bool(c[1])] * (c[2] in self._readers), text)

    def _constants(self) -> Iterator[str]:
        if self._data == "blob":
            at = 0
            for (type, _), (name, array, _) in self._program.unit.constants.items():
                yield f"#define {name} ((const {type} *)(const void *)(constants + {at}))\n"
                at += aligned(array.nbytes)
        else:
            yield from self._arrays("extern " if self._data == "separate" else "static ")
        for name, value in self._program.state.values():
            if value.array.any():
                body = elements(value.array, value.type.storage)
                yield f"static const {c_type(value)} {NAME}_{name}[] = {{{body}}};\n"
        yield "\n"

    def _arrays(self, storage: str) -> Iterator[str]:
        """The definitions of constants; of those that are external, the declarations."""
        for (type, _), (name, array, element) in self._program.unit.constants.items():
            yield f"{storage}const {type} {name}[{max(array.size, 1)}]"
            values = f" {MACRO}_DATA = {{\n{elements(array, element) or 0}\n}}" if storage != "extern " else ""
            yield f"{values};\n"

    def _separate(self) -> Iterator[str]:
        yield f'#include "{self._stem}.h"\n\n#ifndef {MACRO}_DATA\n#define {MACRO}_DATA\n#endif\n\n'
        yield from self._arrays("extern ")
        yield from self._arrays("")

    def _blob(self) -> Iterator[bytes]:
        for _, array, _ in self._program.unit.constants.values():
            data = array.astype(array.dtype.newbyteorder("<")).tobytes()
            yield data + bytes(-len(data) % 8)


def _described(macro: str, value: Value) -> Iterator[str]:
    """Macros of an input or an output: its size, shape and quantization, and its name in a comment."""
    dims = dims_of(value)
    yield f"\n/* {described(value)} */\n#define {macro}_SIZE {count(value)}\n"
    yield f"#define {macro}_RANK {len(dims)}\n#define {macro}_SHAPE {{{', '.join(map(str, dims or (1,)))}}}\n"
    element = value.info.get("quantized")
    scale, zero = getattr(element, "scale", None), getattr(element, "zero_point", None)
    if scale is not None and np.ndim(scale) == 0:
        yield f"#define {macro}_SCALE {literal(float(scale))}\n#define {macro}_ZERO_POINT {literal(int(zero or 0))}\n"


_MATH: Final = re.compile(r"\b(exp|log|sin|cos|tanh|erf|pow|sqrt)\(|\b(INFINITY|NAN)\b")
_CALL: Final = re.compile(rf"(static void )?({NAME}_\w+)\(")
