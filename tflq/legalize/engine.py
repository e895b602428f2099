"""The rule engine: a module in the tfl form → the same module in the integer form.

`accepted.py` sees to types that files do not have, `walk.py` goes through a function, `deciding.py` says which path an
operator takes, `calls.py` which functions there are. All refusals are collected into one `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from tflq.contract import Pass, PassResult
from tflq.dialects.forms import CORE, Form
from tflq.errors import UnsupportedError
from tflq.ir.core import Function, Module, Op
from tflq.ir.notes import COPIED
from tflq.legalize.accepted import accept
from tflq.legalize.calls import Calls, copied
from tflq.legalize.deciding import Policy, Semantics, State
from tflq.legalize.decision import Decision
from tflq.legalize.densified import densified
from tflq.legalize.rule import Rule
from tflq.legalize.variables import variables_of
from tflq.legalize.walk import Shared, Walk
from tflq.light import dataclass, field
from tflq.records import Decisions, SourceFunctions
from tflq.targets import INTEGER, Target

__all__ = ["BuiltinsOfText", "CoreToInteger", "Legalize", "legalize"]

_DENSE = "a sparse constant, made dense"


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


def legalize(
    module: Module,
    *,
    fallback: bool = True,
    state: State = "kept",
    semantics: Semantics = "interpreter",
    target: Target = INTEGER,
    rules: Mapping[str | type[Op], Sequence[Rule]] | None = None,
) -> tuple[Module, list[Decision]]:
    """The module in the integer form, and one decision per operator; the values of the module given are used on.

    state: whether operators with variable tensors are "kept", or go by their rules to variables: TFLite's ("variables",
    with a warning, since they outlive `reset_all_variables()`) or TOSA's ("lowered").
    semantics: what holds where a reference kernel disregards quantization parameters: the kernel ("interpreter", with
    a warning), or the parameters ("real").
    target: whose quantized kernels are kept. rules: a user's, by custom code or class.
    UnsupportedError lists every operator refused, or every tensor whose type cannot be honoured.
    """
    decisions: list[Decision] = []
    policy, accepted = Policy(fallback, state, semantics, target, rules or {}), accept(module)
    calls = Calls(module, strips=not target.kernels, real=policy.real)
    shared = Shared(policy, calls, variables_of(module), bounds=accepted.bounds)
    functions: list[Function] = []
    for place, (index, interface) in enumerate(shared.calls.made):
        function, rows = module.functions[index], decisions
        if place >= len(module.functions):
            function, rows = copied(function), list[Decision]()
        function, spread = densified(function)
        rows += [Decision(op, "integer" if op.result.type.quantized else "kept", _DENSE) for op in spread]
        functions.append(Walk(function, interface, shared, rows).run())
    if shared.refused:
        reasons = list(dict.fromkeys(shared.refused))
        raise UnsupportedError(f"{len(reasons)} operator(s) cannot be converted:", reasons)
    result = Module(
        functions,
        None if module.signatures is None else [s.with_outputs(shared.outputs) for s in module.signatures],
        module.metadata,
        module.description,
        module.version,
        info=module.info,
        source=module.source,
    )
    result.warnings = [w for w in module.warnings if COPIED not in w] + accepted.warnings
    return result, decisions


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
