"""The `quant` dialect: the ops between real values, quantized values and their storage, statistics of values, and
regions that stand for kernels."""
