"""Verification: two models in the interpreter, on the same inputs, compared.

The only part of the project that runs an interpreter, and it does so in processes of their own.
"""

from tflq.verification.comparison import verify
from tflq.verification.difference import Difference, difference
from tflq.verification.outcome import Divergence, Layers, Run, Verification

__all__ = ["Difference", "Divergence", "Layers", "Run", "Verification", "difference", "verify"]
