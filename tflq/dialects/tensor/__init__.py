"""The `tensor` dialect of MLIR: tensors made, taken apart and seen in other shapes; no element is computed."""
