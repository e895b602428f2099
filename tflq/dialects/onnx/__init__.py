"""ONNX, opset 18: the operators that tflq writes, on the element types that ONNX Runtime computes on a CPU. A class has
ONNX's name of the operator, and its operands, results and attributes are ONNX's; layouts are NCHW with OIHW filters.
Integers wrap. Semantics are those of the ONNX specification, except as a class says.
"""
