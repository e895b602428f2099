"""What TOSA 1.0 demands of each operator beyond element types."""

from tflq.tosa.laws import control, elementwise, movement, scaling, windows
from tflq.tosa.laws.registry import LAWS, Context

__all__ = ["LAWS", "Context", "control", "elementwise", "movement", "scaling", "windows"]
