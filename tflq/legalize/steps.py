"""Legalization as a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import CORE, Form
from tflq.ir.core import Module, Op
from tflq.legalize.engine import legalize
from tflq.legalize.rule import Rule
from tflq.light import dataclass, field
from tflq.records import Decision, Decisions, SourceFunctions
from tflq.targets import INTEGER, Target

__all__ = ["BuiltinsOfText", "CoreToInteger", "Legalize"]


@dataclass(frozen=True)
class BuiltinsOfText(Pass):
    """Ops of `stablehlo`, which text has, become TFLite's builtins, but those that have rules. keep_weights: DEQUANTIZE
    of constant weights stays, so that the file does not grow."""

    name: ClassVar[str] = "stablehlo-to-builtins"
    takes: ClassVar[Form] = "tfl"
    makes: ClassVar[Form] = "tfl"
    keep_weights: bool = True

    def run(self, module: Module) -> PassResult:
        if not any("stablehlo" in op.name for op in module.ops()):
            return PassResult(module, modified=False)
        from tflq.legalize.stablehlo.builtins_of_text import stands_apart, to_builtins

        if not any(map(stands_apart, module.ops())):
            return PassResult(module, modified=False)
        to_builtins(module, keep_weights=self.keep_weights)
        return PassResult(module, modified=True)


@dataclass(frozen=True)
class CoreToInteger(Pass):
    """Ops of arith, math, tensor, linalg, shape and func, which text has, become ops of `tosa` on integers and builtins
    on floats. UnsupportedError lists those without an exact form."""

    name: ClassVar[str] = "core-to-integer"
    takes: ClassVar[Form] = "tfl"
    makes: ClassVar[Form] = "tfl"

    def run(self, module: Module) -> PassResult:
        dialects = {name.partition(".")[0] for name in {op.name for op in module.ops()}}
        if dialects.isdisjoint((*CORE, "quant")):
            return PassResult(module, modified=False)
        from tflq.legalize.core.module import lower_core

        lower_core(module)
        return PassResult(module, modified=True)


@dataclass(frozen=True)
class Legalize(Pass):
    """Quantized operators become the integer form; what became of each is noted (`Decisions`).

    target: whose quantized kernels are kept. fallback: an operator without a rule is computed in float. semantics: what
    holds where a kernel disregards parameters. state: operators with variable tensors are kept, or become variables of
    TFLite's or of TOSA's ("lowered"); by default kept, if the target runs recurrent operators.
    rules: a user's (`tflq.Extension`).
    """

    name: ClassVar[str] = "legalize"
    title: ClassVar[str] = "legalization"
    takes: ClassVar[Form] = "tfl"
    makes: ClassVar[Form] = "integer"
    target: Target = INTEGER
    fallback: bool = True
    semantics: Literal["interpreter", "real"] = "interpreter"
    state: Literal["kept", "variables", "lowered"] | None = None
    rules: Mapping[str | type[Op], Sequence[Rule]] = field(default_factory=dict)

    def run(self, module: Module) -> PassResult:
        state = self.state or ("kept" if self.target.recurrent else "variables")
        source = SourceFunctions(tuple(module.functions))
        module, decisions = legalize(
            module, fallback=self.fallback, state=state, semantics=self.semantics, target=self.target, rules=self.rules
        )
        module.record.note(Decisions(_by_source(decisions)))
        module.record.note(source)
        return PassResult(module, modified=True)


def _by_source(decisions: Sequence[Decision]) -> list[Decision]:
    """One decision for each op of the source: several builtins may stand for one of text already."""
    rows: list[Decision] = []
    for decision in decisions:
        last = rows[-1] if rows else None
        here = decision.op.location
        if last is not None and here is not None and last.op.location is here and last.path == decision.path == "kept":
            last.made = [*last.made, *decision.made]
        else:
            rows.append(decision)
    return rows
