"""The passes of a conversion, in order, for each kind of source and result.

    TFLite → TFLite    part, shapes → legalize → simplify → tabulate → select → name → check
    TFLite → TOSA      part, shapes → legalize → simplify → tabulate → lower → check
    TFLite → ONNX      part, shapes → legalize → simplify → tabulate → lower
    TFLite → C         part, shapes → legalize → simplify → tabulate → lower → plan
    TOSA → TFLite      check → raise → simplify → tabulate → select → name → check
    TOSA → ONNX        check → raise → simplify → tabulate → lower
    TOSA → C           plan
    TOSA → TOSA        check

Before `legalize`, text's core dialects and types become those of files, and shapes are inferred. Pipelines are made
from `Options`; no pass sees them. What follows the integer form is the list of the format's backend.
"""

from __future__ import annotations

from typing import Literal

from tflq.dialects.forms import ModuleForm, is_tosa
from tflq.formats.options import Options
from tflq.ir.module import Module
from tflq.transforms.canonicalize import Canonicalize, CommonSubexpressionElimination, DeadCodeElimination, Fold
from tflq.transforms.pass_manager import Pass
from tflq.transforms.source import Cut, CutBeforeCustom, ExtractSignature, RecordNames


def form_of(module: Module) -> ModuleForm:
    """The form of a module as it was read."""
    return "tosa" if is_tosa(module) else "tfl"


def narrowing(options: Options, form: ModuleForm) -> list[Pass]:
    """The passes that narrow the source to the part and the shapes to convert."""
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
        from tflq.transforms.floats import RowUpdates, Spectra

        passes += [RowUpdates(), Spectra()]
    if options.batch is not None or options.shapes or options.backend.static:
        from tflq.transforms.shape_binding import BindShapes

        passes.append(BindShapes(options.batch, options.shapes, options.backend.usual_batch))
    return passes


def passes_of(options: Options, form: ModuleForm) -> list[Pass]:
    """The passes from the source to the result: through the integer form, unless the source has the result's form."""
    backend = options.backend
    passes: list[Pass] = [RecordNames()] if backend.interpreted else []
    if form != backend.form:
        passes += to_integer_form(options, form)
    return [*passes, *backend.passes(options, form)]


def to_integer_form(options: Options, form: ModuleForm) -> list[Pass]:
    if form == "tosa":
        from tflq.formats.tosa.check import CheckLaws
        from tflq.formats.tosa.raising import RaiseTosa

        return [CheckLaws(), RaiseTosa(), *_simplification("interpreter")]
    from tflq.formats.core_dialects import CoreToInteger
    from tflq.legalize.engine import BuiltinsOfText, Legalize
    from tflq.transforms.shape_settling import InferShapes

    state = "lowered" if options.state == "inputs" or not options.backend.builtins else options.state
    close = options.backend.close
    legalize = Legalize(
        options.kernels,
        options.fallback,
        options.semantics,
        state,
        options.rules,
        close,
        options.kernel_set,
    )
    of_text = BuiltinsOfText(keep_weights=options.backend.builtins)
    settle = InferShapes(resizable=options.backend.builtins)
    return [CoreToInteger(), of_text, settle, legalize, *_simplification(options.semantics)]


def _simplification(semantics: Literal["interpreter", "real"]) -> list[Pass]:
    """Casts between neighbours cancelled, common ops shared, constants folded, dead ops dropped."""
    return [Canonicalize(semantics), CommonSubexpressionElimination(), Fold(), DeadCodeElimination()]
