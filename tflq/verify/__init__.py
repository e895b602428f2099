"""Verification: two models in the interpreter, on the same inputs, compared.

The only part of the project that runs an interpreter, and it does so in processes of their own.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tflq.verify.comparison import verify
from tflq.verify.difference import Difference, difference
from tflq.verify.verification import Divergence, Layers, Run, Verification

__all__ = ["Difference", "Divergence", "Layers", "Run", "Verification", "difference", "verify"]


class _CallablePackage(ModuleType):
    """`tflq.verify` is the library's call, and importing this package puts the package in its place: so it can be
    called.
    """

    def __call__(self, *args: Any, **options: Any) -> Verification:
        return verify(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
