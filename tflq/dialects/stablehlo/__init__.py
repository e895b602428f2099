"""The `stablehlo` dialect, with the specification's semantics. The ops that are verified and evaluated are declared;
others are read and kept as they are.
"""
