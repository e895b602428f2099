"""Targets of TFLite files: which quantized kernels a device has, and under which constraints on scales."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.targets.constraints import constraint

__all__ = ["constraint"]


def __getattr__(name: str) -> object:
    """Imports `constraint`, for files of users, when it is asked for."""
    if name != "constraint":
        raise AttributeError(f"module 'tflq.targets' has no attribute '{name}'")
    from tflq.targets.constraints import constraint

    return constraint
