"""The last pass before C is written: all of a module as a program, or what has no form in C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.dialects.forms import Form
from tflq.formats.c.program import Program
from tflq.ir.core import Module
from tflq.transforms.pass_manager import Pass, PassResult


@dataclass(frozen=True)
class CheckC(Pass):
    """Plans all of the C source. UnsupportedError lists every operator that has no form in C."""

    name: ClassVar[str] = "check-c"
    title: ClassVar[str] = "planning the C source"
    takes: ClassVar[Form] = "tosa"

    def run(self, module: Module) -> PassResult:
        program_of(module)
        return PassResult(module, modified=False)


def program_of(module: Module) -> Program:
    """The program of a module, planned once."""
    program = module.record.find(Program)
    if program is None:
        module.record.note(program := Program(module))
    return program
