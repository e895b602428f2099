"""TOSA flatbuffers, and what they share with TOSA text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from tflq.backends import Backend
from tflq.contract import Pass
from tflq.errors import OptionError, Reason
from tflq.ir.core import Module
from tflq.targets.load import DEVICES


class Tosa(Backend):
    """A format of TOSA."""

    form = "tosa"
    close = False
    targets = ("tosa", *DEVICES)
    requires = (("tosa_reference_model",), "tosa-tools", "tosa")

    def owns(self, path: str) -> bool:
        from tflq.targets.load import is_of_tosa

        return is_of_tosa(path)

    def target(self, asked: str | os.PathLike[str] | None) -> Any:
        from tflq.tosa.operands import load_target

        if asked in ("integer", "kernels"):
            what = f"target '{asked}' is for TFLite files"
            raise OptionError(Reason(what, value=asked, remedy=f"a .{self.name} file has the target 'tosa'"))
        return load_target(None if asked in (None, "tosa") else str(asked))

    def lowering(self, options: Any, form: Any) -> list[Pass]:
        return [self._check(options)] if form == "tosa" else super().lowering(options, form)

    def passes(self, options: Any, form: Any) -> Sequence[Pass]:
        from tflq.pipelines import to_tosa

        return [*to_tosa(options), self._check(options)]

    def _check(self, options: Any) -> Pass:
        from tflq.tosa.check import CheckTosa

        return CheckTosa(options.target, static=self.static)

    def notes(self, module: Module, options: Any) -> tuple[Sequence[Any], Any]:
        from tflq.contract import Notes
        from tflq.tosa.check import Requirements

        return Notes.of(module, real=options.semantics == "real"), module.record.find(Requirements)


class _Flatbuffer(Tosa):
    name = "tosa"
    static = True

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes | bytearray | memoryview]:
        from tflq.tosa.files.write import tosa_pieces

        return tosa_pieces(module, function)

    def reads(self, path: str) -> bool:
        from tflq.flatbuffer.identify import identify
        from tflq.flatbuffer.layout import TOSA

        return identify(path) is TOSA

    def runner(self, path: str, timeout: float, resolver: Any) -> Any:
        from tflq.verification.runtimes import TosaRunner

        return TosaRunner(path, timeout)


BACKEND = _Flatbuffer()
