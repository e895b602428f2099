"""The QDQ form: each quantized operator on real numbers, between DEQUANTIZELINEAR and QUANTIZELINEAR."""
