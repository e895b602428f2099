"""The `math` dialect of MLIR: functions of numbers, on scalars and, element by element, on tensors."""
