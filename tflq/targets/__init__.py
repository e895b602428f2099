"""Targets of TFLite files: which quantized kernels a device has, and under which constraints on scales."""

from tflq.targets.constraints import constraint
from tflq.targets.load import is_of_tosa, load_target
from tflq.targets.target import INTEGER, Target, Verdict

__all__ = ["INTEGER", "Target", "Verdict", "constraint", "is_of_tosa", "load_target"]
