"""Weights and biases fitted to the inputs that the quantized network gives."""
