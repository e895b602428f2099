"""Verification: two models in the interpreter, on the same inputs, compared.

The only part of the project that runs an interpreter, and it does so in processes of their own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.verification.difference import Difference, Tolerance
    from tflq.verification.outcome import Apart, Divergence, Expected, Layers, Run, Verification
    from tflq.verification.verifying import verify

__all__ = [
    "Apart",
    "Difference",
    "Divergence",
    "Expected",
    "Layers",
    "Run",
    "Tolerance",
    "Verification",
    "verify",
]

_HOME = {
    **dict.fromkeys(("Difference", "Tolerance"), "tflq.verification.difference"),
    **dict.fromkeys(
        ("Apart", "Divergence", "Expected", "Layers", "Run", "Verification"), "tflq.verification.outcome"
    ),
    "verify": "tflq.verification.verifying",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Imports a name from its module when it is asked for: a thread that imports a module of this package never
        waits for one that imports the package."""
        if name not in _HOME:
            raise AttributeError(f"module 'tflq.verification' has no attribute '{name}'")
        return getattr(import_module(_HOME[name]), name)
