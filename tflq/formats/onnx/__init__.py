"""ONNX: what the operators of the integer form become there, and files."""
