"""MLIR text of the tosa dialect. It says what it needs of the target, and dims can stay open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tflq.backends.tosa import Tosa
from tflq.ir.core import Module


class _Text(Tosa):
    name = "mlir"
    text = True

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.tosa.files.text import mlir_pieces

        return (piece.encode() for piece in mlir_pieces(module, target, function=function))

    def reads(self, path: str) -> bool:
        return False


BACKEND = _Text()
