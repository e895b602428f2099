"""ONNX as a result: the exact form and the QDQ form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tflq.base.files import FilePath
from tflq.formats.backend import Backend
from tflq.transforms.canonicalize import CommonSubexpressionElimination, DeadCodeElimination
from tflq.transforms.lower_rounding import LowerRounding

if TYPE_CHECKING:
    from tflq.formats.onnx.engine import LowerToOnnx
    from tflq.formats.options import Options
    from tflq.ir.module import Module
    from tflq.transforms.pass_manager import Pass


class Onnx(Backend):
    """ONNX in the exact form: the integer form in its standard operators."""

    name = "onnx"
    form = "onnx"
    targets = ("onnx",)
    states = ("variables", "inputs")
    runner = "tflq.tools.verify.runtimes:OnnxRunner"
    requires = (("onnxruntime",), "onnxruntime", "onnx")

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.formats.onnx.engine import LowerToOnnx

        return to_onnx(options, LowerToOnnx)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.formats.onnx.engine import otherwise_notes, runtimes
        from tflq.transforms.pass_manager import Notes

        noted = Notes.of(module, real=options.semantics == "real")
        return [*noted, *otherwise_notes(module)], runtimes(module)

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.formats.onnx.write import onnx_pieces

        return onnx_pieces(module, function)

    def reads(self, path: str) -> bool:
        """By its suffix, or as tflq begins it: with the format's version and the producer."""
        if super().reads(path):
            return True
        with open(path, "rb") as file:
            head = file.read(3)
        return head[:1] == b"\x08" and head[2:] == b"\x12"


class Qdq(Onnx):
    """ONNX in the QDQ form: each quantized operator on real numbers between casts, as compilers for NPUs read it."""

    name = "qdq"
    targets = ("qdq",)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("onnx",)

    def target(self, name: FilePath | None) -> Any:
        """The target that lists the operators that take the form: by default those for which there is a pattern."""
        from tflq.base.files import resource
        from tflq.targets.load import load_target

        target = load_target(resource("rules/qdq.toml") if name in (None, "qdq") else name)
        return target.replace(by_parameters=True)

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.formats.onnx.qdq import LowerToQdq

        return to_onnx(options, LowerToQdq)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.formats.onnx.qdq import qdq_form
        from tflq.transforms.pass_manager import Notes

        notes, form = qdq_form(module)
        return [*notes, *Notes.of(module, real=options.semantics == "real")], form


def to_onnx(options: Options, lowering: type[LowerToOnnx]) -> list[Pass]:
    from tflq.formats.onnx.tables import table_pays
    from tflq.transforms.tabulate import Tabulate

    return [
        *(Tabulate(table_pays), DeadCodeElimination(), LowerRounding()),
        lowering(options.cache, options.state == "inputs"),
        *(CommonSubexpressionElimination(), DeadCodeElimination()),
    ]
