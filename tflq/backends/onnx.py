"""ONNX: the integer form in its standard operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tflq.backends import Backend
from tflq.contract import Pass
from tflq.ir.core import Module


class _Onnx(Backend):
    name = "onnx"
    form = "onnx"
    targets = ("onnx",)
    requires = (("onnxruntime",), "onnxruntime", "onnx")

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.pipelines import to_onnx

        return to_onnx(options)

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.onnx.write import onnx_pieces

        return onnx_pieces(module, function)

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.onnx_runner import OnnxRunner

        return OnnxRunner(path, timeout)


BACKEND = _Onnx()
