"""TOSA 1.0, the operators of the integer form. What TOSA passes as compile-time-constant operands (multiplier, shift,
zero points, perms, pad amounts) are attributes. Operands of elementwise ops broadcast as numpy's; layouts are NHWC with
OHWI filters; integers wrap. uint8 is an element type like int8, and i64 stands for i48. Semantics are those of the TOSA
1.0 specification, except as a class says.
"""
