"""Calibration: runs of a model on samples, and what they saw of its values."""
