"""tflq: quantized TFLite models in, the integer form out.

tflq.convert("in.tflite", "out.tflite")     lower every quantized operator; the result equals the original bit for bit
tflq.convert("in.tflite", "out.tosa")       the same as TOSA 1.0: a flatbuffer, or MLIR text (out.mlir)
tflq.read(source) -> Module                  tflq.write(module, destination)
tflq.verify(a, b)                            run two models, in the interpreter or the TOSA reference model, and compare

The logger `tflq` has a line per stage (INFO) and pass (DEBUG), and what a report warns of (WARNING).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflq.conversion import Conversion, convert
    from tflq.errors import (
        FileError,
        InvalidModelError,
        OptionError,
        Reason,
        TflqError,
        UnsupportedError,
        VerificationError,
    )
    from tflq.extensions import Extension
    from tflq.formats import read, write
    from tflq.ir.core import Module
    from tflq.verification import Verification, verify

__version__ = "1.0.0"

_HOME = {
    "Conversion": "tflq.conversion",
    "Extension": "tflq.extensions",
    "FileError": "tflq.errors",
    "InvalidModelError": "tflq.errors",
    "Module": "tflq.ir.core",
    "OptionError": "tflq.errors",
    "Reason": "tflq.errors",
    "TflqError": "tflq.errors",
    "UnsupportedError": "tflq.errors",
    "Verification": "tflq.verification",
    "VerificationError": "tflq.errors",
    "convert": "tflq.conversion",
    "read": "tflq.formats",
    "verify": "tflq.verification",
    "write": "tflq.formats",
}

__all__ = [
    "Conversion",
    "Extension",
    "FileError",
    "InvalidModelError",
    "Module",
    "OptionError",
    "Reason",
    "TflqError",
    "UnsupportedError",
    "Verification",
    "VerificationError",
    "__version__",
    "convert",
    "read",
    "verify",
    "write",
]


def __getattr__(name: str) -> Any:
    """Imports a public name from its home when first asked for, so that `tflq --version` imports nothing heavy."""
    if name not in _HOME:
        raise AttributeError(f"module 'tflq' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
