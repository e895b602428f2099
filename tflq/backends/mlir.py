"""MLIR text of TOSA's operators: it says what of the target it needs, and can leave dims open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tflq.backends.tosa import Tosa
from tflq.ir.core import Module

__all__ = ["BACKEND"]


class _Text(Tosa):
    name = "mlir"
    text = True

    def pieces(self, module: Module, function: int, target: Any) -> Iterable[bytes]:
        from tflq.tosa.files.text import mlir_pieces

        return (piece.encode() for piece in mlir_pieces(module, target, function=function))

    def reads(self, path: str) -> bool:
        return False


BACKEND = _Text()
