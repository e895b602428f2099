"""What each op of the integer form becomes in ONNX, by family."""
