"""Operators of an original whose results a conversion cannot or does not reproduce, and why.

What follows such an operator says nothing of the conversion unless both models go on with the same values: the result
of the original is fed to the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tflq.errors import FileError, OptionError, Reason, not_expected
from tflq.files import read_json
from tflq.verification.model_file import Graph, Operator, Tensor

if TYPE_CHECKING:
    from tflq.report import Report

ReportLike: TypeAlias = "Report | Mapping[str, Any] | str | os.PathLike[str]"
"""The report of a conversion, its JSON form, or a file of that."""

_NOT_REPRODUCED: Final = frozenset({"broken", "inexact", "unsettled"})
"""The exceptions in docs/exceptions.md whose results are not the interpreter's."""

_SUM: Final = "the reference kernel of SUM reads {type} as uint8; the optimized kernel computes in float32"

_BLOCKS: Final = "the reference kernel ignores the scales per block of '{}'; the optimized one drops a fused activation"
_BLOCKWISE: Final = 2
"""The kind of quantization details that says so: BlockwiseQuantization."""

_SEVERAL: Final = "the kernel finds no scale in '{}', which has several"

_ONE_SCALE: Final = frozenset(
    "ABS BATCH_MATMUL DIV ELU EXP GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MEAN MUL NEG PRELU QUANTIZE REDUCE_MAX "
    "REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RSQRT SQRT SUB SUM TANH".split()
)
"""Operators whose kernels run on tensors with several scales, and read the single one that these do not have."""

_HYBRID: Final = frozenset(
    "BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN".split()
)
"""Operators with kernels for float activations and quantized weights, their second operand."""


@dataclass(frozen=True)
class Expectation:
    """Why an operator's result may differ. within: by how many counts at most; None: by any number; 0: it may not.
    apart: it runs on other kernels, because its reference kernel is wrong."""

    reason: str
    within: float | None = None
    apart: bool = False


def broken(graph: Graph) -> dict[int, Expectation]:
    """The operators of a graph whose reference kernels are wrong, by index."""
    return {i: why for i in range(len(graph.operators)) for why in _wrong(graph, i)}


def _wrong(graph: Graph, index: int) -> Iterator[Expectation]:
    op = graph.operators[index]
    several = next((name for name in _several_scales(graph, op)), None)
    if several is not None:
        yield Expectation(_SEVERAL.format(several))
        return
    operand = graph.tensor(op.inputs[0]) if op.inputs and op.inputs[0] >= 0 else None
    if op.opcode == "SUM" and operand is not None and operand.type in ("int8", "int16") and operand.scales.size:
        yield Expectation(_SUM.format(type=operand.type), within=1, apart=True)
    if op.opcode == "FULLY_CONNECTED" and operand is not None and operand.type == "float32":
        weights = graph.tensor(op.inputs[1])
        if weights.details == _BLOCKWISE:
            yield Expectation(_BLOCKS.format(weights.name), within=0, apart=True)


def rounding(graph: Graph) -> list[int]:
    """The operators of a graph whose kernels round float activations to 8 bits as they run, by index: hybrid ones, on
    quantized weights."""
    return [i for i, op in enumerate(graph.operators) if _rounds(graph, op)]


def _rounds(graph: Graph, op: Operator) -> bool:
    if op.opcode not in _HYBRID or min(op.inputs[:2], default=-1) < 0:
        return False
    x, weights = (graph.tensor(t) for t in op.inputs[:2])
    return x.type == "float32" and weights.type.endswith(("int8", "int4", "int2")) and _has_scales(weights)


def _has_scales(weights: Tensor) -> bool:
    return weights.scales.size > 0 or weights.details == _BLOCKWISE


def _several_scales(graph: Graph, op: Operator) -> Iterator[str]:
    """The tensors with several scales of which a kernel reads the single one."""
    if op.opcode not in _ONE_SCALE:
        return
    asked = {"BATCH_MATMUL": op.outputs, "QUANTIZE": op.inputs}.get(op.opcode, (*op.inputs, *op.outputs))
    for tensor in (graph.tensor(t) for t in asked if t >= 0):
        if tensor.scales.size > 1:
            yield tensor.name


def reported(report: ReportLike) -> dict[tuple[int, int], Expectation]:
    """The operators of which a conversion's report warns that they are not reproduced, by subgraph and number.
    FileError, OptionError."""
    if not isinstance(report, (Mapping, str, os.PathLike)):
        if not hasattr(report, "to_json"):
            raise not_expected("report", report, "the report of a conversion, its JSON form, or a file of that")
        report = report.to_json()
    name = "this" if isinstance(report, Mapping) else os.fspath(report)
    document = report if isinstance(report, Mapping) else _read_report(report)
    document = document.get("report", document)  # what `convert --json` prints holds one
    if document.get("format") != "tflq.report":
        raise OptionError(
            Reason(f"{name} is not the report of a conversion", remedy="give what `convert --report` writes")
        )
    rows = [row for row in document["rows"] if row.get("exception") in _NOT_REPRODUCED and row["warning"]]
    return {(row["subgraph"], row["operator"]): Expectation(row["warning"]) for row in rows}


def _read_report(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise FileError(os.fspath(path), "not the report of a conversion")
    return document
