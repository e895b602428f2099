"""MLIR's syntax: lexer, parser, printer."""
