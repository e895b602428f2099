"""Text of MLIR as a source: the core dialects, their rules and evaluators, and the passes of the quant RFC."""
