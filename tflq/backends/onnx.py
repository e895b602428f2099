"""ONNX: the integer form in its standard operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tflq.backends import Backend
from tflq.contract import Pass
from tflq.ir.core import Module


class Onnx(Backend):
    """ONNX in the exact form, and what other forms share with it."""

    name = "onnx"
    form = "onnx"
    targets = ("onnx",)
    states = ("variables", "inputs")
    requires = (("onnxruntime",), "onnxruntime", "onnx")

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.onnx.engine import LowerToOnnx
        from tflq.pipelines import to_onnx

        return to_onnx(options, LowerToOnnx)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.contract import Notes
        from tflq.onnx.engine import otherwise_notes, runtimes

        noted = Notes.of(module, real=options.semantics == "real")
        return [*noted, *otherwise_notes(module)], runtimes(module)

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.onnx.write import onnx_pieces

        return onnx_pieces(module, function)

    def reads(self, path: str) -> bool:
        """By its suffix, or as tflq begins it: with the format's version and the producer."""
        if super().reads(path):
            return True
        with open(path, "rb") as file:
            head = file.read(3)
        return head[:1] == b"\x08" and head[2:] == b"\x12"

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.onnx_runner import OnnxRunner

        return OnnxRunner(path, timeout)


BACKEND = Onnx()
