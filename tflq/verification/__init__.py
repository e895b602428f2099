"""Verification: two models in the interpreter, on the same inputs, compared.

The only part of the project that runs an interpreter, and it does so in processes of their own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.verification.difference import Difference, Tolerance
    from tflq.verification.outcome import (
        Agreement,
        Apart,
        Divergence,
        Expected,
        KernelShare,
        Layers,
        Run,
        Verification,
    )
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
    "verify",
]

_HOME = {
    **dict.fromkeys(("Difference", "Tolerance"), "tflq.verification.difference"),
    **dict.fromkeys(
        ("Agreement", "Apart", "Divergence", "Expected", "KernelShare", "Layers", "Run", "Verification"),
        "tflq.verification.outcome",
    ),
    "RunTime": "tflq.verification.timing",
    "verify": "tflq.verification.verifying",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Imports a name from its module when it is asked for: a thread that imports a module of this package never
        waits for one that imports the package."""
        if name not in _HOME:
            raise AttributeError(f"module 'tflq.verification' has no attribute '{name}'")
        return getattr(import_module(_HOME[name]), name)
