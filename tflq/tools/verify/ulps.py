"""Largest difference of two correct float results, where a format does not define floats to the last bit.

TOSA and ONNX leave it open in which order sums are taken, and by how many units in the last place (ulps) functions are
off. The original's kernels round, too. Allowed is what the roundings on the longest path to an output add up to on both
sides, in ulps of the output's largest value. Those of a sum of n terms grow with the root of n, as independent
roundings do. docs/numerics.md, "Floats on TOSA and ONNX".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil, prod, sqrt
from typing import Any, Final

from tflq.ir.module import Function
from tflq.ir.ops import Op
from tflq.tools.verify.model_file import Graph, Operator, names_of

MOST: Final = 4096
"""Ulps that are allowed at most, whatever a file computes: 2^-11 of the largest value, float16's own rounding."""

_OF_FUNCTION: Final = 4
_CORNERS: Final = 4
_DEVIATIONS: Final = 4
"""Times the root of n, for a sum of n terms: fewer than one element in a thousand is further off."""

Step = tuple[Iterable[Hashable], Iterable[Hashable], int]
"""The values that an operator reads, those that it computes, and the ulps that it adds."""


def _along(steps: Iterable[Step]) -> int:
    """The ulps that two results of these operators may differ by."""
    ulps: dict[Hashable, int] = {}
    for reads, results, added in steps:
        before = max((ulps.get(value, 0) for value in reads), default=0)
        ulps.update(dict.fromkeys(results, before + added))
    return min(2 * max(ulps.values(), default=0), MOST)


def _of_sum(terms: int) -> int:
    return ceil(_DEVIATIONS * sqrt(terms))


# Operators of TOSA.


_ROUNDED: Final = frozenset(("add", "sub", "mul", "cast"))
_FUNCTIONS: Final = frozenset(("cos", "erf", "exp", "log", "pow", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh"))
_WEIGHTED: Final = frozenset(("conv2d", "conv3d", "transpose_conv2d"))


def allowed_ulps(function: Function) -> int:
    """Ulps by which the float results of a TOSA function may differ; 0 if it computes none."""
    floats = (op for op in function.ops if any(v.type.storage.is_float for v in op.results))
    return _along((op.present_operands, op.results, _of_tosa(op)) for op in floats)


def _of_tosa(op: Op) -> int:
    """The ulps that an operator adds: roundings of one value of its result."""
    name = op.name.removeprefix("tosa.")
    if name in ("cond_if", "while_loop", "custom"):
        return MOST
    terms = _terms(op, name)
    if terms is not None:
        return _of_sum(terms)
    return _OF_FUNCTION if name in _FUNCTIONS else int(name in _ROUNDED)


def _terms(op: Any, name: str) -> int | None:
    """Number of terms that an operator adds up; None if it is not a sum."""
    shapes = [[d or 1 for d in v.type.dims] if v is not None else [] for v in op.operands]
    if name in _WEIGHTED:
        return prod(shapes[1][1:]) + 1
    if name == "depthwise_conv2d":
        return prod(shapes[1][:2]) + 1
    if name == "matmul":
        return shapes[0][-1]
    if name == "avg_pool2d":
        return prod(op.kernel) + 1
    if name in ("reduce_sum", "reduce_product"):
        return shapes[0][op.axis]
    if name in ("fft2d", "rfft2d"):
        return prod(shapes[0])
    if name == "resize":
        return _CORNERS
    return None


# Operators of a TFLite graph, for a file that does not say what its own are: they are those of the original.


_EXACT: Final = frozenset(
    "ABS ARG_MAX ARG_MIN BATCH_TO_SPACE_ND BROADCAST_TO CEIL CONCATENATION DEPTH_TO_SPACE DYNAMIC_UPDATE_SLICE "
    "EMBEDDING_LOOKUP EXPAND_DIMS FILL FLOOR GATHER GATHER_ND MAX_POOL_2D MAXIMUM MINIMUM MIRROR_PAD NEG ONE_HOT PACK "
    "PAD PADV2 RANGE READ_VARIABLE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE "
    "RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 ROUND SCATTER_ND SELECT SELECT_V2 SIGN SLICE "
    "SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE TOPK_V2 TRANSPOSE UNPACK WHERE "
    "ZEROS_LIKE".split()
)
_ONE_ROUNDING: Final = frozenset("ADD CAST DEQUANTIZE DIV LEAKY_RELU MUL PRELU SQRT SQUARE SUB".split())
_OPEN: Final = frozenset(
    "BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN CALL CUMSUM IF LSTM RNN STABLEHLO_COMPOSITE SVDF "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN WHILE".split()
)
"""Operators that run others, or add up along their steps."""

Shapes = Sequence[Sequence[int]]
_SUMS: Final[dict[str, Callable[[Shapes], int]]] = {
    "ADD_N": len,
    "BATCH_MATMUL": lambda shapes: max(shapes[0][-2:]),
    "CONV_2D": lambda shapes: prod(shapes[1][1:]) + 1,
    "CONV_3D": lambda shapes: prod(shapes[1][:4]) + 1,
    "DEPTHWISE_CONV_2D": lambda shapes: prod(shapes[1][:3]) + 1,
    "FULLY_CONNECTED": lambda shapes: shapes[1][-1] + 1,
    "L2_NORMALIZATION": lambda shapes: shapes[0][-1] + 1,
    "LOG_SOFTMAX": lambda shapes: shapes[0][-1] + _OF_FUNCTION**2,
    "RESIZE_BILINEAR": lambda _: _CORNERS,
    "SOFTMAX": lambda shapes: shapes[0][-1] + _OF_FUNCTION**2,
    "TRANSPOSE_CONV": lambda shapes: prod(shapes[1][1:]) + 1,
} | dict.fromkeys(
    ("AVERAGE_POOL_2D", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION", "MEAN", "REDUCE_PROD", "RFFT2D", "SUM"),
    lambda shapes: prod(shapes[0]),
)
"""The terms that an operator adds up, at most, by the shapes of its operands."""


def graph_ulps(graph: Graph) -> int:
    """Ulps by which float results may differ of a file with the operators of a TFLite graph; 0 if it has no floats."""
    floats = (op for op in graph.operators if any(_is_float(graph, t) for t in op.outputs))
    return _along((op.inputs, op.outputs, _of_builtin(graph, op)) for op in floats)


def _is_float(graph: Graph, tensor: int) -> bool:
    return tensor >= 0 and graph.tensor(tensor).type.startswith(("float", "bfloat", "complex"))


def _of_builtin(graph: Graph, op: Operator) -> int:
    """The ulps that an operator adds."""
    is_custom = op.opcode not in names_of("BuiltinOperator").values()
    if op.opcode in _OPEN or op.calls or is_custom:
        return MOST
    if op.opcode in _SUMS:
        shapes = [graph.tensor(t).shape if t >= 0 else () for t in op.inputs]
        return _of_sum(max(_SUMS[op.opcode](shapes), 1))
    if op.opcode in _EXACT:
        return 0
    return 1 if op.opcode in _ONE_ROUNDING else _OF_FUNCTION
