"""TOSA as a result: flatbuffers, and MLIR text of the tosa dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath, Pieces
from tflq.formats.backend import Backend
from tflq.transforms.canonicalize import CommonSubexpressionElimination, DeadCodeElimination, Fold
from tflq.transforms.lower_rounding import LowerRounding

if TYPE_CHECKING:
    from tflq.formats.options import Options
    from tflq.ir.module import Module
    from tflq.transforms.pass_manager import Pass


class Tosa(Backend):
    """The base of the formats of TOSA flatbuffers and text."""

    form = "tosa"
    close = False
    runner = "tflq.tools.verify.runtimes:TosaRunner"
    requires = (("tosa_reference_model",), "tosa-tools", "tosa")

    @property
    def targets(self) -> tuple[str, ...]:  # type: ignore[override]
        from tflq.targets.load import DEVICES

        return "tosa", *DEVICES

    def owns(self, path: str) -> bool:
        from tflq.targets.load import is_of_tosa

        return is_of_tosa(path)

    def target(self, name: FilePath | None) -> Any:
        from tflq.formats.tosa.rules import load_target

        if name in ("integer", "kernels"):
            what = f"target '{name}' is for TFLite files"
            raise OptionError(Reason(what, value=name, remedy=f"a .{self.name} file has the target 'tosa'"))
        return load_target(None if name in (None, "tosa") else str(name))

    def passes(self, options: Any, form: Any) -> Sequence[Pass]:
        check = self._check(options)
        return [check] if form == "tosa" else [*to_tosa(options), check]

    def _check(self, options: Any) -> Pass:
        from tflq.formats.tosa.check import CheckTosa

        return CheckTosa(options.target, static=self.static)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.formats.tosa.check import Requirements
        from tflq.transforms.pass_manager import Notes

        return Notes.of(module, real=options.semantics == "real"), module.record.find(Requirements)


class TosaFlatbuffer(Tosa):
    """TOSA flatbuffers, which have no open dims."""

    name = "tosa"
    static = True

    def pieces(self, module: Module, function: int, target: Any) -> Pieces:
        from tflq.formats.tosa.write import tosa_pieces

        return tosa_pieces(module, function)

    def reads(self, path: str) -> bool:
        from tflq.formats.flatbuffer.layout import TOSA
        from tflq.formats.flatbuffer.structure import identify

        return identify(path) is TOSA


class TosaText(Tosa):
    """MLIR text of the tosa dialect. It says what it needs of the target, and dims can stay open."""

    name = "mlir"
    text = True

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.formats.tosa.text import mlir_pieces

        return (piece.encode() for piece in mlir_pieces(module, target, function=function))

    def reads(self, path: str) -> bool:
        return False


def to_tosa(options: Options) -> list[Pass]:
    from tflq.formats.tosa.lowering.engine import LowerToTosa, table_pays
    from tflq.transforms.tabulate import Tabulate

    return [
        *_without_floats(options),
        *(Tabulate(table_pays), DeadCodeElimination(), LowerRounding(), LowerToTosa(options.target)),
        *(CommonSubexpressionElimination(), Fold(), DeadCodeElimination()),
    ]


def _without_floats(options: Options) -> list[Pass]:
    if options.target.has("pro_fp"):
        return []
    from tflq.transforms.floats import TabulateFloats

    return [TabulateFloats()]
