"""All of a source in C: a function for each entry of a module, and the constants, kernels and state that they share.

Symbols begin with `@` and macros with `$`, in whose places a writer puts the name: no other text has these characters.
What has no form in C is collected over the whole module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import ClassVar, Final

from tflq.analysis.products import multiplications
from tflq.dialects.forms import ModuleForm
from tflq.formats.c.graph import Graph, Shared, is_inexact
from tflq.formats.c.names import NAME, bytes_of, comment, identifier
from tflq.formats.lowering import keyed_entries, refuse
from tflq.ir.module import Module
from tflq.ir.ops import Op
from tflq.transforms.pass_manager import Pass, PassResult


class Program(Shared):
    """`entries`: the signature key of each, "" for the only one, and its function. UnsupportedError lists every
    operator that has no form in C."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.entries: Final[list[tuple[str, Graph]]] = []
        entries = keyed_entries(module)
        words = _words([key for key, _ in entries]) if len(entries) > 1 else [""]
        for (key, index), word in zip(entries, words, strict=True):
            self.entries.append((key, Graph(module.functions[index], f"{NAME}{word}", self, entry=True)))
        refuse(self.refused, "C")
        self.unit.keep(line for _, graph in self.entries for line in graph.lines)

    @property
    def arena_bytes(self) -> int:
        return max(graph.size for _, graph in self.entries)

    @property
    def constant_bytes(self) -> int:
        return sum(array.nbytes for _, array, _ in self.unit.constants.values())

    @cached_property
    def ops(self) -> list[Op]:
        """The operators of all functions."""
        called = (graph for graph in self._called.values() if graph is not None)
        return [op for graph in (*(graph for _, graph in self.entries), *called) for op in graph.function.ops]

    @property
    def products(self) -> int:
        """Multiplications of all functions."""
        return sum(map(multiplications, self.ops))

    @cached_property
    def inexact(self) -> list[str]:
        """Operators on floats whose results no standard fixes, as texts for a comment."""
        ops = filter(is_inexact, self.ops)
        return [*dict.fromkeys(comment(op.location.place if op.location else op.short_name) for op in ops)]

    @property
    def has_floats(self) -> bool:
        return any(v.type.storage.is_float for op in self.ops for v in (*op.present_operands, *op.results))

    @property
    def state_bytes(self) -> int:
        return sum(bytes_of(value) for _, value in self.state.values())


def _words(keys: Iterable[str]) -> list[str]:
    """A word for the symbols of each entry, behind the name. As macros, no two are alike."""
    words: dict[str, str] = {}
    for key in keys:
        word = f"_{identifier(None, key)}"
        other = next(each for at in count(1) if (each := word if at == 1 else f"{word}_{at}").upper() not in words)
        words[other.upper()] = other
    return [*words.values()]


def program_of(module: Module) -> Program:
    """The program of a module, planned once."""
    program = module.record.find(Program)
    if program is None:
        module.record.note(program := Program(module))
    return program


@dataclass(frozen=True)
class CheckC(Pass):
    """Plans all of the C source, the last pass before it is written. UnsupportedError lists every operator that has no
    form in C."""

    name: ClassVar[str] = "check-c"
    title: ClassVar[str] = "planning the C source"
    takes: ClassVar[ModuleForm] = "tosa"

    def run(self, module: Module) -> PassResult:
        program_of(module)
        return PassResult(module, modified=False)
