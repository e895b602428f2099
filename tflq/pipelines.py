"""The passes of a conversion, in order, for each kind of source and result.

    TFLite → TFLite    part, shapes → legalize → simplify → tabulate → select → name → check
    TFLite → TOSA      part, shapes → legalize → simplify → tabulate → lower → check
    TFLite → ONNX      part, shapes → legalize → simplify → tabulate → lower
    TOSA → TFLite      check → raise → simplify → tabulate → select → name → check
    TOSA → ONNX        check → raise → simplify → tabulate → lower
    TOSA → TOSA        check

One frozen `Options`, made from the arguments of a call and checked, says what the caller asks for; pipelines are made
from it, and no pass sees it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from tflq.backends import DEFAULT, Backend, backend
from tflq.contract import Decisions, Pass, Pipeline
from tflq.dialects.forms import Form
from tflq.errors import (
    OptionError,
    Reason,
    check_choice,
    check_flags,
    check_number,
    check_path,
    check_shapes,
    check_text,
    items,
    not_expected,
)
from tflq.files import FilePath
from tflq.formats import is_tosa
from tflq.ir.core import Module
from tflq.light import dataclass, field
from tflq.passes.canonicalize import Canonicalize, CommonSubexpressionElimination, DeadCodeElimination, Fold
from tflq.passes.lower_rounding import LowerRounding
from tflq.passes.source import Cut, CutBeforeCustom, ExtractSignature
from tflq.remarks import of_model, of_rules, of_target
from tflq.report import Report
from tflq.select.lowering import Mac
from tflq.targets.target import INTEGER
from tflq.targets.target import Target as Kernels

if TYPE_CHECKING:
    from tflq.ir.core import Op
    from tflq.legalize.rule import Rule
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
        from tflq.passes.floats import RowUpdates, Spectra

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
    decisions = Decisions.of(module)
    remarks = [*of_model(decisions), *of_rules(decisions, options.rules)]
    if options.kernels.of_user:
        remarks += of_target(decisions, options.kernels)
    report = Report.of(module, decisions, notes, remarks)
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
    from tflq.shapes.settling import RestateResults, StateShapes

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
    from tflq.passes.floats import TabulateFloats

    return [TabulateFloats()]


def to_onnx(options: Options, lowering: type[LowerToOnnx]) -> list[Pass]:
    from tflq.onnx.tables import table_pays
    from tflq.passes.tabulate import Tabulate

    return [
        *(Tabulate(table_pays), DeadCodeElimination(), LowerRounding()),
        lowering(options.cache, options.state == "inputs"),
        *(CommonSubexpressionElimination(), DeadCodeElimination()),
    ]


Fallback = Literal["float", "error"]
Semantics = Literal["interpreter", "real"]
State = Literal["kept", "variables", "inputs"]
Prefer = Literal["speed", "size", "memory"]


@dataclass(frozen=True)
class Options:
    """What a caller asks of a conversion: see `tflq.convert`.

    backend: the format of the result. kernels: the target of a TFLite file. target: the target of another format.
    least_table: what a table of two operands must save, in nanoseconds a run; most_tables: how many of them there may
    be. fallback: an operator without an integer rule is computed in float. cache: a folder of proofs, "" for none.
    rules: those of a user (`tflq.Extension`).
    """

    backend: Backend = field(default_factory=lambda: backend(DEFAULT))
    kernels: Kernels = INTEGER
    target: Any = None
    mac: Mac = "integer"
    prefer: Prefer = "speed"
    least_table: float = 0.0
    most_tables: int | None = None
    fallback: bool = True
    semantics: Semantics = "interpreter"
    state: State | None = None
    reset_signature: bool = False
    batch: int | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    signature: str | None = None
    cut: Sequence[str] = ()
    cut_before_custom: bool = False
    cache: str = ""
    rules: Mapping[str | type[Op], Sequence[Rule]] = field(default_factory=dict)


def asked(
    format: str,
    target: FilePath | None,
    *,
    mac: Mac = "integer",
    prefer: Prefer = "speed",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
    state: State | None = None,
    reset_signature: bool = False,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    signature: str | None = None,
    cut: Sequence[str] = (),
    cut_before_custom: bool = False,
    cache: FilePath | None = None,
) -> Options:
    """The options of a conversion, as `tflq.convert` takes them. OptionError for values that are not known, and for
    options that do nothing in this format."""
    check_choice("mac", mac, get_args(Mac))
    check_choice("prefer", prefer, get_args(Prefer))
    check_choice("fallback", fallback, get_args(Fallback))
    check_choice("semantics", semantics, get_args(Semantics))
    check_choice("state", state, get_args(State), optional=True)
    check_flags(reset_signature=reset_signature, cut_before_custom=cut_before_custom)
    check_number("batch", batch, 1, whole=True, optional=True)
    check_shapes(shapes)
    check_text("signature", signature, "a signature's key")
    check_path("cache", cache)
    if not (target is None or isinstance(target, (str, os.PathLike))):
        raise not_expected("target", target, "the name of a target, or the path of a target's file")
    chosen = backend(format)
    allowed = chosen.target(target)
    chosen.check_options(mac=mac, prefer=prefer, state=state, reset_signature=reset_signature, cache=cache)
    if chosen.builtins:
        _check_mac(mac, allowed)
    return Options(
        backend=chosen,
        kernels=allowed if isinstance(allowed, Kernels) else INTEGER,
        target=None if isinstance(allowed, Kernels) else allowed,
        mac=mac,
        prefer=prefer,
        most_tables=0 if prefer == "size" else None,
        fallback=fallback == "float",
        semantics=semantics,
        state=state,
        reset_signature=reset_signature,
        batch=batch,
        shapes=dict(shapes or {}),
        signature=signature,
        cut=items("cut", cut, (str,), "tensor names"),
        cut_before_custom=cut_before_custom,
        cache="" if cache is None else os.fspath(cache),
    )


def _check_mac(mac: Mac, target: Kernels) -> None:
    """OptionError if the target leaves no choice."""
    if target.builtins is not None and mac != "integer":
        what = f"mac '{mac}': the target '{target.name}' restricts plain builtins, so its results are in float32 anyway"
        raise OptionError(Reason(what, value=mac, remedy="leave it out"))


def changed(**given: Any) -> dict[str, Any]:
    """Those keywords of `tflq.convert` that differ from their defaults; `format` and `target` are not looked at."""
    usual = {**(asked.__kwdefaults__ or {}), "rules": ()}
    return {name: value for name, value in given.items() if value not in (usual[name], None, (), [], {})}


def check_for_source_of_tosa(options: Options, target: FilePath | None) -> None:
    """OptionError for options that do nothing for a model that is TOSA already. `target`: as the caller gave it."""
    for name, value, usual in (
        ("target", target if options.backend.builtins else None, "integer"),
        ("fallback", "float" if options.fallback else "error", "float"),
        ("semantics", options.semantics, "interpreter"),
        ("state", options.state, None),
    ):
        if value not in (None, usual):
            what = f"{name} '{value}' is for models with quantized operators; a TOSA file has none"
            raise OptionError(Reason(what, value=value, remedy="leave it out"))
    if options.batch is not None or options.shapes:
        raise OptionError("a TOSA file has no open dims to bind: its shapes are those it was written with")
