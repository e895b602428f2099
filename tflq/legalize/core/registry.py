"""What each op of the core dialects becomes: a function of the op, what emits, and its operands as they are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tflq.registering import Registry

__all__ = ["Form", "form", "of_tensors"]

Form: TypeAlias = Callable[..., Any]

form: Final[Registry[Form]] = Registry("tflq.legalize.core")
"""Of ops that compute element by element: `(op, emitter, *operands) -> value`."""

of_tensors: Final[Registry[Form]] = Registry("tflq.legalize.core")
"""Of all others: `(op, translation) -> value`."""
