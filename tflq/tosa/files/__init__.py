"""TOSA files: flatbuffers read and written, MLIR text written."""
