"""What each op of the core dialects becomes: a function of the op, what emits, and its operands as they are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tflq.registering import Registry

__all__ = ["Form", "form", "of_tensors"]

Form: TypeAlias = Callable[..., Any]

_MODULES: Final = {
    "arith.integers": ("integers",),
    "arith.extended": (),
    "arith.floats": ("floats",),
    "arith.casts": ("casts",),
    "arith.comparison": ("comparison",),
    "math.rounding": ("floats",),
    "math.functions": ("floats",),
    "math.several": ("floats",),
    "math.integers": ("integers",),
    "math.classes": ("comparison",),
    "tensor.making": ("tensors",),
    "tensor.views": ("tensors",),
    "tensor.parts": ("tensors",),
    "shape.extents": ("tensors",),
    "linalg.generic": ("loops",),
}

form: Final[Registry[Form]] = Registry("tflq.legalize.core", _MODULES)
"""Of ops that compute element by element: `(op, emitter, *operands) -> value`."""

of_tensors: Final[Registry[Form]] = Registry("tflq.legalize.core", _MODULES)
"""Of all others: `(op, translation) -> value`."""
