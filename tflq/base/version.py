"""The version of tflq."""

__version__ = "2.0.0"
