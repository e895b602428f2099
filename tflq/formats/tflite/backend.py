"""TFLite files as a result: the builtins that compute the integer form, named and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tflq.base.files import FilePath, Pieces
from tflq.dialects.forms import ModuleForm
from tflq.formats.backend import Backend
from tflq.transforms.canonicalize import CommonSubexpressionElimination, DeadCodeElimination
from tflq.transforms.lower_rounding import LowerRounding

if TYPE_CHECKING:
    from tflq.formats.options import Options
    from tflq.ir.module import Module
    from tflq.transforms.pass_manager import Pass


class Tflite(Backend):
    """TFLite flatbuffers."""

    name = "tflite"
    form = "kernels"
    targets = ("integer", "kernels", "portable", "tflm", "int8", "int16x8", "uint8")
    states = ("kept", "variables")
    builtins = True
    interpreted = True
    one_entry = False
    runner = "tflq.tools.verify.tflite_runner:TfliteRunner"
    requires = (("ai_edge_litert", "tensorflow"), "ai-edge-litert", "verify")

    def target(self, name: FilePath | None) -> Any:
        if name in (None, "integer"):
            from tflq.targets.target import INTEGER

            return INTEGER
        from tflq.targets.load import load_target

        return load_target(name)

    def passes(self, options: Any, form: Any) -> Sequence[Pass]:
        return to_kernels(options, form)

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        from tflq.formats.tflite import writer

        return writer.pieces(module)


def to_kernels(options: Options, form: ModuleForm) -> list[Pass]:
    from tflq.formats.tflite.lowering.cost import table_pays
    from tflq.formats.tflite.lowering.engine import CheckLegality, Select
    from tflq.formats.tflite.lowering.movement import DeclareVariables
    from tflq.formats.tflite.lowering.naming import CopyBeforeOverwrite, MergeViews, NameTensors, TrimEdges
    from tflq.formats.tflite.lowering.tables import ShareTables
    from tflq.transforms.shape_settling import CloseDims, RestoreDeclaredShapes
    from tflq.transforms.source import SetMinRuntime
    from tflq.transforms.tabulate import Tabulate

    return [
        *(Tabulate(table_pays, options.size_limit), DeadCodeElimination(), LowerRounding()),
        DeclareVariables(options.reset_signature),
        *_strips(options),
        Select(options.mac, options.cache, options.kernels, "float32" if options.prefer == "memory" else "int8"),
        *(TrimEdges(), MergeViews(), ShareTables()),
        *(CommonSubexpressionElimination(), DeadCodeElimination()),
        *(
            CopyBeforeOverwrite(),
            CloseDims(),
            NameTensors(),
            SetMinRuntime(),
            CheckLegality(options.kernels, options.mac),
        ),
        *((RestoreDeclaredShapes(),) if form == "tfl" else ()),
    ]


def _strips(options: Options) -> list[Pass]:
    """The pass that splits results into strips, if the options call for it.

    By default only for tensors so large that strips, which fit the caches, cost no time. Kernels of floats, which have
    no windows and fewer intermediates, are faster without.
    """
    from tflq.formats.tflite.lowering.strips import SplitRows

    if options.prefer == "memory":
        return [SplitRows()]
    return [SplitRows(least=1 << 24, whole=options.mac == "float32")] if options.prefer == "speed" else []
