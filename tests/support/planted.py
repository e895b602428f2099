"""Faults to plant in a conversion: each alters, as a wrong rule or lowering would, what some operators become.

A fault goes by what an operator is, not by where it is, so that it is in every part of the model with that operator.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import pytest

from tflq.formats import pipeline as pipelines
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, constant
from tflq.transforms.pass_manager import Pass, PassResult

Fault: TypeAlias = Callable[[Op, Function], None]


def _of(op: Op, opcode: str, name: str, channels: int | None = None) -> bool:
    """Whether an op of the integer form is one of those that an operator of the source becomes."""
    if op.location is None or (op.location.opcode, op.name) != (opcode, name):
        return False
    return channels is None or (op.result.type.shape or (None,))[-1] == channels


def wrong_shift(op: Op, _: Function) -> None:
    """The last channel of a depthwise convolution is shifted by one bit too few."""
    if _of(op, "DEPTHWISE_CONV_2D", "tosa.rescale"):
        shift = op.attributes["shift"].copy()
        shift[-1] -= 1
        op.attributes["shift"] = shift


def dropped_activation(op: Op, function: Function) -> None:
    """A LEAKY_RELU of 32 channels does nothing: it takes the positive branch everywhere."""
    if _of(op, "LEAKY_RELU", "tosa.select", 32):
        function.replace({op.result: op.operand(1)})


def swapped_operands(op: Op, _: Function) -> None:
    """ADD takes its operands from their zero points, and not these from them, where there are 160 channels."""
    if _of(op, "ADD", "tosa.sub", 160):
        op.operands.reverse()


def swapped_largest(op: Op, _: Function) -> None:
    """SOFTMAX takes the elements from the largest of them in the wrong order, which no kernel broadcasts."""
    if _of(op, "SOFTMAX", "tosa.sub") and op.operand(0).type.shape != op.operand(1).type.shape:
        op.operands.reverse()


def swapped_parts(op: Op, _: Function) -> None:
    """CONCATENATION joins its inputs in the wrong order."""
    if _of(op, "CONCATENATION", "tfl.concatenation"):
        op.operands.reverse()


def wrong_table_entry(op: Op, _: Function) -> None:
    """The last entry of TANH's table is one too small."""
    if _of(op, "TANH", "tosa.table"):
        entries = op.operand(1).array.copy()
        entries[-1] -= 1
        op.operands[1] = constant(entries)


def wrong_zero_point(op: Op, _: Function) -> None:
    """Convolutions to 144 channels take another zero point of the input."""
    if _of(op, "CONV_2D", "tosa.conv2d", 144):
        op.attributes["input_zp"] += 1


def wrong_padding(op: Op, _: Function) -> None:
    """A stride of 2 is padded on the other side."""
    if _of(op, "DEPTHWISE_CONV_2D", "tosa.depthwise_conv2d") and op.attributes["pad"] == (0, 1, 0, 1):
        op.attributes["pad"] = (1, 0, 1, 0)


def dropped_bias(op: Op, _: Function) -> None:
    """FULLY_CONNECTED forgets its bias."""
    if _of(op, "FULLY_CONNECTED", "tosa.conv2d"):
        op.operands[2] = constant(np.zeros_like(op.operand(2).array))


def wrong_after_add(op: Op, _: Function) -> None:
    """A convolution that reads a sum takes its zero point for another: two operators are needed."""
    if _of(op, "CONV_2D", "tosa.conv2d", 192):
        before = op.operand(0).producer
        if before is not None and before.location is not None and before.location.opcode == "ADD":
            op.attributes["input_zp"] += 3


def raises(op: Op, _: Function) -> None:
    """The rule of MEAN has a bug."""
    if op.location is not None and op.location.opcode == "MEAN":
        raise IndexError("list index out of range")


def crashes(op: Op, _: Function) -> None:
    """Conversion of MAX_POOL_2D takes the process down."""
    if op.location is not None and op.location.opcode == "MAX_POOL_2D":
        os.kill(os.getpid(), signal.SIGSEGV)


FAULTS: list[tuple[Fault, str, str, int]] = [
    (wrong_shift, "models/cnn_int16x8.tflite", "differs", 1),
    (dropped_activation, "models/cnn_int16x8.tflite", "differs", 1),
    (wrong_table_entry, "models/two_signatures.tflite", "differs", 1),
    (raises, "models/cnn_int8.tflite", "error: IndexError", 1),
    (crashes, "models/cnn_int8.tflite", "crash: SIGSEGV", 1),
    (swapped_largest, "zoo/test_data/mobilenet_v1_0.25_128_quant.tflite", "does not run", 1),
    (swapped_operands, "zoo/tiny/pretrainedResnet_large_int8.tflite", "differs", 1),
    (swapped_parts, "zoo/ai-edge-quantizer/branching_conv_fc.tflite", "differs", 1),
    (wrong_zero_point, "zoo/test_data/mobilenet_v2_1.0_224_quant.tflite", "differs", 1),
    (wrong_padding, "zoo/tiny/vww_96_int8.tflite", "differs", 1),
    (dropped_bias, "zoo/tiny/pretrainedResnet_large_int8.tflite", "differs", 1),
    (wrong_after_add, "zoo/test_data/tf2_mobilenet_v2_1.0_224_ptq.tflite", "differs", 2),
]
"""The fault, a network of ours or of the corpus, what kind of failure it is, and how many operators show it."""


@dataclass(frozen=True)
class Plant(Pass):
    """Makes the fault."""

    name: ClassVar[str] = "plant"
    fault: Fault

    def run(self, module: Module) -> PassResult:
        for function in module.functions:
            for op in list(function.ops):
                self.fault(op, function)
        return PassResult(module, modified=True)


Plant.__module__ = "tflq.planted"  # an error in a pass that is not tflq's own would be the user's


def plant(fault: Fault, patch: pytest.MonkeyPatch) -> None:
    """Has every conversion make the fault, in the integer form."""
    simplification = pipelines._simplification
    patch.setattr(pipelines, "_simplification", lambda semantics: [*simplification(semantics), Plant(fault)])
