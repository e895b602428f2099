"""TFLite: reader, checks and writer of its files, and the lowering of the integer form to builtins."""
