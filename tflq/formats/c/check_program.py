"""The last pass before C is written: every function of an entry as a program, or what has no form in C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.dialects.forms import Form
from tflq.formats.c.program import Program
from tflq.formats.lowering import entries
from tflq.ir.core import Module
from tflq.transforms.pass_manager import Pass, PassResult


@dataclass(slots=True)
class _Programs:
    """The programs of a module, by the index of the function."""

    by_function: dict[int, Program]


@dataclass(frozen=True)
class CheckC(Pass):
    """Plans all of the C source. UnsupportedError lists every operator that has no form in C."""

    name: ClassVar[str] = "check-c"
    title: ClassVar[str] = "planning the C source"
    takes: ClassVar[Form] = "tosa"

    def run(self, module: Module) -> PassResult:
        programs(module)
        return PassResult(module, modified=False)


def programs(module: Module) -> dict[int, Program]:
    """The program of each entry, by the index of its function; planned once."""
    known = module.record.find(_Programs)
    if known is None:
        known = _Programs({index: Program(module, index) for index in entries(module)})
        module.record.note(known)
    return known.by_function
