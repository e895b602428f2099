"""What float operators of TFLite are made of: quotients, activations, constants that were quantized."""
