"""ONNX in the QDQ form: each quantized operator on real numbers between casts, as compilers for NPUs read it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tflq.backends.onnx import Onnx
from tflq.contract import Pass
from tflq.files import resource
from tflq.ir.core import Module
from tflq.light import replace


class _Qdq(Onnx):
    name = "qdq"
    targets = ("qdq",)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("onnx",)

    def target(self, asked: str | os.PathLike[str] | None) -> Any:
        """Which operators take the form: by default those for which there is a pattern."""
        from tflq.targets.load import load_target

        target = load_target(resource("rules/qdq.toml") if asked in (None, "qdq") else asked)
        return replace(target, by_parameters=True)

    def passes(self, options: Any, form: str) -> Sequence[Pass]:
        from tflq.onnx.qdq import LowerToQdq
        from tflq.pipelines import to_onnx

        return to_onnx(options, LowerToQdq)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.contract import Notes
        from tflq.onnx.qdq import qdq_form

        notes, form = qdq_form(module)
        return [*notes, *Notes.of(module, real=options.semantics == "real")], form


BACKEND = _Qdq()
