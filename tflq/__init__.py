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

from tflq.base.collector import collected_rarely
from tflq.base.version import __version__

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.base.errors import (
        FileError,
        InvalidModelError,
        MissingPackageError,
        OptionError,
        Reason,
        TflqError,
        UnsupportedError,
        VerificationError,
    )
    from tflq.conversion.convert import Conversion, convert
    from tflq.conversion.cost import Cost
    from tflq.conversion.extensions import Extension
    from tflq.conversion.report import Report, Row
    from tflq.formats.sources import read, write
    from tflq.ir.module import Module
    from tflq.legalize.rule import NotApplicable, RuleBuilder
    from tflq.tools.debug.bisection import Bisection, bisect
    from tflq.tools.debug.reduction import Reduction, reduce
    from tflq.tools.inspect import Inspection, inspect
    from tflq.tools.quantize.calibration.calibrate import Calibration, calibrate
    from tflq.tools.quantize.debugging.debugging import debug
    from tflq.tools.quantize.debugging.outcome import Debugging, DebugRow
    from tflq.tools.quantize.quantize import quantize
    from tflq.tools.quantize.report import Quantization, QuantizedRow
    from tflq.tools.sweep.sweeping import run_sweep
    from tflq.tools.verify.difference import Difference
    from tflq.tools.verify.outcome import Run, RunTime, Verification
    from tflq.tools.verify.verifying import verify

_HOME = {
    "Arena": "tflq.analysis.arena",
    "Bisection": "tflq.tools.debug.bisection",
    "Calibration": "tflq.tools.quantize.calibration.calibrate",
    "Conversion": "tflq.conversion.convert",
    "Cost": "tflq.conversion.cost",
    "DebugRow": "tflq.tools.quantize.debugging.outcome",
    "Debugging": "tflq.tools.quantize.debugging.outcome",
    "Difference": "tflq.tools.verify.difference",
    "Extension": "tflq.conversion.extensions",
    "FileError": "tflq.base.errors",
    "Inspection": "tflq.tools.inspect",
    "InvalidModelError": "tflq.base.errors",
    "MissingPackageError": "tflq.base.errors",
    "Module": "tflq.ir.module",
    "NotApplicable": "tflq.legalize.rule",
    "OptionError": "tflq.base.errors",
    "Quantization": "tflq.tools.quantize.report",
    "QuantizedRow": "tflq.tools.quantize.report",
    "Reason": "tflq.base.errors",
    "Reduction": "tflq.tools.debug.reduction",
    "Report": "tflq.conversion.report",
    "Row": "tflq.conversion.report",
    "RuleBuilder": "tflq.legalize.rule",
    "Run": "tflq.tools.verify.outcome",
    "RunTime": "tflq.tools.verify.outcome",
    "TflqError": "tflq.base.errors",
    "UnsupportedError": "tflq.base.errors",
    "Verification": "tflq.tools.verify.outcome",
    "VerificationError": "tflq.base.errors",
    "bisect": "tflq.tools.debug.bisection",
    "calibrate": "tflq.tools.quantize.calibration.calibrate",
    "convert": "tflq.conversion.convert",
    "debug": "tflq.tools.quantize.debugging.debugging",
    "inspect": "tflq.tools.inspect",
    "quantize": "tflq.tools.quantize.quantize",
    "read": "tflq.formats.sources",
    "reduce": "tflq.tools.debug.reduction",
    "run_sweep": "tflq.tools.sweep.sweeping",
    "verify": "tflq.tools.verify.verifying",
    "write": "tflq.formats.sources",
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
