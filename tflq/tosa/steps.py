"""The passes from and to TOSA."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.evaluate import running
from tflq.ir.core import Module, Op
from tflq.records import Decision, Decisions
from tflq.tosa.check import check, check_laws
from tflq.tosa.lowering.notes import Notes
from tflq.tosa.raising import raise_module
from tflq.tosa.target import Target

__all__ = ["CheckLaws", "CheckTosa", "LowerToTosa", "RaiseTosa"]


@dataclass(frozen=True)
class LowerToTosa(Pass):
    """The integer form becomes operators of TOSA; what there is to say of some is noted (`Notes`)."""

    name: ClassVar[str] = "lower-to-tosa"
    title: ClassVar[str] = "lowering to TOSA"
    takes: ClassVar[Form] = "integer"
    makes: ClassVar[Form] = "tosa"
    target: Target = field(default_factory=Target)

    def run(self, module: Module) -> PassResult:
        from tflq.tosa.lowering.engine import lower

        lowered, notes = lower(module, self.target)
        lowered.record.note(Notes(notes))
        return PassResult(lowered, modified=True)


@dataclass(frozen=True)
class CheckTosa(Pass):
    """UnsupportedError lists what a target does not take; what it needs is noted (`Requirements`). `static`: so are
    dims that are not known."""

    name: ClassVar[str] = "check-tosa"
    title: ClassVar[str] = "check of the result"
    takes: ClassVar[Form] = "tosa"
    target: Target = field(default_factory=Target)
    static: bool = False

    def run(self, module: Module) -> PassResult:
        module.record.note(check(module, self.target, static=self.static))
        return PassResult(module, modified=False)


class CheckLaws(Pass):
    """InvalidModelError for an operator that TOSA does not allow on any target."""

    name: ClassVar[str] = "check-laws"
    title: ClassVar[str] = "check of the source"
    takes: ClassVar[Form] = "tosa"

    def run(self, module: Module) -> PassResult:
        check_laws(module)
        return PassResult(module, modified=False)


class RaiseTosa(Pass):
    """Operators of TOSA become the integer form; each is noted as converted (`Decisions`)."""

    name: ClassVar[str] = "raise-tosa"
    title: ClassVar[str] = "reading TOSA"
    takes: ClassVar[Form] = "tosa"
    makes: ClassVar[Form] = "integer"

    def run(self, module: Module) -> PassResult:
        module.record.note(Decisions([Decision(op, _path(op), "an operator of TOSA") for op in module.ops()]))
        return PassResult(raise_module(module), modified=True)


def _path(op: Op) -> str:
    """How an operator of TOSA computes; control flow and variables stay what they are."""
    if running.get(type(op)) is not None:
        return "kept"
    return "float" if any(v.type.storage.is_float for v in op.tensors) else "integer"
