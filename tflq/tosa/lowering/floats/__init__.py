"""Float operators of TFLite → float operators of TOSA."""

from tflq.tosa.lowering.floats import angle, convolution, normalization, power, recurrent, unary

__all__ = ["angle", "convolution", "normalization", "power", "recurrent", "unary"]
