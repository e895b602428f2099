"""tflq: quantized TFLite models in, the integer form out.

tflq.convert("in.tflite", "out.tflite")     lower every quantized operator; the result equals the original bit for bit
tflq.convert("in.tflite", "out.tosa")       the same as TOSA 1.0: a flatbuffer, or MLIR text (out.mlir)
tflq.convert("in.tflite", "out.onnx")       the same in standard operators of ONNX
tflq.read(source) -> Module                  tflq.write(module, destination)
tflq.verify(a, b)                            run two models, in the interpreter or the TOSA reference model, and compare
tflq.inspect(source)                         what a model holds, and what a conversion would do with each operator
tflq.reduce(source)                          the smallest part of a model whose conversion fails
tflq.bisect(source)                          the pass of a conversion that first changed a result
tflq.calibrate(source, data)                 the ranges of a model's values on samples
tflq.quantize(source, destination)           a float network as one of quantized operators
tflq.debug(floats, quantized, data)          which operators of a quantized network are far from the float one's
tflq.run_sweep(sources, folder)              convert and verify many models, each in a process of its own

Threads may call convert, read, write and verify at the same time, each with a source and a destination of its own: the
bytes are those of one thread. A Module is as mutable as a list: several threads may read and write out one that none of
them changes.

The logger `tflq` has a line per stage (INFO) and pass (DEBUG), and what a report warns of (WARNING).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tflq.collector import collected_rarely

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.bisection import Bisection, bisect
    from tflq.calibration.calibrating import Calibration, calibrate
    from tflq.conversion import Conversion, convert
    from tflq.cost import Cost
    from tflq.debugging.debugging import debug
    from tflq.debugging.outcome import Debugging, DebugRow
    from tflq.errors import (
        FileError,
        InvalidModelError,
        MissingPackageError,
        OptionError,
        Reason,
        TflqError,
        UnsupportedError,
        VerificationError,
    )
    from tflq.extensions import Extension
    from tflq.formats import read, write
    from tflq.inspection import Inspection, inspect
    from tflq.ir.core import Module
    from tflq.legalize.rule import NotApplicable, RuleBuilder
    from tflq.quantization.quantizing import quantize
    from tflq.quantization.report import Quantization, QuantizedRow
    from tflq.reduction import Reduction, reduce
    from tflq.report import Report, Row
    from tflq.sweep.sweeping import run_sweep
    from tflq.verification.comparison import verify
    from tflq.verification.outcome import Difference, Run, RunTime, Verification

__version__ = "2.0.0"

_HOME = {
    "Arena": "tflq.analysis.arena",
    "Bisection": "tflq.bisection",
    "Calibration": "tflq.calibration.calibrating",
    "Conversion": "tflq.conversion",
    "Cost": "tflq.cost",
    "DebugRow": "tflq.debugging.outcome",
    "Debugging": "tflq.debugging.outcome",
    "Difference": "tflq.verification.outcome",
    "Extension": "tflq.extensions",
    "FileError": "tflq.errors",
    "Inspection": "tflq.inspection",
    "InvalidModelError": "tflq.errors",
    "MissingPackageError": "tflq.errors",
    "Module": "tflq.ir.core",
    "NotApplicable": "tflq.legalize.rule",
    "OptionError": "tflq.errors",
    "Quantization": "tflq.quantization.report",
    "QuantizedRow": "tflq.quantization.report",
    "Reason": "tflq.errors",
    "Reduction": "tflq.reduction",
    "Report": "tflq.report",
    "Row": "tflq.report",
    "RuleBuilder": "tflq.legalize.rule",
    "Run": "tflq.verification.outcome",
    "RunTime": "tflq.verification.outcome",
    "TflqError": "tflq.errors",
    "UnsupportedError": "tflq.errors",
    "Verification": "tflq.verification.outcome",
    "VerificationError": "tflq.errors",
    "bisect": "tflq.bisection",
    "calibrate": "tflq.calibration.calibrating",
    "convert": "tflq.conversion",
    "debug": "tflq.debugging.debugging",
    "inspect": "tflq.inspection",
    "quantize": "tflq.quantization.quantizing",
    "read": "tflq.formats",
    "reduce": "tflq.reduction",
    "run_sweep": "tflq.sweep.sweeping",
    "verify": "tflq.verification.comparison",
    "write": "tflq.formats",
}

__all__ = [
    "Arena",
    "Bisection",
    "Calibration",
    "Conversion",
    "Cost",
    "DebugRow",
    "Debugging",
    "Difference",
    "Extension",
    "FileError",
    "Inspection",
    "InvalidModelError",
    "MissingPackageError",
    "Module",
    "NotApplicable",
    "OptionError",
    "Quantization",
    "QuantizedRow",
    "Reason",
    "Reduction",
    "Report",
    "Row",
    "RuleBuilder",
    "Run",
    "RunTime",
    "TflqError",
    "UnsupportedError",
    "Verification",
    "VerificationError",
    "__version__",
    "bisect",
    "calibrate",
    "convert",
    "debug",
    "inspect",
    "quantize",
    "read",
    "reduce",
    "run_sweep",
    "verify",
    "write",
]


if not TYPE_CHECKING:  # who checks types sees the imports above, and that a name that is not there is none

    def __getattr__(name: str) -> object:
        """Imports a public name from its home when first asked for: `tflq --version` imports nothing heavy."""
        if name not in _HOME:
            raise AttributeError(f"module 'tflq' has no attribute '{name}'")
        with collected_rarely():
            value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
