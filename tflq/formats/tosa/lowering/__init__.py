"""The integer form → operators of TOSA 1.0: one lowering per op, one file or folder per family."""
