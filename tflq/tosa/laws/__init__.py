"""What TOSA 1.0 demands of each operator beyond element types."""

from tflq.tosa.laws.registry import Context, law

__all__ = ["Context", "law"]
