"""Verification: two models in the interpreter, on the same inputs, compared.

The only part of the project that runs an interpreter, and it does so in processes of their own.
"""
