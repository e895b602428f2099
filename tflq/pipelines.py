"""The passes of a conversion, in order, for each kind of source and result.

    TFLite → TFLite    part, shapes → legalize → simplify → tabulate → select → name → check
    TFLite → TOSA      part, shapes → legalize → simplify → tabulate → lower → check
    TFLite → ONNX      part, shapes → legalize → simplify → tabulate → lower
    TOSA → TFLite      check → raise → simplify → tabulate → select → name → check
    TOSA → ONNX        check → raise → simplify → tabulate → lower
    TOSA → TOSA        check

`Options` says what the caller asks for; pipelines are made from it, and no pass sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tflq.contract import Decisions, Pass, Pipeline
from tflq.dialects.forms import Form
from tflq.formats import is_tosa
from tflq.ir.core import Module
from tflq.options import Options
from tflq.passes.canonicalize import Canonicalize, CommonSubexpressionElimination, DeadCodeElimination, Fold
from tflq.passes.lower_rounding import LowerRounding
from tflq.passes.source import Cut, CutBeforeCustom, ExtractSignature
from tflq.report import Report

if TYPE_CHECKING:
    from tflq.onnx.engine import LowerToOnnx


def form_of(module: Module) -> Form:
    """The form of a module as it was read."""
    return "tosa" if is_tosa(module) else "tfl"


def narrowing(options: Options, form: Form) -> list[Pass]:
    """Which part of the source is converted, and for which shapes."""
    passes: list[Pass] = []
    if options.signature is not None:
        passes.append(ExtractSignature(options.signature))
    if options.cut:
        passes.append(Cut(tuple(options.cut)))
    if options.cut_before_custom:
        passes.append(CutBeforeCustom())
    if form == "tosa":
        return passes
    if not options.backend.builtins:
        from tflq.passes.row_updates import RowUpdates, Spectra

        passes += [RowUpdates(), Spectra()]
    if options.batch is not None or options.shapes or options.backend.static:
        from tflq.shapes.binding import BindShapes

        passes.append(BindShapes(options.batch, options.shapes))
    return passes


def lower(module: Module, options: Options) -> tuple[Module, Report]:
    """A module in the tfl or the tosa form → one on the operators of the target, with the report. UnsupportedError
    lists every refused operator, InvalidModelError names one that breaks a law of TOSA."""
    form = form_of(module)
    module = Pipeline(options.backend.lowering(options, form), form).run(module).module
    return module, report_of(module, options)


def integer_form(module: Module, options: Options | None = None) -> Module:
    """A module in the tfl or the tosa form → the integer form that selection and TOSA's lowerings read.
    UnsupportedError lists every refused operator."""
    form = form_of(module)
    return Pipeline(to_integer_form(options or Options(), form), form).run(module).module


def report_of(module: Module, options: Options) -> Report:
    """The report of a converted module, from what the passes noted on it."""
    notes, requirements = options.backend.notes(module, options)
    report = Report.of(module, Decisions.of(module), notes)
    report.requirements = requirements
    return report


def to_integer_form(options: Options, form: Form) -> list[Pass]:
    if form == "tosa":
        from tflq.tosa.check import CheckLaws
        from tflq.tosa.raising import RaiseTosa

        return [CheckLaws(), RaiseTosa(), *_simplification("interpreter")]
    from tflq.legalize.engine import BuiltinsOfText, CoreToInteger, Legalize
    from tflq.shapes.settling import SettleShapes

    state = "lowered" if options.state == "inputs" or not options.backend.builtins else options.state
    close = options.backend.close
    legalize = Legalize(options.kernels, options.fallback, options.semantics, state, options.rules, close)
    of_text = BuiltinsOfText(keep_weights=options.backend.builtins)
    settle = SettleShapes(resizable=options.backend.builtins)
    return [CoreToInteger(), of_text, settle, legalize, *_simplification(options.semantics)]


def _simplification(semantics: Literal["interpreter", "real"]) -> list[Pass]:
    """Casts between neighbours cancelled, common ops shared, constants folded, dead ops dropped."""
    return [Canonicalize(semantics), CommonSubexpressionElimination(), Fold(), DeadCodeElimination()]


def to_kernels(options: Options, form: Form) -> list[Pass]:
    from tflq.passes.source import StateRuntime
    from tflq.passes.tabulate import Tabulate
    from tflq.select.cost import table_pays
    from tflq.select.engine import CheckLegality, Select
    from tflq.select.movement import DeclareVariables
    from tflq.select.naming import KeepApart, MergeViews, NameTensors, TrimEdges
    from tflq.select.tables import ShareTables
    from tflq.shapes.inference import StateShapes
    from tflq.shapes.settling import RestateResults

    return [
        *(Tabulate(table_pays, options.least_table, options.most_tables), DeadCodeElimination(), LowerRounding()),
        DeclareVariables(options.reset_signature),
        *_strips(options),
        *(Select(options.mac, options.cache, options.kernels), TrimEdges(), MergeViews(), ShareTables()),
        *(CommonSubexpressionElimination(), DeadCodeElimination()),
        *(KeepApart(), StateShapes(), NameTensors(), StateRuntime(), CheckLegality(options.kernels, options.mac)),
        *((RestateResults(),) if form == "tfl" else ()),
    ]


def _strips(options: Options) -> list[Pass]:
    """By default only for tensors so large that strips, which fit the caches, cost no time; kernels of floats, which
    have no windows and fewer intermediates, are faster without."""
    from tflq.select.strips import SplitRows

    if options.prefer == "memory":
        return [SplitRows()]
    return [SplitRows(least=1 << 24, whole=options.mac == "float32")] if options.prefer == "speed" else []


def to_tosa(options: Options) -> list[Pass]:
    from tflq.passes.tabulate import Tabulate
    from tflq.tosa.lowering.engine import LowerToTosa, table_pays

    return [
        *_without_floats(options),
        *(Tabulate(table_pays), DeadCodeElimination(), LowerRounding(), LowerToTosa(options.target)),
        *(CommonSubexpressionElimination(), Fold(), DeadCodeElimination()),
    ]


def _without_floats(options: Options) -> list[Pass]:
    if options.target.has("pro_fp"):
        return []
    from tflq.passes.tabulate_floats import TabulateFloats

    return [TabulateFloats()]


def to_onnx(options: Options, lowering: type[LowerToOnnx]) -> list[Pass]:
    from tflq.onnx.tables import table_pays
    from tflq.passes.tabulate import Tabulate

    return [
        *(Tabulate(table_pays), DeadCodeElimination(), LowerRounding()),
        lowering(options.cache, options.state == "inputs"),
        *(CommonSubexpressionElimination(), DeadCodeElimination()),
    ]
