"""Legalization as a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import Form
from tflq.ir.core import Module
from tflq.legalize.engine import legalize
from tflq.records import Decisions
from tflq.targets import INTEGER, Target

__all__ = ["Legalize"]


@dataclass(frozen=True)
class Legalize(Pass):
    """Quantized operators become the integer form; what became of each is noted (`Decisions`).

    target: whose quantized kernels are kept. fallback: an operator without a rule is computed in float. semantics: what
    holds where a kernel disregards parameters. state: operators with variable tensors are kept, or become variables of
    TFLite's or of TOSA's ("lowered"); by default kept, if the target runs recurrent operators.
    """

    name: ClassVar[str] = "legalize"
    title: ClassVar[str] = "legalization"
    takes: ClassVar[Form] = "tfl"
    makes: ClassVar[Form] = "integer"
    target: Target = INTEGER
    fallback: bool = True
    semantics: Literal["interpreter", "real"] = "interpreter"
    state: Literal["kept", "variables", "lowered"] | None = None

    def run(self, module: Module) -> PassResult:
        state = self.state or ("kept" if self.target.recurrent else "variables")
        module, decisions = legalize(
            module, fallback=self.fallback, state=state, semantics=self.semantics, target=self.target
        )
        module.record.note(Decisions(decisions))
        return PassResult(module, modified=True)
