"""Lowering of pooling: the builtins, which are right on plain integers and do not count padding, as TOSA.

TFLite gives the padding a name.
"""

from __future__ import annotations

from tflq.errors import UnsupportedError
from tflq.ir.core import Op, Value
from tflq.numerics.convolution import window
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []

_BUILTINS = {"tosa.avg_pool2d": "tfl.average_pool_2d", "tosa.max_pool2d": "tfl.max_pool_2d"}


@lowering(*_BUILTINS)
def pool(op: Op, k: Kernels) -> Value:
    (kernel_h, kernel_w), (stride_h, stride_w) = op.attributes["kernel"], op.attributes["stride"]
    return k.emit(
        _BUILTINS[op.name],
        [k.value(op.operand(0))],
        op.result.type.stripped(),
        padding=_padding(op),
        stride_w=stride_w,
        stride_h=stride_h,
        filter_width=kernel_w,
        filter_height=kernel_h,
        fused_activation_function="NONE",
    )


def _padding(op: Op) -> str:
    """The name of the padding. Without any, VALID is SAME."""
    a = op.attributes
    if not any(a["pad"]):
        return "VALID"
    sizes = (op.operand(0).type.shape or (None,) * 4)[1:3]
    for size, kernel, stride, pad in zip(sizes, a["kernel"], a["stride"], (a["pad"][:2], a["pad"][2:]), strict=True):
        same = window(size, kernel, stride, 1, "SAME")
        if same is None or (same.before, same.after) != tuple(pad):
            reason = f"padding {a['pad']} is neither SAME nor VALID, which is what the kernel has"
            raise UnsupportedError(f"{op.location}: {op.name}: {reason}; pad before it")
    return "SAME"
