"""TFLite flatbuffers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from tflq.backends import Backend
from tflq.contract import Pass
from tflq.ir.core import Module
from tflq.targets.target import INTEGER


class _Tflite(Backend):
    name = "tflite"
    form = "kernels"
    targets = ("integer", "kernels", "portable", "tflm")
    states = ("kept", "variables")
    builtins = True
    interpreted = True
    one_entry = False
    requires = (("ai_edge_litert", "tensorflow"), "ai-edge-litert", "verify")

    def target(self, asked: str | os.PathLike[str] | None) -> Any:
        if asked in (None, "integer"):
            return INTEGER
        from tflq.targets.load import load_target

        return load_target(asked)

    def lowering(self, options: Any, form: Any) -> list[Pass]:
        from tflq.passes.source import RecordNames

        return [RecordNames(), *super().lowering(options, form)]

    def passes(self, options: Any, form: Any) -> Sequence[Pass]:
        from tflq.pipelines import to_kernels

        return to_kernels(options, form)

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes | bytearray | memoryview]:
        from tflq.flatbuffer import writer

        return writer.pieces(module)

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.tflite_runner import TfliteRunner

        return TfliteRunner(path, resolver, timeout)


BACKEND = _Tflite()
