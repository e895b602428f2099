"""Targets of TFLite files: which quantized kernels a device has, and under which constraints on scales."""
