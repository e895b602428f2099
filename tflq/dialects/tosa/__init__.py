"""TOSA 1.0, the operators of the integer form. What TOSA passes as compile-time-constant operands (multiplier,
shift, zero
points, perms, pad amounts) are attributes. Operands of elementwise ops broadcast as numpy's; layouts are NHWC with OHWI
filters; integers wrap. uint8 is an element type like int8, and i64 stands for i48. Semantics are those of the TOSA 1.0
specification, except as a class says.
"""

from typing import Final

from tflq.ir.registry import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect(
    "tosa",
    __name__,
    {
        "arithmetic": (
            "abs",
            "add",
            "intdiv",
            "maximum",
            "minimum",
            "mul",
            "negate",
            "pow",
            "sub",
        ),
        "activation": (
            "ceil",
            "clamp",
            "cos",
            "erf",
            "exp",
            "floor",
            "log",
            "reciprocal",
            "rsqrt",
            "sigmoid",
            "sin",
            "tanh",
        ),
        "bits": (
            "arithmetic_right_shift",
            "bitwise_and",
            "bitwise_not",
            "bitwise_or",
            "bitwise_xor",
            "clz",
            "logical_and",
            "logical_left_shift",
            "logical_not",
            "logical_or",
            "logical_right_shift",
            "logical_xor",
        ),
        "comparison": (
            "equal",
            "greater",
            "greater_equal",
            "select",
        ),
        "convolution": (
            "conv2d",
            "conv3d",
            "depthwise_conv2d",
            "transpose_conv2d",
        ),
        "matmul": ("matmul",),
        "pooling": (
            "avg_pool2d",
            "max_pool2d",
        ),
        "reduction": (
            "argmax",
            "reduce_all",
            "reduce_any",
            "reduce_max",
            "reduce_min",
            "reduce_product",
            "reduce_sum",
        ),
        "movement": (
            "concat",
            "identity",
            "pad",
            "reshape",
            "reverse",
            "slice",
            "tile",
            "transpose",
        ),
        "indexing": (
            "gather",
            "scatter",
            "table",
        ),
        "resize": ("resize",),
        "casts": (
            "cast",
            "rescale",
        ),
        "control": (
            "cond_if",
            "while_loop",
        ),
        "state": (
            "variable",
            "variable_read",
            "variable_write",
        ),
    },
)
