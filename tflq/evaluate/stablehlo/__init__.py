"""Evaluators of the `stablehlo` dialect, with the specification's semantics."""
