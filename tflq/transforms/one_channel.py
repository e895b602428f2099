"""one-channel: a depthwise convolution of one channel becomes the convolution that it is.

    depthwise_conv2d(x[N, H, W, 1], w[KH, KW, 1, M])   →   conv2d(x, w[M, KH, KW, 1])

Loops of convolutions multiply whole windows, those of depthwise ones have a channel at a time.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.ir.module import Module
from tflq.ir.ops import Op, constant
from tflq.ir.rewriting import rewrite_ops
from tflq.transforms.pass_manager import Pass, PassResult


class OneChannel(Pass):
    """Makes depthwise convolutions of one channel convolutions."""

    name: ClassVar[str] = "one-channel"
    runs_on: ClassVar[tuple[type, ...]] = (DepthwiseConv2D,)

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: rewrite_ops(function, _convolution))


def _convolution(op: Op) -> list[Op] | None:
    if not isinstance(op, DepthwiseConv2D) or not op.weight.is_constant or op.weight.type.sizes[2] != 1:
        return None
    weights = constant(np.ascontiguousarray(op.weight.array.transpose(3, 0, 1, 2)), op.weight.type.storage)
    operands = [weights if value is op.weight else value for value in op.operands]
    return [Op(Conv2D.op_name, operands, [op.result], dict(op.attributes), op.location)]
