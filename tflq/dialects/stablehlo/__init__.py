"""The `stablehlo` dialect, with the specification's semantics, and with the functions that convert what a reduction
accumulates.

Declared are the ops that are verified and evaluated; others of the dialect are read and kept as they are.
"""
