"""The stages between reading and writing, per kind of result.

to_tflite   legalize → simplify → tabulate → select → check
to_tosa     legalize → simplify → lower → check
from_tosa   the integer form that TOSA's operators say, then as to_tflite
integer_form  the part that to_tflite, to_tosa and from_tosa begin with
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tflq.dialects.forms import Form
from tflq.dialects.tfl.runtime import state_runtime
from tflq.evaluate import running
from tflq.formats import is_tosa
from tflq.ir.core import Module, Op
from tflq.legalize import Decision, legalize
from tflq.legalize.deciding import State
from tflq.logs import stage
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.contract import Pass, Pipeline, verify_stage
from tflq.passes.cse import CommonSubexpressionElimination
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.fold import Fold
from tflq.passes.tabulate import Tabulate
from tflq.report import Report
from tflq.targets import INTEGER
from tflq.targets import Target as Kernels

if TYPE_CHECKING:
    from tflq.select.lowering import Mac
    from tflq.tosa.target import Target

__all__ = ["from_tosa", "integer_form", "to_tflite", "to_tosa"]


def to_tflite(
    module: Module,
    *,
    mac: Mac,
    fallback: bool,
    real_semantics: bool,
    kernels: Kernels = INTEGER,
    state: State | None = None,
    reset: bool = False,
) -> tuple[Module, Report]:
    """A module in the tfl form → one on the quantized kernels given, builtins and plain integers. UnsupportedError
    lists every operator refused. state: by default kept, if the target runs recurrent operators. reset: a signature
    resets what state is lowered."""
    from tflq.shapes import settle

    _of_text(module, keep_weights=True)
    names, stated = _names(module), settle(module)
    module, decisions = _integer_form(module, fallback, real_semantics, _held(state, kernels), kernels)
    module, report = _select(module, decisions, mac, names, kernels, reset)
    stated.put_back(module)
    return module, report


def from_tosa(module: Module, *, mac: Mac, reset: bool = False) -> tuple[Module, Report]:
    """A module in the tosa form → one on builtins of TFLite. UnsupportedError lists every operator refused,
    InvalidModelError names one that breaks a law of TOSA's. reset: a signature resets variables."""
    from tflq.tosa.check import check_laws

    check_laws(module)
    names = _names(module)
    decisions = [Decision(op, _path(op), "an operator of TOSA") for op in module.ops()]
    return _select(_raised(module), decisions, mac, names, reset=reset)


def to_tosa(module: Module, target: Target, *, fallback: bool, real_semantics: bool) -> tuple[Module, Report]:
    """A module in the tfl form → one on operators of TOSA that the target takes. UnsupportedError lists every operator
    refused."""
    from tflq.shapes import settle
    from tflq.tosa.lowering import lower
    from tflq.tosa.lowering.cost import table_pays

    _of_text(module, keep_weights=False)
    settle(module)
    module, decisions = _integer_form(module, fallback, real_semantics, "lowered")
    module = _run(module, "integer", Tabulate(table_pays), DeadCodeElimination())
    with stage("lowering to TOSA"):
        module, notes = lower(module, target)
        verify_stage(module, "tosa", "lowering to TOSA")
    module = _run(module, "tosa", CommonSubexpressionElimination(), Fold(), DeadCodeElimination())
    told = [note for note in notes if not (real_semantics and note.exception)]  # how far from the interpreter
    return module, Report.of(module, decisions, told)


def _of_text(module: Module, *, keep_weights: bool) -> None:
    """Ops of `stablehlo`, which text has, as builtins, but those that have rules."""
    if any(op.name.startswith("stablehlo.") for op in module.ops()):
        from tflq.legalize.stablehlo.builtins_of_text import to_builtins

        to_builtins(module, keep_weights=keep_weights)


def integer_form(
    module: Module,
    *,
    fallback: bool = True,
    real_semantics: bool = False,
    kernels: Kernels = INTEGER,
    state: State | None = None,
) -> Module:
    """A module in the tfl or the tosa form → the integer form that selection and TOSA's lowerings read.
    UnsupportedError lists every operator refused."""
    if is_tosa(module):
        return _raised(module)
    from tflq.shapes import settle

    settle(module)
    return _integer_form(module, fallback, real_semantics, _held(state, kernels), kernels)[0]


def _integer_form(
    module: Module, fallback: bool, real_semantics: bool, state: State, kernels: Kernels = INTEGER
) -> tuple[Module, list[Decision]]:
    with stage("legalization"):
        module, decisions = legalize(
            module,
            fallback=fallback,
            state=state,
            semantics="real" if real_semantics else "interpreter",
            target=kernels,
        )
        verify_stage(module, "integer", "legalization")
    return _run(module, "integer", *_simplification(real_semantics)), decisions


def _raised(module: Module) -> Module:
    from tflq.tosa.raising import raise_module

    module = raise_module(module)
    verify_stage(module, "integer", "reading TOSA")
    return _run(module, "integer", *_simplification(False))


def _held(state: State | None, kernels: Kernels) -> State:
    """What becomes of state: it is kept by default, if the target runs recurrent operators."""
    return state or ("kept" if kernels.recurrent else "variables")


def _select(
    module: Module,
    decisions: Sequence[Decision],
    mac: Mac,
    names: frozenset[str],
    kernels: Kernels = INTEGER,
    reset: bool = False,
) -> tuple[Module, Report]:
    """names: those of the source's tensors, which no other tensor gets."""
    from tflq.passes.lower_rounding import LowerRounding
    from tflq.select.cost import table_pays
    from tflq.select.edges import trim_edges
    from tflq.select.engine import select
    from tflq.select.legality import check
    from tflq.select.naming import name_tensors
    from tflq.select.sharing import keep_apart, merge_views

    module = _run(module, "integer", Tabulate(table_pays), DeadCodeElimination(), LowerRounding())
    with stage("selection of kernels"):
        module = select(module, mac=mac, reset=reset)
        trim_edges(module)
        merge_views(module)
        verify_stage(module, "kernels", "selection")
    module = _run(module, "kernels", CommonSubexpressionElimination(), DeadCodeElimination())
    keep_apart(module)
    if not all(value.type.is_static for function in module.functions for value in function.values()):
        from tflq.shapes.stating import state_shapes

        state_shapes(module)
    name_tensors(module, names)
    state_runtime(module, made=any(decision.path != "kept" for decision in decisions))
    check(module, decisions, mac, kernels)
    return module, Report.of(module, decisions)


def _names(module: Module) -> frozenset[str]:
    """The names of a module's tensors."""
    return frozenset(v.name for f in module.functions for group in (f.tensors, f.values()) for v in group)


def _simplification(real_semantics: bool) -> Sequence[Pass]:
    """Casts between neighbours cancelled, common ops shared, constants folded, dead ops dropped."""
    return (
        Canonicalize(semantics="real" if real_semantics else "interpreter"),
        CommonSubexpressionElimination(),
        Fold(),
        DeadCodeElimination(),
    )


def _path(op: Op) -> str:
    """How an operator of TOSA computes; control flow and variables stay what they are."""
    if running.get(type(op)) is not None:
        return "kept"
    return "float" if any(v.type.storage.is_float for v in op.tensors) else "integer"


def _run(module: Module, form: Form, *passes: Pass) -> Module:
    with stage(f"passes {', '.join(item.name for item in passes)}"):
        return Pipeline(passes, form).run(module).module
