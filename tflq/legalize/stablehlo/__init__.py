"""STABLEHLO operators on quantized tensors."""
