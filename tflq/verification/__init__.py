"""Verification: two models in the interpreter, on the same inputs, compared.

The only part of the project that runs an interpreter, and it does so in processes of their own.
"""

from tflq.verification.difference import Difference, Tolerance, difference
from tflq.verification.outcome import Agreement, Apart, Divergence, Expected, KernelShare, Layers, Run, Verification
from tflq.verification.timing import RunTime
from tflq.verification.verifying import verify

__all__ = [
    "Agreement",
    "Apart",
    "Difference",
    "Divergence",
    "Expected",
    "KernelShare",
    "Layers",
    "Run",
    "RunTime",
    "Tolerance",
    "Verification",
    "difference",
    "verify",
]
