"""Targets of TFLite files: which quantized kernels a device has, and under which constraints on scales."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tflq.targets.target import INTEGER, Target, Verdict

if TYPE_CHECKING:
    from tflq.targets.constraints import constraint
    from tflq.targets.load import is_of_tosa, load_target

__all__ = ["INTEGER", "Target", "Verdict", "constraint", "is_of_tosa", "load_target"]

_HOME = {
    "constraint": "tflq.targets.constraints",
    "is_of_tosa": "tflq.targets.load",
    "load_target": "tflq.targets.load",
}


def __getattr__(name: str) -> Any:
    """Imports what reads a target's file when it is asked for: the target "integer" has none."""
    if name not in _HOME:
        raise AttributeError(f"module 'tflq.targets' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
