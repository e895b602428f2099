"""The `shape` dialect of MLIR, on shapes as tensors of sizes (`tensor<?xindex>`)."""
